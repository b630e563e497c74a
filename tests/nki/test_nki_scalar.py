"""The Scalar Engine, and reductions of both engines with their accumulators."""

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
    once,
    put,
    read,
    refuses,
    result_of,
    rounds,
    rows_of,
    same,
    seeds,
    shapes,
    t,
    token,
    types,
    warns,
)

cmd = nisa.reduce_cmd


def given_to(value):
    return put(value, "float32") if isinstance(value, np.ndarray) else value


def near(result: np.ndarray, wanted: np.ndarray, to: str, slack: np.ndarray | float) -> None:
    """Between what `to` holds of wanted - slack and of wanted + slack: rounding is monotonic."""
    low, high = rounds(wanted - slack, to), rounds(wanted + slack, to)
    assert ((low <= result) & (result <= high) | (np.isnan(result) & np.isnan(low))).all()


def small(x: np.ndarray) -> np.ndarray:
    """Integers up to 3, whose products do not overflow."""
    return np.clip(x, max(x.min(), -3), 3)


# ---- activation ------------------------------------------------------------------------------

FUNCTIONS = {
    "exp": np.exp, "tanh": np.tanh, "relu": lambda x: np.maximum(x, 0), "square": np.square,
    "copy": lambda x: x, "abs": np.abs, "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "silu": lambda x: x / (1 + np.exp(-x)), "sign": np.sign,
    "gelu": lambda x: x * np.vectorize(lambda v: 0.5 * math.erfc(-v / math.sqrt(2)))(x),
}  # fmt: skip
functions = st.sampled_from(sorted(FUNCTIONS))
kinds = st.sampled_from(("none", "number", "column"))


@settings(max_examples=120)
@given(shapes, types, types, layouts, layouts, functions, kinds, kinds, seeds)
def test_activation(shape, from_, to, here, there, op, scale_kind, bias_kind, seed) -> None:
    x = draw(seed, shape, from_, 3.0)
    x = np.clip(x, max(x.min(), -12), 12)  # exp of integers up to 100 would overflow
    column = draw(seed + 1, (shape[0], 1), "float32", 0.5)
    columns = {"none": None, "number": float(column[0, 0]), "column": column}
    scale, bias = columns[scale_kind], columns[bias_kind]
    sums = []

    def call():
        dst, into = empty(shape, to, there), empty((shape[0], 1), "float32")
        nisa.activation(
            dst=dst, op=token(op), data=put(x, from_, here), bias=given_to(bias),
            scale=1.0 if scale is None else given_to(scale), reduce_op=nl.add, reduce_res=into,
            reduce_cmd=cmd.reset_reduce,
        )  # fmt: skip
        sums.append(into)
        return dst

    _, dst = issue(call)
    arguments = rows_of(x)
    if scale is not None:
        arguments = once(arguments * once(scale))
    if bias is not None:
        arguments = once(arguments + once(bias))
    with np.errstate(all="ignore"):
        made = FUNCTIONS[op](arguments)
    slack = np.abs(made) * 1e-11
    near(read(dst).reshape(made.shape), once(made), to, slack)
    # Pairwise or one after the other, a sum of n numbers is off by at most n units of their size.
    n = made.shape[1]
    allowed = (n + 1) * 2.0**-24 * np.abs(made).sum(axis=1) + 1e-30
    assert (np.abs(read(sums[0])[:, 0] - made.sum(axis=1)) <= allowed).all()


@pytest.mark.parametrize("name", [
    "copy", "square", "sigmoid", "relu", "gelu", "gelu_dx", "gelu_apprx_tanh",
    "gelu_apprx_sigmoid", "gelu_apprx_sigmoid_dx", "silu", "silu_dx", "tanh", "softplus", "mish",
    "erf", "erf_dx", "exp", "log", "sin", "arctan", "sqrt", "rsqrt", "reciprocal", "sign", "abs",
])  # fmt: skip
def test_every_documented_function_runs_inside_its_range(name: str) -> None:
    x = np.linspace(0.01, 1.5, 64, dtype=np.float32).reshape(2, 32)

    result = result_of(nisa.activation, (x.shape, "float32"), op=token(name), data=(x, "float32"))
    same(result, token(name).meaning(x))
    assert cycles(lambda: nisa.activation(t(), op=token(name), data=t()))[0] == "scalar"


