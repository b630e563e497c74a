"""The Tensor Engine: products and transposes against NumPy, each rule by a kernel breaking it."""

import inspect
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
from utils.nki.simulator.arrays import Shape
from utils.nki.simulator.errors import DoubtfulKernel, NkiValidationError
from utils.nki.simulator.profile import profile

RNG = np.random.default_rng(5)
NUMPY = {"bfloat16": ml_dtypes.bfloat16, "float16": np.float16, "float32": np.float32,
         "float8_e4m3": ml_dtypes.float8_e4m3, "float8_e5m2": ml_dtypes.float8_e5m2,
         "float8_e4m3fn": ml_dtypes.float8_e4m3fn}  # fmt: skip


def whole_numbers(*shape: int, dtype=np.float32, most: int = 3) -> np.ndarray:
    """Small integers: their products and sums are exact in FP32 whatever the order."""
    return RNG.integers(-most, most + 1, shape).astype(dtype)


def run(kernel, *arrays, target="trn2"):
    with warnings.catch_warnings():
        warnings.simplefilter("error", DoubtfulKernel)
        return launch.run(nki.jit(kernel), arrays, {}, target=target).results


def stored(tile):
    """A tile of PSUM, copied to a result of the kernel."""
    return out(nl.copy(tile))


def product(a, b, target="trn2", **options):
    def kernel(a, b):
        ps = nl.ndarray((a.shape[-1], b.shape[-1]), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_matmul(dst=ps, stationary=sbuf(a), moving=sbuf(b), **options)
        return stored(ps)

    return run(kernel, a, b, target=target)


def tiles(stationary, moving, dst, *, of="bfloat16", other=None, into="float32", **options):
    """A kernel of one product, its operands by shape."""

    def kernel():
        a = nl.ndarray(stationary, dtype=of, buffer=nl.sbuf)
        b = nl.ndarray(moving, dtype=other or of, buffer=nl.sbuf)
        ps = nl.ndarray(dst, dtype=into, buffer=nl.psum)
        nisa.nc_matmul(dst=ps, stationary=a, moving=b, **options)

    return kernel


SMALL = ((8, 8), (8, 8), (8, 8))
PART = {"tile_position": (0, 0)}


# ---- products ------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(
    st.integers(1, 128), st.integers(1, 128), st.integers(1, 512), st.sampled_from(sorted(NUMPY))
)
def test_products_of_whole_numbers_are_exact(k, m, n, dtype):
    target = "trn3" if dtype == "float8_e4m3fn" else "trn2"
    a, b = (whole_numbers(k, c, dtype=NUMPY[dtype]) for c in (m, n))
    expected = a.astype(np.float64).T @ b.astype(np.float64)
    assert np.array_equal(product(a, b, target), expected)


def test_products_of_any_numbers_are_within_fp32_of_the_true_one():
    a = RNG.standard_normal((128, 128)).astype(ml_dtypes.bfloat16)
    b = RNG.standard_normal((128, 512)).astype(ml_dtypes.bfloat16)
    result = product(a, b)
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    bound = 128 * np.finfo(np.float32).eps * (np.abs(wide_a).T @ np.abs(wide_b))
    assert result.dtype == np.float32
    assert (np.abs(result - wide_a.T @ wide_b) <= bound).all()


def test_different_types_of_16_and_8_bits_meet():
    a = whole_numbers(32, 8, dtype=ml_dtypes.float8_e5m2)
    b = whole_numbers(32, 16, dtype=ml_dtypes.bfloat16)
    assert np.array_equal(product(a, b), a.astype(float).T @ b.astype(float))


def test_free_dimensions_are_flattened():
    a, b = whole_numbers(16, 2, 3, 4), whole_numbers(16, 5, 7)

    def kernel(a, b):
        ps = nl.ndarray((24, 7, 5), dtype=nl.float32, buffer=nl.psum)
        moving = sbuf(b).permute((0, 2, 1))
        nisa.nc_matmul(dst=ps, stationary=sbuf(a), moving=moving)
        return stored(ps)

    expected = np.einsum("kabc,knm->abcmn", a, b).reshape(24, 7, 5)
    assert np.array_equal(run(kernel, a, b), expected)


