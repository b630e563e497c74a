"""Registers and the loops of the device: what runs, how often, and what Python may not ask."""

import json
import warnings

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.nki.nki_bench import empty, issue, put, read, refuses, warns
from utils.nki.simulator import launch, plain, profile, replay
from utils.nki.simulator.arrays import Shape
from utils.nki.simulator.errors import DoubtfulKernel, NkiValidationError
from utils.nki.simulator.language.loops import dynamic_range
from utils.nki.simulator.registers import NkiScalar, VirtualRegister


def loaded(value: int):
    """A register that was loaded from a tile."""
    register = nisa.register_alloc()
    nisa.register_load(register, put([[value]], "int32"))
    return register


@settings(max_examples=40)
@given(st.integers(0, 6), st.integers(0, 12), st.integers(1, 4), st.booleans(), st.booleans())
def test_fori_loop_counts_like_range(lower, upper, step, from_register, in_tile) -> None:
    seen = []

    def call():
        bounds = [lower, upper]
        if from_register:
            bounds = [loaded(bound) if in_tile else nisa.register_alloc(bound) for bound in bounds]
        nl.fori_loop(*bounds, lambda i: seen.append(i.value), step=step)

    issue(call)
    assert seen == list(range(lower, upper, step))


def test_dynamic_range_yields_registers_and_says_that_it_is_old() -> None:
    def call():
        for i in dynamic_range(nisa.register_alloc(2), 8, 3):
            assert isinstance(i, VirtualRegister) and i.is_register
            nisa.register_store(out[0:1, i.value : i.value + 1], i)

    out = None

    def kernel():
        nonlocal out
        out = put(np.zeros((1, 8)), "int32")
        call()

    with pytest.warns(DoubtfulKernel, match="deprecated since NKI 0.6"):
        launch.run(kernel, (), {})
    assert out.raw().tolist() == [[0, 0, 2, 0, 0, 5, 0, 0]]


def test_loops_with_known_bounds_need_no_numbers() -> None:
    def kernel(x, copies):
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        tile = empty((1, 4), "float32")

        def body(i):
            nisa.dma_copy(tile, x.select(0, i))
            nisa.dma_copy(out.select(0, i), tile)

        nl.fori_loop(0, copies, body)
        nl.fori_loop(0, nisa.register_alloc(2), body)
        return out

    program = launch.run(kernel, (Shape((8, 1, 4)), 3), {})
    assert program.count("dma_copy") == 10 and program.results == Shape((8, 1, 4), nl.float32)


def test_a_count_in_a_tensor_needs_numbers() -> None:
    def kernel(n):
        tile = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
        nisa.dma_copy(tile, n)
        register = nisa.register_alloc()
        nisa.register_load(register, tile)
        nl.fori_loop(0, register, lambda i: nisa.memset(tile, 1) and None)

    program = launch.run(kernel, (np.array([[5]], np.int32),), {})
    assert program.count("memset") == 5
    with pytest.raises(NkiValidationError, match="only shapes are simulated(.|\n)*Python int"):
        launch.run(kernel, (Shape((1, 1), "int32"),), {})


@settings(max_examples=20)
@given(st.integers(0, 9))
def test_while_loop_looks_before_it_runs(count) -> None:
    """Termination was a bug once: zero at the start means not at all."""

    def call():
        left, done = put([[count]], "int32"), put([[0]], "int32")
        one = put([[1]], "int32")
        register = nisa.register_alloc()
        nisa.register_load(register, left)

        def body(r):
            nisa.tensor_tensor(left, left, one, nl.subtract)
            nisa.tensor_tensor(done, done, one, nl.add)
            nisa.register_load(r, left)
            return r

        nl.while_loop(register, body)
        return register, done

    _, (register, done) = issue(call)
    assert read(done).tolist() == [[count]] and register.value == count  # passed by value


def test_an_endless_loop_ends(monkeypatch) -> None:
    monkeypatch.setattr("utils.nki.simulator.language.loops.MOST_ITERATIONS", 50)
    refuses(lambda: nl.while_loop(nisa.register_alloc(1), lambda r: r), "50 iterations", "return r")
    refuses(lambda: nl.fori_loop(0, 51, lambda i: None), "51 iterations")


def test_registers_move_store_and_load() -> None:
    def call():
        a, b = nisa.register_alloc(7), nisa.register_alloc()
        nisa.register_move(b, a)
        nisa.register_move(a, -3)
        tile = empty((1, 2), "int32")
        nisa.register_store(tile[:, 0:1], a)
        nisa.register_store(tile[:, 1:2], b)
        nisa.register_load(a, tile[:, 1:2])
        return tile, a

    _, (tile, a) = issue(call)
    assert read(tile).tolist() == [[-3, 7]] and a.value == 7 and "7" in repr(a)


PYTHON = {
    "nl.ds": lambda r: nl.ds(r, 4), "range": range, "int()": int, "float()": float,
    "*": lambda r: 128 * r, "+": lambda r: r + 1, "-": lambda r: -r, "<": lambda r: r < 3,
    "comparison": lambda r: r == 3, "index": lambda r: [1, 2, 3][r], "//": lambda r: r // 2,
}  # fmt: skip


