"""Transfers: every element arrives, converted once; each rule by a kernel that breaks it."""

import warnings

import ml_dtypes
import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.nki.nki_bench import breaks, out, sbuf
from utils.nki.simulator import launch
from utils.nki.simulator.errors import DoubtfulKernel, NkiValidationError

RNG = np.random.default_rng(9)
TYPES = {
    "float32": np.float32, "bfloat16": ml_dtypes.bfloat16, "float16": np.float16,
    "float8_e4m3": ml_dtypes.float8_e4m3, "int32": np.int32, "uint8": np.uint8, "int8": np.int8,
}  # fmt: skip


def run(kernel, *arrays, target="trn2", values=True):
    return launch.run(nki.jit(kernel), arrays, {}, target=target, values=values)


def moving(instruction, src, dst, of, into=None, spaces=(nl.shared_hbm, nl.sbuf), **options):
    """A kernel of one transfer, its sides by shape."""

    def kernel():
        a = nl.ndarray(src, dtype=of, buffer=spaces[0])
        b = nl.ndarray(dst, dtype=into or of, buffer=spaces[1])
        instruction(dst=b, src=a, **options)

    return kernel


def copying(src, dst, of="float32", **options):
    return moving(nisa.dma_copy, src, dst, of, **options)


# ---- copies --------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(st.data(), st.sampled_from([*TYPES]), st.sampled_from([*TYPES]))
def test_elements_arrive_in_order_and_are_rounded_once(data, of, into):
    """HBM to SBUF to HBM through strided views of other shapes."""
    rows = data.draw(st.integers(1, 8))
    columns = data.draw(st.integers(1, 12))
    start, step = data.draw(st.integers(0, 3)), data.draw(st.integers(1, 3))
    array = (RNG.standard_normal((rows, start + columns * step)) * 40).astype(TYPES[of])
    view = np.s_[:, start : start + columns * step : step]

    def kernel(x):
        tile = nl.ndarray((rows, columns + 1), dtype=into, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile[:, 1:], src=x[view])
        return out(tile[:, 1:], (rows * columns,))

    wide = array[view].astype(np.float32)
    if of == into:
        expected = array[view]
    elif np.issubdtype(TYPES[into], np.integer):
        limits = np.iinfo(TYPES[into])
        expected = np.clip(np.rint(wide.astype(np.float64)), limits.min, limits.max)
    else:
        expected = wide
    expected = expected.astype(TYPES[into]).reshape(-1)
    assert run(kernel, array).results.tobytes() == expected.tobytes()


def test_one_row_of_hbm_feeds_a_column_and_a_stride_of_0_repeats():
    array = RNG.standard_normal(128).astype(np.float32)

    def kernel(x):
        tile = nl.ndarray((128, 1), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x.ap([[1, 128]]))
        made = out(sbuf(x.ap([[0, 3], [1, 128]])))
        nisa.dma_copy(dst=made[1], src=tile)
        return made

    assert np.array_equal(run(kernel, array).results, np.stack([array] * 3))


def test_a_copy_onto_itself_reads_everything_first():
    array = np.arange(12, dtype=np.float32).reshape(1, 12)

    def kernel(x):
        nisa.dma_copy(dst=x[:, 1:12], src=x[:, 0:11])
        return x

    assert run(kernel, array).results.tolist() == [[0, *range(11)]]


def test_whole_numbers_keep_all_bits_between_equal_types_only():
    array = np.array([[2**24 + 1, -(2**31), 2**31 - 1]], np.int32)

    def kernel(x, into):
        made = nl.ndarray((1, 3), dtype=into, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=made, src=x)
        return made

    assert run(lambda x: kernel(x, "int32"), array).results.tolist() == array.tolist()
    result = run(lambda x: kernel(x, "float32"), array).results
    assert result.tolist() == [[2.0**24, -(2.0**31), 2.0**31]]