@pytest.mark.parametrize("name,value,range_", [
    ("sin", 9.0, "[-pi, pi]"), ("log", 0.0, "[2^-64, 2^64]"), ("arctan", 2.0, "pi/2"),
    ("sqrt", -1.0, "2^-116"), ("rsqrt", 0.0, "2^-87"), ("reciprocal", 0.0, "2^-42"),
])  # fmt: skip
def test_values_outside_the_range_are_named(name: str, value: float, range_: str) -> None:
    x = np.ones((4, 6), np.float32)
    x[2, 3] = x[3, 1] = value

    def call():
        nisa.activation(dst=t(x.shape), op=token(name), data=put(x, "float32"))
        return True

    warns(call, f"nl.{name} of {value:g}", "partition 2, element 3", "2 of 24", range_)


def test_sine_outside_of_its_range_is_as_wrong_as_on_the_engine() -> None:
    kept = []

    def call():
        kept.append(t((1, 1)))
        nisa.activation(kept[-1], op=nl.sin, data=put(np.array([[9.0]]), "float32"))

    warns(call, "call nl.sin(tile)")
    assert round(float(read(kept[0])[0, 0]), 2) == 27.65


def test_rules_of_activation() -> None:
    def call(op=nl.exp, target="trn2", name="activation", at="plain", dst=(4, 8), **options):
        for key in ("bias", "scale", "reduce_res"):
            if isinstance(options.get(key), tuple):
                options[key] = t(*options[key])
        getattr(nisa, name)(dst=t(dst), op=op, data=t(at=at), **options)

    refuses(lambda: call(np.exp), "no operator", "pass nl.exp")
    refuses(lambda: call("exp"), "pass nl.exp")
    refuses(lambda: call(nl.add), "nl.add", "nl.exp, ", "nl.gelu")
    refuses(lambda: call(nl.power), "nl.power", "nl.tanh")
    refuses(lambda: call(dst=(4, 9)), "(4, 8)", "(4, 9)")
    refuses(lambda: call(bias=((1, 8),)), "bias must have one value", "8 columns")
    refuses(lambda: call(scale=((4, 1), "bfloat16")), "scale is bfloat16", "float32")
    refuses(lambda: call(bias=((4, 1), "tfloat32")), "tfloat32")
    refuses(lambda: call(bias=1.0), "gen2", "column", "memset", target="trn1")
    refuses(lambda: call(nl.reciprocal, bias=((4, 1),)), "nl.reciprocal with bias", target="trn1")
    issue(lambda: call(bias=1.0), values=False)
    issue(lambda: call(bias=((4, 1), "bfloat16")), values=False)
    refuses(lambda: call(reduce_op=nl.maximum, reduce_cmd=cmd.reduce), "nl.maximum", "nl.add")
    refuses(lambda: call(reduce_cmd=cmd.reduce), "reduce_op is None", "reduce_op=nl.add")
    refuses(lambda: call(reduce_op=nl.add, reduce_cmd=cmd.load_reduce), "load_reduce", "idle")
    refuses(lambda: call(reduce_op=nl.add, reduce_cmd="reduce"), "reduce_cmd is 'reduce'")
    refuses(
        lambda: call(reduce_op=nl.add, reduce_cmd=cmd.reduce, reduce_res=((4, 2),)),
        "reduce_res must have one value", "2 columns",
    )  # fmt: skip
    refuses(
        lambda: call(name="activation_reduce", reduce_op=nl.multiply, reduce_res=((4, 1),)),
        "nl.multiply", "nl.add", "tensor_reduce",
    )  # fmt: skip
    refuses(lambda: call(imm0=1.0), "imm0")
    warns(lambda: call(reduce_res=((4, 1),)), "reduce_cmd is idle", values=False)
    warns(lambda: call(nl.prelu), "nl.prelu without a slope", values=False)


def test_long_reductions_are_doubted() -> None:
    def call():
        nisa.activation_reduce(
            dst=t((2, 16385)), op=nl.exp, data=t((2, 16385)), reduce_op=nl.add, reduce_res=t((2, 1))
        )

    warns(call, "16385", "16384", values=False)


