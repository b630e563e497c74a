"""The Vector Engine: every instruction against NumPy in FP64, every rule broken, every cost."""

import nki.isa as nisa
import nki.language as nl
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.nki.nki_bench import (
    NUMPY,
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
from utils.nki.simulator import launch
from utils.nki.simulator.operators import OPERATORS

OPS = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "maximum": np.maximum,
    "minimum": np.minimum, "greater": np.greater, "less_equal": np.less_equal,
    "equal": np.equal, "logical_and": np.logical_and, "logical_xor": np.logical_xor,
}  # fmt: skip
UNARY = {"abs": np.abs, "square": np.square, "relu": lambda x: np.maximum(x, 0)}
ops = st.sampled_from(sorted(OPS))
flags = st.booleans()


def two(name: str, a, b, reverse: bool = False) -> np.ndarray:
    return once(OPS[name](b, a) if reverse else OPS[name](a, b))


# ---- pairs of tiles --------------------------------------------------------------------------


@settings(max_examples=120)
@given(shapes, types, types, types, layouts, layouts, layouts, ops, seeds)
def test_tensor_tensor(shape, type1, type2, to, at1, at2, at, op, seed) -> None:
    if at1 == at2 == "psum":
        at2 = "plain"
    elif "shifted" in (at1, at2) and "psum" not in (at1, at2):
        at1 = at2 = "shifted"
    a, b = draw(seed, shape, type1), draw(seed + 1, shape, type2)
    pair = {"data1": (a, type1, at1), "data2": (b, type2, at2)}
    result = result_of(nisa.tensor_tensor, (shape, to, at), op=token(op), **pair)
    same(result, rounds(two(op, rows_of(a), rows_of(b)).reshape(shape), to))


def test_a_column_repeated_by_a_view_and_a_tile_that_is_both_input_and_output() -> None:
    x, column = draw(0, (4, 6), "float32"), draw(1, (4, 1), "float32")

    def call():
        data = put(x, "float32")
        repeated = put(column, "float32").broadcast(1, 6)
        nisa.tensor_tensor(dst=data, data1=data, data2=repeated, op=nl.subtract)
        nisa.tensor_scalar(dst=data, data=data, op0=nl.multiply, operand0=data[:, 0:1])
        nisa.tensor_copy(dst=data[:, 1:6], src=data[:, 0:5])
        return data

    _, data = issue(call)
    made = once(x.astype(np.float64) - column)
    made = once(made * made[:, :1])
    same(read(data), np.concatenate([made[:, :1], made[:, :5]], axis=1))


WHOLE = {
    "add": lambda a, b: a + b, "subtract": lambda a, b: a - b, "multiply": lambda a, b: a * b,
    "maximum": max, "greater": lambda a, b: int(a > b),
}  # fmt: skip
words = st.integers(-(2**31), 2**31 - 1)


@settings(max_examples=80)
@given(words, words, st.sampled_from(sorted(WHOLE)), st.sampled_from(("int32", "uint32")))
def test_integers_are_exact_on_gpsimd_and_pass_through_fp32_elsewhere(a, b, op, type_) -> None:
    if type_ == "uint32":
        a, b = a % 2**32, b % 2**32
    x, y = np.array([[a]], type_), np.array([[b]], type_)

    def on(engine, at="plain"):
        def call():
            dst = empty((1, 1), type_)
            nisa.tensor_tensor(
                dst=dst, data1=put(x, type_, at), data2=put(y, type_), op=token(op),
                engine=engine,
            )  # fmt: skip
            return dst

        program, dst = issue(call)
        return program.instructions[-1].engine, int(read(dst)[0, 0])

    exact = WHOLE[op](a, b) % 2**32
    exact -= 2**32 if type_ == "int32" and exact >= 2**31 else 0
    assert on(nisa.engine.unknown) == (nisa.engine.gpsimd, exact)
    assert on(nisa.engine.gpsimd) == (nisa.engine.gpsimd, exact)
    rounded = OPS[op](once(a), once(b))
    limits = np.iinfo(type_)
    lossy = int(min(max(float(once(rounded)), limits.min), limits.max))
    assert on(nisa.engine.vector) == (nisa.engine.vector, lossy)
    assert on(nisa.engine.unknown, "psum") == (nisa.engine.vector, lossy)