@pytest.mark.parametrize(("case", "words"), [
    (copying((128, 512), (128, 256)), ("65536 elements (128, 512) in [[512, 128], [1, 512]]",
                                       "32768 elements (128, 256)", "slice src to the 32768")),
    (copying((300, 4), (128, 4)), ("1200 elements", "3 tiles of 128 rows", "nl.ds(i * 128")),
    (copying((4, 4), (4, 4), spaces=(nl.psum, nl.sbuf)), ("src is in psum", "DMA engines",
                                                           "nisa.tensor_copy")),
    (copying((4, 4), (4, 4), spaces=(nl.sbuf, nl.psum)), ("dst is in psum", "HBM or SBUF")),
    (copying((4, 4), (4, 4), of="float8_e4m3fn_x4", into="float32"), ("float8_e4m3fn_x4",)),
    (copying((4, 4), (4, 4), dge_mode="hwdge"), ("dge_mode='hwdge'", "dge_mode.swdge")),
    (copying((4, 4), (4, 4), into="bfloat16", dge_mode=nisa.dge_mode.hwdge),
     ("src float32 and dst bfloat16", "one type")),
    (copying((4, 4), (4, 4), engine=nisa.engine.sync), ("engine='sync'", "unknown", "hwdge")),
    (copying((4, 4), (4, 4), engine=nisa.engine.vector, dge_mode=nisa.dge_mode.hwdge),
     ("engine='vector'", "sync or scalar")),
    (copying((4, 4), (4, 4), priority=1), ("priority=1 on generation 3", "generation 4")),
    (copying((4, 4), (4, 4), oob_mode="skip"), ("oob_mode='skip'", "oob_mode.skip")),
])  # fmt: skip
def test_broken_rules_of_copies(case, words):
    breaks(case, *words)


def test_rules_of_generations():
    hardware = copying((4, 4), (4, 4), dge_mode=nisa.dge_mode.hwdge, engine=nisa.engine.scalar)
    breaks(hardware, "hwdge on generation 2", "needs 3", target="trn1")
    run(hardware, target="trn2")
    breaks(copying((4, 4), (4, 4), priority=4), "priority=4", "0 to 3", target="trn3")
    run(copying((4, 4), (4, 4), priority=3), target="trn3")


