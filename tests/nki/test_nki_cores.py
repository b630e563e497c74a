"""Two cores: what they share, how they meet, and what is said when they cannot."""

import inspect
import signal
import threading
import traceback
import warnings

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np
import pytest

from tests.nki.nki_bench import empty
from tests.nki.nki_bench import sbuf as tile_of
from utils.nki.simulator import launch
from utils.nki.simulator.arrays import Shape
from utils.nki.simulator.errors import DoubtfulKernel, NkiValidationError
from utils.nki.simulator.program import active

X = np.random.default_rng(1).standard_normal((2, 8, 16)).astype(np.float32)


def on_two(kernel, *arrays, **options):
    return launch.run(nki.jit(kernel)[2], arrays, {}, **options)


def shared(shape, **options):
    return nl.ndarray(shape, dtype=nl.float32, buffer=nl.shared_hbm, **options)


def test_each_core_does_its_part_of_one_result() -> None:
    @nki.jit
    def kernel(x):
        out = shared(x.shape)
        for i in range(x.shape[0]):
            if nl.num_programs() == 1 or i == nl.program_id(0):
                nisa.dma_copy(out[i], tile_of(x[i]))
        return out

    np.testing.assert_array_equal(nki.simulate(kernel)(X), X)
    np.testing.assert_array_equal(nki.simulate(kernel[2])(X), X)
    program = launch.run(kernel[2], (X,), {})
    assert [len(core.instructions) for core in program.cores] == [2, 2]
    assert [input_.buffer.name for input_ in program.inputs] == ["shared_hbm"]


def test_private_memory_is_private() -> None:
    def kernel(x):
        mine = nl.ndarray((8, 16), dtype=nl.float32, buffer=nl.private_hbm)
        also = nl.ndarray((8, 16), dtype=nl.float32, buffer=nl.hbm)
        nisa.dma_copy(mine, x[nl.program_id(0)])
        nisa.dma_copy(also, mine)
        out = shared(x.shape)
        nisa.core_barrier(out, (0, 1))
        nisa.dma_copy(out[nl.program_id(0)], also)
        return out

    np.testing.assert_array_equal(on_two(kernel, X).results, X)


def swapped(x):
    """Through shared memory with a barrier, and by sendrecv: both give the other core's half."""
    me = nl.program_id(0)
    half, out = shared(x.shape), shared((2, 2, *x.shape[1:]))
    mine = tile_of(x[me])
    nisa.dma_copy(half[me], mine)
    nisa.core_barrier(half, (0, 1))
    nisa.dma_copy(out[0, me], tile_of(half[1 - me]))
    other = empty(x.shape[1:], "float32")
    nisa.sendrecv(mine, other, 1 - me, 1 - me, pipe_id=0)
    nisa.dma_copy(out[1, me], other)
    return out


@pytest.mark.parametrize("turn", range(3))
def test_cores_meet_the_same_way_every_time(turn) -> None:
    program = on_two(swapped, X)
    np.testing.assert_array_equal(program.results, np.stack([X[::-1], X[::-1]]))
    without = on_two(swapped, Shape(X.shape))
    order = [(c.index, i.index) for c, i in program.in_order()]
    assert order == [(c.index, i.index) for c, i in without.in_order()]
    assert len(order) == sum(len(core.instructions) for core in program.cores)


def test_a_pipe_sends_back_and_forth_many_times() -> None:
    def kernel(x):
        me, out = nl.program_id(0), shared(x.shape)
        here, there = tile_of(x[me]), empty((8, 16), "float32")
        for turn in range(5):
            nisa.sendrecv(here, there, 1 - me, 1 - me, pipe_id=turn % 2)
            nisa.tensor_tensor(here, here, there, nl.add)
        nisa.dma_copy(out[me], here)
        return out

    total = (X[0] + X[1]) * np.float32(16)
    np.testing.assert_allclose(on_two(kernel, X).results, np.stack([total, total]), rtol=1e-6)


def only_on(core):
    return lambda x: nisa.core_barrier(x, (0, 1)) if nl.program_id(0) == core else None


def crossed(x):
    tile = empty((8, 16), "float32")
    if nl.program_id(0) == 0:
        nisa.core_barrier(x, (0, 1))
    nisa.sendrecv(tile, tile, 1 - nl.program_id(0), 1 - nl.program_id(0), 0)


