"""Random bits: every integer type, both engines, and beginning anew."""

import nki.isa as nisa
import nki.language as nl
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.nki.nki_bench import cycles, empty, issue, put, read, refuses, result_of

SHAPE = (8, 64)


def draw(dtype: str = "uint32", calls: int = 1, seed: int | None = None) -> list[np.ndarray]:
    def call() -> list[np.ndarray]:
        if seed is not None:
            nisa.set_rng_seed(put(np.full((1, 1), seed), "uint32"))
        tiles = [empty(SHAPE, dtype) for _ in range(calls)]
        for tile in tiles:
            nisa.rng(tile)
        return [read(tile) for tile in tiles]

    return issue(call)[1]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32"])
def test_every_bit_is_set_in_about_half_of_the_elements(dtype: str):
    (result,) = draw(dtype)
    width = 8 * result.itemsize
    bits = result.view(f"uint{width}")[..., None] >> np.arange(width).astype(f"uint{width}") & 1
    shares = bits.mean((0, 1))
    assert (abs(shares - 0.5) < 0.15).all(), "six standard deviations of 512 elements"


def test_numbers_go_on_and_are_the_same_in_every_run():
    first, second = draw(calls=2)
    assert (first != second).any()
    assert (draw(calls=2)[1] == second).all()


def test_a_seed_begins_anew():
    (one,), (same), (other,) = draw(seed=3), draw(seed=3), draw(seed=4)
    assert (one == same[0]).all() and (one != other).any()


def test_engines():
    assert cycles(lambda: nisa.rng(empty(SHAPE, "int32")))[0] == "vector"
    asked = nisa.engine.gpsimd
    assert cycles(lambda: nisa.rng(empty(SHAPE, "int32"), engine=asked))[0] == "gpsimd"


def test_what_is_refused():
    gpsimd = nisa.engine.gpsimd
    refuses(lambda: nisa.rng(empty(SHAPE, "float32")), "float32", "int32")
    refuses(lambda: nisa.rng(empty(SHAPE, "int32", "psum"), engine=gpsimd), "PSUM")
    refuses(lambda: nisa.rng(empty(SHAPE, "int32"), engine=gpsimd), "gen3", target="trn1")
    refuses(
        lambda: nisa.rng(empty(SHAPE, "int32"), engine=nisa.engine.tensor), "nisa.engine.tensor"
    )
    refuses(lambda: nisa.set_rng_seed(nl.zeros((1, 2), "uint32", buffer=nl.sbuf)), "2 elements")


def by_hand(state: list[int], count: int) -> list[int]:
    """XORWOW as Marsaglia writes it, one word after another."""
    x, y, z, w, v, d = state
    words = []
    for _ in range(count):
        t = x ^ (x >> 2)
        x, y, z, w = y, z, w, v
        v = (v ^ (v << 4) ^ t ^ (t << 1)) % 2**32
        d = (d + 362437) % 2**32
        words.append((d + v) % 2**32)
    return words


def test_a_state_that_was_set_gives_the_words_of_its_generator() -> None:
    seeds = np.random.default_rng(3).integers(0, 2**32, (3, 6), np.uint32)

    def call():
        nisa.rand_set_state(put(seeds, "uint32"))
        tile, state = empty((3, 7), "uint32"), empty((3, 6), "uint32")
        nisa.rng(tile, engine=nisa.engine.gpsimd)
        nisa.rand_get_state(state)
        nisa.rand_set_state(state)
        more = empty((3, 4), "uint32")
        nisa.rng(more, engine=nisa.engine.gpsimd)
        return tile, more

    _, (tile, more) = issue(call)
    drawn = np.concatenate([tile.raw(), more.raw()], axis=1)
    assert drawn.tolist() == [by_hand(row, 11) for row in seeds.tolist()]


def test_numbers_of_a_range_fill_it_evenly() -> None:
    low = np.array([[-2.0], [5.0]], np.float32)

    place, most = ((2, 4000), "float32"), {"min": (low, "float32"), "max": 6.0}
    shares = (result_of(nisa.rand2, place, "trn3", **most) - low) / (6.0 - low)
    assert shares.min() >= 0 and shares.max() <= 1
    for row in shares:  # the greatest distance of two distributions: 1.95 / sqrt(n) for 0.1 %
        ordered = np.sort(row)
        assert np.abs(ordered - np.arange(1, 4001) / 4000).max() < 1.95 / 4000**0.5


def test_states_have_their_size_and_their_chip() -> None:
    vector = nisa.engine.vector
    refuses(lambda: nisa.rand_set_state(empty((2, 5), "uint32")), "5 elements", "6 are a state")
    refuses(lambda: nisa.rand_set_state(empty((2, 24), "uint32"), engine=vector), "gen4")
    refuses(lambda: nisa.rand_set_state(empty((2, 6), "uint32")), "gen3", target="trn1")
    refuses(lambda: nisa.rand2(empty((2, 6), "float32"), 0.0, 1.0), "gen4")
    issue(lambda: nisa.rand_set_state(nl.zeros((2, 24), "uint32"), engine=vector), target="trn3")


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4)), min_size=1, max_size=6))
def test_bounds_of_segments_are_where_they_begin_and_end(runs) -> None:
    ids = np.array([number for number, times in runs for _ in range(times)], np.int32)

    place = ((1, 2, len(ids)), "float32")
    result = result_of(nisa.sequence_bounds, place, segment_ids=(ids[None], "int32"))
    for place, (first, end) in enumerate(result[0].T.astype(int).tolist()):
        if ids[place] == 0:
            assert (first, end) == (len(ids), -1)
            continue
        assert first <= place < end and set(ids[first:end]) == {ids[place]}
        assert first == 0 or ids[first - 1] != ids[place]
        assert end == len(ids) or ids[end] != ids[place]
    row = lambda: empty((1, 8), "int32")  # noqa: E731
    refuses(lambda: nisa.sequence_bounds(row(), row()), "(1, 2, n)")
