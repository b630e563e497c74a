"""Index patterns, masks and selections: values against NumPy loops, every rule broken, costs."""

import itertools
import math

import nki.isa as nisa
import nki.language as nl
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.nki.nki_bench import (
    cycles,
    draw,
    empty,
    floats,
    issue,
    layouts,
    put,
    read,
    refuses,
    result_of,
    rounds,
    same,
    seeds,
    shapes,
    t,
    types,
)

LOWEST = float(np.finfo(np.float32).min)
COMPARE = {
    "equal": lambda a, b: a == b, "not_equal": lambda a, b: a != b, "less": lambda a, b: a < b,
    "less_equal": lambda a, b: a <= b, "greater": lambda a, b: a > b,
    "greater_equal": lambda a, b: a >= b,
}  # fmt: skip
on_sbuf = layouts.filter(lambda layout: layout != "psum")
patterns = st.lists(
    st.tuples(st.integers(-300, 300), st.integers(1, 5)), min_size=1, max_size=4
).map(lambda pairs: [list(pair) for pair in pairs])
starts = st.integers(-(2**31), 2**31 - 1)
small = st.integers(-1000, 1000)
partitions = st.sampled_from((1, 5, 32, 128))


def index(pattern, offset: int, multiplier: int, rows: int) -> np.ndarray:
    """The index of every element, by the loops of the documentation, wrapped to 32 bits."""
    steps = [step for step, _ in pattern]
    counts = [range(count) for _, count in pattern]
    values = [
        [
            offset + row * multiplier + sum(i * s for i, s in zip(item, steps, strict=True))
            for item in itertools.product(*counts)
        ]
        for row in range(rows)
    ]
    return (np.array(values, np.int64) + 2**31) % 2**32 - 2**31


@settings(max_examples=60)
@given(patterns, starts, small, partitions, types)
def test_iota_writes_the_pattern(pattern, offset, multiplier, rows, dtype) -> None:
    shape = (rows, *(count for _, count in pattern))
    more = {"pattern": pattern, "offset": offset, "channel_multiplier": multiplier}
    result = result_of(nisa.iota, (shape, dtype), **more)
    wanted = index(pattern, offset, multiplier, rows)
    if dtype in ("int32", "int8", "uint16"):
        limits = np.iinfo(dtype)
        wanted = np.clip(wanted, limits.min, limits.max)
    else:
        wanted = rounds(wanted.astype(np.float32), dtype)
    same(result, wanted.reshape(shape))


def test_iota_keeps_integers_that_fp32_does_not() -> None:
    result = result_of(nisa.iota, ((2, 3), "int32"), pattern=[[1, 3]], offset=2**24)
    assert result.tolist() == [[2**24, 2**24 + 1, 2**24 + 2]] * 2


@settings(max_examples=60)
@given(seeds, patterns, small, st.integers(-9, 9), partitions, floats, floats, st.data())
def test_affine_select_keeps_where_the_index_compares(
    seed, pattern, offset, multiplier, rows, dtype, into, data
) -> None:
    name = data.draw(st.sampled_from(sorted(COMPARE)))
    value = data.draw(st.sampled_from((0.0, -9984.0, LOWEST)))
    shape = (rows, math.prod(count for _, count in pattern))
    values = draw(seed, shape, dtype)

    result = result_of(
        nisa.affine_select, (shape, into), pattern=pattern, channel_multiplier=multiplier,
        on_true_tile=(values, dtype, data.draw(on_sbuf)), on_false_value=value,
        cmp_op=getattr(nl, name), offset=offset,
    )  # fmt: skip
    kept = COMPARE[name](index(pattern, offset, multiplier, rows), 0)
    same(result, rounds(np.where(kept, values, np.float32(value)), into))


