"""The conveniences of nki.language against NumPy, and the modules that kernels import."""

import dataclasses
import importlib
import math
import os
from collections.abc import Callable
from unittest import mock

import ml_dtypes
import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.nki.nki_bench import out
from utils.nki.simulator import surface
from utils.nki.simulator.errors import DoubtfulKernel, NkiValidationError, NotInSubset
from utils.nki.simulator.launch import run

FLOATS = (np.float32, np.float16, ml_dtypes.bfloat16)
some = settings(max_examples=12)
SIZES = st.tuples(st.integers(1, 128), st.integers(1, 40))


def numbers(shape: tuple[int, ...], seed: int, dtype: object = np.float32) -> np.ndarray:
    """Numbers around 0, some of them whole, some large."""
    rng = np.random.default_rng(seed)
    drawn = rng.standard_normal(shape) * 10.0 ** rng.integers(-1, 3, shape)
    drawn[rng.random(shape) < 0.2] = 0.0
    drawn[rng.random(shape) < 0.2] = 2.5
    return drawn.astype(dtype)


def program_of(function: Callable, *arrays: np.ndarray, **options: object):
    """The program of a kernel that loads arrays, applies `function` and stores what it gives."""

    def kernel(*inputs):
        tile = function(*[nl.load(input_) for input_ in inputs])
        tile = nl.copy(tile) if tile.buffer == nl.psum else tile
        made = nl.ndarray(tile.shape, dtype=tile.dtype, buffer=nl.shared_hbm)
        nl.store(made, value=tile)
        return made

    return run(kernel, arrays, {}, **options)


def apply(function: Callable, *arrays: np.ndarray) -> np.ndarray:
    return program_of(function, *arrays).results


def wrong(words: str, function: Callable, *arrays: np.ndarray) -> None:
    with pytest.raises(NkiValidationError, match=words):
        apply(function, *arrays)


def same(result: np.ndarray, right: np.ndarray, dtype: object = None) -> None:
    """Equal after the one rounding to the type of the result."""
    with np.errstate(over="ignore"):
        right = np.asarray(right).astype(dtype or result.dtype)
    assert result.dtype == right.dtype and result.shape == right.shape
    np.testing.assert_array_equal(result.astype(np.float64), right.astype(np.float64))


def close(result: np.ndarray, right: np.ndarray, tolerance: float = 2e-6) -> None:
    assert result.shape == right.shape
    np.testing.assert_allclose(
        result.astype(np.float64), right, rtol=tolerance, atol=tolerance * max(1, abs(right).max())
    )


# ---- moving ------------------------------------------------------------------------------------


@some
@given(SIZES, st.sampled_from(FLOATS), st.sampled_from(FLOATS), st.integers(0, 99))
def test_load_copy_and_store_convert_once(size, taken, made, seed) -> None:
    x = numbers(size, seed, taken)
    same(apply(lambda t: nl.copy(t, dtype=made), x), x, made)
    same(apply(lambda t: t, x), x)


def test_a_vector_becomes_a_column() -> None:
    same(apply(lambda t: t, np.arange(5, dtype=np.float32)), np.arange(5)[:, None], np.float32)


def test_load_converts_and_refuses_too_many_rows_and_tiles() -> None:
    def kernel(x):
        return out(nl.load(x, dtype=nl.bfloat16))

    x = numbers((4, 4), 0)
    same(nki.simulate(kernel)(x), x, ml_dtypes.bfloat16)
    with pytest.raises(NkiValidationError, match=r"src has 129 rows .* at most 128 partitions"):
        nki.simulate(kernel)(numbers((129, 2), 0))
    wrong(r"nl.load: src is .*in HBM", nl.load, x)
    wrong(r"nl.store: dst is .*in HBM", lambda t: nl.store(t, t), x)


@some
@given(SIZES, st.sampled_from(FLOATS), st.integers(0, 99))
def test_transposes(size, dtype, seed) -> None:
    rows, columns = size
    x = numbers((rows, columns), seed, dtype)
    same(apply(nl.transpose, x), x.T)


