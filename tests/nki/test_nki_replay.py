"""A recorded program runs again elsewhere, bit by bit; hostile records are refused."""

import copy
import json
import math

import ml_dtypes
import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.nki.nki_bench import out, sbuf
from utils.nki.kernels import attention, mamba, matmul, norms
from utils.nki.simulator import launch, plain, replay
from utils.nki.simulator.arrays import Shape
from utils.nki.simulator.errors import NkiValidationError
from utils.nki.simulator.replay import BadProgram
from utils.nki.simulator.table import TABLE

pytestmark = pytest.mark.filterwarnings("ignore")
RNG = np.random.default_rng(11)


def draw(*shape, dtype=np.float32):
    return RNG.standard_normal(shape).astype(dtype)


def everything(x, y):
    """Constants, operators, types, masks, products, registers, and two results of one argument."""
    a, b = sbuf(x), sbuf(y)
    mask = nl.ndarray((128, 64), dtype=nl.bfloat16, buffer=nl.sbuf)
    nisa.affine_select(mask, [[-1, 64]], 1, a, -9984.0, cmp_op=nl.greater_equal)
    psum = nl.ndarray((64, 64), dtype=nl.float32, buffer=nl.psum)
    for _ in range(2):
        nisa.nc_matmul(psum, a, b)
    made = nl.ndarray((64, 64), dtype=nl.float32, buffer=nl.sbuf)
    nisa.activation(made, op=nl.exp, data=psum, scale=0.01)
    total = nl.ndarray((64, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_reduce(total, nl.add, made, axis=1)
    nisa.tensor_scalar(made, made, op0=nl.multiply, operand0=total, op1=nl.add, operand1=1.5)
    nisa.dma_copy(x[0:64], made)
    constant = nl.shared_constant(np.arange(6, dtype=np.float32).reshape(2, 3))
    return {"mask": out(mask), "pair": (out(made), x), "sum": out(sbuf(constant)), "n": 3}


def indirect(table, index):
    """Rows found at run time, a loop with registers, additions of a DMA, a row that is left out."""
    result = sbuf(index)
    tile = nl.zeros((16, 8), dtype=nl.float32)
    nisa.dma_copy(tile, table.vector_select(0, result), oob_mode=nisa.oob_mode.skip)
    made = nl.ndarray((4, 8), dtype=nl.float32, buffer=nl.shared_hbm)
    row = nl.ndarray((1, 8), dtype=nl.float32, buffer=nl.sbuf)
    register = nisa.register_alloc()

    def body(i):
        nisa.register_load(register, result[0:1])
        nisa.dma_copy(row, table.ap([[8, 1], [1, 8]], scalar_offset=register))
        nisa.dma_copy(made.ap([[8, 1], [1, 8]], scalar_offset=i), row)

    nl.fori_loop(0, 4, body)
    nisa.dma_compute(
        tile, [tile, table.vector_select(0, result)], nl.add, oob_mode=nisa.oob_mode.skip
    )
    return out(tile), made


def two_cores(x):
    me = nl.program_id(0)
    half = nl.ndarray((2, 8, 16), dtype=nl.float32, buffer=nl.shared_hbm)
    made = nl.ndarray((2, 2, 8, 16), dtype=nl.float32, buffer=nl.shared_hbm)
    mine, other = sbuf(x[me]), nl.ndarray((8, 16), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(half[me], mine)
    nisa.core_barrier(half, (0, 1))
    nisa.dma_copy(made[0, me], sbuf(half[1 - me]))
    nisa.sendrecv(mine, other, 1 - me, 1 - me, pipe_id="swap")
    nisa.dma_copy(made[1, me], other)
    return made


def random(x):
    tile, made = sbuf(x), nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dropout(made, tile, 0.5)
    ranked = nl.ndarray((8, 8), dtype=nl.float32, buffer=nl.sbuf)
    nisa.max8(ranked, made)
    return out(made), out(ranked)


def quantised(x):
    tile = sbuf(x)
    data = nl.ndarray((32, 16), dtype=nl.float8_e4m3fn_x4, buffer=nl.sbuf)
    scales = nl.ndarray((4, 16), dtype=nl.float8_e8m0fnu, buffer=nl.sbuf)
    nisa.quantize_mx(data, tile, scales)
    psum = nl.ndarray((16, 16), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul_mx(psum, data, data, scales, scales)
    made = nl.ndarray((16, 16), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(made, psum)
    return out(made)


BF16 = ml_dtypes.bfloat16
INDEX = np.array([[3], [1], [50]] + [[i] for i in range(13)], np.int32)
CASES = {
    "everything": (everything, (draw(128, 64), draw(128, 64)), "trn2"),
    "indirect": (indirect, (draw(40, 8), INDEX), "trn2"),
    "two cores": (nki.jit(two_cores)[2], (draw(2, 8, 16),), "trn2"),
    "random": (random, (draw(8, 32),), "trn2"),
    "quantised": (quantised, (draw(32, 64, dtype=BF16),), "trn3"),
    "matmul": (matmul.tiled, (draw(256, 128, dtype=BF16), draw(256, 512, dtype=BF16)), "trn2"),
    "softmax": (norms.softmax, (draw(128, 256),), "trn2"),
    "attention": (
        attention.flash_attention,
        tuple(draw(*s) for s in ((128, 512), (128, 512), (512, 128))),
        "trn2",
    ),
}


def shapes_of(arrays):
    return tuple(Shape(array.shape, array.dtype) for array in arrays)


def travelled(program, target):
    """A program after a journey as JSON."""
    return replay.from_plain(json.loads(json.dumps(replay.to_plain(program))), target)


def flat(value):
    """The arrays of a result, in order."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [item for part in value for item in flat(part)]
    return [value] if isinstance(value, np.ndarray) else []


def equal(result, wanted) -> None:
    assert len(result) == len(wanted)
    for one, two in zip(result, wanted, strict=True):
        assert one.dtype == two.dtype and one.shape == two.shape
        assert one.tobytes() == two.tobytes()


@pytest.mark.parametrize("name", CASES)
def test_replay_is_what_running_gives_bit_by_bit(name) -> None:
    kernel, arrays, target = CASES[name]
    given = tuple(array.copy() for array in arrays)
    direct = launch.run(kernel, given, {}, target=target)
    traced = launch.run(kernel, shapes_of(arrays), {}, target=target)
    for program in (traced, travelled(traced, target), travelled(direct, target)):
        results, inputs = replay.replay_all(program, arrays)
        equal(results, flat(direct.results))
        equal(inputs, given)
    equal(replay.replay(direct, arrays), flat(direct.results))


@pytest.mark.parametrize("name", CASES)
def test_a_record_keeps_what_rules_and_times_need(name) -> None:
    kernel, arrays, target = CASES[name]
    traced = launch.run(kernel, shapes_of(arrays), {}, target=target)
    again = travelled(traced, target)
    for one, two in zip(traced.cores, again.cores, strict=True):
        for a, b in zip(one.instructions, two.instructions, strict=True):
            assert a.checked is b.checked and a.engine is b.engine and a.line[1] == b.line[1]
    assert [storage.shape for storage in again.storages] == [
        storage.shape for storage in traced.storages
    ]
    assert again.results == again.results and not again.values


def test_it_survives_a_second_journey() -> None:
    kernel, arrays, target = CASES["everything"]
    first = replay.to_plain(launch.run(kernel, shapes_of(arrays), {}, target=target))
    assert replay.to_plain(replay.from_plain(first, target)) == first


@pytest.mark.parametrize("precise", ["0", "1"])
def test_rounding_is_that_of_the_record(precise, monkeypatch) -> None:
    monkeypatch.setenv("NKI_PRECISE_FP", precise)
    kernel, arrays, target = CASES["everything"]
    traced = launch.run(kernel, shapes_of(arrays), {}, target=target)
    direct = launch.run(kernel, tuple(array.copy() for array in arrays), {}, target=target)
    monkeypatch.delenv("NKI_PRECISE_FP")
    data = replay.to_plain(traced)
    as_recorded = replay.from_plain(data, target, precise=None)
    equal(replay.replay(as_recorded, arrays), flat(direct.results))
    assert replay.from_plain(data, target).precise  # a judge rounds, whatever was recorded


def test_mamba_and_its_dependencies() -> None:
    delta, u = draw(1, 128, 512), draw(1, 128, 512)
    given = (delta, u, -abs(draw(128, 16)), draw(1, 16, 512), draw(1, 16, 512))
    program = launch.run(mamba.states_outer, shapes_of(given), {})
    equal(
        replay.replay(travelled(program, "trn2"), given), [nki.simulate(mamba.states_outer)(*given)]
    )

    def ordered(x):
        first = nisa.dma_copy(x[0:1], x[1:2])
        nisa.dma_copy(x[2:3], x[3:4]).depends_on(first)

    again = travelled(launch.run(ordered, (Shape((4, 4)),), {}), "trn2")
    assert again.instructions[1].after == (again.instructions[0],)


def test_python_cannot_slip_in_numbers() -> None:
    """What a kernel computes in Python is known before the numbers are: it is a constant."""

    def sly(x):
        return out(sbuf(nl.shared_constant(np.full((2, 2), 7, np.float32))))

    program = travelled(launch.run(sly, (Shape((2, 2)),), {}), "trn2")
    assert (replay.replay(program, (draw(2, 2),))[0] == 7).all()


def test_a_large_record_is_small_and_its_memory_is_given_back() -> None:
    def many(x):
        made = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        for i in range(x.shape[0] // 128):
            tile = sbuf(x[nl.ds(i * 128, 128)])
            for _ in range(7):
                nisa.tensor_scalar(tile, tile, op0=nl.add, operand0=1.0)
            nisa.dma_copy(made[nl.ds(i * 128, 128)], tile)
        return made

    program = launch.run(many, (Shape((128 * 1000, 4)),), {})
    text = json.dumps(replay.to_plain(program))
    assert len(program.instructions) == 9000 and len(text) < 9000 * 100
    again = replay.from_plain(json.loads(text), "trn2")
    x = draw(128 * 1000, 4)
    runner = replay._Again(again, (x,))
    runner.run()
    assert len(runner.storages) == 2  # the argument and the result
    (result,) = replay.replay(again, (x,))
    wanted = x
    for _ in range(7):
        wanted = wanted + np.float32(1)
    np.testing.assert_array_equal(result, wanted)


def test_arguments_must_be_those_of_the_record() -> None:
    program = travelled(launch.run(lambda x: out(sbuf(x)), (Shape((2, 4)),), {}), "trn2")
    for wrong in ((), (draw(4, 2),), (draw(2, 4, dtype=np.float16),), (draw(2, 4),) * 2):
        with pytest.raises(BadProgram, match="program takes"):
            replay.replay(program, wrong)
    with pytest.raises(NkiValidationError, match="inside a kernel"):
        nki.simulate(lambda: replay.replay(program, (draw(2, 4),)))()


def test_a_record_is_held_to_the_rules_of_the_target_that_is_asked_for() -> None:
    kernel, arrays, target = CASES["quantised"]
    data = replay.to_plain(launch.run(kernel, shapes_of(arrays), {}, target=target))
    with pytest.raises(NkiValidationError, match="trn3"):
        replay.from_plain(data, "trn2")


def test_errors_name_the_recorded_line() -> None:
    def late(table, index):
        tile = nl.zeros((1, 8), dtype=nl.float32)
        nisa.dma_copy(tile, table.vector_select(0, sbuf(index)))  # here

    program = launch.run(late, (Shape((4, 8)), Shape((1, 1), "int32")), {})
    arrays = (draw(4, 8), np.array([[4]], np.int32))
    line = late.__code__.co_firstlineno + 2
    with pytest.raises(NkiValidationError, match=f"index 4(?s:.)*test_nki_replay.py:{line}"):
        replay.replay(program, arrays)
    with pytest.raises(NkiValidationError, match=f"index 4(?s:.)*recorded kernel>:{line}"):
        replay.replay(travelled(program, "trn2"), arrays)


def test_what_is_no_plain_data_is_not_written() -> None:
    program = launch.run(lambda x: nisa.memset(sbuf(x), 1.0) and None, (Shape((2, 4)),), {})
    program.instructions[-1].args["value"] = object()
    with pytest.raises(BadProgram, match="object"):
        replay.to_plain(program)


# ---- hostile records -----------------------------------------------------------------------------


def record():
    kernel, arrays, target = CASES["indirect"]
    return replay.to_plain(launch.run(kernel, shapes_of(arrays), {}, target=target))


def change(**parts):
    data = copy.deepcopy(record())
    for path, value in parts.items():
        where = data
        *steps, last = path.split("__")
        for step in steps:
            where = where[int(step) if step.isdigit() else step]
        where[int(last) if last.isdigit() else last] = value
    return data


HUGE = 10**30
HOSTILE = {
    "another format": {"format": 2},
    "no cores": {"code": []},
    "three cores": {"code": [[], [], []]},
    "precise is a text": {"precise": "no"},
    "an unknown type": {"storages__0__1": "float64"},
    "an object's type": {"storages__0__1": {"__class__": "os"}},
    "an unknown memory": {"storages__1__2": "disk"},
    "a huge allocation": {"storages__0__0": [2**39, 2**39]},
    "a size beyond all": {"storages__0__0": [HUGE]},
    "a size of zero": {"storages__0__0": [0, 8]},
    "a size of true": {"storages__0__0": [True, 8]},
    "a tile of 256 partitions": {"storages__2__0": [256, 1]},
    "a tile that SBUF cannot hold": {"storages__2__0": [16, 2**20]},
    "an argument on chip": {"inputs": [2]},
    "an argument that is not there": {"inputs": [99]},
    "another core's memory": {"storages__2__3": 1},
    "a view of nothing": {"views__0__0": 10**6},
    "a view past the end": {"views__0__4": 10**6},
    "a view with huge strides": {"views__0__3": [HUGE, 1]},
    "a view before the start": {"views__0__4": -1},
    "a view as another type": {"views__0__1": "os.system"},
    "a repeated view of 2**60 elements": {"views__1__2": [2**30, 2**30], "views__1__3": [0, 0]},
    "an instruction that is not there": {"forms__0__0": "system"},
    "a dunder": {"forms__0__0": "__import__"},
    "arguments that are missing": {"forms__0__1": {}},
    "an operator that is not there": {"forms__0__1__oob_mode": {"operator": "eval"}},
    "a choice that is not there": {"forms__0__1__oob_mode": {"choice": ["Enum", "mro"]}},
    "a kind that is not there": {"forms__0__1__oob_mode": {"pickle": "gASV"}},
    "two kinds": {"forms__0__1__oob_mode": {"list": [], "tuple": []}},
    "deep lists": {
        "forms__0__1__priority": {"list": [{"list": [{"list": [{"list": [{"list": []}]}]}]}]}
    },
    "an operand too few": {"code__0__0": [0, 0]},
    "an operand too many": {"code__0__0": [0, 0, 1, 1]},
    "an operand that is not there": {"code__0__0": [0, 0, 10**6]},
    "a text as an operand": {"code__0__0": [0, "0", 1]},
    "no lines": {"lines__0": []},
    "turns of another core": {"turns": [[1, 0]]},
    "turns past the end": {"turns": [[0, 10**6]]},
    "an order in a circle": {"after": [[0, 0, [0]]]},
    "a result on chip": {"results": {"view": 0}},
    "a result that is not there": {"results": {"view": 10**6}},
    "a result of another kind": {"results": {"other": "function"}},
    "a constant that is no base64": {"constants": [[0, "###"]]},
    "a constant that is no zlib": {"constants": [[0, "AAAA"]]},
    "a register beyond 32 bits": {"registers__0__0": 2**40},
    "a record that is a list": {"forms__0": []},
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_records_are_refused(name) -> None:
    with pytest.raises((BadProgram, NkiValidationError)):
        plain.from_plain(change(**HOSTILE[name]), "trn2")


@pytest.mark.parametrize("data", [None, 3, [], "x", {}, {"format": 1}])
def test_what_is_no_record_at_all(data) -> None:
    with pytest.raises(BadProgram):
        replay.from_plain(data, "trn2")


def test_a_bomb_of_constants_is_not_unpacked() -> None:
    import base64
    import zlib

    bomb = base64.b64encode(zlib.compress(bytes(10**8))).decode()
    with pytest.raises(BadProgram, match="bytes, not"):
        replay.from_plain(change(constants=[[0, bomb]]), "trn2")


def test_memory_is_limited_when_it_runs(monkeypatch) -> None:
    program = travelled(launch.run(lambda x: out(sbuf(x)), (Shape((128, 512)),), {}), "trn2")
    monkeypatch.setattr(replay, "LIVE_BYTES", 128 * 512 * 4 + 1)
    with pytest.raises(BadProgram, match="in use at one time"):
        replay.replay(program, (draw(128, 512),))


def test_a_core_that_does_not_wait_is_caught() -> None:
    kernel, arrays, target = CASES["two cores"]
    data = replay.to_plain(launch.run(kernel, shapes_of(arrays), {}, target=target))
    data["turns"] = []
    with pytest.raises(BadProgram, match="before the other core has met it"):
        replay.replay(replay.from_plain(data, target), arrays)


def places(data, path=()):
    """Every place in plain data."""
    yield path
    if isinstance(data, (dict, list)):
        for key in data if isinstance(data, dict) else range(len(data)):
            yield from places(data[key], (*path, key))


JUNK = st.sampled_from(
    [None, True, -1, 0, 1, 7, 2**31, HUGE, 0.5, math.inf, "", "add", "tensor_copy", [], [[]], {},
     {"slot": "tensor"}, {"view": 0}, {"float": "nan"}, [0, 0, 0], "__class__"]
)  # fmt: skip
RECORDS = [
    replay.to_plain(launch.run(CASES[name][0], shapes_of(CASES[name][1]), {}))
    for name in ("everything", "indirect", "two cores")
]
PLACES = [list(places(item)) for item in RECORDS]


@settings(max_examples=400)
@given(st.integers(0, 2), st.data())
def test_whatever_is_changed_it_is_refused_or_runs(which, data) -> None:
    """No other error, no hang, and nothing outside of the arrays changes."""
    path = data.draw(st.sampled_from(PLACES[which][1:]))
    made = copy.deepcopy(RECORDS[which])
    where = made
    for step in path[:-1]:
        where = where[step]
    where[path[-1]] = data.draw(JUNK)
    try:
        program = replay.from_plain(made, "trn2")
        arrays = [  # of no size in memory: a changed shape may have more elements than fit
            np.broadcast_to(np.ones((), input_.dtype.numpy), input_.shape)
            for input_ in program.inputs
        ]
        replay.replay(program, arrays)
    except (BadProgram, NkiValidationError):
        pass


def test_every_instruction_of_the_table_has_plain_defaults() -> None:
    writer = __import__("utils.nki.simulator.plain", fromlist=["_Writer"])._Writer()
    for spec in TABLE.values():
        for name, value in spec.defaults.items():
            if name not in spec.required:
                writer.value(value, [])