def test_a_causal_mask_in_one_line_of_numpy() -> None:
    values = draw(3, (128, 64), "float32")
    result = result_of(
        nisa.affine_select, ((128, 64), "float32"), pattern=[[-1, 64]], channel_multiplier=1,
        on_true_tile=(values, "float32"), on_false_value=-9984.0, cmp_op=nl.greater_equal,
    )  # fmt: skip
    rows, columns = np.ogrid[:128, :64]
    same(result, np.where(rows >= columns, values, np.float32(-9984.0)))


BAD_PATTERNS = [
    (dict(pattern=[[1, 3]]), "3 elements", "8"),
    (dict(pattern=[]), "1 to 4 pairs"),
    (dict(pattern=[[1, 2], [1, 2], [1, 2], [1, 1], [1, 1]]), "1 to 4 pairs"),
    (dict(pattern=[[1.5, 8]]), "integers"),
    (dict(pattern=[[1, 0]]), "counts of 1"),
    (dict(pattern=[[1, 8]], offset=0.5), "offset is 0.5"),
    (dict(pattern=[[1, 8]], offset=2**31), "32 bits"),
    (dict(pattern=[[1, 8]], channel_multiplier="2"), "channel_multiplier"),
]


@pytest.mark.parametrize("bad", BAD_PATTERNS)
def test_patterns_that_do_not_fit_are_refused(bad) -> None:
    options, *words = bad
    refuses(lambda: nisa.iota(t(type_="int32"), **options), *words)
    masked = {"channel_multiplier": 1, "on_false_value": 0.0, **options}
    refuses(lambda: nisa.affine_select(t(), on_true_tile=t(), **masked), *words)


def test_gpsimd_reaches_no_psum_and_asks_for_plain_types() -> None:
    def select(*more, **options):
        return lambda: nisa.affine_select(t(), [[1, 8]], 0, *(m() for m in more), **options)

    zero, psum = (lambda: 0.0), (lambda: t(at="psum"))
    refuses(lambda: nisa.iota(psum(), [[1, 8]]), "PSUM", "GpSimd")
    refuses(select(psum, zero), "on_true_tile", "PSUM")
    refuses(lambda: nisa.iota(t(type_="float8_e5m2_x4"), [[1, 8]]), "float8_e5m2_x4", "allowed")
    refuses(select(lambda: t((4, 9)), zero), "(4, 9)", "(4, 8)")
    refuses(select(t, zero, cmp_op=nl.add), "nl.greater")
    refuses(select(t, t), "on_false_value", "number")


@settings(max_examples=40)
@given(seeds, shapes, floats, layouts, st.data())
def test_range_select_and_its_maximum(seed, shape, dtype, layout, data) -> None:
    first, second = (data.draw(st.sampled_from(sorted(set(COMPARE) - {"not_equal"}))) for _ in "12")
    start = data.draw(st.sampled_from((0, 7, 2**20)))
    rng = np.random.default_rng(seed)
    n = math.prod(shape[1:])
    values = draw(seed, shape, dtype)
    low, high = (rng.integers(start - 2, start + n + 2, (shape[0], 1)) for _ in "12")

    def call():
        dst, maximum = empty(shape, dtype), empty((shape[0], 1), "float32")
        nisa.range_select(
            dst, put(values, dtype, layout), getattr(nl, first), getattr(nl, second),
            put(low, "float32"), put(high, "float32"), reduce_res=maximum, range_start=start,
        )  # fmt: skip
        return dst, maximum

    _, (dst, maximum) = issue(call)
    columns = start + np.arange(n)
    kept = COMPARE[first](columns, low) & COMPARE[second](columns, high)
    wanted = np.where(kept, values.reshape(shape[0], n), np.float32(LOWEST))
    with np.errstate(over="ignore"):
        same(read(dst), rounds(wanted, dtype).reshape(shape))
    same(read(maximum), wanted.max(axis=1, keepdims=True))