@pytest.mark.filterwarnings("ignore::utils.nki.simulator.errors.DoubtfulKernel")
@some
@given(SIZES, st.sampled_from(FLOATS), st.integers(0, 99))
def test_a_transpose_on_the_way(size, dtype, seed) -> None:
    x = numbers(size, seed, dtype)
    turned = nki.simulate(lambda x: out(nl.load_transpose2d(x, dtype=nl.float32)))(x)
    same(turned, x.T, np.float32)


@some
@given(st.integers(1, 128), st.integers(1, 128), st.integers(1, 512), st.integers(0, 9))
def test_matmul(k, m, n, seed) -> None:
    rng = np.random.default_rng(seed)
    x, y = rng.standard_normal((k, m), np.float32), rng.standard_normal((k, n), np.float32)
    right = x.astype(np.float64).T @ y
    close(apply(lambda a, b: nl.matmul(a, b, transpose_x=True), x, y), right, 1e-5)


@pytest.mark.filterwarnings("ignore::utils.nki.simulator.errors.DoubtfulKernel")
def test_matmul_that_transposes_first() -> None:
    x, y = numbers((8, 16), 0), numbers((16, 12), 1)
    close(apply(nl.matmul, x, y), x.astype(np.float64) @ y, 1e-5)


def test_what_does_not_compile_warns() -> None:
    x = abs(numbers((8, 8), 0)) + 1
    with pytest.warns(DoubtfulKernel, match="transpose_x"):
        apply(nl.matmul, x, x)
    with pytest.warns(DoubtfulKernel, match="nl.power"):
        same(apply(lambda t: nl.power(t, 2.0), x), x.astype(np.float64) ** 2)
    with pytest.warns(DoubtfulKernel, match="divide"):
        same(apply(nl.divide, x, x), np.ones_like(x))


@some
@given(st.integers(1, 128), st.integers(1, 30), st.integers(1, 5), st.integers(0, 99))
def test_broadcast_to(rows, columns, deep, seed) -> None:
    row = numbers((1, columns), seed)
    same(apply(lambda t: nl.broadcast_to(t, (rows, columns)), row), np.tile(row, (rows, 1)))
    column = numbers((rows, 1, 1), seed)
    shape = (rows, deep, columns)
    same(apply(lambda t: nl.broadcast_to(t, shape), column), np.broadcast_to(column, shape))
    both = apply(lambda t: nl.broadcast_to(t, (rows, columns), dtype=nl.bfloat16), row[:, :1])
    same(both, np.broadcast_to(row[:, :1], (rows, columns)), ml_dtypes.bfloat16)


def test_broadcast_to_repeats_ones_only() -> None:
    wrong(r"\(2, 3\) to \(4, 3\)", lambda t: nl.broadcast_to(t, (4, 3)), numbers((2, 3), 0))


@some
@given(SIZES, st.integers(0, 99))
def test_where_takes_tiles_and_numbers(size, seed) -> None:
    x, y, c = (numbers(size, seed + i) for i in range(3))
    same(apply(nl.where, c, x, y), np.where(c != 0, x, y))
    same(apply(lambda c, x: nl.where(c, x, -1.5), c, x), np.where(c != 0, x, -1.5))
    same(apply(lambda c, y: nl.where(c, 3.0, y), c, y), np.where(c != 0, 3.0, y))


def test_expand_dims_is_a_view() -> None:
    def function(tile):
        wide = nl.expand_dims(tile, 1)
        assert wide.shape == (4, 1, 6) and nl.expand_dims(tile, -1).shape == (4, 6, 1)
        assert wide.storage is tile.storage
        return tile

    apply(function, numbers((4, 6), 0))


@some
@given(st.integers(1, 64), st.integers(1, 40), st.integers(1, 40), st.integers(0, 99))
def test_gather_flattened(rows, columns, taken, seed) -> None:
    x = numbers((rows, columns), seed)
    at = np.random.default_rng(seed).integers(0, columns, (rows, taken)).astype(np.uint32)
    same(apply(nl.gather_flattened, x, at), np.take_along_axis(x, at.astype(np.int64), 1))


# ---- element by element ------------------------------------------------------------------------


def of_numpy(names: str, **others: Callable) -> dict[str, Callable]:
    """Functions of NumPy by name, and those that it lacks."""
    return {name: getattr(np, name) for name in names.split()} | others