def other_pipes(x):
    me, tile = nl.program_id(0), empty((8, 16), "float32")
    nisa.sendrecv(tile, tile, 1 - me, 1 - me, pipe_id=me)


@pytest.mark.parametrize(("kernel", "words"), [
    (only_on(0), ("program 0 waits at core_barrier 0", "program 1 has ended")),
    (only_on(1), ("program 0 has ended", "program 1 waits at core_barrier 0")),
    (crossed, ("program 0 waits at core_barrier 0", "program 1 waits at sendrecv of pipe 0")),
    (other_pipes, ("program 0 waits at sendrecv of pipe 0", "1 waits at sendrecv of pipe 1")),
])  # fmt: skip
@pytest.mark.parametrize("values", [True, False])
def test_a_deadlock_names_both_programs_and_where_they_wait(kernel, words, values) -> None:
    threads = set(threading.enumerate())
    with pytest.raises(NkiValidationError) as result:
        on_two(kernel, X, values=values)
    for word in (*words, __file__, "\nFix: "):
        assert word in str(result.value)
    assert active() is None and threads.issuperset(threading.enumerate())


@pytest.mark.parametrize("core", [0, 1])
def test_what_a_core_raises_comes_out_with_its_traceback(core) -> None:
    def kernel(x):
        nisa.core_barrier(x, (0, 1))
        if nl.program_id(0) == core:
            raise KeyError("mine")
        nisa.core_barrier(x, (0, 1))

    with pytest.raises(KeyError, match="mine") as result:
        on_two(kernel, X)
    text = "".join(traceback.format_exception(result.value))
    assert 'raise KeyError("mine")' in text and f"nl.program_id(0) == {core}" in text
    assert active() is None


def test_an_interrupt_ends_both_cores() -> None:
    def first(x):
        if nl.program_id(0) == 0:
            raise KeyboardInterrupt
        while True:
            nl.num_programs()

    def second(x):
        if nl.program_id(0) == 1:
            raise KeyboardInterrupt

    for kernel in (first, second):
        threads = set(threading.enumerate())
        with pytest.raises(KeyboardInterrupt):
            on_two(kernel, X)
        assert active() is None and threads.issuperset(threading.enumerate())
    np.testing.assert_array_equal(on_two(swapped, X).results[0], X[::-1])


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("first_ends", [True, False])
def test_a_signal_ends_both_cores_while_the_second_runs(first_ends) -> None:
    def kernel(x):
        if nl.program_id(0) == 0:
            return None if first_ends else nisa.core_barrier(x, (0, 1)) and None
        threading.Timer(
            0.1, lambda: signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        ).start()
        while True:
            nl.num_programs()

    with pytest.raises(KeyboardInterrupt):
        on_two(kernel, X)
    assert active() is None and threading.current_thread() is threading.main_thread()
    np.testing.assert_array_equal(on_two(swapped, X).results[0], X[::-1])


def test_core_0_runs_on_the_thread_of_the_caller() -> None:
    """So that breakpoint() and the debugger of an editor work."""
    seen = {}

    def kernel(x):
        seen[nl.program_id(0), nl.num_programs()] = threading.current_thread()

    on_two(kernel, X)
    launch.run(kernel, (X,), {})
    here = threading.current_thread()
    assert seen[0, 1] is here and seen[0, 2] is here and seen[1, 2] is not here


def test_shared_tensors_must_agree() -> None:
    def kernel(x):
        shared((4, 4 + nl.program_id(0)))

    with pytest.raises(NkiValidationError, match=r"(?s)\(4, 4\).*core 0.*\(4, 5\)"):
        on_two(kernel, X)


def refuses(kernel, *words, target="trn2") -> None:
    with pytest.raises(NkiValidationError) as result:
        on_two(kernel, X, target=target)
    for word in words:
        assert word in str(result.value), str(result.value)


