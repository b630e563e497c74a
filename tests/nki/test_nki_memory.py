"""Allocations: what a tile may ask for, where it may lie, and whether all tiles fit together."""

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from utils.facts import figure
from utils.nki.simulator import capacity, launch
from utils.nki.simulator.capacity import usable_bytes
from utils.nki.simulator.enums import MemoryRegion
from utils.nki.simulator.errors import NkiValidationError
from utils.nki.simulator.target import target

SBUF, PSUM = MemoryRegion.sbuf, MemoryRegion.psum
GEN3 = target("trn2")
USABLE = usable_bytes(GEN3, SBUF)


def run(kernel, *arrays, values=False, on="trn2"):
    return launch.run(nki.jit(kernel), arrays, {}, values=values, target=on)


def breaks(kernel, *words: str, on="trn2") -> str:
    """Refused with four parts and all the words, the line among them."""
    with pytest.raises(NkiValidationError) as result:
        run(kernel, on=on)
    text = str(result.value)
    for word in (*words, "\nWhy: ", "\nFix: ", f"\nAt: {__file__}:"):
        assert word in text, text
    return text


def line_of(text: str) -> str:
    """The source of the line that an error names."""
    number = int(text.rpartition(":")[2])
    with open(__file__, encoding="utf-8") as source:
        return source.read().splitlines()[number - 1].strip()


# ---- one tile ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("asked", "words"), [
    (((129, 4), nl.float32), ("129 partitions", "at most 128", "nl.ds(i * 128, 128)")),
    (((300, 4), nl.float32, nl.psum), ("300 partitions in psum", "3 tiles")),
    (((128,), nl.float32), ("(128,)", "2 dimensions", "(128, 1)")),
    (((4, 0), nl.float32), ("(4, 0)", "positive integers")),
    (((4, 2.5), nl.float32), ("(4, 2.5)",)),
    (((True, 4), nl.float32), ("(True, 4)",)),
    (((), nl.float32), ("()",)),
    (((4, USABLE), nl.bfloat16), (f"{USABLE * 2} bytes", f"has {USABLE}")),
    (((4, 4097), nl.float32, nl.psum), ("16388 bytes", "9 banks of 8", "has 16384")),
    (((128, 16, 2048), nl.float32, nl.psum), ("131072 bytes", "64 banks of 8", "16384")),
    (((4, 4), np.float64), ("float64", "float32")),
])  # fmt: skip
def test_tiles_that_no_memory_holds(asked, words):
    breaks(lambda: nl.ndarray(*asked), *words)


def test_the_reserve_of_sbuf_is_kept():
    for name, chip in (("trn1", "trainium1"), ("trn2", "trainium2"), ("trn3", "trainium3")):
        usable = usable_bytes(target(name), SBUF)
        whole = figure(f"{chip}.on_chip.sbuf_per_partition").to("B")
        assert 0 < whole - usable < whole / 8
        run(chain([usable]), on=name)
        breaks(chain([usable + 1]), f"has {usable}", on=name)


@pytest.mark.parametrize(("shape", "buffer", "address", "words"), [
    ((64, 4), nl.sbuf, (65, 0), ("partitions 65 to 128", "128 partitions", "partition 64")),
    ((4, 4), nl.sbuf, (0, USABLE - 8), (f"to {USABLE + 7}", f"byte {USABLE - 16} or before")),
    ((4, 4), nl.sbuf, (0, 6), ("byte 6", "multiple of 4", "use byte 4 or 8")),
    ((4, 4), nl.psum, (0, 1024), ("multiple of 2048", "a bank", "use byte 0 or 2048")),
    ((4, 513), nl.psum, (0, 14336), ("to 16387", "128 partitions of 16384")),
    ((4, 4), nl.sbuf, (0, -4), ("(0, -4)", "pair (partition, byte)")),
    ((4, 4), nl.sbuf, 64, ("address=64",)),
    ((4, 4), nl.shared_hbm, (0, 0), ("in shared_hbm",)),
])  # fmt: skip
def test_addresses_lie_in_the_memory_where_tiles_begin(shape, buffer, address, words):
    breaks(lambda: nl.ndarray(shape, nl.float32, buffer, address=address), *words)


def test_an_address_counts_for_start_partitions_and_banks():
    def kernel(partition, start):
        a = nl.ndarray((16, 8), nl.bfloat16, address=(partition, 0))
        b = nl.ndarray((16, 512), nl.bfloat16)
        ps = nl.ndarray((8, 1024), nl.float32, nl.psum, address=(0, 2048))
        nisa.nc_matmul(dst=ps[:, start : start + 512], stationary=a, moving=b)

    run(lambda: kernel(32, 0))
    breaks(lambda: kernel(16, 0), "partition 16 with 16 partitions", "0, 32, 64, 96")
    breaks(lambda: kernel(0, 256), "bytes 3072 to 5119", "bank 1 and bank 2")


# ---- tiles together ------------------------------------------------------------------------------


def chain(sizes, keep=()):
    """Copies from tile to tile; those in `keep` are read once more at the end."""

    def kernel():
        tiles, last = [], None
        for size in sizes:
            tile = nl.ndarray((128, size), nl.int8)
            nisa.memset(dst=tile, value=0)
            if last is not None:
                nisa.tensor_copy(dst=tile[:, 0:1], src=last[:, 0:1])
            tiles.append(tile)
            last = tile
        for index in keep:
            nisa.tensor_copy(dst=last[:, 0:1], src=tiles[index][:, 0:1])

    return kernel