TWO = of_numpy(
    "add subtract multiply maximum minimum equal not_equal less less_equal greater greater_equal "
    "logical_and logical_or logical_xor"
)
WORDS = of_numpy("bitwise_and bitwise_or bitwise_xor")
ONE = of_numpy(
    "abs ceil floor trunc sign square negative logical_not", relu=lambda x: np.maximum(x, 0)
)
SMOOTH = of_numpy(
    "exp tanh sin cos",
    sigmoid=lambda x: 1 / (1 + np.exp(-x)),
    silu=lambda x: x / (1 + np.exp(-x)),
    gelu=lambda x: x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))) / 2,
)
POSITIVE = of_numpy("log sqrt reciprocal", rsqrt=lambda x: 1 / np.sqrt(x))


@pytest.mark.parametrize("name", TWO)
@some
@given(SIZES, st.sampled_from(FLOATS), st.integers(0, 99))
def test_two_tiles_or_a_tile_and_a_number(name, size, dtype, seed) -> None:
    x, y = numbers(size, seed, dtype), numbers(size, seed + 1, dtype)
    wide = x.astype(np.float32)
    right = TWO[name](wide, y.astype(np.float32))
    same(apply(getattr(nl, name), x, y), right, dtype)
    same(apply(lambda t: getattr(nl, name)(t, 2.5), x), TWO[name](wide, np.float32(2.5)), dtype)
    other = apply(lambda t: getattr(nl, name)(2.5, t, dtype=nl.float32), x)
    same(other, TWO[name](np.float32(2.5), wide), np.float32)


@pytest.mark.parametrize("name", WORDS)
@some
@given(SIZES, st.sampled_from((np.int32, np.uint16, np.uint8)), st.integers(0, 99))
def test_words(name, size, dtype, seed) -> None:
    rng = np.random.default_rng(seed)
    x, y = rng.integers(0, 200, (2, *size)).astype(dtype)
    same(apply(getattr(nl, name), x, y), WORDS[name](x, y))
    same(apply(lambda t: getattr(nl, name)(t, 21), x), WORDS[name](x, dtype(21)))
    same(apply(nl.invert, x), np.invert(x))


@pytest.mark.parametrize("name", ONE)
@some
@given(SIZES, st.sampled_from(FLOATS), st.integers(0, 99))
def test_exact_functions(name, size, dtype, seed) -> None:
    x = numbers(size, seed, dtype)
    same(apply(getattr(nl, name), x), ONE[name](x.astype(np.float32)), dtype)


def test_rounding_of_large_and_half_numbers() -> None:
    x = np.array([[0.5, 1.5, -0.5, -2.5, 4194303.5, 8388609.0, -1e20, 3e38, -0.0]], np.float32)
    for name in ("floor", "ceil", "trunc"):
        same(apply(getattr(nl, name), x), getattr(np, name)(x))


@pytest.mark.parametrize("name", SMOOTH)
@some
@given(SIZES, st.integers(0, 99))
def test_smooth_functions(name, size, seed) -> None:
    x = np.random.default_rng(seed).uniform(-20, 20, size).astype(np.float32)
    with np.errstate(over="ignore"):
        right = SMOOTH[name](x.astype(np.float64))
    close(apply(getattr(nl, name), x), right, 5e-6)


@pytest.mark.parametrize("name", POSITIVE)
@some
@given(SIZES, st.integers(0, 99))
def test_functions_of_positive_numbers(name, size, seed) -> None:
    x = np.random.default_rng(seed).uniform(0.1, 20, size).astype(np.float32)
    close(apply(getattr(nl, name), x), POSITIVE[name](x.astype(np.float64)))


@pytest.mark.filterwarnings("ignore::utils.nki.simulator.errors.DoubtfulKernel")
def test_the_tangent_and_remainders() -> None:
    x = np.linspace(-1.4, 1.4, 64, dtype=np.float32).reshape(4, 16)
    close(apply(nl.tan, x), np.tan(x.astype(np.float64)), 1e-5)
    x, y = numbers((8, 16), 0), abs(numbers((8, 16), 1)) + 1
    close(apply(nl.mod, x, y), np.mod(x, y), 1e-5)
    close(apply(nl.fmod, x, y), np.fmod(x, y), 1e-5)