def test_double_row_contracts_over_partitions_and_pairs():
    a = whole_numbers(64, 2, 8, dtype=ml_dtypes.float8_e4m3)
    b = whole_numbers(64, 2, 12, dtype=ml_dtypes.float8_e5m2)
    for mode in (nisa.matmul_perf_mode.double_row, "double_row"):
        result = product(a, b, perf_mode=mode)
        assert np.array_equal(result, np.einsum("kpm,kpn->mn", a.astype(float), b.astype(float)))


def test_a_part_of_the_array_makes_the_same_product():
    a, b = whole_numbers(32, 64), whole_numbers(32, 100)
    result = product(a, b, tile_position=(64, 0), tile_size=(32, 64))
    assert np.array_equal(result, a.T @ b)


def test_bfloat16_results_are_rounded_from_generation_4_on():
    a, b = whole_numbers(128, 4), whole_numbers(128, 4)

    def kernel(a, b):
        ps = nl.ndarray((4, 4), dtype=nl.bfloat16, buffer=nl.psum)
        x, y = sbuf(a), sbuf(b)
        for _ in range(3):
            nisa.nc_matmul(dst=ps, stationary=x, moving=y)
        return stored(ps)

    expected = np.zeros((4, 4), ml_dtypes.bfloat16)
    for _ in range(3):
        expected = (expected.astype(np.float32) + a.T @ b).astype(ml_dtypes.bfloat16)
    assert np.array_equal(run(kernel, a, b, target="trn3"), expected)


# ---- accumulation --------------------------------------------------------------------------------


@settings(max_examples=60)
@given(st.data())
def test_every_element_is_overwritten_once_and_then_added_to(data):
    """Overlapping, strided places, against a reference that keeps a flag for each element."""
    steps = []
    for _ in range(data.draw(st.integers(1, 6))):
        first, last = sorted(data.draw(st.lists(st.integers(0, 12), min_size=2, max_size=2)))
        step = data.draw(st.integers(1, 2))
        rows = data.draw(st.integers(1, 4))
        mode = data.draw(st.sampled_from((None, None, False)))
        steps.append((rows, first, last + 1, step, mode))
    a, b = whole_numbers(8, 4), whole_numbers(8, 13)

    def kernel(a, b):
        ps = nl.ndarray((4, 13), dtype=nl.float32, buffer=nl.psum)
        x, y = sbuf(a), sbuf(b)
        for rows, first, last, step, mode in steps:
            view = (slice(0, rows), slice(first, last, step))
            nisa.nc_matmul(
                dst=ps[view], stationary=x[:, 0:rows], moving=y[:, view[1]], accumulate=mode
            )
        return stored(ps)

    expected, written = np.full((4, 13), np.nan, np.float32), np.zeros((4, 13), bool)
    for rows, first, last, step, mode in steps:
        place = (slice(0, rows), slice(first, last, step))
        made = a[:, :rows].T @ b[:, place[1]]
        adds = written[place] & (mode is None)
        expected[place] = np.where(adds, expected[place] + made, made)
        written[place] = True
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DoubtfulKernel)
        result = launch.run(nki.jit(kernel), (a, b), {}).results
    assert np.array_equal(result, expected, equal_nan=True)


def accumulating(flags, fresh: bool, evict: bool = False, fill: float | None = None):
    """Products of ones, K = 2, into one tile or into a new one for each."""

    def kernel(ones):
        x, made = sbuf(ones), nl.ndarray((1, len(flags)), dtype=nl.float32, buffer=nl.shared_hbm)
        ps = None
        for i, flag in enumerate(flags):
            if fresh or i == 0:
                ps = nl.ndarray((1, 1), dtype=nl.float32, buffer=nl.psum)
            if fill is not None:
                nisa.memset(dst=ps, value=fill)
            nisa.nc_matmul(dst=ps, stationary=x, moving=x, accumulate=flag)
            if evict or i == len(flags) - 1:
                nisa.dma_copy(dst=made[:, i : i + 1], src=nl.copy(ps))
        return made

    return kernel


