"""Memory that nobody wrote: computing with it is legal, a result that shows it is traced back."""

import inspect
import warnings
from functools import partial

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np

from utils.nki.simulator import launch
from utils.nki.simulator.errors import DoubtfulKernel

X = np.random.default_rng(3).standard_normal((100, 64)).astype(np.float32)


tile = partial(nl.ndarray, dtype=nl.float32, buffer=nl.sbuf)
result = partial(nl.ndarray, dtype=nl.float32, buffer=nl.shared_hbm)


def doubts(kernel, *arrays, grid=1):
    """(the results, the warnings' texts)."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        match_ = nki.simulate(nki.jit(kernel)[grid])(*arrays)
    texts = [str(item.message) for item in caught if item.category is DoubtfulKernel]
    return match_, texts


def line_of(kernel, text: str) -> int:
    lines, first = inspect.getsourcelines(kernel)
    return first + next(i for i, line in enumerate(lines) if text in line)


def test_a_padded_tile_is_legal() -> None:
    """As published kernels do: rows that nobody loaded are computed with, and not stored."""

    def kernel(x):
        a, b = tile((128, 64)), tile((128, 64))
        nisa.dma_copy(a[0:100], x)
        nisa.tensor_tensor(b, a, a, nl.add)
        out = result((100, 64))
        nisa.dma_copy(out, b[0:100])
        return out

    match_, texts = doubts(kernel, X)
    assert texts == []
    np.testing.assert_array_equal(match_, X + X)


def test_a_result_that_shows_it_names_the_allocation() -> None:
    def kernel(x):
        a = tile((128, 64))  # here
        b = tile((128, 64))
        nisa.dma_copy(a[0:90], x[0:90])
        nisa.tensor_tensor(b, a, a, nl.add)  # read
        out = result((100, 64))
        nisa.dma_copy(out, b[0:100])
        return out

    match_, texts = doubts(kernel, X)
    assert np.isnan(match_[90:]).all() and not np.isnan(match_[:90]).any()
    (text,) = texts
    assert "NaN" in text and "was read that nothing had written" in text
    assert text.endswith(f"{__file__}:{line_of(kernel, '# here')}")
    assert f"Read first at {__file__}:{line_of(kernel, '# read')}.\n" in text
    assert "\nWhy: " in text and "\nFix: " in text


def test_a_result_that_was_not_written_names_itself() -> None:
    for dtype, value in ((nl.float32, "NaN"), (nl.int32, "4"), (nl.bfloat16, "NaN")):

        def kernel(dtype=dtype):
            out = result((8, 4), dtype=dtype)  # here
            a = tile((8, 4), dtype=dtype)
            nisa.memset(a, 1)
            nisa.dma_copy(out[0:5], a[0:5])
            return out

        _, (text,) = doubts(kernel)
        assert "never written" in text and f"holds {value}" in text
        assert text.endswith(str(line_of(kernel, "# here")))


def test_fours_and_nans_that_were_computed_are_no_matter() -> None:
    def kernel(x):
        a, b, c = tile((8, 4)), tile((8, 4), dtype=nl.int32), tile((8, 4))
        nisa.dma_copy(a, x)
        nisa.memset(b, 4)
        nisa.tensor_tensor(c, a, a, nl.subtract)
        one, two = result((8, 4)), result((8, 4), dtype=nl.int32)
        nisa.dma_copy(one, c)
        nisa.dma_copy(two, b)
        return one, two

    (one, two), texts = doubts(kernel, np.full((8, 4), np.inf, np.float32))
    assert np.isnan(one).all() and (two == 4).all() and texts == []


def test_a_four_among_other_whole_numbers_is_no_doubt() -> None:
    """As in a public kernel that finds indices: rows depend on padding, 4 is one of the indices."""

    def kernel(x):
        a, most = tile((4, 8, 2), dtype=nl.int32), tile((4, 8), dtype=nl.int32)
        nisa.dma_copy(a[:, :, 0], x)
        nisa.tensor_reduce(most, nl.maximum, a, axis=2)
        out = result((4, 8), dtype=nl.int32)
        nisa.dma_copy(out, most)
        return out

    x = np.arange(4, 36, dtype=np.int32).reshape(4, 8)
    match_, texts = doubts(kernel, x)
    assert texts == [] and np.array_equal(match_, x)


def test_bytes_of_written_rows_are_no_doubt() -> None:
    """As a public norm stores FP32 scales behind FP8 values: their bytes may be NaN of FP8."""

    def kernel(x):
        scales = tile((128, 1))
        nisa.dma_copy(scales[0:100], x[:, 0:1])
        out = result((100, 4), dtype=nl.float8_e4m3)
        nisa.dma_copy(out, scales.ap([[4, 100], [1, 4]], dtype=nl.float8_e4m3))
        return out

    match_, texts = doubts(kernel, np.full((100, 64), np.nan, np.float32))
    assert np.isnan(match_.astype(np.float32)).any() and texts == []


def test_a_row_that_is_spread_keeps_nothing_of_the_tile() -> None:
    """As a public mixture of experts spreads its affinities; NaN came in with the argument."""

    last = 0

    def kernel(x):
        rows = tile((32, 64))  # here
        nisa.dma_copy(rows[0:1], x[0:1])
        nisa.nc_stream_shuffle(rows, rows[0:1], [0] * 31 + [last])
        out = result((32, 64))
        nisa.dma_copy(out, rows)
        return out

    assert doubts(kernel, np.full((1, 64), np.nan, np.float32))[1] == []
    last = 255
    (text,) = doubts(kernel, X)[1]
    assert text.endswith(str(line_of(kernel, "# here")))


def test_it_goes_through_a_product_and_a_reduction() -> None:
    def kernel(x):
        a = tile((64, 32))  # here
        nisa.dma_copy(a[0:60], x[0:60, 0:32])
        product = nl.ndarray((32, 32), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_matmul(product, a, a)
        rows = tile((32, 1))
        nisa.tensor_reduce(rows, nl.add, product, axis=1)
        out = result((32, 1))
        nisa.dma_copy(out, rows)
        return out

    _, (text,) = doubts(kernel, X)
    assert text.endswith(str(line_of(kernel, "# here")))


def test_an_argument_that_was_written_with_it() -> None:
    def kernel(x):
        a = tile((4, 64))  # here
        nisa.dma_copy(x[0:4], a)

    x = X.copy()
    _, (text,) = doubts(kernel, x)
    assert np.isnan(x[:4]).all() and text.endswith(str(line_of(kernel, "# here")))


def test_what_another_core_left_out() -> None:
    def kernel(x):
        half = nl.ndarray((2, 8), dtype=nl.float32, buffer=nl.shared_hbm)  # here
        out = result((2, 8))
        me = nl.program_id(0)
        a = tile((1, 8))
        nisa.memset(a, 1.0)
        if me == 0:
            nisa.dma_copy(half[0:1], a)
        nisa.core_barrier(half, (0, 1))
        nisa.dma_copy(out[nl.ds(me, 1)], half[nl.ds(1 - me, 1)])
        return out

    match_, (text,) = doubts(kernel, X, grid=2)
    assert np.isnan(match_[0]).all() and (match_[1] == 1).all()
    assert text.endswith(str(line_of(kernel, "# here")))


def test_nothing_is_followed_where_nothing_shows(monkeypatch) -> None:
    from utils.nki.simulator import sentinels

    monkeypatch.setattr(sentinels, "_Origins", None)
    assert doubts(lambda: None)[1] == []
    launch.run(lambda: result((100, 64)), (), {}, values=False)