def test_a_column_is_refused_with_a_hint() -> None:
    wrong(
        r"(?s)nothing is broadcast.*tensor_scalar",
        lambda x, y: nl.add(x, y),
        numbers((4, 6), 0),
        numbers((4, 1), 0),
    )


def test_two_numbers_are_no_tiles_and_tokens_are_no_functions() -> None:
    wrong("no tiles", lambda t: nl.add(1, 2), numbers((2, 2), 0))
    wrong("no function of tiles", lambda t: nl.bypass(t), numbers((2, 2), 0))


# ---- reductions --------------------------------------------------------------------------------

REDUCTIONS = {"sum": np.sum, "max": np.max, "min": np.min, "mean": np.mean, "prod": np.prod}
DEEP = st.tuples(st.integers(1, 128), st.integers(1, 6), st.integers(1, 12))


@pytest.mark.parametrize("name", REDUCTIONS)
@some
@given(DEEP, st.sampled_from([2, (1, 2), -1, [-2, -1]]), st.booleans(), st.integers(0, 99))
def test_reductions(name, size, axis, keepdims, seed) -> None:
    x = np.random.default_rng(seed).uniform(0.5, 1.5, size).astype(np.float32)
    result = apply(lambda t: getattr(nl, name)(t, axis=axis, keepdims=keepdims), x)
    axes = tuple(axis) if isinstance(axis, list) else axis
    right = REDUCTIONS[name](x.astype(np.float64), axis=axes, keepdims=keepdims)
    if right.ndim == 1:  # a tile has two dimensions
        right = right[:, None]
    close(result, right, 1e-5)


@some
@given(DEEP, st.sampled_from([2, (1, 2)]), st.integers(0, 99))
def test_variance_and_all(size, axis, seed) -> None:
    x = numbers(size, seed)
    right = np.var(x.astype(np.float64), axis=axis, keepdims=True)
    close(apply(lambda t: nl.var(t, axis=axis), x), right, 1e-4)
    true = np.all(x, axis=axis).reshape(size[0], -1 if axis == 2 else 1)
    same(apply(lambda t: nl.all(t, axis=axis), x), true, np.float32)


@some
@given(DEEP, st.sampled_from([-1, 2, (1, 2)]), st.sampled_from(FLOATS), st.integers(0, 99))
def test_softmax(size, axis, dtype, seed) -> None:
    x = numbers(size, seed, dtype)
    wide = x.astype(np.float64)
    powers = np.exp(wide - wide.max(axis=axis, keepdims=True))
    right = powers / powers.sum(axis=axis, keepdims=True)
    result = apply(lambda t: nl.softmax(t, axis=axis, dtype=nl.float32), x)
    close(result, right, 2e-6)
    assert apply(lambda t: nl.softmax(t, axis=axis), x).dtype == dtype


@some
@given(st.integers(1, 128), st.integers(1, 40), st.integers(0, 99))
def test_rms_norm(rows, columns, seed) -> None:
    x, w = numbers((rows, columns), seed), numbers((1, columns), seed + 1)
    wide = x.astype(np.float64)
    right = wide / np.sqrt((wide**2).mean(1, keepdims=True) + 1e-6) * w
    norm = apply(lambda x, w: nl.rms_norm(x, w, axis=1, n=columns), x, w)
    close(norm, right, 1e-5)
    full = np.tile(w, (rows, 1))
    close(apply(lambda x, w: nl.rms_norm(x, w, 1, columns), x, full), right, 1e-5)


@pytest.mark.parametrize("axis", [0, (0, 1), 1, -3])
def test_only_last_free_axes_are_reduced(axis) -> None:
    wrong("(?s)last free axes.*partition", lambda t: nl.sum(t, axis=axis), numbers((2, 3, 4), 0))


# ---- allocation --------------------------------------------------------------------------------


@some
@given(
    st.sampled_from([(7, 3), (128, 40), (1, 1), (300, 5), (2, 3, 700)]),
    st.sampled_from([nl.float32, nl.bfloat16, nl.int32, nl.uint8]),
    st.sampled_from([0, 1, 2.5]),
)
def test_tensors_that_begin_with_a_number(shape, dtype, value) -> None:
    if value == 2.5 and dtype in (nl.int32, nl.uint8):
        value = 3
    result = nki.simulate(lambda: nl.full(shape, value, dtype, buffer=nl.shared_hbm))()
    assert result.shape == shape and str(result.dtype) == dtype and (result == value).all()