def test_rules_of_meeting() -> None:
    def barrier(data=None, cores=(0, 1)):
        return lambda x: nisa.core_barrier(x if data is None else data(), cores)

    def send(to=1, source=None, src=((8, 4), "float32"), dst=((8, 4), "float32"), **options):
        def kernel(x):
            me = nl.program_id(0)
            ranks = (me ^ to if to in (0, 1) else to, me ^ to if source is None else source)
            nisa.sendrecv(empty(*src), empty(*dst), *ranks, 0, **options)

        return kernel

    refuses(barrier(lambda: empty((4, 4), "float32")), "data", "sbuf")
    refuses(barrier(cores=(0, 2)), "(0, 2)", "(0, 1)")
    refuses(barrier(), "trn2", target="trn1")
    refuses(send(to=5), "send_to_rank is 5", "0 and 1")
    refuses(send(source=0), "recv_from_rank is 0")
    refuses(send(dst=((8, 4), "bfloat16")), "bfloat16", "float32")
    refuses(send(dst=((8, 5), "float32")), "(8, 5)")
    wide = ((8, 300), "float32")
    refuses(send(src=wide, dst=wide, dma_engine=nisa.dma_engine.gpsimd_dma), "1200 bytes", "1024")
    on_two(send(src=wide, dst=wide), X)

    def uneven(x):
        me = nl.program_id(0)
        one, two = (empty((8, 4 + me), "float32") for _ in "12")
        nisa.sendrecv(one, two, 1 - me, 1 - me, 0)

    refuses(uneven, "(8, 4)", "(8, 5)")


def test_alone_a_barrier_does_nothing_and_an_exchange_is_refused() -> None:
    with pytest.warns(DoubtfulKernel, match="one core"):
        nki.simulate(lambda: nisa.core_barrier(shared((2, 2)), (0, 1)) and None)()
    with pytest.raises(NkiValidationError, match=r"1 core.*(?s:.)*kernel\[2\]"):
        nki.simulate(
            lambda: nisa.sendrecv(empty((2, 2), "float32"), empty((2, 2), "float32"), 1, 1, 0)
        )()


def test_grids() -> None:
    kernel = nki.jit(lambda x: None)
    assert kernel[2].grid == kernel[(2,)].grid == 2
    for grid in (0, 3, 8, "2", (1, 2)):
        with pytest.raises(NkiValidationError, match="allowed are 1 and 2"):
            kernel[grid]


def test_results_are_those_of_core_0() -> None:
    assert on_two(lambda: nl.program_id(0)).results == 0


# ---- races ---------------------------------------------------------------------------------------


def race(kernel, *words) -> None:
    with pytest.warns(DoubtfulKernel) as caught:
        on_two(kernel, X)
    texts = [str(item.message) for item in caught if "two meetings" in str(item.message)]
    assert len(texts) == 1, texts
    for word in words:
        assert word in texts[0], texts[0]


def quiet(kernel) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", DoubtfulKernel)
        on_two(kernel, X)


def test_both_cores_writing_one_place_is_found_with_both_lines() -> None:
    def kernel(x):
        out = shared(x.shape)
        if nl.program_id(0) == 0:
            nisa.dma_copy(out[0], tile_of(x[0]))  # here
        else:
            nisa.dma_copy(out[0:1, 4:8], tile_of(x[1:2, 0:4]))  # and here
        nisa.core_barrier(out, (0, 1))
        nisa.dma_copy(out[nl.program_id(0)], tile_of(x[1]))
        return out

    lines, first = inspect.getsourcelines(kernel)
    places = [first + i for i, line in enumerate(lines) if "here" in line]
    race(kernel, "both cores write", *(f"test_nki_cores.py:{line}" for line in places))


@pytest.mark.parametrize("barrier", [False, True])
@pytest.mark.parametrize("reader", [0, 1])
def test_reading_what_the_other_core_writes_needs_a_meeting(reader, barrier) -> None:
    def kernel(x):
        half, out = shared(x.shape[1:]), shared(x.shape)
        if nl.program_id(0) != reader:
            nisa.dma_copy(half, tile_of(x[0]))
        if barrier:
            nisa.core_barrier(half, (0, 1))
        if nl.program_id(0) == reader:
            nisa.dma_copy(out[reader], tile_of(half))
        else:
            nisa.dma_copy(out[1 - reader], tile_of(x[0]))
        return out

    if barrier:
        quiet(kernel)
    else:
        race(kernel, f"core {reader} reads", "core_barrier")


def test_parts_that_interleave_are_no_race() -> None:
    def kernel(x):
        out = shared(x.shape)
        me = nl.program_id(0)
        for i in range(2):  # every second row, and of each row one half
            nisa.dma_copy(out[i, me::2], tile_of(x[i, me::2]))
        wide = shared((8, 16))
        nisa.dma_copy(wide[:, 8 * me : 8 * me + 8], tile_of(x[0, :, 8 * me : 8 * me + 8]))
        return out, wide

    quiet(kernel)
    quiet(swapped)
