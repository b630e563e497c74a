"""Workers: processes that make a model and answer requests until their caller leaves.

Each is forked from the server of `utils.xla.fresh`, so it starts in a fraction of a second, and how
it ended is known. Requests and answers go over a pipe; they must be small, as a request is.
`side_by_side` measures the throughput of several; `recovery` kills one in the middle of a request
and says what is lost, and how long until the next is served.
"""

import contextlib
import itertools
import multiprocessing
import os
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import cloudpickle

from utils.serving.bench.timing import CLOCK, Clock, Rate, time_call
from utils.xla import devices, fresh

Handle = Callable[[Any], Any]
_CORES = ("NEURON_RT_NUM_CORES", "NEURON_RT_VISIBLE_CORES")


class Gone(RuntimeError):
    """The worker ended. `cause` is such as "SIGKILL"."""

    def __init__(self, cause: str) -> None:
        super().__init__(f"the worker ended with {cause}")
        self.cause = cause


class Worker:
    """One worker, started at once, in the background; `wait_ready` before the first request.

    make: of a `utils.xla.devices.Device`, returns a function of a request that returns its answer.
    seconds: after which nobody waits for it any more: it is killed.
    environment: variables of its process. On a Neuron device it takes one core unless a variable
        says otherwise: a process reserves all it can get, and the next one would find none.

    With its connection closed it ends: at the latest with its caller's process.
    """

    def __init__(
        self,
        make: Callable[[Any], Handle],
        kind: str = "cpu",
        seconds: float = fresh.SECONDS,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        variables = dict(environment or {})
        if not {*_CORES} & {*os.environ, *variables}:
            variables[_CORES[0]] = "1"
        fresh.start()
        context = multiprocessing.get_context("forkserver")
        self._connection, theirs = context.Pipe()
        payload = cloudpickle.dumps((make, kind, variables))
        self._process = context.Process(target=_serve, args=(payload, theirs), daemon=True)
        self._process.start()
        theirs.close()
        self._seconds, self._end = seconds, time.monotonic() + seconds
        self._ready = False

    @property
    def pid(self) -> int:
        """The number of its process."""
        assert self._process.pid is not None  # it is started
        return self._process.pid

    def wait_ready(self) -> None:
        """Return when the model is made. Raises as `receive`."""
        if not self._ready:
            self.receive()
            self._ready = True

    def send(self, number: int, request: Any, hold: bool = False) -> None:
        """Hand over a request. hold: the worker takes it and never answers, nor any later one."""
        self._connection.send((number, request, hold))

    def receive(self) -> tuple[int, Any]:
        """The next answer, with the number of its request.

        Raises: Gone if the worker was killed or left; `fresh.Raised` with what its model raised;
        TimeoutError.
        """
        try:
            if not self._connection.poll(max(0.0, self._end - time.monotonic())):
                self.kill()
                raise TimeoutError(
                    f"the worker did not end within {self._seconds:g} s and was killed"
                )
            raised, *content = self._connection.recv()
        except (EOFError, ConnectionError):
            self._process.join()
            raise Gone(fresh.cause_of(self._process.exitcode)) from None
        if raised:
            raise fresh.Raised(*content)
        number, answer = content
        return number, answer

    def kill(self) -> None:
        """End the process at once, by SIGKILL."""
        self._process.kill()

    def close(self) -> None:
        """Let it end, and wait for that."""
        self._connection.close()
        self._process.join(max(0.0, self._end - time.monotonic()))
        self._process.kill()
        self._process.join()

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _serve(payload: bytes, caller: Connection) -> None:
    """The process: make the model, then answer until the caller is gone."""
    make, kind, variables = cloudpickle.loads(payload)
    os.environ.update(variables)
    try:
        handle = make(devices.get(kind))
        caller.send((False, -1, None))
        while True:
            number, request, hold = caller.recv()
            while hold:
                caller.recv()  # until it is killed, or the caller is gone
            caller.send((False, number, handle(request)))
    except (EOFError, ConnectionError):
        return  # the caller is gone
    except Exception as error:
        caller.send((True, type(error).__name__, str(error), traceback.format_exc()))


def side_by_side(
    make: Callable[[Any], Callable[[], Any]],
    kind: str = "cpu",
    batch: int = 1,
    workers: Iterable[int] = (1, 2),
    calls: int = 24,
    warmup: int = 2,
    environment: Mapping[str, str] | None = None,
    timeout_s: float = 120.0,
) -> tuple[Rate, ...]:
    """Throughput of so many processes at a time, each of which calls its model again and again.

    Args:
        make: of a `utils.xla.devices.Device`, returns one call on `batch` items.
        workers: numbers of processes; each number is measured with processes of its own.
        calls: of each process. warmup: of each before, so that all have compiled.
        environment: variables of every worker. Processes share a CPU or a GPU; a Neuron core
            belongs to one process, see `workers.Worker`.

    Returns: a Rate for each number of processes. Its seconds last from the first call of
    any process to the last answer of any.
    """
    workers = tuple(workers)
    if min(*workers, calls, warmup) < 1:
        raise ValueError(f"workers {workers}, calls {calls}, warmup {warmup}: each is at least 1")

    def rate(count: int) -> Rate:
        with contextlib.ExitStack() as opened:
            pool = [
                opened.enter_context(Worker(_caller(make), kind, timeout_s, environment))
                for _ in range(count)
            ]
            for number, size in ((0, warmup), (1, calls)):
                for worker in pool:
                    worker.wait_ready()
                    worker.send(number, size)
                answers = [worker.receive()[1] for worker in pool]
        begins, ends, seconds = zip(*answers, strict=True)
        latencies = tuple(itertools.chain(*seconds))
        return Rate(batch, 1, count, len(latencies), max(ends) - min(begins), latencies)

    return tuple(rate(count) for count in workers)


def _caller(make: Callable[[Any], Callable[[], Any]]) -> Callable[[Any], Handle]:
    def made(device: Any) -> Handle:
        step = make(device)

        def call(times: int) -> tuple[float, float, list[float]]:
            begin = CLOCK()
            seconds = [time_call(step, device) for _ in range(times)]
            return begin, CLOCK(), seconds

        return call

    return made


@dataclass(frozen=True)
class Recovery:
    """What a death did to a series of requests.

    requests, answered: given, and answered in the end. in_flight: at most, at a time.
    lost: handed over and unanswered when the worker died. retried: of these, sent again.
    failed: never answered. cause: how it ended, such as "SIGKILL".
    spare: whether a second worker stood by, warm.
    noticed_s, replaced_s, served_s: from the kill until it was noticed, until another worker had
        its model, until the next answer, in seconds; served_s is None if none was left to answer.
    """

    requests: int
    in_flight: int
    answered: int
    lost: int
    retried: int
    failed: int
    cause: str
    spare: bool
    noticed_s: float
    replaced_s: float
    served_s: float | None

    def __str__(self) -> str:
        by = "a spare that stood by" if self.spare else "a new worker, its imports done before"
        served = (
            "nobody was left to serve"
            if self.served_s is None
            else f"served again after {self.served_s:.3g} s by {by}"
        )
        return (
            f"{self.cause}: {self.lost} of {self.requests} requests lost, {self.retried} retried,"
            f" {self.failed} failed; noticed after {self.noticed_s:.2g} s, {served}"
        )


def recovery(
    make: Callable[[Any], Handle],
    requests: Sequence[Any],
    kind: str = "cpu",
    kill_at: int = 4,
    in_flight: int = 1,
    spare: bool = False,
    retry: bool = True,
    timeout_s: float = 120.0,
    clock: Clock = CLOCK,
) -> Recovery:
    """Serve requests, kill the worker with SIGKILL in the middle of one, and go on with another.

    Args:
        make: of a `utils.xla.devices.Device`, returns a function of a request that returns its
        answer. requests: what to answer, in order, small.
        kill_at: the request, from 0, that the worker has begun and not answered when it is killed.
        in_flight: requests handed over and unanswered at a time.
        spare: a second worker is started, and has answered a request, before the first one dies.
            Without it one is started when the death is noticed: imported already (a fork of
            `utils.xla.fresh`), but with device, model and compile ahead. See `cold_and_warm` for
            the import.
        retry: send lost requests again. Only right for a request that may be computed twice.
        timeout_s: after which a worker is killed.

    Raises: ValueError for a moment that never comes.

    The worker is held at request `kill_at`, so that the counts are the same every time; the
    seconds are those of a real process that died.
    """
    if not 0 <= kill_at < len(requests):
        raise ValueError(
            f"kill_at is {kill_at}, but there are {len(requests)} requests: give one from 0 to"
            f" {len(requests) - 1}"
        )
    if in_flight < 1:
        raise ValueError(f"in_flight is {in_flight}, but at least 1 is needed")
    with contextlib.ExitStack() as opened:

        def start() -> Worker:
            return opened.enter_context(Worker(make, kind, timeout_s))

        first = start()
        second = start() if spare else None
        first.wait_ready()
        if second:
            second.wait_ready()
            second.send(-1, requests[0])
            second.receive()
        waiting = deque(range(len(requests)))
        before = _have_answered(first, requests, waiting, in_flight, kill_at)
        killed = clock()
        first.kill()
        try:
            first.receive()
        except Gone as gone:
            cause = gone.cause
        noticed = clock()
        if not second:
            second = start()
            second.wait_ready()
        replaced = clock()
        lost = list(range(kill_at, len(requests) - len(waiting)))
        if retry:
            waiting.extendleft(reversed(lost))
        served: list[float] = []
        after = _have_answered(
            second, requests, waiting, in_flight, None, lambda: served.append(clock() - killed)
        )
    answered = len(before | after)
    return Recovery(
        requests=len(requests),
        in_flight=in_flight,
        answered=answered,
        lost=len(lost),
        retried=len(lost) if retry else 0,
        failed=len(requests) - answered,
        cause=cause,
        spare=spare,
        noticed_s=noticed - killed,
        replaced_s=replaced - killed,
        served_s=served[0] if served else None,
    )


def _have_answered(
    worker: Worker,
    requests: Sequence[Any],
    waiting: deque[int],
    in_flight: int,
    hold: int | None,
    answered: Callable[[], None] = lambda: None,
) -> set[int]:
    """Have the waiting requests answered, up to `hold`, which is left in the worker's hands with
    as many behind it as may be under way. Returns the numbers of those that were answered."""
    done: set[int] = set()
    flying: set[int] = set()
    while waiting or flying:
        while waiting and len(flying) < in_flight:
            number = waiting.popleft()
            worker.send(number, requests[number], hold=number == hold)
            flying.add(number)
        if flying and min(flying) == hold:
            break
        number, _ = worker.receive()
        answered()
        flying.remove(number)
        done.add(number)
    return done