@pytest.mark.parametrize("name", PYTHON)
def test_python_cannot_compute_with_a_register(name) -> None:
    refuses(lambda: PYTHON[name](nisa.register_alloc(1)), "only known at run time", "scalar_offset")


def test_a_register_is_no_index_but_can_be_compared_with_none() -> None:
    refuses(
        lambda: empty((4, 8), "float32")[:, nisa.register_alloc(1)], "run time", "scalar_offset"
    )

    def call():
        register = nisa.register_alloc(1)
        assert register != None and not register == None  # noqa: E711
        with pytest.raises(TypeError):
            hash(register)

    issue(call)


def test_while_of_python_works_up_to_0_6_and_is_doubted(monkeypatch) -> None:
    def call():
        register = nisa.register_alloc(2)
        while register:
            nisa.register_move(register, register.value - 1)

    refuses(call, "an if or a while", "nl.while_loop")
    monkeypatch.setenv("COURSE_NKI_API", "0.6")
    warns(call, "nl.while_loop")


def test_misuse_of_registers_and_loops_is_refused() -> None:
    tile = lambda *shape, dtype="int32": empty(shape, dtype)  # noqa: E731
    reg = nisa.register_alloc
    refuses(lambda: reg(1.5), "1.5", "32 bits")
    refuses(lambda: reg(2**32), "32 bits")
    refuses(lambda: nisa.register_load(3, tile(1, 1)), "register_alloc")
    refuses(lambda: nisa.register_load(reg(), tile(1, 2)), "2 elements")
    refuses(lambda: nisa.register_load(reg(), tile(1, 1, dtype="float32")), "float32")
    refuses(lambda: nisa.register_store(tile(1, 1), 4), "register")
    refuses(lambda: nisa.register_move(reg(), 0.5), "0.5")
    refuses(lambda: nisa.register_move(reg(), reg()), "never set")
    refuses(lambda: nl.fori_loop(0, reg(), lambda i: None), "never set")
    refuses(lambda: nl.fori_loop(0, 4, lambda i: None, step=0), "step is 0")
    refuses(lambda: nl.fori_loop(0, 4, lambda i: None, step=reg(1)), "Python int")
    refuses(lambda: nl.fori_loop(0, 4.0, lambda i: None), "4.0")
    refuses(lambda: nl.fori_loop(0, 4, None), "body_fun")
    refuses(lambda: nl.while_loop(3, lambda r: r), "register is needed")
    refuses(lambda: nl.while_loop(reg(1), lambda r: None), "body returned None")

    def ordered():
        with nl.no_reorder():
            nl.fori_loop(0, 2, lambda i: None)

    refuses(ordered, "no_reorder", "body of the loop")
    warns(lambda: nl.fori_loop(0, 1, lambda i: nisa.register_move(i, 5) and None), "counts a loop")


def test_order_can_be_asked_for_inside_one_loop_only() -> None:
    def fill():
        return nisa.memset(empty((1, 1), "float32"), 0.0)

    program, second = issue(lambda: fill() and fill().depends_on(program_first()))
    assert [item.name for item in second.after] == [None]

    def across():
        kept = []
        nl.fori_loop(0, 1, lambda i: kept.append(fill()))
        fill().depends_on(kept[0])

    refuses(across, "across a loop", "earlier")
    refuses(lambda: fill().depends_on(3), "3")

    def backwards():
        first, later = fill(), fill()
        first.depends_on(later)

    refuses(backwards, "later")

    def outward():
        before = fill()
        nl.fori_loop(0, 1, lambda i: fill().depends_on(before) and None)

    issue(outward)


def program_first():
    from utils.nki.simulator.program import running

    return running("a test").instructions[0]


def test_nothing_runs_outside_of_a_kernel() -> None:
    with pytest.raises(NkiValidationError, match="no kernel is running"):
        nisa.register_alloc(1)
    with pytest.raises(NkiValidationError, match="no kernel is running"):
        nl.fori_loop(0, 1, lambda i: None)


def test_the_documented_loop_over_tiles() -> None:
    @nki.jit
    def kernel(x, bounds):
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        tile = nl.ndarray((1, 2), dtype=nl.int32, buffer=nl.sbuf)
        nisa.dma_copy(tile, bounds)
        start, stop = nisa.register_alloc(), nisa.register_alloc()
        nisa.register_load(start, tile[:, 0:1])
        nisa.register_load(stop, tile[:, 1:2])
        rows = [[64, 128], [1, 64]]

        def body(i):
            piece = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
            nisa.dma_copy(piece, x.ap(rows, scalar_offset=i))
            nisa.tensor_scalar(piece, piece, op0=nl.add, operand0=2.0)
            nisa.dma_copy(out.ap(rows, scalar_offset=i), piece)

        nl.fori_loop(start, stop, body, step=128)
        return out

    x = np.random.default_rng(0).standard_normal((512, 64)).astype(np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # rows outside the bounds stay unwritten
        result = nki.simulate(kernel)(x, np.array([[128, 384]], np.int32))
    np.testing.assert_array_equal(result[128:384], x[128:384] + np.float32(2))
    assert np.isnan(result[:128]).all() and np.isnan(result[384:]).all()


# ---- scalars of NKI 0.7 -------------------------------------------------------------------------


INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)