def test_the_scalar_accumulators_go_on_until_they_are_reset() -> None:
    x = np.arange(12, dtype=np.float32).reshape(2, 6)

    def call():
        data, out = put(x, "float32"), []

        def step(command, into=True):
            out.append(t((2, 1)) if into else None)
            nisa.activation(
                dst=t(x.shape, "bfloat16"), op=nl.copy, data=data, reduce_op=nl.add,
                reduce_cmd=command, reduce_res=out[-1],
            )  # fmt: skip

        step(cmd.reset_reduce, into=False)
        step(cmd.reduce, into=False)
        step(cmd.reduce)
        nisa.tensor_scalar_reduce(  # the other engine has accumulators of its own
            dst=t(x.shape), data=data, op0=nl.add, operand0=1.0, reduce_op=nl.maximum
        )
        step(cmd.reset)
        nisa.activation_reduce(
            dst=t(x.shape), op=nl.square, data=data, reduce_op=nl.add, reduce_res=t((2, 1))
        )
        step(cmd.reduce)
        return out

    _, out = issue(call)
    sums, squares = x.sum(axis=1), (x**2).sum(axis=1)
    same(read(out[2])[:, 0], 3 * sums)
    same(read(out[3])[:, 0], 0 * sums)
    same(read(out[4])[:, 0], squares + sums)


def test_accumulators_that_nobody_reset_are_doubted() -> None:
    def call():
        nisa.activation(
            dst=t((2, 3)), op=nl.copy, data=put(np.ones((2, 3)), "float32"), reduce_op=nl.add,
            reduce_cmd=cmd.reduce, reduce_res=t((2, 1)),
        )  # fmt: skip

    warns(call, "no defined value", "reset_reduce")


# ---- activate2 -------------------------------------------------------------------------------


@pytest.mark.parametrize("op0,op1", [
    ("multiply", "add"), ("multiply", "subtract"), ("multiply", "bypass"), ("add", "bypass"),
    ("subtract", "bypass"), ("bypass", "bypass"),
])  # fmt: skip
@pytest.mark.parametrize("reverse0,reverse1", [(False, False), (True, False), (False, True)])
def test_activate2(op0: str, op1: str, reverse0: bool, reverse1: bool) -> None:
    if (reverse0 and op0 == "bypass") or (reverse1 and op1 == "bypass"):
        return
    x = draw(4, (8, 10), "bfloat16")
    column = draw(5, (8, 1), "float32")

    result = result_of(
        nisa.activate2, (x.shape, "float32"), "trn3", op=nl.relu, data=(x, "bfloat16"),
        imm0=(column, "float32"), imm1=0.5, op0=token(op0), op1=token(op1), reverse0=reverse0,
        reverse1=reverse1,
    )  # fmt: skip
    made = rows_of(x)
    do = {"multiply": np.multiply, "add": np.add, "subtract": np.subtract}
    for name, value, reverse in ((op0, once(column), reverse0), (op1, 0.5, reverse1)):
        if name != "bypass":
            made = once(do[name](value, made) if reverse else do[name](made, value))
    same(result, np.maximum(made, 0))


def test_activate2_has_slopes_and_five_reductions() -> None:
    x = np.array([[-3.0, 1.0, 2.0], [5.0, -6.0, 0.5]], np.float32)
    wanted = {"add": [1.5, 2.5], "maximum": [2.0, 5.0], "minimum": [-1.5, -3.0],
              "abs_max": [2.0, 5.0], "abs_min": [1.0, 0.5]}  # fmt: skip

    def call(name):
        into = t((2, 1))
        nisa.activate2(
            dst=t(x.shape), op=nl.prelu, data=put(x, "float32"), imm0=None, imm1=None,
            op0=nl.bypass, op1=nl.bypass, relu_param=0.5, reduce_op=token(name),
            reduce_cmd=cmd.reset_reduce, reduce_res=into,
        )  # fmt: skip
        return into

    for name, values in wanted.items():
        _, into = issue(lambda name=name: call(name), "trn3")
        assert read(into)[:, 0].tolist() == values, name