ONES = np.ones((2, 1), np.float32)


def doubts(kernel, *arrays, target="trn2", values=True):
    with warnings.catch_warnings(record=True) as text:
        warnings.simplefilter("always")
        program = launch.run(nki.jit(kernel), arrays, {}, target=target, values=values)
    results = [str(item.message) for item in text if item.category is DoubtfulKernel]
    return program.results, [item for item in results if item.startswith("nc_")]


def test_automatic_accumulation_follows_the_allocation():
    result, text = doubts(accumulating([None] * 3, fresh=True, evict=True), ONES)
    assert result.tolist() == [[2, 2, 2]]
    assert not text
    result, text = doubts(accumulating([None] * 3, fresh=False), ONES)
    assert result[0, -1] == 6
    assert not text


@pytest.mark.parametrize("values", [True, False])
def test_a_tile_that_is_read_and_then_added_to_is_doubted_once(values):
    result, text = doubts(accumulating([None] * 3, False, evict=True), ONES, values=values)
    if values:
        assert result.tolist() == [[2, 4, 6]]
    (one,) = text
    for word in (
        "has been read",
        f"product, at {__file__}:",
        "outside of a loop",
        "accumulate=(k > 0)",
        f"At: {__file__}:",
    ):
        assert word in one


def test_accumulation_that_is_asked_for_is_no_doubt():
    result, text = doubts(accumulating([False, True, True], False, evict=True), ONES)
    assert (result.tolist(), text) == ([[2, 4, 6]], [])


def test_adding_to_nothing_is_doubted_and_not_a_number():
    result, text = doubts(accumulating([True], False), ONES)
    assert np.isnan(result).all()
    (one,) = text
    assert "no product yet" in one


def test_a_filled_tile_is_doubted_before_generation_4():
    for flag, fill in ((None, 1.0), (True, 0.0)):
        result, text = doubts(accumulating([flag] * 3, True, evict=True, fill=fill), ONES)
        assert result.tolist() == [[2, 2, 2]]
        (one,) = text
        assert "generation 3" in one
        assert "needs 4" in one
    _, text = doubts(accumulating([None], True, fill=1.0), ONES, target="trn3")
    assert not text


def test_overwriting_zeros_or_adding_to_them_is_the_same():
    for fresh in (True, False):
        result, text = doubts(accumulating([None] * 3, fresh, evict=True, fill=0.0), ONES)
        assert (result.tolist(), text) == ([[2, 2, 2]], [])


def test_filling_a_whole_tile_again_counts_for_each_of_its_parts():
    """As public kernels do: one memset for a tile that several products share."""

    def kernel(ones):
        x, made = sbuf(ones), nl.ndarray((3, 2), dtype=nl.float32, buffer=nl.shared_hbm)
        ps = nl.ndarray((1, 2), dtype=nl.float32, buffer=nl.psum)
        for i in range(3):
            nisa.memset(dst=ps, value=0.0)
            for j in range(2):
                nisa.nc_matmul(dst=ps[:, j : j + 1], stationary=x, moving=x)
            nisa.dma_copy(dst=made[i : i + 1], src=nl.copy(ps))
        return made

    result, text = doubts(kernel, ONES)
    assert (result.tolist(), text) == ([[2, 2]] * 3, [])