@pytest.mark.parametrize("op", ("bitwise_and", "bitwise_or", "bitwise_xor", "left_shift",
                                "right_shift"))  # fmt: skip
@pytest.mark.parametrize("name", ("int8", "uint16", "int32", "uint32"))
def test_bits_of_pairs(op: str, name: str) -> None:
    rng = np.random.default_rng(3)
    limits = np.iinfo(name)
    a = rng.integers(limits.min, limits.max, (8, 40), name, endpoint=True)
    b = rng.integers(0, limits.bits + 2, (8, 40)).astype(name)
    if "shift" not in op:
        b = rng.integers(limits.min, limits.max, (8, 40), name, endpoint=True)

    pair = {"data1": (a, name), "data2": (b, name, "stepped")}
    result = result_of(nisa.tensor_tensor, (a.shape, name), op=token(op), **pair)
    mask = 2**limits.bits - 1
    do = {"bitwise_and": int.__and__, "bitwise_or": int.__or__, "bitwise_xor": int.__xor__,
          "left_shift": int.__lshift__, "right_shift": int.__rshift__}[op]  # fmt: skip
    pairs = zip(a.ravel().tolist(), b.ravel().tolist(), strict=True)
    wanted = [do(int(x) & mask, int(y) & mask if "shift" not in op else y) & mask for x, y in pairs]
    assert (result.ravel().astype(np.int64) & mask).tolist() == wanted


def test_power_runs_on_gpsimd() -> None:
    x = np.array([[2.0, 9.0, 4.0]], np.float32)
    y = np.array([[3.0, 0.5, -1.0]], np.float32)

    def call(**options):
        dst = empty(x.shape, "float32", options.pop("at", "plain"))
        nisa.tensor_tensor(
            dst=dst, data1=put(x, "float32"), data2=put(y, "float32"), op=nl.power, **options
        )
        return dst

    program, dst = issue(call)
    assert program.instructions[-1].engine is nisa.engine.gpsimd
    assert read(dst).tolist() == [[8.0, 3.0, 0.25]]
    refuses(lambda: call(engine=nisa.engine.vector), "nl.power", "gpsimd")
    refuses(lambda: call(at="psum"), "psum", "nl.power runs on gpsimd", "fix: nisa.tensor_copy dst")


# ---- tiles and columns -----------------------------------------------------------------------


def an_operand(kind: str, seed: int, partitions: int) -> np.ndarray | float:
    values = draw(seed, (partitions, 1), "float32", 3.0)
    return values if kind == "column" else float(values[0, 0])


def operand(value, at: str = "plain"):
    return (value, "float32", at) if isinstance(value, np.ndarray) else value


kinds = st.sampled_from(("number", "column"))


@settings(max_examples=120)
@given(shapes, types, types, layouts, layouts, ops, st.none() | ops, kinds, kinds, flags, flags,
       seeds)  # fmt: skip
def test_tensor_scalar(
    shape, from_, to, here, there, op0, op1, kind0, kind1, reverse0, reverse1, seed
) -> None:
    x = draw(seed, shape, from_)
    first = an_operand(kind0, seed + 1, shape[0])
    second = an_operand(kind1, seed + 2, shape[0]) if op1 else None

    result = result_of(
        nisa.tensor_scalar, (shape, to, there), data=(x, from_, here), op0=token(op0),
        operand0=operand(first), reverse0=reverse0, op1=op1 and token(op1),
        operand1=operand(second, "psum"), reverse1=reverse1,
    )  # fmt: skip
    made = two(op0, rows_of(x), once(first), reverse0)
    if op1:
        made = two(op1, made, once(second), reverse1)
    same(result, rounds(made.reshape(shape), to))


@pytest.mark.parametrize("name", UNARY)
def test_tensor_scalar_with_operators_of_one_value(name: str) -> None:
    x = draw(1, (8, 12), "float32")

    more = {"data": (x, "float32"), "op0": token(name), "op1": nl.add, "operand1": 1.0}
    for operand in (None, 0, 0.0):
        result = result_of(nisa.tensor_scalar, (x.shape, "bfloat16"), operand0=operand, **more)
        same(result, rounds(once(once(UNARY[name](rows_of(x))) + 1), "bfloat16"))
    refuses(
        lambda: nisa.tensor_scalar(t(), t(), op0=token(name), operand0=2.0),
        "operand0 is 2.0", "no second operand",
    )  # fmt: skip