def test_range_select_is_refused() -> None:
    def call(**options):
        args = dict(
            dst=empty((4, 8), "float32"), on_true_tile=empty((4, 8), "float32"),
            comp_op0=nl.greater_equal, comp_op1=nl.less,
            bound0=empty((4, 1), "float32"), bound1=empty((4, 1), "float32"),
        )  # fmt: skip
        made = {k: v() if isinstance(v, type(call)) else v for k, v in options.items()}
        nisa.range_select(**{**args, **made})

    refuses(lambda: call(), "trn1", "trn2", target="trn1")
    refuses(lambda: call(on_false_value=0.0), "-3.4028", "on_false_value")
    refuses(lambda: call(bound0=lambda: empty((4, 1), "bfloat16")), "bound0", "float32")
    refuses(lambda: call(bound1=lambda: empty((4, 2), "float32")), "bound1", "one value")
    refuses(lambda: call(comp_op0=nl.not_equal), "comp_op0", "nl.less_equal")
    refuses(lambda: call(range_start=-1), "range_start", "2**24")
    refuses(lambda: call(range_start=2**24), "range_start", "16777208")
    refuses(lambda: call(reduce_op=nl.add), "nl.maximum")
    refuses(lambda: call(on_true_tile=lambda: empty((4, 8), "int32")), "on_true_tile is int32")
    refuses(
        lambda: call(reduce_cmd=nisa.reduce_cmd.idle, reduce_res=lambda: empty((4, 1), "float32")),
        "reduce_res",
        "idle",
    )


@settings(max_examples=40)
@given(seeds, shapes, types, st.sampled_from(("uint8", "uint16", "uint32")), layouts, st.booleans())
def test_tensor_copy_predicated_leaves_the_rest(seed, shape, dtype, mask, layout, reverse) -> None:
    before, new = draw(seed, shape, dtype), draw(seed + 1, shape, dtype)
    holds = np.random.default_rng(seed).integers(0, 3, shape)

    result = result_of(
        nisa.tensor_copy_predicated, (before, dtype, layout), src=(new, dtype),
        predicate=(holds, mask), reverse_pred=reverse,
    )  # fmt: skip
    same(result, np.where((holds != 0) != reverse, new, before))


def test_predicates_and_numbers() -> None:
    tile = lambda dtype="float32", where="plain": empty((4, 8), dtype, where)  # noqa: E731

    where = {"predicate": (np.tri(4, 8), "uint8")}
    result = result_of(nisa.tensor_copy_predicated, (np.ones((4, 8)), "bfloat16"), src=0.3, **where)
    same(result, np.where(np.tri(4, 8), rounds(np.float32(0.3), "bfloat16"), np.float32(1)))
    copy = nisa.tensor_copy_predicated
    refuses(lambda: copy(tile(), tile("bfloat16"), tile("uint8")), "bfloat16", "float32")
    refuses(lambda: copy(tile(), tile(), tile("int32")), "predicate is int32", "uint8")
    refuses(lambda: copy(tile(), tile(where="psum"), tile("uint8", "psum")), "both in PSUM")
    refuses(lambda: copy(tile(), tile(), empty((4, 7), "uint8")), "(4, 7)")
    assert cycles(lambda: copy(tile(), tile(), tile("uint8"))) == ("vector", 64)
    wide = lambda where="plain": empty((4, 512), "float32", where)  # noqa: E731
    mask = lambda: empty((4, 512), "uint8")  # noqa: E731
    assert cycles(lambda: copy(wide(), wide(), mask())) == ("vector", 1024)
    assert cycles(lambda: copy(wide(), wide("psum"), mask())) == ("vector", 512)


@settings(max_examples=40)
@given(seeds, shapes, floats, floats, layouts, st.booleans(), st.booleans())
def test_select_reduce(seed, shape, dtype, into, layout, reverse, by_row) -> None:
    values = draw(seed, shape, dtype)
    holds = np.random.default_rng(seed).integers(0, 3, shape)
    other = draw(seed + 1, (shape[0], 1), "float32") if by_row else np.float32(-1.5)

    def call():
        dst, most = empty(shape, into), empty((shape[0], 1), "float32")
        nisa.select_reduce(
            dst, put(holds, "uint8"), put(values, dtype, layout),
            put(other, "float32") if by_row else -1.5,
            reduce_res=most, reduce_cmd=nisa.reduce_cmd.reset_reduce, reverse_pred=reverse,
        )  # fmt: skip
        return dst, most

    _, (dst, most) = issue(call)
    flat = np.where(
        ((holds != 0) != reverse).reshape(shape[0], -1), values.reshape(shape[0], -1), other
    )
    same(read(dst), rounds(flat, into).reshape(shape))
    same(read(most), flat.max(axis=1, keepdims=True))