@settings(max_examples=50)
@given(st.lists(st.integers(1, 500), min_size=1, max_size=8), st.data())
def test_occupancy_counts_tiles_from_first_to_last_use(sizes, data):
    keep = data.draw(st.lists(st.integers(0, len(sizes) - 1), max_size=3))
    program = run(chain(sizes, keep))
    spans = {}
    for instruction in program.instructions:
        for name in ("dst", "src"):
            tile = instruction.args.get(name)
            if tile is not None:
                spans.setdefault(tile.storage.index, []).append(instruction.index)
    expected = [
        sum(
            program.storages[tile].row_bytes
            for tile, used in spans.items()
            if min(used) <= index <= max(used)
        )
        for index in range(len(program.instructions))
    ]
    assert capacity.levels(program).tolist() == expected
    assert not capacity.levels(program, PSUM).any()


def test_tiles_that_do_not_fit_together_are_refused_where_they_overflow():
    third = USABLE // 3 + 1
    run(chain([third] * 6))
    text = breaks(
        chain([third] * 4, keep=(0, 1)),
        f"{3 * third} bytes in each partition of sbuf",
        f"trn2 has {USABLE}",
        "instruction 3 (memset)",
        f"3 of (128, {third}) int8, {3 * third} bytes, from {__file__}:",
    )
    assert line_of(text) == "nisa.memset(dst=tile, value=0)"


def test_the_largest_tiles_are_named_with_their_lines():
    def kernel():
        big = nl.ndarray((128, USABLE // 2), nl.int8)
        nisa.memset(dst=big, value=0)
        small = [nl.ndarray((128, USABLE // 6), nl.int8) for _ in range(4)]
        for item in small:
            nisa.memset(dst=item, value=0)
        for item in (*small, big):
            nisa.tensor_copy(dst=small[0][:, 0:1], src=item[:, 0:1])

    text = breaks(kernel, f"1 of (128, {USABLE // 2})", f"4 of (128, {USABLE // 6})")
    assert text.index("4 of") < text.index("1 of")


def test_products_take_whole_banks():
    def kernel(count, columns=1):
        a = nl.ndarray((128, 128), nl.bfloat16)
        b = nl.ndarray((128, columns), nl.bfloat16)
        tiles = [nl.ndarray((128, columns), nl.float32, nl.psum) for _ in range(count)]
        for _ in range(2):
            for tile in tiles:
                nisa.nc_matmul(dst=tile, stationary=a, moving=b)

    assert capacity.levels(run(lambda: kernel(8)), PSUM).max() == GEN3.psum_bytes
    breaks(lambda: kernel(9), "18432 bytes", "9 banks of 8", "9 of (128, 1) float32")
    run(lambda: kernel(8, 512))


def test_a_tile_across_all_banks_fits_and_a_bank_more_does_not():
    def kernel(more):
        a = nl.ndarray((128, 128), nl.bfloat16)
        b = nl.ndarray((128, 512), nl.bfloat16)
        ps = nl.ndarray((128, 8, 512), nl.float32, nl.psum)
        for bank in range(8):
            nisa.nc_matmul(dst=ps[:, bank, :], stationary=a, moving=b)
        if more:
            extra = nl.ndarray((128, 512), nl.float32, nl.psum)
            nisa.nc_matmul(dst=extra, stationary=a, moving=b)
        out = nl.ndarray((128, 8, 512), nl.float32)
        nisa.tensor_copy(dst=out, src=ps)

    run(lambda: kernel(False))
    breaks(lambda: kernel(True), "9 banks of 8", "1 of (128, 8, 512)", "1 of (128, 512)")


def test_tiles_at_one_address_take_turns():
    def kernel(again):
        first = nl.ndarray((128, 64), nl.float32, address=(0, 128))
        nisa.memset(dst=first, value=1)
        if not again:
            nisa.memset(dst=first, value=2)
        second = nl.ndarray((64, 64), nl.float32, address=(64, 256))
        nisa.memset(dst=second, value=3)
        if again:
            nisa.tensor_copy(dst=second, src=first[64:128])

    run(lambda: kernel(False))
    text = breaks(
        lambda: kernel(True), "(64, 256)", "(0, 128)", "bytes 256 to 383", "partitions 64 to 127",
        "written at instruction 1", f"until 2, at {__file__}:", "from byte 384 on",
    )  # fmt: skip
    assert line_of(text) == "nisa.memset(dst=second, value=3)"


def test_tiles_side_by_side_at_addresses_do_not_meet():
    def kernel():
        tiles = [nl.ndarray((32, 64), nl.float32, address=(p, 0)) for p in (0, 32, 64, 96)]
        tiles.append(nl.ndarray((128, 4), nl.float32, address=(0, 256)))
        for _ in range(2):
            for tile in tiles:
                nisa.memset(dst=tile, value=0)

    assert capacity.levels(run(kernel)).max() == 256 + 16


def test_a_tile_of_indices_lives_as_long_as_it_is_used():
    def kernel(x):
        at = nl.ndarray((8, 1), nl.int32)
        nisa.memset(dst=at, value=0)
        tile = nl.ndarray((8, 4), nl.float32)
        nisa.memset(dst=tile, value=0)
        nisa.dma_copy(dst=tile, src=x.ap([[4, 8], [1, 4]], vector_offset=at))

    result = capacity.levels(run(kernel, np.zeros((8, 4), np.float32)))
    assert result.tolist() == [4, 4 + 16, 4 + 16]