def test_rsqrt_in_tensor_scalar_runs_on_gpsimd() -> None:
    x = np.array([[0.25, 4.0, 16.0]], np.float32)

    def call(at="plain", **options):
        dst = empty(x.shape, "float32", at)
        nisa.tensor_scalar(dst=dst, data=put(x, "float32"), op0=nl.rsqrt, operand0=0.0, **options)
        return dst

    program, dst = issue(call)
    assert program.instructions[-1].engine is nisa.engine.gpsimd
    assert read(dst).tolist() == [[2.0, 0.5, 0.25]]
    assert cycles(call) == ("gpsimd", 64)
    refuses(lambda: call(engine=nisa.engine.vector), "rsqrt", "gpsimd")
    refuses(lambda: call(at="psum"), "dst is in PSUM")


@pytest.mark.parametrize("name", ("int8", "uint8", "int32", "uint16"))
def test_tensor_scalar_on_bits(name: str) -> None:
    limits = np.iinfo(name)
    x = np.random.default_rng(0).integers(limits.min, limits.max, (4, 30), name, endpoint=True)
    column = np.array([[1], [3], [7], [15]], name)

    place, data = (x.shape, name), (x, name)
    result = result_of(
        nisa.tensor_scalar, place, data=data, op0=nl.bitwise_and, operand0=(column, name),
        op1=nl.left_shift, operand1=2,
    )  # fmt: skip
    same(result, ((x.astype(np.int64) & column) << 2).astype(name))
    same(result_of(nisa.tensor_scalar, place, data=data, op0=nl.invert, operand0=None), ~x)


@settings(max_examples=100)
@given(shapes, types, types, types, layouts, layouts, ops, ops, kinds, flags, flags, seeds)
def test_scalar_tensor_tensor(
    shape, from_, other, to, here, there, op0, op1, kind, reverse0, reverse1, seed
) -> None:
    x, y = draw(seed, shape, from_), draw(seed + 1, shape, other)
    first = an_operand(kind, seed + 2, shape[0])

    result = result_of(
        nisa.scalar_tensor_tensor, (shape, to, there), data=(x, from_, here), op0=token(op0),
        operand0=operand(first), op1=token(op1), operand1=(y, other, "stepped"), reverse0=reverse0,
        reverse1=reverse1,
    )  # fmt: skip
    made = two(op0, rows_of(x), once(first), reverse0)
    same(result, rounds(two(op1, made, rows_of(y), reverse1).reshape(shape), to))


@settings(max_examples=60)
@given(shapes, floats, floats, layouts, kinds, st.sampled_from(("multiply", "add", "maximum")),
       st.sampled_from(("add", "subtract", "minimum")), flags, flags, seeds)  # fmt: skip
def test_tensor_tensor_scan(
    shape, from_, to, here, kind, op0, op1, reverse0, reverse1, seed
) -> None:
    x, y = draw(seed, shape, from_, 0.9), draw(seed + 1, shape, from_)
    start = an_operand(kind, seed + 2, shape[0])

    result = result_of(
        nisa.tensor_tensor_scan, (shape, to), data0=(x, from_, here), data1=(y, from_),
        initial=operand(start), op0=token(op0), op1=token(op1), reverse0=reverse0,
        reverse1=reverse1,
    )  # fmt: skip
    a, b = rows_of(x), rows_of(y)
    state, made = np.broadcast_to(once(start), (shape[0], 1))[:, 0], np.empty(a.shape)
    for i in range(a.shape[1]):
        state = made[:, i] = two(op1, two(op0, a[:, i], state, reverse0), b[:, i], reverse1)
    same(result, rounds(made.reshape(shape), to))


# ---- moves, fills, random ------------------------------------------------------------------------


@settings(max_examples=80)
@given(st.sampled_from((1, 32, 40, 64, 96, 128)), st.integers(1, 9),
       st.lists(st.integers(0, 31) | st.just(255), min_size=32, max_size=32),
       st.sampled_from(("float32", "int32", "bfloat16", "uint8")), seeds)  # fmt: skip