def test_transfers_start_at_any_partition():
    array = np.arange(20, dtype=np.float32).reshape(5, 4)

    def kernel(x):
        tile = nl.ndarray((128, 4), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile[7:17:2], src=x)
        nisa.dma_copy(dst=x, src=tile[7:17:2])
        return x

    assert np.array_equal(run(kernel, array).results, np.arange(20).reshape(5, 4))

    def transposing_there(x):
        tile = nl.ndarray((128, 5), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_transpose(dst=tile[9:13], src=x)
        return out(tile[9:13])

    half = array.astype(np.float16)
    assert np.array_equal(run(transposing_there, half).results, half.T)


# ---- transposes ----------------------------------------------------------------------------------


@settings(max_examples=40)
@given(
    st.lists(st.integers(1, 9), min_size=2, max_size=4).map(tuple),
    st.sampled_from(["bfloat16", "uint8", "float16"]),
    st.booleans(),
    st.booleans(),
)
def test_first_and_last_dimension_change_places(shape, dtype, from_sbuf, given_axes):
    array = RNG.integers(0, 200, shape).astype(TYPES[dtype])
    axes = {2: (1, 0), 3: (2, 1, 0), 4: (3, 1, 2, 0)}[len(shape)]
    expected = array.transpose(axes)

    def kernel(x):
        dst, src = nl.ndarray(expected.shape, dtype=x.dtype), sbuf(x) if from_sbuf else x
        nisa.dma_transpose(dst=dst, src=src, axes=axes if given_axes else None)
        return out(dst)

    assert np.array_equal(run(kernel, array).results, expected)


def test_gathered_rows_are_transposed_and_skipped_ones_left_alone():
    table = RNG.integers(0, 99, (40, 24)).astype(np.float16)
    rows = RNG.integers(0, 48, (32, 1)).astype(np.uint32)

    def kernel(x, indices):
        dst = nl.full((24, 32), 5, x.dtype)
        src = x.ap([[24, 32], [1, 24]], vector_offset=sbuf(indices))
        nisa.dma_transpose(dst=dst, src=src, oob_mode=nisa.oob_mode.skip)
        return out(dst)

    result = run(kernel, table, rows).results
    for column, row in enumerate(rows[:, 0]):
        assert (result[:, column] == (table[row] if row < 40 else 5)).all()


def transposing(src, dst, of="bfloat16", **options):
    return moving(nisa.dma_transpose, src, dst, of, **options)


HARDWARE = {"dge_mode": nisa.dge_mode.hwdge}


@pytest.mark.parametrize(("case", "words"), [
    (transposing((4,), (4, 1)), ("src has 1 dimensions", "2, 3 or 4")),
    (transposing((4, 6), (4, 6)), ("dst is (4, 6)", "becomes (6, 4)")),
    (transposing((4, 6), (6, 4), axes=(0, 1)), ("axes=(0, 1)", "(1, 0)")),
    (transposing((4, 6, 2), (2, 6, 4), axes=(2, 0, 1)), ("(2, 0, 1)", "(2, 1, 0)")),
    (transposing((4, 6), (6, 4), into="float16"), ("src is bfloat16, dst is float16",)),
    (transposing((4, 6), (6, 4), spaces=(nl.sbuf, nl.shared_hbm)), ("dst is in shared HBM",)),
    (transposing((4, 6), (6, 4), spaces=(nl.psum, nl.sbuf)), ("src is in psum",)),
    (transposing((8, 64), (64, 8), **HARDWARE), ("src (8, 64)", "has 16 rows")),
    (transposing((3, 16, 8), (8, 16, 3), **HARDWARE), ("(1, 2, 4, 8, 16)", "multiple of 16")),
    (transposing((2, 7, 8), (8, 7, 2), **HARDWARE), ("(2, 7, 8)", "multiple of 16")),
    (transposing((16, 64), (64, 16), of="uint8", **HARDWARE), ("1 bytes each", "2 bytes")),
    (transposing((4, 6), (6, 4), dge_mode=nisa.dge_mode.swdge), ("swdge", "hwdge")),
    (transposing((4, 6), (6, 4), oob_mode=nisa.oob_mode.skip), ("fixed at compile time",)),
    (transposing((4, 6), (6, 4), priority=0), ("priority=0 on generation 3",)),
])  # fmt: skip
def test_broken_rules_of_transposes(case, words):
    breaks(case, *words)


def test_a_transpose_without_a_generator_is_doubted():
    """Published kernels pass dge_mode=none, which the page of the instruction does not list."""
    with pytest.warns(DoubtfulKernel, match="dge_mode=none"):
        run(transposing((4, 6), (6, 4), dge_mode=nisa.dge_mode.none))


def test_a_gathering_transpose_has_indices_of_uint32():
    def kernel(of, rows):
        x = nl.ndarray((64, 32), dtype=nl.bfloat16, buffer=nl.shared_hbm)
        at = nl.ndarray((rows, 1), dtype=of, buffer=nl.sbuf)
        dst = nl.ndarray((32, rows), dtype=nl.bfloat16, buffer=nl.sbuf)
        nisa.dma_transpose(dst=dst, src=x.ap([[32, rows], [1, 32]], vector_offset=at))

    breaks(lambda: kernel(nl.int32, 32), "int32", "indices of uint32 in SBUF")
    breaks(lambda: kernel(nl.uint32, 24), "(24, 1)", "multiple of 16")
    breaks(lambda: kernel(nl.uint32, 32), "on generation 2", target="trn1")
    run(lambda: kernel(nl.uint32, 32), values=False)


@pytest.mark.parametrize("values", [True, False])
def test_4_bytes_are_doubted(values):
    for _ in range(2):  # also in a second kernel of the same layout
        with pytest.warns(DoubtfulKernel, match="float32 has 4 bytes"):
            run(transposing((4, 6), (6, 4), of="float32"), values=values)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DoubtfulKernel)
        run(transposing((4, 6), (6, 4)), values=values)
        run(transposing((4, 16, 8), (8, 16, 4), **HARDWARE), values=values)


def test_a_pattern_that_no_instruction_takes_may_lie_outside():
    """Published kernels make the pattern of the next step, and then ask whether there is one."""

    def kernel(x, steps):
        made = nl.ndarray((4, 12), nl.float32, buffer=nl.shared_hbm)
        tile = nl.load(x)
        for step in range(3):
            columns = tile.ap([[8, 4], [1, 4]], offset=step * 4)
            if step < steps:
                nisa.dma_copy(made[:, step * 4 : step * 4 + 4], columns)
        return made

    x = np.arange(32, dtype=np.float32).reshape(4, 8)
    assert (nki.simulate(kernel)(x, 2)[:, :8] == x).all()
    with pytest.raises(NkiValidationError, match="4 partitions from partition 1; the tile has 4"):
        nki.simulate(kernel)(x, 3)