def test_the_maximum_goes_on_over_calls() -> None:
    """Aliasing of accumulators: two instructions share them, and only a reset forgets."""

    def call():
        most = empty((2, 1), "float32")
        ones = put(np.ones((2, 4)), "uint8")
        for values, command in (([[9], [1]], "reset_reduce"), ([[2], [3]], "reduce")):
            nisa.select_reduce(
                empty((2, 4), "float32"), ones, put(np.repeat(values, 4, 1), "float32"), 0.0,
                reduce_res=most, reduce_cmd=getattr(nisa.reduce_cmd, command),
            )  # fmt: skip
        return most

    assert read(issue(call)[1]).tolist() == [[9], [3]]


def test_select_reduce_is_refused() -> None:
    tile = lambda dtype="float32", where="plain": empty((4, 8), dtype, where)  # noqa: E731
    call = nisa.select_reduce
    refuses(lambda: call(tile(), tile("float32"), tile(), 0.0), "predicate is float32")
    refuses(lambda: call(tile(), tile("uint8"), tile("int32"), 0.0), "on_true is int32")
    refuses(
        lambda: call(tile(), tile("uint8"), tile(), empty((4, 2), "float32")), "on_false", "(4, 1)"
    )
    refuses(lambda: call(tile(), tile("uint8", "psum"), tile(where="psum"), 0.0), "both in PSUM")
    refuses(lambda: call(tile(), tile("uint8"), tile(), 0.0, reduce_op=nl.add), "nl.maximum")
    refuses(
        lambda: call(tile(), tile("uint8"), tile(), 0.0, reduce_cmd=nisa.reduce_cmd.reset),
        "reduce_cmd",
    )


@settings(max_examples=30)
@given(seeds, shapes, floats, st.sampled_from(("add", "maximum")))
def test_partition_reduce(seed, shape, dtype, name) -> None:
    values = draw(seed, shape, dtype)

    place, more = ((1, math.prod(shape[1:])), "float32"), {"op": getattr(nl, name)}
    result = result_of(nisa.tensor_partition_reduce, place, data=(values, dtype), **more)
    wide = values.astype(np.float64).reshape(shape[0], -1)
    wanted = wide.sum(0) if name == "add" else wide.max(0)
    np.testing.assert_allclose(result[0], wanted, rtol=1e-5, atol=1e-4)


def test_partition_reduce_is_refused_with_a_faster_way() -> None:
    call, tile = nisa.tensor_partition_reduce, empty
    refuses(lambda: call(tile((2, 8), "float32"), nl.add, tile((4, 8), "float32")), "ones", "(1, 8")
    refuses(lambda: call(tile((1, 8), "float32"), nl.multiply, tile((4, 8), "float32")), "nl.max")
    refuses(
        lambda: call(tile((1, 8), "float32"), nl.bitwise_or, tile((4, 8), "float32")), "integer"
    )
    data = (np.array([[1, 2], [4, 2]]), "int32")
    place = ((1, 2), "int32")
    result = result_of(nisa.tensor_partition_reduce, place, op=nl.bitwise_or, data=data)
    assert result.tolist() == [[5, 2]]


def test_costs_are_those_of_the_pages() -> None:
    wide = lambda: empty((4, 512), "float32")  # noqa: E731
    assert cycles(lambda: nisa.iota(wide(), [[1, 512]])) == ("gpsimd", 150 + 512)
    assert cycles(lambda: nisa.affine_select(wide(), [[1, 512]], 0, wide(), 0.0))[1] == 150 + 512