def test_tensors_like_another() -> None:
    def function(tile):
        assert nl.empty_like(tile, dtype=nl.bfloat16).dtype == nl.bfloat16
        assert nl.zeros_like(tile, buffer=nl.psum).buffer == nl.psum
        assert nl.ones((2, 2), nl.int8).dtype == nl.int8
        assert isinstance(tile, nl.ndarray) and isinstance(tile, nl.NkiTensor)
        return nl.add(nl.zeros_like(tile), nl.ones(tile.shape, tile.dtype))

    same(apply(function, numbers((3, 5), 0)), np.ones((3, 5)))


@pytest.mark.parametrize("dtype", [nl.uint8, nl.float32, nl.bfloat16])
def test_an_identity_matrix(dtype) -> None:
    result = apply(lambda t: nl.shared_identity_matrix(n=9, dtype=dtype), numbers((1, 1), 0))
    same(result, np.eye(9))


def test_a_constant_comes_with_the_kernel(tmp_path) -> None:
    table = numbers((4, 6), 3)
    np.save(tmp_path / "table.npy", table)
    for constant in (table, str(tmp_path / "table.npy")):
        same(apply(lambda t, c=constant: nl.load(nl.shared_constant(c)), table), table)


def test_a_memory_named_by_a_string_is_explained() -> None:
    wrong(
        "(?s)buffer='sbuf'.*buffer=nl.sbuf",
        lambda t: nl.ndarray((2, 2), nl.float32, buffer="sbuf"),
        numbers((1, 1), 0),
    )
    wrong(
        "it takes one of nl.sbuf",
        lambda t: nl.zeros((2, 2), nl.float32, buffer=3),
        numbers((1, 1), 0),
    )


def test_places() -> None:
    assert nl.is_sbuf(nl.sbuf) and nl.is_psum(nl.psum) and nl.is_on_chip(nl.psum)
    assert nl.is_hbm(nl.shared_hbm) and nl.is_hbm(nl.hbm) and not nl.is_on_chip(nl.private_hbm)


# ---- loops and the grid --------------------------------------------------------------------------


def test_ranges_are_pythons() -> None:
    for item in (nl.affine_range, nl.sequential_range, nl.static_range):
        assert list(item(2, 8, 3)) == [2, 5] and list(item(2)) == [0, 1]


def test_a_device_loop_after_no_reorder_is_allowed() -> None:
    def kept(tile):
        with nl.no_reorder():
            tile = nl.copy(tile)
        nl.fori_loop(0, 2, lambda i: None)
        return tile

    apply(kept, numbers((1, 1), 0))


def recorded_edges(kernel) -> set[tuple[str, str]]:
    issued = run(kernel, (numbers((4, 4), 0),), {}, values=False).instructions
    return {(item.name, before.name) for item in issued for before in item.after}


def test_order_inside_no_reorder_and_by_a_schedule() -> None:
    @nki.jit
    def kernel(x, ordered=False):
        tile = nl.load(x)
        for name in ("first", "second", "third"):
            if ordered:
                with nl.no_reorder():
                    nisa.reciprocal(dst=nl.empty_like(tile), data=tile, name=name)
                    nisa.memset(dst=nl.empty_like(tile), value=0.0, name="fill " + name)
            else:
                nisa.reciprocal(dst=nl.empty_like(tile), data=tile, name=name)

    assert recorded_edges(kernel) == set()
    scheduled = kernel.with_schedule([("second", "first"), ("third", ["first", "second"])])
    wanted = {("second", "first"), ("third", "first"), ("third", "second")}
    assert recorded_edges(scheduled) == wanted == recorded_edges(scheduled[1])
    with pytest.raises(NkiValidationError, match="no instruction has the name 'fourth'"):
        recorded_edges(kernel.with_schedule([("first", "fourth")]))
    with pytest.raises(NkiValidationError, match="'first' waits for 'third', which comes after"):
        recorded_edges(kernel.with_schedule([("first", "third")]))

    def ordered(x):
        return kernel(x, ordered=True)

    inside = {(f"fill {name}", name) for name in ("first", "second", "third")}
    assert recorded_edges(ordered) == inside