def test_rules_of_activate2() -> None:
    def call(op0=nl.multiply, op1=nl.add, imm0=1.0, imm1=1.0, **options):
        imms = [t((4, 1), item) if isinstance(item, str) else item for item in (imm0, imm1)]
        nisa.activate2(
            dst=t(), op=nl.exp, data=t(), imm0=imms[0], imm1=imms[1], op0=op0, op1=op1, **options
        )

    refuses(call, "gen3", "gen4", target="trn2")
    refuses(lambda: call(op1=nl.multiply), "op0 and op1", "nl.bypass", target="trn3")
    refuses(lambda: call(nl.bypass), "nl.bypass and nl.add", target="trn3")
    refuses(lambda: call(op1=nl.bypass, reverse1=True), "reverse1 is True", target="trn3")
    refuses(lambda: call(imm0="float32", imm1="bfloat16"), "one type", target="trn3")
    refuses(lambda: call(reduce_op=nl.multiply, reduce_cmd=cmd.reduce), "nl.abs_min", target="trn3")


# ---- tensor_reduce ---------------------------------------------------------------------------

FOLDS = {"add": np.sum, "multiply": np.prod, "maximum": np.max, "minimum": np.min,
         "logical_or": lambda x, axis: np.any(x, axis)}  # fmt: skip


@settings(max_examples=120)
@given(shapes, types, types, layouts, layouts, st.sampled_from(sorted(FOLDS)), st.integers(1, 3),
       st.booleans(), st.booleans(), seeds)  # fmt: skip
def test_tensor_reduce(shape, from_, to, here, there, op, count, negate, keepdims, seed) -> None:
    axes = tuple(range(max(1, len(shape) - count), len(shape)))
    x = small(draw(seed, shape, from_, 1.5))
    kept = shape[: axes[0]] + ((1,) * len(axes) if keepdims else ())
    kept = kept if len(kept) > 1 else (*kept, 1)

    result = result_of(
        nisa.tensor_reduce, (kept, to, there), op=token(op), data=(x, from_, here), negate=negate,
        keepdims=keepdims, axis=axes[0] if len(axes) == 1 else axes,
    )  # fmt: skip
    wide = np.asarray(x, np.float64)
    made = np.asarray(FOLDS[op](wide, axis=axes), np.float64)
    n = math.prod(shape[axes[0] :])
    size = np.abs(wide).sum(axis=axes) if op == "add" else np.abs(made)
    slack = (n + 1) * 2.0**-24 * size if op in ("add", "multiply") else np.zeros(made.shape)
    sign = -1 if negate else 1
    near(result.reshape(made.shape), sign * made, to, slack)


def test_reductions_of_bits() -> None:
    x = np.random.default_rng(0).integers(0, 2**32, (4, 3, 5), np.uint32)

    for name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
        more = {"op": token(name), "data": (x, "uint32"), "axis": 2}
        result = result_of(nisa.tensor_reduce, ((4, 3), "uint32"), **more)
        same(result, getattr(np, name).reduce(x, axis=2))


def test_rules_of_tensor_reduce() -> None:
    def call(axis=1, dst=(4, 1), data=(4, 8), op=nl.add, type_="float32", **options):
        nisa.tensor_reduce(dst=t(dst, type_), op=op, data=t(data, type_), axis=axis, **options)

    refuses(lambda: call(axis=0), "axis 0", "partition", "transpose", "ones")
    refuses(lambda: call(axis=(0, 1)), "axis 0")
    refuses(lambda: call(axis=1, data=(4, 2, 8), dst=(4, 8)), "axis is 1", "2, (1, 2)")
    refuses(lambda: call(axis=2), "axis is 2", "2 dimensions")
    refuses(lambda: call(axis=1.0), "1.0")
    refuses(lambda: call(dst=(4, 2)), "dst is (4, 2)", "(4, 1)")
    refuses(lambda: call(data=(4, 2, 8), axis=2, dst=(4, 1)), "(4, 2)")
    refuses(lambda: call(op=nl.power), "nl.power", "nl.maximum")
    refuses(lambda: call(op=nl.exp), "nl.exp", "nl.add")
    refuses(lambda: call(op=np.add), "nl.add")
    refuses(lambda: call(op=nl.bitwise_and), "data is float32", "integers")
    refuses(lambda: call(op=nl.bitwise_and, type_="int32", negate=True), "negate")
    issue(lambda: call(axis=-1), values=False)
    issue(lambda: call(axis=[1]), values=False)


