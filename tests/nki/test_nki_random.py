"""Random bits: every integer type, both engines, and beginning anew."""

import nki.isa as nisa
import nki.language as nl
import numpy as np
import pytest

from tests.nki.nki_bench import cycles, empty, issued, placed, read, refused

SHAPE = (8, 64)


def drawn(dtype: str = "uint32", calls: int = 1, seed: int | None = None) -> list[np.ndarray]:
    def call() -> list[np.ndarray]:
        if seed is not None:
            nisa.set_rng_seed(placed(np.full((1, 1), seed), "uint32"))
        tiles = [empty(SHAPE, dtype) for _ in range(calls)]
        for tile in tiles:
            nisa.rng(tile)
        return [read(tile) for tile in tiles]

    return issued(call)[1]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32"])
def test_every_bit_is_set_in_about_half_of_the_elements(dtype: str):
    (result,) = drawn(dtype)
    width = 8 * result.itemsize
    bits = result.view(f"uint{width}")[..., None] >> np.arange(width).astype(f"uint{width}") & 1
    shares = bits.mean((0, 1))
    assert (abs(shares - 0.5) < 0.15).all(), "six standard deviations of 512 elements"


def test_numbers_go_on_and_are_the_same_in_every_run():
    first, second = drawn(calls=2)
    assert (first != second).any()
    assert (drawn(calls=2)[1] == second).all()


def test_a_seed_begins_anew():
    (one,), (same), (other,) = drawn(seed=3), drawn(seed=3), drawn(seed=4)
    assert (one == same[0]).all() and (one != other).any()


def test_engines():
    assert cycles(lambda: nisa.rng(empty(SHAPE, "int32")))[0] == "vector"
    asked = nisa.engine.gpsimd
    assert cycles(lambda: nisa.rng(empty(SHAPE, "int32"), engine=asked))[0] == "gpsimd"


def test_what_is_refused():
    gpsimd = nisa.engine.gpsimd
    refused(lambda: nisa.rng(empty(SHAPE, "float32")), "float32", "int32")
    refused(lambda: nisa.rng(empty(SHAPE, "int32", "psum"), engine=gpsimd), "PSUM")
    refused(lambda: nisa.rng(empty(SHAPE, "int32"), engine=gpsimd), "gen3", target="trn1")
    refused(
        lambda: nisa.rng(empty(SHAPE, "int32"), engine=nisa.engine.tensor), "nisa.engine.tensor"
    )
    refused(lambda: nisa.set_rng_seed(nl.zeros((1, 2), "uint32", buffer=nl.sbuf)), "2 elements")