def test_the_grid() -> None:
    @nki.jit
    def kernel(x):
        out = nl.ndarray((2, 3), dtype=nl.int32, buffer=nl.shared_hbm)
        here = nl.program_id(axis=0)
        assert nl.num_programs(axes=0) == 2 and nl.program_ndim() == 1
        nl.store(out[here : here + 1, :], nl.full((1, 3), here, nl.int32))
        return out

    same(nki.simulate(kernel[2])(numbers((1, 1), 0)), np.array([[0] * 3, [1] * 3]))


def test_random_numbers_are_the_same_in_every_run() -> None:
    def function(tile):
        return nl.rand((64, 256), nl.float32)

    x = numbers((1, 1), 0)
    drawn = apply(function, x)
    assert (drawn >= 0).all() and (drawn < 1).all()
    assert abs(drawn.mean() - 0.5) < 0.02 and abs(drawn.var() - 1 / 12) < 0.01
    same(apply(function, x), drawn)

    def seeded(tile):
        nl.random_seed(nl.full((1, 1), 42, dtype=nl.int32))
        first = nl.rand((4, 8), nl.float32)
        nl.random_seed(nl.full((1, 1), 42, dtype=nl.int32))
        return nl.subtract(first, nl.rand((4, 8), nl.float32))

    assert not apply(seeded, x).any()
    wrong(r"nl.full\(\(1, 1\), 42", lambda t: nl.random_seed(42), x)


def test_dropout_leaves_about_the_right_share() -> None:
    kept = apply(lambda t: nl.dropout(t, rate=0.25), np.ones((64, 512), np.float32))
    assert abs((kept != 0).mean() - 0.75) < 0.02


def test_device_print_shows_numbers_where_there_are_any(capsys) -> None:
    def function(tile):
        nl.device_print("here", tile)
        return tile

    apply(function, np.full((1, 2), 7, np.float32))
    assert capsys.readouterr().out == "here [[7. 7.]]\n"
    program_of(function, np.full((1, 2), 7, np.float32), values=False)
    assert capsys.readouterr().out == "here <sbuf tensor (1, 2) float32>\n"


# ---- what is recorded --------------------------------------------------------------------------


SOFTMAX = ["tensor_reduce", "activation", "reciprocal", "tensor_scalar"]


@pytest.mark.parametrize(("function", "names"), [
    (lambda t: nl.add(t, t), ["tensor_tensor"]),
    (lambda t: nl.add(t, 1.0), ["tensor_scalar"]),
    (lambda t: nl.exp(t), ["activation"]),
    (lambda t: nl.reciprocal(t), ["reciprocal"]),
    (lambda t: nl.sum(t, axis=1), ["tensor_reduce"]),
    (lambda t: nl.transpose(t), ["nc_transpose", "tensor_copy"]),
    (lambda t: nl.softmax(t, axis=1), SOFTMAX),
])  # fmt: skip
def test_conveniences_are_instructions_at_the_kernels_line(function, names) -> None:
    program = program_of(function, np.ones((4, 8), np.float32), values=False)
    issued = program.instructions
    assert [item.checked.spec.name for item in issued] == ["dma_copy", *names, "dma_copy"]
    assert {os.path.basename(item.line[0].co_filename) for item in issued} == {
        os.path.basename(__file__)
    }


# ---- the modules -------------------------------------------------------------------------------


def test_every_documented_name_of_the_language_is_there() -> None:
    missing = [name for name in surface.versions("nki.language") if name not in vars(nl)]
    assert missing == []
    assert set(nl.__all__) <= set(vars(nl)) and len(set(nl.__all__)) == len(nl.__all__)


@pytest.mark.parametrize("module", surface.modules())
def test_every_documented_name_can_be_asked_for(module) -> None:
    *path, last = module.split(".")
    if last in ("NkiTensor", "tile_size") or ".".join(path) == "nki.isa" and last != "constants":
        owner = getattr(importlib.import_module(".".join(path)), last)
    else:
        owner = importlib.import_module(module)
    for name in surface.versions(module):
        if (module, name) != ("nki.language.NkiTensor", "indirect"):
            assert hasattr(owner, name) or name in ("shape", "strides", "offset", "dtype")