@given(INT32, INT32, INT64, INT64)
def test_arithmetic_is_that_of_numpy_at_its_width(a, b, c, d) -> None:
    for dtype, x, y in (("int32", a, b), ("int64", c, d)):
        one, two = NkiScalar(dtype, x), NkiScalar(dtype, y)
        p, q = np.array([x], dtype), np.array([y], dtype)
        with np.errstate(over="ignore"):
            expected = [p + q, p - q, p * q, -p, p * 4 + 1, 3 - p]
        made = [one + two, one - two, one * two, -one, one * 4 + 1, 3 - one]
        assert [s.value for s in made] == [int(e[0]) for e in expected]


def gather(x, index):
    """Row 2 * index + 1 of x, and the number of that row."""
    out = nl.ndarray((1, x.shape[1]), dtype=x.dtype, buffer=nl.shared_hbm)
    where = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.shared_hbm)
    row = nisa.scalar_load(index) * 2 + 1
    tile, number = empty((1, x.shape[1]), "float32"), empty((1, 1), "int32")
    nisa.dma_copy(tile, x.ap([[x.shape[1], 1], [1, x.shape[1]]], scalar_offset=row))
    nisa.dma_copy(out, tile)
    nisa.scalar_store(number, row)
    nisa.dma_copy(where, number)
    return out, where


X = np.arange(64, dtype=np.float32).reshape(16, 4)


def test_a_scalar_moves_an_access_pattern_also_in_a_replay() -> None:
    row, number = nki.simulate(gather)(X, np.array([[3]], np.int32))
    np.testing.assert_array_equal(row, X[7:8])
    assert number.tolist() == [[7]]
    recorded = launch.run(gather, (Shape((16, 4)), Shape((1, 1), "int32")), {})
    again = plain.from_plain(json.loads(json.dumps(plain.to_plain(recorded))), "trn2")
    for index in (0, 5):
        row, number = replay.replay(again, [X, np.array([[index]], np.int32)])
        np.testing.assert_array_equal(row, X[2 * index + 1 : 2 * index + 2])
        assert number.tolist() == [[2 * index + 1]]


def test_what_uses_a_scalar_waits_until_it_is_loaded() -> None:
    result = profile.profile(gather)(Shape((16, 4)), Shape((1, 1), "int32"))
    events = {event.name: event for event in reversed(result.intervals)}
    assert events["scalar_load"].end <= events["scalar_store"].start


def test_a_scalar_of_64_bits_keeps_them() -> None:
    def kernel(x):
        out = nl.ndarray((1, 1), dtype=nl.int64, buffer=nl.shared_hbm)
        nisa.scalar_store(out, nisa.scalar_load(x) + 1)
        return out

    large = np.array([[2**40]], np.int64)
    assert nki.simulate(kernel)(large).tolist() == [[2**40 + 1]]
    with pytest.raises(NkiValidationError, match="x.astype"):
        nki.simulate(kernel)(np.zeros((2, 2), np.int64))


@pytest.mark.parametrize("bound", [0, 1])
def test_a_loop_counts_to_a_scalar_and_its_index_has_arithmetic(bound) -> None:
    seen = []

    def call():
        lower, upper = nisa.scalar_load(put([[2]], "int32")), 5
        bounds = (lower, upper) if bound == 0 else (0, lower)
        nl.fori_loop(*bounds, lambda i: seen.append((i * 10).value))

    issue(call)
    assert seen == ([20, 30, 40] if bound == 0 else [0, 10])


def test_what_a_scalar_cannot_do_is_said() -> None:
    def loaded(dtype="int32", value=1):
        return nisa.scalar_load(put([[value]], "int32")) if dtype == "int32" else wide()

    def wide():
        return NkiScalar("int64", 1)

    refuses(lambda: loaded() < 3, "comparison", "nl.fori_loop")
    refuses(lambda: loaded() == wide(), "comparison")
    refuses(lambda: loaded() + wide(), "int32", "nothing widens it")
    refuses(lambda: loaded() + 1.5, "which is no integer")
    refuses(lambda: loaded() // 2, "//")
    refuses(lambda: range(loaded()), "range()")
    refuses(lambda: bool(loaded()) and None, "an if or a while")
    refuses(lambda: nl.fori_loop(0, wide(), print), "32 bits")
    refuses(lambda: nisa.scalar_store(empty((1, 1), "int32"), 3), "nisa.memset(dst, value)")
    refuses(lambda: nisa.scalar_store(empty((1, 1), "int32"), wide()), "its own width")
    refuses(lambda: put(np.zeros((1, 8)), "int32").select(1, wide()), "refused rather than cut")
    refuses(lambda: nisa.scalar_load(put([[1, 2]], "int32")), "one element")
    refuses(lambda: nisa.scalar_load(put([[1]], "uint32")), "allowed: int32, int64")
    refuses(lambda: nisa.memset(empty((1, 1), "int64"), 0), "int64", "32 bits")