# ---- mean and variance -----------------------------------------------------------------------


@settings(max_examples=60)
@given(st.sampled_from((1, 4, 128)), st.integers(1, 1300), floats, layouts, seeds)
def test_mean_and_variance(partitions, n, from_, here, seed) -> None:
    x = draw(seed, (partitions, n), from_)
    pieces = -(-n // 512)

    def call():
        data, stats = put(x, from_, here if n < 512 else "plain"), t((partitions, 6 * pieces))
        for i in range(pieces):
            nisa.bn_stats(
                dst=stats[:, 6 * i : 6 * i + 6], data=data[:, 512 * i : min(512 * (i + 1), n)]
            )
        both = t((partitions, 2))
        nisa.bn_aggr(dst=both, data=stats)
        return stats, both

    _, (stats, both) = issue(call)
    wide = x.astype(np.float64)
    result, size = read(both), np.abs(wide).max() + 1e-30
    np.testing.assert_allclose(result[:, 0], wide.mean(axis=1), atol=1e-6 * size, rtol=0)
    np.testing.assert_allclose(result[:, 1], wide.var(axis=1), atol=2e-6 * size**2, rtol=0)
    first = wide[:, :512]
    for parity in (0, 1):
        half, triple = first[:, parity::2], read(stats)[:, 3 * parity : 3 * parity + 3]
        assert (triple[:, 0] == half.shape[1]).all()
        if half.shape[1]:
            same(triple[:, 1], half.mean(axis=1).astype(np.float32))
            about = half.var(axis=1) * half.shape[1]
            np.testing.assert_allclose(triple[:, 2], about, rtol=1e-6, atol=1e-10)


def test_rules_of_mean_and_variance() -> None:
    refuses(lambda: nisa.bn_stats(dst=t((4, 6)), data=t((4, 600))), "600", "512", "bn_aggr")
    refuses(lambda: nisa.bn_stats(dst=t((4, 4)), data=t()), "(4, 4)", "6")
    refuses(lambda: nisa.bn_aggr(dst=t((4, 2)), data=t((4, 8))), "8", "multiple of 3")
    refuses(lambda: nisa.bn_aggr(dst=t((4, 3)), data=t((4, 6))), "(4, 3)", "2")


# ---- the accumulators of the Vector Engine ---------------------------------------------------


@settings(max_examples=80)
@given(shapes, types, layouts, st.sampled_from(("add", "multiply", "maximum")),
       st.sampled_from(("add", "multiply", "maximum", "minimum")), st.booleans(),
       seeds)  # fmt: skip
def test_tensor_scalar_reduce(shape, from_, here, op0, op, negate, seed) -> None:
    x = small(draw(seed, shape, from_, 1.5))
    column = draw(seed + 1, (shape[0], 1), "float32", 1.0)
    out = []

    def call():
        dst, into = empty(shape, "float32"), empty((shape[0], 1), "float32")
        nisa.tensor_scalar_reduce(
            dst=dst, data=put(x, from_, here), op0=token(op0),
            operand0=put(column, "float32"), reduce_op=token(op), reduce_res=into,
            reduce_res_negate=negate,
        )  # fmt: skip
        out.append(into)
        return dst

    _, dst = issue(call)
    do = {"add": np.add, "multiply": np.multiply, "maximum": np.maximum}[op0]
    made = once(do(rows_of(x), once(column)))
    same(read(dst), made.reshape(shape))
    folded = FOLDS[op](made, axis=1)
    size = np.abs(made).sum(axis=1) if op == "add" else np.abs(folded)
    with np.errstate(over="ignore"):
        slack = (made.shape[1] + 1) * 2.0**-24 * size + 2.0**-149
        near(read(out[0])[:, 0], (-1 if negate else 1) * folded, "float32", slack)


def test_vector_accumulators_go_on_or_begin_with_a_value() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    start = np.array([[100.0], [200.0]], np.float32)

    def call():
        out = []

        def step(command, **options):
            out.append(t((2, 1)))
            nisa.tensor_scalar_reduce(
                dst=t(x.shape), data=put(x, "float32"), op0=nl.multiply, operand0=1.0,
                reduce_op=nl.add, reduce_res=out[-1], reduce_cmd=command, **options,
            )  # fmt: skip

        step(cmd.reset_reduce)
        step(cmd.reduce)
        step(cmd.load_reduce, reduce_init=10.0)
        step(cmd.load_reduce, reduce_init=put(start, "float32"))
        return out

    _, out = issue(call)
    sums = x.sum(axis=1)
    for tile, wanted in zip(out, (sums, 2 * sums, sums + 10, sums + start[:, 0]), strict=True):
        same(read(tile)[:, 0], wanted)


def test_rules_of_tensor_scalar_reduce() -> None:
    def call(op0=nl.add, operand0=1.0, reduce_op=nl.add, **options):
        nisa.tensor_scalar_reduce(
            dst=t(), data=t(), op0=op0, operand0=operand0, reduce_op=reduce_op, **options
        )

    refuses(lambda: call(nl.bitwise_or, 1), "nl.bitwise_or", "nl.add")
    refuses(lambda: call(reduce_op=nl.subtract), "nl.subtract", "nl.multiply")
    refuses(lambda: call(reverse0=True), "reverse0", "not support")
    refuses(lambda: call(reduce_cmd=cmd.idle), "reduce_cmd", "reset_reduce")
    refuses(lambda: call(reduce_cmd=cmd.load_reduce), "reduce_init is None")
    refuses(lambda: call(reduce_init=3.0), "reduce_init is 3.0", "load_reduce")


@settings(max_examples=60)
@given(shapes, floats, layouts, st.sampled_from(("add", "multiply")),
       st.sampled_from(("add", "subtract", "multiply", "maximum", "minimum")), seeds)  # fmt: skip
def test_tensor_scalar_cumulative(shape, from_, here, op0, op1, seed) -> None:
    x = draw(seed, shape, from_, 1.2)

    def call():
        dst, more = empty(shape, "float32"), empty(shape, "bfloat16")
        nisa.tensor_scalar_cumulative(
            dst=dst, src=put(x, from_, here), op0=token(op0), op1=token(op1), imm0=0.75
        )
        nisa.tensor_scalar_cumulative(
            dst=more, src=put(x, from_), op0=token(op0), op1=token(op1), imm0=0.75,
            reduce_cmd=cmd.reduce,
        )  # fmt: skip
        return dst, more

    _, tiles = issue(call)
    do = {"add": np.add, "multiply": np.multiply, "subtract": np.subtract, "maximum": np.maximum,
          "minimum": np.minimum}  # fmt: skip
    begin = {"add": 0, "subtract": 0, "multiply": 1, "maximum": -np.inf, "minimum": np.inf}[op1]
    values = once(do[op0](rows_of(x), 0.75))
    register = np.full(shape[0], begin, np.float64)
    for tile, to in zip(tiles, ("float32", "bfloat16"), strict=True):
        made = np.empty(values.shape)
        for i in range(values.shape[1]):
            register = made[:, i] = once(do[op1](values[:, i], register))
        same(read(tile), rounds(made.reshape(shape), to))


def test_rules_of_tensor_scalar_cumulative() -> None:
    def call(type_="float32", op0=nl.add, op1=nl.add, imm0=1.0, **options):
        nisa.tensor_scalar_cumulative(
            dst=t(type_=type_), src=t(type_=type_), op0=op0, op1=op1, imm0=imm0, **options
        )

    refuses(lambda: call("int32"), "int32", "float32")
    refuses(lambda: call(op1=nl.logical_and), "nl.logical_and", "nl.minimum")
    refuses(lambda: call(op0=nl.square), "nl.square")
    refuses(lambda: call(imm1=1.0), "imm1 is 1.0", "load_reduce")
    refuses(lambda: call(reduce_cmd=cmd.load_reduce), "imm1 is None")
    result = result_of(
        nisa.tensor_scalar_cumulative, ((1, 3), "float32"), src=(np.ones((1, 3)), "float32"),
        op0=nl.multiply, op1=nl.add, imm0=2.0, imm1=5.0, reduce_cmd=cmd.load_reduce,
    )  # fmt: skip
    assert result.tolist() == [[7.0, 9.0, 11.0]]


def test_exponential() -> None:
    x = draw(2, (16, 40), "bfloat16")
    highest = x.max(axis=1, keepdims=True)

    def call():
        dst, sums, more = t(x.shape, "bfloat16"), t((16, 1)), t((16, 1))
        options = {"src": put(x, "bfloat16"), "max_value": put(highest, "float32")}
        nisa.exponential(dst=dst, reduce_res=sums, reduce_cmd=cmd.reset_reduce, **options)
        nisa.exponential(
            dst=t(x.shape), reduce_res=more, reduce_cmd=cmd.load_reduce, reduce_init=1.0, **options
        )
        return dst, sums, more

    _, (dst, sums, more) = issue(call, "trn3")
    made = np.exp(once(rows_of(x) - once(highest)))
    near(read(dst), once(made), "bfloat16", made * 1e-11)
    np.testing.assert_allclose(read(sums)[:, 0], made.sum(axis=1), rtol=41 * 2.0**-24)
    np.testing.assert_allclose(read(more)[:, 0], 1 + made.sum(axis=1), rtol=42 * 2.0**-24)
    refuses(lambda: nisa.exponential(dst=t(), src=t()), "gen3", "gen4")
    refuses(lambda: nisa.exponential(dst=t(), src=t(), reduce_init=1.0), "load_reduce",
            target="trn3")  # fmt: skip
    refuses(lambda: nisa.exponential(dst=t((4, 9)), src=t()), "(4, 9)", target="trn3")
    refuses(lambda: nisa.exponential(dst=t(), src=t(type_="float8_e4m3fn")), "float8_e4m3fn",
            target="trn3")  # fmt: skip


# ---- cycles ----------------------------------------------------------------------------------


def activated(n=512, name="activation", **options):
    def call():
        if "reduce_res" in options:
            options["reduce_res"] = t((128, 1))
        getattr(nisa, name)(dst=t((128, n)), op=nl.exp, data=t((128, n)), **options)

    return call


def reduced(types_=("bfloat16", "bfloat16"), op=nl.add, n=512):
    return lambda: nisa.tensor_reduce(
        dst=t((128, 1), types_[1]), op=op, data=t((128, n), types_[0]), axis=1
    )


SUMMED = {"reduce_op": nl.add, "reduce_res": None}


@pytest.mark.parametrize("call,target,wanted", [
    (activated(), "trn2", 512),
    (activated(8), "trn2", 64),
    (activated(reduce_cmd=cmd.reset_reduce, **SUMMED), "trn2", 576),
    (activated(name="activation_reduce", **SUMMED), "trn2", 576),
    (reduced(), "trn2", 256),
    (reduced(op=nl.maximum), "trn2", 256),
    (reduced(op=nl.minimum), "trn2", 512),
    (reduced(("bfloat16", "float32")), "trn2", 512),
    (reduced(("float32", "float32")), "trn2", 512),
    (reduced(n=20), "trn2", 64),
    (lambda: nisa.bn_stats(dst=t((4, 6)), data=t((4, 512))), "trn2", 512),
    (lambda: nisa.bn_aggr(dst=t((4, 2)), data=t((4, 6))), "trn2", 64),
    (lambda: nisa.bn_aggr(dst=t((4, 2)), data=t((4, 48))), "trn2", 208),
    (lambda: nisa.tensor_scalar_reduce(dst=t((4, 100)), data=t((4, 100)), op0=nl.add, operand0=1.0,
                                       reduce_op=nl.add), "trn2", 164),
    (lambda: nisa.tensor_scalar_cumulative(dst=t((4, 100)), src=t((4, 100)), op0=nl.add,
                                           op1=nl.add, imm0=0.0), "trn2", 100),
    (lambda: nisa.exponential(dst=t((4, 1024)), src=t((4, 1024))), "trn3", 256),
    (lambda: nisa.exponential(dst=t((4, 1024)), src=t((4, 1024)), reduce_res=t((4, 1)),
                              reduce_cmd=cmd.reset_reduce), "trn3", 320),
    (lambda: nisa.activate2(dst=t((4, 100)), op=nl.exp, data=t((4, 100)), imm0=1.0, imm1=0.0,
                            op0=nl.multiply, op1=nl.add), "trn3", 100),
])  # fmt: skip
def test_cycles(call, target: str, wanted: float) -> None:
    assert cycles(call, target)[1] == wanted