@pytest.mark.parametrize(
    ("target", "version", "moving"), [("trn1", "gen2", 512), ("trn2", "gen3", 512)]
)
def test_sizes_are_those_of_the_target(target, version, moving) -> None:
    with mock.patch.dict(os.environ, {"NEURON_PLATFORM_TARGET_OVERRIDE": target}):
        sizes = nl.tile_size
        assert nisa.get_nc_version() == nisa.nc_version[version]
        assert (sizes.pmax, sizes.gemm_stationary_fmax) == (128, 128)
        assert sizes.gemm_moving_fmax == moving
        assert sizes.psum_bank_fmax == sizes.psum_fmax == sizes.bn_stats_fmax == 512
        assert sizes.psum_bank_fmax_bytes == 4 * sizes.psum_bank_fmax
        assert sizes.psum_num_banks == 8
        assert sizes.sbuf_fmax == sizes.sbuf_fmax_bytes // 4
        assert sizes.total_available_sbuf_size == sizes.sbuf_fmax_bytes
        assert sizes.sbuf_size_bytes > sizes.sbuf_fmax_bytes * sizes.pmax
        assert (sizes.sbuf_min_align, sizes.psum_min_align) == (1, 4)


def test_one_bank_less_where_transposes_need_it() -> None:
    lowered = {"NKI_DMA_TRANSPOSE_AS_PE_TRANSPOSE": "true"}
    for target, banks in (("trn1", 8), ("trn2", 7)):
        with mock.patch.dict(os.environ, {"NEURON_PLATFORM_TARGET_OVERRIDE": target, **lowered}):
            assert nl.tile_size.psum_num_banks == banks


def test_engines_have_their_old_names_too() -> None:
    constants = importlib.import_module("nki.isa.constants")
    assert constants.engine is nisa.engine and nisa.vector_engine is nisa.engine.vector
    assert nisa.get_nc_sub_version() == 0


def test_annotations() -> None:
    nt = importlib.import_module("nki.typing")

    def kernel(x: nt.tensor[128, 512], y: nt.tensor, z: nl.ndarray | None, d: nki.dtype): ...

    assert kernel.__annotations__["x"].shape == (128, 512)
    assert nki.tensor.NkiTensor is nl.NkiTensor


def test_classes_of_kernels() -> None:
    collectives = importlib.import_module("nki.collectives")
    assert collectives.ReplicaGroup([[0, 1]]).groups == [[0, 1]]

    class Sizes(nl.NKIObject):
        rows: int
        columns: int = 4

        def __post_init__(self):
            self.area = self.rows * self.columns

    assert Sizes(3).area == 12 and Sizes(rows=2, columns=2, more=1).more == 1
    with pytest.raises(TypeError, match="has the fields rows, columns"):
        Sizes(1, 2, 3)

    @dataclasses.dataclass
    class Plain(nl.NKIObject):
        rows = None
        columns = 4

    assert (Plain(rows=3).rows, Plain().columns) == (3, 4)

    @dataclasses.dataclass
    class Partial(nl.NKIObject):
        rows: int
        columns: int = 4
        rest: int

    assert (Partial(rows=3).rest, Partial(1, 2, 3).rest) == (None, 3)
    assert nisa.nc_version.gen2 < nisa.nc_version.gen3 <= nisa.nc_version.gen4


def test_what_is_outside_or_old_says_so() -> None:
    compiler = importlib.import_module("nki.compiler")
    builder = importlib.import_module("nki.compiler.kernel_builder")
    for name in (compiler.AddressRotation, builder.compile_kernel):
        with pytest.raises(NotInSubset):
            name()
    with pytest.raises(NkiValidationError, match=r"nl.load\(x\[0:128, 0:512\]\)"):
        nl.mgrid[0:128, 0:512]
    with pytest.raises(NkiValidationError, match=r"nki.simulate\(kernel\)\(x, y\)"):
        nki.simulate_kernel(None)
    wrong(r"load\(mask=...\) is not part", lambda t: nl.load(t, mask=True), numbers((1, 1), 0))
    wrong(r"add\(mask=...\) is not part", lambda t: nl.add(t, t, mask=True), numbers((1, 1), 0))
    with pytest.raises(AttributeError, match="did you mean softmax"):
        nl.softmaks  # noqa: B018
