"""The kernels whose times were published compute what they say: compared with NumPy."""

import inspect

import ml_dtypes
import nki
import numpy as np
import pytest

from utils.nki.kernels import (
    exp,
    matmul,
    matmul_fp8,
    matmul_fp32,
    matmul_pipelined,
    norm_matmul,
    tiles,
    transpose,
    vector_add,
)

BF16 = ml_dtypes.bfloat16
MODULES = (
    exp, matmul, matmul_fp8, matmul_fp32, matmul_pipelined, norm_matmul, tiles, transpose,
    vector_add,
)  # fmt: skip


def matrices(rows: int, depth: int, columns: int, dtype=np.float32):
    draw = np.random.default_rng(rows + depth + columns)
    return (
        draw.standard_normal((depth, rows)).astype(dtype),
        draw.standard_normal((depth, columns)).astype(dtype),
    )


def product(lhs_t: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    return lhs_t.astype(np.float64).T @ rhs.astype(np.float64)


def close(got: np.ndarray, right: np.ndarray, dtype=np.float32) -> None:
    tolerance = 1e-5 if dtype is np.float32 else 2e-2
    assert got.shape == right.shape
    assert got.dtype == dtype
    np.testing.assert_allclose(
        got.astype(np.float64), right, rtol=tolerance, atol=tolerance * np.abs(right).max()
    )


BY_BLOCKS = {"block_m": 2, "block_n": 1, "block_k": 1}
LADDER = [
    pytest.param(matmul.tiled, {}, id="tiled"),
    pytest.param(matmul.hoisted, {}, id="hoisted"),
    pytest.param(matmul.blocked, {"block_m": 2, "block_n": 1}, id="blocked"),
    pytest.param(matmul.blocked, {"keep": False}, id="blocked-anew"),
    pytest.param(matmul.blocked_k, BY_BLOCKS, id="blocked_k"),
    pytest.param(
        matmul.grouped, {"group_m": 2, "group_n": 1, "load_m": 1, "load_n": 1}, id="grouped"
    ),
    pytest.param(
        matmul.grouped, {"group_m": 2, "group_n": 2, "load_m": 2, "load_n": 2}, id="grouped-wide"
    ),
    pytest.param(matmul_pipelined.streamed, {}, id="streamed"),
    pytest.param(matmul_pipelined.resident, {"accumulators": 1}, id="resident-1"),
    pytest.param(matmul_pipelined.resident, {"accumulators": 2}, id="resident-2"),
    pytest.param(matmul_pipelined.skewed, {}, id="skewed"),
    pytest.param(matmul_pipelined.panelled, {"block_m": 2}, id="panelled"),
    pytest.param(matmul_pipelined.two_level, {"block_m": 1, "block_k": 1}, id="two_level"),
]


@pytest.mark.parametrize("dtype", [np.float32, BF16], ids=["fp32", "bf16"])
@pytest.mark.parametrize(("kernel", "arguments"), LADDER)
def test_every_step_of_the_ladders_is_the_product(kernel, arguments, dtype) -> None:
    lhs_t, rhs = matrices(256, 256, 1024, dtype)
    close(nki.simulate(kernel)(lhs_t, rhs, **arguments), product(lhs_t, rhs), dtype)


@pytest.mark.parametrize("rows", [128, 384])
def test_an_odd_number_of_rows_of_tiles_is_carried_out_too(rows: int) -> None:
    lhs_t, rhs = matrices(rows, 128, 512)
    for kernel in (matmul_pipelined.skewed, matmul_pipelined.resident):
        close(nki.simulate(kernel)(lhs_t, rhs), product(lhs_t, rhs))


def test_sizes_that_do_not_fit_say_so() -> None:
    lhs_t, rhs = matrices(256, 128, 512)
    with pytest.raises(AssertionError, match="no multiple of 512"):
        nki.simulate(matmul.blocked)(lhs_t[:, :128], rhs, block_n=1, block_m=4)
    with pytest.raises(AssertionError, match="both are K"):
        nki.simulate(matmul.tiled)(lhs_t, np.vstack([rhs, rhs]))


def test_a_left_matrix_as_it_comes_is_turned_on_the_way() -> None:
    lhs_t, rhs = matrices(256, 256, 1024)
    lhs = np.ascontiguousarray(lhs_t.T)
    close(nki.simulate(matmul_fp32.turning)(lhs, rhs, block_k=2), product(lhs_t, rhs))
    lhs_t, rhs = matrices(256, 256, 1024, BF16)
    lhs = np.ascontiguousarray(lhs_t.T)
    got = nki.simulate(matmul_pipelined.turning)(lhs, rhs, block_m=1, block_k=2)
    close(got, product(lhs_t, rhs), BF16)


def test_short_products_keep_apart() -> None:
    draw = np.random.default_rng(7)
    lhs = draw.standard_normal((2, 256, 64)).astype(np.float32)
    rhs = draw.standard_normal((2, 64, 1024)).astype(np.float32)
    got = nki.simulate(matmul_fp32.batched)(lhs, rhs, block_m=2)
    close(got, lhs.astype(np.float64) @ rhs.astype(np.float64))


@pytest.mark.parametrize("columns", [512, 1216, 704])
def test_the_last_tile_need_not_be_full(columns: int) -> None:
    lhs_t, rhs = matrices(256, 256, columns)
    close(nki.simulate(matmul_fp32.panels)(lhs_t, rhs, block_m=1), product(lhs_t, rhs))


@pytest.mark.parametrize("dtype", [np.float32, BF16], ids=["fp32", "bf16"])
def test_rows_become_columns_bit_by_bit(dtype) -> None:
    x = np.random.default_rng(1).standard_normal((512, 256)).astype(dtype)
    for kernel in (transpose.transposed, transpose.tiled):
        assert (nki.simulate(kernel)(x) == x.T).all()


def test_vectors_are_added_piece_by_piece() -> None:
    a, b = np.random.default_rng(2).standard_normal((2, 1280)).astype(np.float32)
    assert (nki.simulate(vector_add.tiled)(a, b, rows=128) == a + b).all()
    assert (nki.simulate(vector_add.tiled)(a, b, rows=64) == a + b).all()
    assert (nki.simulate(vector_add.streamed)(a, b, width=5) == a + b).all()


def test_the_norm_may_grow_on_the_way() -> None:
    draw = np.random.default_rng(3)
    lhs = (draw.standard_normal((256, 512)) * draw.uniform(0.1, 5, (1, 512))).astype(BF16)
    rhs = draw.standard_normal((512, 512)).astype(BF16)
    wide = lhs.astype(np.float64)
    scale = np.sqrt((wide**2).mean(axis=1, keepdims=True) + norm_matmul.EPSILON)
    got = nki.simulate(norm_matmul.rmsnorm_matmul)(lhs, rhs, block_m=1, block_k=2)
    close(got, wide / scale @ rhs.astype(np.float64), BF16)


def test_fp8_pairs_of_tiles_are_summed_together() -> None:
    draw = np.random.default_rng(4)
    lhs = draw.standard_normal((256, 512)).astype(BF16)
    rhs = draw.standard_normal((512, 1024))
    scale = np.abs(rhs).max(axis=0) / matmul_fp8.LARGEST
    small = (rhs / scale).astype(ml_dtypes.float8_e4m3)
    # (pair, which of the pair, row, block of columns, column): the two of a pair side by side.
    pairs = small.reshape(2, 2, 128, 2, 512).transpose(0, 2, 3, 1, 4).reshape(256, 2048)
    wide = np.broadcast_to(scale, (128, 1024)).astype(BF16)
    got = nki.simulate(matmul_fp8.double_row)(lhs, pairs, wide, block_m=1, block_k=2)
    blocks = lhs.astype(np.float32).reshape(256, 2, 256)
    step = np.abs(blocks).max(axis=2, keepdims=True) / np.float32(matmul_fp8.LARGEST)
    rounded = (blocks / step).astype(ml_dtypes.float8_e4m3).astype(np.float64) * step
    close(got, rounded.reshape(256, 512) @ (small.astype(np.float64) * wide[:1]), BF16)


def test_the_smallest_kernels() -> None:
    x = np.random.default_rng(5).standard_normal((4, 96)).astype(np.float32)
    np.testing.assert_allclose(nki.simulate(exp.exp)(x), np.exp(x), rtol=1e-5)
    assert (nki.simulate(exp.copies)(x, times=3) == x).all()
    assert (nki.simulate(exp.chain)(x, times=3) == x).all()


def test_a_ladder_loads_less_at_each_step() -> None:
    """What lesson 10 tells: the same products, fewer transfers."""
    from utils.nki.simulator.launch import run

    lhs_t, rhs = matrices(512, 256, 2048)
    steps = [(matmul.tiled, {}), (matmul.hoisted, {}), (matmul.blocked, {}), (matmul.grouped, {})]
    programs = [run(kernel, (lhs_t, rhs), more, values=False) for kernel, more in steps]
    assert {program.count("nc_matmul") for program in programs} == {4 * 4 * 2}
    transfers = [program.count("dma_copy") for program in programs]
    assert transfers == sorted(set(transfers), reverse=True)


def test_kernels_say_what_they_are() -> None:
    for module in MODULES:
        for name, value in vars(module).items():
            function = getattr(value, "function", value)
            own = inspect.isfunction(function) and function.__module__ == module.__name__
            if own and not name.startswith("_"):
                assert inspect.getdoc(function), f"{module.__name__}.{name}"