def test_nc_stream_shuffle(partitions, columns, mask, type_, seed) -> None:
    rows = -(-partitions // 32) * 32
    x, before = draw(seed, (rows, columns), type_), draw(seed + 1, (partitions, columns), type_)

    pair = {"dst": (before, type_), "src": (x, type_)}
    result = result_of(nisa.nc_stream_shuffle, shuffle_mask=mask, **pair)
    wanted = before.copy()
    for i in range(partitions):
        if mask[i % 32] != 255:
            wanted[i] = x[i // 32 * 32 + mask[i % 32]]
    same(result, wanted)


def test_one_row_spreads_over_a_quadrant_and_a_shuffle_works_in_place() -> None:
    x = np.arange(64, dtype=np.float32).reshape(64, 1)

    def call():
        tile = put(x, "float32")
        nisa.nc_stream_shuffle(dst=tile, src=tile, shuffle_mask=[1, 0, *range(2, 31), 255])
        spread = empty((128, 1), "float32")
        nisa.nc_stream_shuffle(dst=spread[96:128], src=tile[0:1], shuffle_mask=[0] * 32)
        return tile, spread

    _, (tile, spread) = issue(call)
    order = [1, 0, *range(2, 33 - 1)]
    wanted = [v + 32 * q for q in (0, 1) for v in order]
    assert read(tile)[:, 0].tolist() == wanted
    assert read(spread)[96:, 0].tolist() == [1.0] * 32


def test_shuffles_obey_their_rules() -> None:
    def call(mask=(0,) * 32, src=(32, 4), dst=(32, 4), type_="float32", start=0):
        tile = empty((128, dst[1]), "float32")[start : start + dst[0]]
        nisa.nc_stream_shuffle(dst=tile, src=empty(src, type_), shuffle_mask=list(mask))

    refuses(lambda: call(mask=[0] * 31), "31 entries", "32")
    refuses(lambda: call(mask=[0] * 31 + [32]), "shuffle_mask[31] is 32", "0 to 31", "255")
    refuses(lambda: call(type_="bfloat16"), "src is bfloat16, dst is float32")
    refuses(lambda: call(src=(32, 5)), "5 elements", "4")
    refuses(lambda: call(mask=range(32), src=(1, 4)), "partition 1 of src", "has 1")
    refuses(lambda: call(src=(64, 4), start=32), "starts at partition 32", "64 active")


@pytest.mark.parametrize("name", sorted(NUMPY))
def test_memset(name: str) -> None:
    for value in (0, 1, 3.0, True, np.float32(2), np.int64(5)):
        result = result_of(nisa.memset, ((4, 6), name, "stepped"), value=value)
        assert (result == int(value)).all()


def test_fills_take_turns_and_psum_is_filled_by_gpsimd() -> None:
    def call():
        for _ in range(3):
            nisa.memset(empty((2, 4), "float32"), 0)
        nisa.memset(empty((2, 4), "float32", "psum"), 0)
        nisa.memset(empty((2, 4), "float32"), 0, engine=nisa.engine.gpsimd)
        nisa.memset(empty((2, 4), "float32"), 0)

    for _ in range(2):
        program, _ = issue(call)
        assert [i.engine.name for i in program.instructions] == [
            "vector", "gpsimd", "vector", "gpsimd", "gpsimd", "gpsimd",
        ]  # fmt: skip


def test_memset_takes_what_the_type_holds() -> None:
    def call(name, value, at="plain", **options):
        nisa.memset(dst=empty((2, 4), name, at), value=value, **options)

    refuses(lambda: call("int32", 1.5), "1.5", "int32", "integers")
    refuses(lambda: call("uint8", 300), "300", "0 to 255")
    refuses(lambda: call("uint16", -1), "-1", "65535")
    refuses(lambda: call("int32", float("nan")), "nan", "integers")
    refuses(lambda: call("float32", "0"), "a number")
    refuses(lambda: call("float8_e4m3fn_x4", 1), "allowed: 0")
    refuses(lambda: call("float32", 0, engine=nisa.engine.scalar), "engine.vector", "gpsimd")
    refuses(lambda: call("float32", 0, "psum", engine=nisa.engine.gpsimd), "psum", "gpsimd")
    warns(lambda: call("float16", 1e6), "float16 cannot hold", "inf")
    issue(lambda: call("float8_e4m3fn_x4", 0))


def test_dropout_keeps_or_zeroes() -> None:
    x = rounds(draw(0, (64, 200), "bfloat16") + 8, "bfloat16")
    columns = np.linspace(0, 1, 64).reshape(64, 1).astype(np.float32)

    def dropped(prob):
        data = (x, "bfloat16")
        return result_of(nisa.dropout, (x.shape, "bfloat16"), data=data, prob=operand(prob))

    outcome = {}
    for prob in (0.0, 0.25, 1.0):
        outcome[prob] = dropped(prob)
        assert ((outcome[prob] == x) | (outcome[prob] == 0)).all()
    same(outcome[0.0], x)
    assert not outcome[1.0].any()
    zeros, n = np.count_nonzero(outcome[0.25] == 0), x.size
    assert abs(zeros - n / 4) < 5 * np.sqrt(n * 3 / 16)
    share = np.count_nonzero(dropped(columns) == 0, axis=1) / 200
    assert share[0] == 0 and share[-1] == 1 and np.corrcoef(share, columns[:, 0])[0, 1] > 0.95
    half, whole = (lambda *shape: t(shape or (4, 8), "bfloat16")), (lambda: t(type_="int32"))
    refuses(lambda: nisa.dropout(t(), t(), prob=1.5), "prob is 1.5", "0 to 1")
    refuses(lambda: nisa.dropout(t(), half(), prob=0.1), "data is bfloat16, dst is float32")
    refuses(lambda: nisa.dropout(whole(), whole(), half(4, 1)), "prob is bfloat16", "float32")


@settings(max_examples=30)
@given(shapes, floats, floats, layouts, seeds)
def test_reciprocal(shape, from_, to, here, seed) -> None:
    x = draw(seed, shape, from_)
    result = result_of(nisa.reciprocal, (shape, to), data=(x, from_, here))
    with np.errstate(all="ignore"):
        same(result, rounds(once(1 / rows_of(x)).reshape(shape), to))


# ---- rules -----------------------------------------------------------------------------------


def test_tensor_tensor_broadcasts_nothing() -> None:
    def call(a, b, dst=(4, 8), at1="plain", at2="plain", op=nl.add, type_="float32", **options):
        nisa.tensor_tensor(
            dst=t(dst, type_), data1=t(a, type_, at1), data2=t(b, type_, at2), op=op, **options
        )

    refuses(lambda: call((4, 8), (4, 1)), "(4, 8)", "(4, 1)", "tensor_scalar")
    refuses(lambda: call((4, 8), (1, 8)), "ones", "nc_stream_shuffle")
    refuses(lambda: call((4, 8), (4, 6)), "shape", "8", "6")
    refuses(lambda: call((4, 8), (4, 8), (4, 9)), "(4, 9)")
    refuses(lambda: call((4, 8), (4, 8), at1="psum", at2="psum"), "both in psum", "tensor_copy")
    refuses(lambda: call((4, 8), (4, 8), op=nl.bitwise_and), "float32", "integers")
    refuses(lambda: call((4, 8), (4, 8), op=nl.exp), "nl.exp", "nisa.activation")
    refuses(lambda: call((4, 8), (4, 8), op=nl.invert), "nl.invert", "bitwise_and")
    refuses(lambda: call((4, 8), (4, 8), op=np.add), "no operator", "pass nl.add")
    refuses(lambda: call((4, 8), (4, 8), op="max"), "pass nl.maximum")
    refuses(lambda: call((4, 8), (4, 8), op=nl.abs_max), "nl.abs_max", "gen3", "gen4")
    refuses(lambda: call((4, 8), (4, 8), engine=nisa.engine.scalar), "engine.vector", "gpsimd")
    refuses(lambda: call((4, 8), (4, 8), type_="float8_e5m2_x4"), "four numbers", "quantize_mx")
    refuses(lambda: call((4, 8), (4, 8), at1="psum", engine=nisa.engine.gpsimd), "psum", "gpsimd")
    issue(lambda: call((4, 8), (4, 8), op=nl.abs_max), "trn3")
    warns(lambda: call((4, 8), (4, 8), op=nl.divide), "nl.divide", "fail")


def test_inputs_at_different_partitions_are_doubted() -> None:
    def call():
        nisa.tensor_tensor(dst=t(), data1=t(at="shifted"), data2=t(), op=nl.add)

    warns(call, "data1 starts at partition 32, data2 at 0", values=False)


def test_tensor_copy_engines() -> None:
    def call(engine, at="plain", src=(4, 8)):
        nisa.tensor_copy(dst=t(), src=t(src, at=at), engine=engine)

    assert cycles(lambda: call(nisa.engine.unknown))[0] == "vector"
    refuses(lambda: call(nisa.engine.scalar), "gen2", "nl.copy", target="trn1")
    refuses(lambda: call(nisa.engine.gpsimd, "psum"), "psum", "engine.vector")
    refuses(lambda: call(nisa.engine.tensor), "engine.vector", "gpsimd", "scalar")
    refuses(lambda: call(nisa.engine.unknown, src=(4, 9)), "(4, 8)", "(4, 9)")
    refuses(lambda: nisa.tensor_copy(dst=t(), src=t(), dtype=nl.bfloat16), "dtype")


def test_tensor_scalar_operands() -> None:
    def call(op0=nl.add, operand0=1.0, type_="float32", target="trn2", **options):
        nisa.tensor_scalar(
            dst=t(type_=type_), data=t(type_=type_), op0=op0,
            operand0=operand0() if callable(operand0) else operand0, **options,
        )  # fmt: skip

    row, half = (lambda: t((1, 8))), (lambda: t((4, 1), "bfloat16"))
    refuses(lambda: call(operand0=row), "operand0", "one value per partition", "1 partitions", "8")
    refuses(lambda: call(operand0=half), "bfloat16", "operand tiles must be float32")
    refuses(lambda: call(operand0=None), "operand0 is None", "nl.add")
    refuses(lambda: call(op1=nl.add), "operand1 is None")
    refuses(lambda: call(operand1=2.0), "operand1 is 2.0", "op1")
    refuses(lambda: call(op1=nl.bitwise_or, operand1=1), "one on bits")
    refuses(lambda: call(op0=nl.bitwise_or, operand0=1), "data is float32", "integers")
    refuses(lambda: call(op0=nl.bitwise_or, operand0=1.5, type_="int32"), "1.5", "integers")
    refuses(lambda: call(op0=nl.tanh), "nl.tanh", "nisa.activation")
    refuses(lambda: call(reverse0=3), "reverse0 is 3")
    refuses(lambda: call(engine=nisa.engine.gpsimd), "gpsimd", "nl.rsqrt")
    scalar = {"engine": nisa.engine.scalar}
    refuses(lambda: call(op0=nl.subtract, **scalar), "subtract", "multiply then add")
    refuses(lambda: call(op1=nl.multiply, operand1=2.0, **scalar), "op1 is nl.multiply")
    refuses(
        lambda: call(op0=nl.bitwise_or, operand0=1, type_="int32", **scalar), "on bits", "vector"
    )
    for op0, more in ((nl.multiply, {"op1": nl.add, "operand1": 1.0}), (nl.multiply, {}),
                      (nl.add, {})):  # fmt: skip
        assert cycles(lambda op0=op0, more=more: call(op0, **more, **scalar))[0] == "scalar"
    assert cycles(lambda: call(nl.subtract, **scalar), "trn3")[0] == "scalar"


def test_scalar_tensor_tensor_says_which_operand_is_the_column() -> None:
    def call(operand0=1.0, operand1=(4, 8), at="plain", op1=nl.add):
        nisa.scalar_tensor_tensor(
            dst=t(), data=t(at=at), op0=nl.multiply,
            operand0=t(operand0) if isinstance(operand0, tuple) else operand0,
            op1=op1, operand1=t(operand1, at=at) if isinstance(operand1, tuple) else operand1,
        )  # fmt: skip

    refuses(lambda: call(operand1=(4, 1)), "operand0 is the number or the column", "(4, 1)")
    refuses(lambda: call(operand0=(4, 8)), "operand0 must have one value per partition")
    refuses(lambda: call(operand1=2.0), "operand1 is 2.0", "tensor")
    refuses(lambda: call(at="psum"), "both in PSUM")
    refuses(lambda: call(op1=nl.bitwise_and), "nl.bitwise_and", "nl.add")


def test_scans_begin_with_one_value_for_each_partition() -> None:
    def call(initial=0.0, at="plain", op0=nl.multiply, size=(4, 8)):
        nisa.tensor_tensor_scan(
            dst=t(), data0=t(at=at), data1=t(size, at=at),
            initial=t(initial) if isinstance(initial, tuple) else initial, op0=op0, op1=nl.add,
        )  # fmt: skip

    refuses(lambda: call((4, 2)), "initial must have one value per partition", "2 columns")
    refuses(lambda: call(at="psum"), "both in PSUM")
    refuses(lambda: call(op0=nl.abs), "nl.abs")
    refuses(lambda: call(size=(4, 7)), "(4, 7)")


# ---- cycles ----------------------------------------------------------------------------------


def copy_of(shape, types_=("bfloat16", "bfloat16"), here="plain", there="plain", **options):
    return lambda: nisa.tensor_copy(
        dst=t(shape, types_[1], there), src=t(shape, types_[0], here), **options
    )


SCALAR, GPSIMD = {"engine": nisa.engine.scalar}, {"engine": nisa.engine.gpsimd}


def pair(type_="bfloat16", op="add", at="plain", n=512, dst=None, **options):
    return lambda: nisa.tensor_tensor(
        dst=t((128, n), dst or type_), data1=t((128, n), type_, at), data2=t((128, n), type_),
        op=token(op), **options,
    )  # fmt: skip


def scaled(type_="bfloat16", at="plain", op0="multiply", operand0=2.0, n=512, **options):
    return lambda: nisa.tensor_scalar(
        dst=t((128, n), type_), data=t((128, n), type_, at), op0=token(op0), operand0=operand0,
        **options,
    )  # fmt: skip


def both(type_="bfloat16", op0="subtract", op1="multiply", n=512):
    return lambda: nisa.scalar_tensor_tensor(
        dst=t((128, n)), data=t((128, n), type_), op0=token(op0), operand0=1.0, op1=token(op1),
        operand1=t((128, n), type_),
    )  # fmt: skip


def filled(value, type_, **options):
    return lambda: nisa.memset(dst=t((128, 512), type_), value=value, **options)


@pytest.mark.parametrize("call,target,wanted", [
    (copy_of((128, 512), ("float32", "float32")), "trn2", 512),
    (copy_of((128, 10), ("float32", "float32")), "trn2", 64),
    (copy_of((128, 512)), "trn1", 512),
    (copy_of((128, 512)), "trn2", 128),
    (copy_of((128, 512)), "trn3", 128),
    (copy_of((128, 512), ("float16", "bfloat16")), "trn2", 128),
    (copy_of((128, 512), ("float32", "bfloat16")), "trn2", 512),
    (copy_of((128, 512), here="psum"), "trn2", 256),
    (copy_of((128, 512), here="psum", there="psum"), "trn2", 512),
    (copy_of((128, 512), here="stepped"), "trn2", 256),
    (copy_of((128, 512), here="psum", there="stepped"), "trn2", 512),
    (copy_of((128, 512), **GPSIMD), "trn2", 512),
    (copy_of((128, 512), **SCALAR), "trn2", 512),
    (copy_of((128, 512), **SCALAR), "trn3", 256),
    # 8 elements of 2 bytes apart is 16 bytes, at full rate; 9 are 18 bytes, at half.
    (copy_of((128, 64, 8), ("float32", "float32"), there="permuted"), "trn2", 1024),
    (copy_of((128, 128, 4), ("float32", "float32"), there="permuted"), "trn2", 1024),
    (copy_of((128, 4, 128), ("float32", "float32"), there="permuted"), "trn2", 512),
    (copy_of((128, 8, 64), there="permuted"), "trn2", 256),
    (copy_of((128, 9, 64), there="permuted"), "trn2", 576),
    (pair("float32"), "trn2", 1024),
    (pair("float32", at="psum"), "trn2", 512),
    (pair("float32", n=16), "trn2", 64),
    (pair(), "trn1", 512),
    (pair(op="maximum"), "trn1", 1024),
    (pair("float16"), "trn1", 1024),
    (pair(at="stepped"), "trn1", 1024),
    (pair(), "trn2", 256),
    (pair(op="maximum"), "trn2", 512),
    (pair("float16"), "trn2", 512),
    (pair(at="psum"), "trn2", 512),
    (pair(dst="float32"), "trn2", 1024),
    (pair("int32"), "trn2", 1024),
    (pair("float32", "power"), "trn2", 1024),
    (scaled("float32"), "trn2", 512),
    (scaled("float32", op1=nl.add, operand1=1.0), "trn2", 512),
    (scaled(), "trn1", 512),
    (scaled(), "trn2", 128),
    (scaled(at="psum"), "trn2", 256),
    (scaled(at="stepped"), "trn2", 256),
    (scaled(**SCALAR), "trn2", 512),
    (scaled(**SCALAR), "trn3", 256),
    (scaled("float32", op0="rsqrt", operand0=0.0), "trn2", 2048),
    (both(), "trn2", 512),
    (both(n=511), "trn2", 1022),
    (both(op0="add"), "trn2", 1024),
    (both("float32"), "trn2", 1024),
    (filled(0, "bfloat16"), "trn2", 256),
    (filled(0.0, "float16"), "trn2", 256),
    (filled(1, "bfloat16"), "trn2", 512),
    (filled(0, "float32"), "trn2", 512),
    (lambda: nisa.reciprocal(dst=t((128, 100)), data=t((128, 100))), "trn2", 800),
    (lambda: nisa.reciprocal(dst=t((128, 4)), data=t((128, 4))), "trn2", 64),
    (lambda: nisa.dropout(dst=t((128, 100)), data=t((128, 100)), prob=0.1), "trn2", 100),
    (lambda: nisa.nc_stream_shuffle(dst=t((32, 300)), src=t((1, 300)), shuffle_mask=[0] * 32),
     "trn2", 300),
    (lambda: nisa.tensor_tensor_scan(dst=t((128, 100)), data0=t((128, 100)), data1=t((128, 100)),
                                     initial=0, op0=nl.multiply, op1=nl.add), "trn2", 200),
])  # fmt: skip
def test_cycles(call, target: str, wanted: float) -> None:
    assert cycles(call, target)[1] == wanted


# ---- infinities, NaN, and what is almost too large or too small --------------------------------

EXTREME = np.array(
    [[np.nan, np.inf, -np.inf, 3.4e38, -3.4e38, 1e-45, 0, -0.0, 1e30, -1e30, 5e9, 2.5]], np.float32
)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.filterwarnings("ignore::utils.nki.simulator.errors.DoubtfulKernel")
@pytest.mark.parametrize("to", ("float32", "tfloat32", "bfloat16", "float16", "float8_e4m3",
                                "float8_e4m3fn", "int32", "uint8"))  # fmt: skip
def test_extreme_values_pass_without_a_warning_of_numpy(to: str) -> None:
    def each_operator(op, a, dst, one):
        if op.is_activation:
            nisa.activation(
                dst=dst, op=op, data=a, scale=1e39, bias=1e39, reduce_op=nl.add,
                reduce_cmd=nisa.reduce_cmd.reset_reduce, reduce_res=one,
            )  # fmt: skip
        if op.kind == "arithmetic":
            nisa.tensor_tensor(dst=dst, data1=a, data2=a, op=op)
            nisa.tensor_scalar(
                dst=dst, data=a, op0=op, operand0=1e39, op1=op, operand1=float("-inf")
            )
            nisa.tensor_tensor_scan(dst=dst, data0=a, data1=a, initial=1e39, op0=op, op1=op)
            if op.reduces:
                nisa.tensor_reduce(dst=one, data=a, op=op, axis=1, negate=True)

    def call():
        a, dst, one = put(EXTREME, "float32"), empty(EXTREME.shape, to), empty((1, 1), "float32")
        for op in OPERATORS.values():
            each_operator(op, a, dst, one)
        nisa.tensor_copy(dst=dst, src=a)
        nisa.reciprocal(dst=dst, data=a)
        six, two = empty((1, 6), "float32"), empty((1, 2), "float32")
        nisa.bn_stats(dst=six, data=a)
        nisa.bn_aggr(dst=two, data=six)
        nisa.tensor_scalar_reduce(
            dst=dst, data=a, op0=nl.multiply, operand0=1e38, reduce_op=nl.add, reduce_res=one
        )
        for value in (0, 1e39, float("nan")) if to not in ("int32", "uint8") else (0,):
            nisa.memset(dst=dst, value=value)

    launch.run(call, (), {}, target="trn3")