def cut_short(restart: bool, again: bool):
    """A sum of three products that is read after the second; again: and after the third."""

    def kernel(ones):
        x, done = sbuf(ones), nl.ndarray((1, 1), dtype=nl.float32, buffer=nl.sbuf)
        ps = nl.ndarray((1, 1), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_matmul(dst=ps, stationary=x, moving=x, accumulate=False)
        nisa.nc_matmul(dst=ps, stationary=x, moving=x, accumulate=True)
        nisa.tensor_copy(dst=done, src=ps)  # too early
        nisa.nc_matmul(dst=ps, stationary=x, moving=x, accumulate=True)  # too late
        if again:
            nisa.tensor_copy(dst=done, src=ps)
        if restart:
            nisa.nc_matmul(dst=ps, stationary=x, moving=x, accumulate=False)
        return out(done)

    return kernel


@pytest.mark.parametrize("restart", [True, False])
@pytest.mark.parametrize("values", [True, False])
def test_a_sum_that_is_read_before_it_is_complete_is_found_with_both_places(restart, values):
    kernel = cut_short(restart, again=False)
    result, text = doubts(kernel, ONES, values=values)
    assert not values or result.tolist() == [[4]]
    (one,) = text
    lines, first = inspect.getsourcelines(kernel)
    early, late = (
        first + next(i for i, line in enumerate(lines) if words in line)
        for words in ("# too early", "# too late")
    )
    assert f"read at {__file__}:{early}, and nothing reads the complete sum" in one
    assert one.endswith(f"At: {__file__}:{late}")
    result, text = doubts(cut_short(restart, again=True), ONES, values=values)
    assert text == [] and (not values or result.tolist() == [[6]])


# ---- rules ---------------------------------------------------------------------------------------


def misplaced(where: str, buffer):
    def kernel():
        place = {"dst": nl.psum, "stationary": nl.sbuf, "moving": nl.sbuf, where: buffer}
        operands = {
            name: nl.ndarray((64, 64), dtype=nl.float32, buffer=place[name]) for name in place
        }
        nisa.nc_matmul(**operands)

    return kernel


@pytest.mark.parametrize("operand", ["stationary", "moving"])
def test_operands_lie_in_sbuf(operand):
    breaks(misplaced(operand, nl.shared_hbm), f"{operand} is in shared HBM", "nisa.dma_copy")
    breaks(misplaced(operand, nl.psum), f"{operand} is in psum", "Tensor Engine takes", "SBUF")


def test_results_go_to_psum():
    breaks(misplaced("dst", nl.sbuf), "dst is in sbuf", "PSUM", "buffer=nl.psum")
    breaks(misplaced("dst", nl.hbm), "dst is in HBM", "PSUM")


def test_a_host_array_is_no_operand():
    def kernel():
        ps = nl.ndarray((2, 2), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_matmul(dst=ps, stationary=np.eye(2), moving=np.eye(2))

    breaks(kernel, "stationary is a NumPy array", "dma_copy")


@pytest.mark.parametrize(("case", "words"), [
    (tiles((64, 128), (128, 256), (128, 256)), ("64 partitions", "stationary looks like")),
    (tiles((128, 64), (100, 128), (64, 100)), ("100 (100, 128)", "moving looks like")),
    (tiles((32, 16), (48, 20), (16, 20)), ("32 partitions (32, 16)", "48 (48, 20)", "to 32")),
    (tiles((64, 129), (64, 8), (128, 8)), ("129 columns", "limit is 128", "m * 128")),
    (tiles((64, 8), (64, 513), (8, 513)), ("513 columns", "limit is 512", "n * 512")),
    (tiles((64, 8), (64, 16), (16, 8)), ("dst has 16 partitions", "make 8", "16 columns")),
    (tiles(*SMALL, of="int32"), ("stationary is int32", "bfloat16")),
    (tiles(*SMALL, of="float32", other="bfloat16"), ("is float32", "either")),
    (tiles(*SMALL, into="bfloat16"), ("dst is bfloat16", "generation 3", "4")),
    (tiles(*SMALL, of="float8_e4m3fn"), ("float8_e4m3fn", "generation 4")),
    (tiles(*SMALL, accumulate=1), ("accumulate=1", "None, True and False")),
    (tiles(*SMALL, perf_mode="fast"), ("perf_mode='fast'", "double_row")),
    (tiles(*SMALL, tile_position=(0, 0)), ("tile_size=()", "pairs")),
    (tiles(*SMALL, **PART, tile_size=(16, 128)), ("row size 16", "32, 64, 128")),
    (tiles(*SMALL, tile_position=(32, 0), tile_size=(64, 128)), ("row 32", "64", "0, 64")),
    (tiles(*SMALL, tile_position=(0, 128), tile_size=(64, 64)), ("column 128", "0, 64")),
    (tiles((48, 8), (48, 8), (8, 8), **PART, tile_size=(32, 128)), ("48 partitions", "for 32")),
    (tiles((8, 48), (8, 8), (48, 8), **PART, tile_size=(32, 32)), ("48 columns", "for 32")),
    (tiles((8, 8), (8, 4), (8, 4), is_transpose=True), ("identity", "(8, 4)", "(8, 8)")),
])  # fmt: skip
def test_broken_rules_of_products(case, words):
    breaks(case, *words)


@pytest.mark.parametrize(("shape", "of", "target", "words"), [
    ((8, 2, 8), "bfloat16", "trn2", ("stationary of bfloat16", "float8_e4m3")),
    ((8, 3, 8), "float8_e4m3", "trn2", ("(8, 3, 8)", "must be 2")),
    ((8, 16), "float8_e4m3", "trn2", ("(8, 16)", "must be 2")),
    ((8, 2, 8), "float8_e4m3", "trn1", ("generation 2", "3 or later")),
    ((8, 2, 129), "float8_e4m3", "trn2", ("129 columns", "128")),
])  # fmt: skip
def test_broken_rules_of_double_row(shape, of, target, words):
    mode = nisa.matmul_perf_mode.double_row
    case = tiles(shape, shape, (8, 8), of=of, perf_mode=mode)
    breaks(case, *words, target=target)


def test_double_row_uses_all_columns_and_two_kinds_of_e4m3_do_not_meet():
    mode = nisa.matmul_perf_mode.double_row
    case = tiles((8, 2, 8), (8, 2, 8), (8, 8), of="float8_e4m3", perf_mode=mode, **PART,
                 tile_size=(64, 64))  # fmt: skip
    breaks(case, "tile_size=(64, 64)", "must be 128")
    case = tiles(*SMALL, of="float8_e4m3", other="float8_e4m3fn")
    breaks(case, "float8_e4m3, moving is float8_e4m3fn", "240", target="trn3")


def test_a_result_crosses_no_border_of_a_bank():
    def kernel(shift, columns):
        a = nl.ndarray((64, 64), dtype=nl.bfloat16, buffer=nl.sbuf)
        b = nl.ndarray((64, columns), dtype=nl.bfloat16, buffer=nl.sbuf)
        ps = nl.ndarray((64, 1024), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_matmul(dst=ps[:, shift : shift + columns], stationary=a, moving=b)

    words = ("bytes 1024 to 3071", "banks are 2048 bytes", "byte 2048", "bank 0 and bank 1")
    breaks(lambda: kernel(256, 512), *words)
    for shift, columns in ((0, 512), (512, 512), (256, 256), (1023, 1)):
        launch.run(nki.jit(lambda s=shift, c=columns: kernel(s, c)), (), {}, values=False)
    launch.run(nki.jit(lambda: kernel(256, 512)), (), {}, values=False, target="trn3")


def test_accesses_start_at_a_quadrant_and_skip_no_partition():
    def kernel(rows):
        a = nl.ndarray((128, 8), dtype=nl.bfloat16, buffer=nl.sbuf)
        ps = nl.ndarray((8, 8), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_matmul(dst=ps, stationary=a[rows], moving=a[rows])

    breaks(lambda: kernel(slice(8, 16)), "partition 8 with 8 partitions", "0, 32, 64, 96")
    breaks(lambda: kernel(slice(32, 96)), "partition 32 with 64 partitions", "0, 64")
    breaks(lambda: kernel(slice(1, 128)), "partition 1 with 127 partitions", "starts at 0.")
    breaks(lambda: kernel(slice(0, 128, 2)), "steps of 2", "a step of 1")


# ---- cost ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("case", "cycles"), [
    (tiles((128, 128), (128, 512), (128, 512)), 512),
    (tiles((128, 128), (128, 8), (128, 8)), 64),
    (tiles((128, 16), (128, 8), (16, 8)), 16),
    (tiles((128, 128), (128, 512), (128, 512), of="float32"), 2048),
    (tiles((128, 128), (128, 512), (128, 512), of="tfloat32"), 512),
    (tiles((128, 128), (128, 512), (128, 512), of="float32", is_moving_onezero=True), 1024),
    (
        tiles((128, 2, 128), (128, 2, 512), (128, 512), of="float8_e4m3",
              perf_mode=nisa.matmul_perf_mode.double_row),
        512,
    ),
])  # fmt: skip
def test_cycles_of_products(case, cycles):
    program = launch.run(nki.jit(case), (), {}, values=False)
    assert program.instructions[-1].checked.cycles == cycles


# ---- transposes ----------------------------------------------------------------------------------


def transposed(array, dst_buffer, target="trn2", engine=nisa.engine.unknown, identity=False):
    rows, free = array.shape[0], array.size // array.shape[0]

    def kernel(x):
        dst = nl.ndarray((free, rows), dtype=x.dtype, buffer=dst_buffer)
        if identity:
            one = nl.shared_identity_matrix(rows, dtype=x.dtype)
            nisa.nc_matmul(dst=dst, stationary=sbuf(x), moving=one, is_transpose=True)
        else:
            nisa.nc_transpose(dst=dst, data=sbuf(x), engine=engine)
        return stored(dst)

    return run(kernel, array, target=target)


@settings(max_examples=30)
@given(
    st.integers(1, 128), st.integers(1, 128), st.sampled_from((*NUMPY, "int32", "uint8", "int16"))
)
def test_transposes_move_bits(rows, free, dtype):
    array = RNG.integers(0, 100, (rows, free)).astype(NUMPY.get(dtype, dtype))
    assert np.array_equal(transposed(array, nl.psum), array.T)
    small = array[:32, :32].copy()
    assert np.array_equal(transposed(small, nl.sbuf), small.T)


def test_transposes_flatten_and_keep_nan_from_generation_3_on():
    array = whole_numbers(16, 3, 8)
    array[4, 1, 2], array[5, 0, 0] = np.nan, np.inf
    flat = array.reshape(16, 24)
    assert transposed(array, nl.psum).tobytes() == np.ascontiguousarray(flat.T).tobytes()
    old = transposed(array, nl.psum, target="trn1")
    for row in range(24):
        if np.isfinite(flat[:, row]).all():
            assert np.array_equal(old[row], flat[:, row])
        else:
            assert not np.isfinite(old[row]).any()
    small = flat[:, :16].copy()
    on_vector = transposed(small, nl.psum, target="trn1", engine=nisa.engine.vector)
    assert on_vector.tobytes() == np.ascontiguousarray(small.T).tobytes()


def test_transpose_mode_of_a_product_moves_bits_too():
    array = RNG.standard_normal((8, 12)).astype(ml_dtypes.bfloat16)
    array[0, 0] = np.nan
    result = transposed(array, nl.psum, identity=True)
    assert result.tobytes() == np.ascontiguousarray(array.T).tobytes()


def test_transpose_mode_needs_an_identity():
    def kernel(x):
        dst = nl.ndarray((4, 4), dtype=x.dtype, buffer=nl.psum)
        data = sbuf(x)
        nisa.nc_matmul(dst=dst, stationary=data, moving=data, is_transpose=True)

    with pytest.raises(NkiValidationError, match="single 1"):
        run(kernel, np.full((4, 4), 2, np.float32))


def test_a_wider_result_of_a_transpose_is_doubted():
    array = whole_numbers(4, 6, dtype=ml_dtypes.bfloat16)

    def kernel(x):
        ps = nl.ndarray((6, 4), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_transpose(dst=ps, data=sbuf(x))
        return stored(ps)

    result, text = doubts(kernel, array)
    assert np.array_equal(result, array.T.astype(np.float32))
    (one,) = text
    assert "data is bfloat16, dst is float32" in one


def transposing(shape, made, into, of="bfloat16", dst_type=None, where=None, **options):
    def kernel():
        data = nl.ndarray(shape, dtype=of, buffer=where or nl.sbuf)
        dst = nl.ndarray(made, dtype=dst_type or of, buffer=into)
        nisa.nc_transpose(dst=dst, data=data, **options)

    return kernel


def test_broken_rules_of_transposes():
    tensor, vector = nisa.engine.tensor, nisa.engine.vector
    for case, words in (
        (transposing((64, 64), (64, 64), nl.sbuf), ("writes PSUM; dst is in sbuf", "(64, 64)")),
        (transposing((8, 8), (8, 8), nl.psum, where=nl.psum, engine=tensor), ("reads SBUF",)),
        (transposing((64, 129), (128, 64), nl.psum), ("129 columns", "at most 128 by 128")),
        (transposing((64, 8), (8, 64), nl.psum, engine=vector), ("at most 32 by 32", "128 by")),
        (transposing((8, 16), (8, 16), nl.psum), ("dst has 8 partitions", "becomes 16")),
        (transposing((8, 8), (8, 8), nl.psum, dst_type="float16"), ("bfloat16", "float16")),
        (transposing((8, 8), (8, 8), nl.psum, of="int32", dst_type="float32"), ("int32",)),
        (transposing((8, 8), (8, 8), nl.psum, engine=nisa.engine.scalar), ("tensor and vector",)),
        (transposing((8, 8), (8, 8), nl.shared_hbm), ("dst is in shared HBM",)),
    ):
        breaks(case, *words)


@pytest.mark.parametrize(("case", "target", "engine", "cycles"), [
    (transposing((128, 128), (128, 128), nl.psum), "trn2", "tensor", 128),
    (transposing((16, 128), (128, 16), nl.psum), "trn2", "tensor", 64),
    (transposing((128, 128), (128, 128), nl.psum, of="float32"), "trn2", "tensor", 256),
    (transposing((128, 128), (128, 128), nl.psum, of="float32"), "trn1", "tensor", 512),
    (transposing((32, 32), (32, 32), nl.sbuf), "trn2", "vector", 64),
    (transposing((32, 32), (32, 32), nl.psum, where=nl.psum), "trn2", "vector", 64),
])  # fmt: skip
def test_engines_and_cycles_of_transposes(case, target, engine, cycles):
    program = launch.run(nki.jit(case), (), {}, values=False, target=target)
    last = program.instructions[-1]
    assert (last.engine.name, last.checked.cycles) == (engine, cycles)


@pytest.mark.parametrize("name", ["stationary", "moving"])
def test_ones_and_zeros_are_what_a_product_says_they_are(name):
    """The hint saves half of the passes, so it must be true."""

    ones, others = np.eye(128, dtype=np.float32), np.full((128, 128), 0.5, np.float32)
    pair, hint = (ones, others) if name == "stationary" else (others, ones), f"is_{name}_onezero"
    assert np.array_equal(product(*pair, **{hint: True}), others)
    with pytest.raises(NkiValidationError, match=f"{name} holds 0.5"):
        product(others, others, **{hint: True})


def test_the_whole_array_by_name_keeps_the_engine_as_busy_as_without():
    def products(x, **part):
        tile = sbuf(x)
        total = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
        for _ in range(50):
            nisa.nc_matmul(dst=total, stationary=tile[:, 0:128], moving=tile, **part)
        return stored(total)

    def named(x):
        return products(x, tile_position=(0, 0), tile_size=(128, 128))

    shape = Shape((128, 512), "bfloat16")
    plain, whole = (profile(item, target="trn2")(shape) for item in (products, named))
    assert whole.seconds == plain.seconds
    assert whole.utilisation == plain.utilisation
