"""A worker is killed in the middle of a request: what is lost, and how long until it is served."""

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from utils.serving.bench.timing import CLOCK, Clock
from utils.serving.bench.workers import Gone, Handle, Worker


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
    with ExitStack() as opened:

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
        before = _serve(first, requests, waiting, in_flight, kill_at)
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
        after = _serve(
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


def _serve(
    worker: Worker,
    requests: Sequence[Any],
    waiting: deque[int],
    in_flight: int,
    hold: int | None,
    answered: Callable[[], None] = lambda: None,
) -> set[int]:
    """Have the waiting requests answered, up to `hold`, which is left in the worker's hands with
    as many behind it as may be under way. Returns the numbers of those that were answered."""
    done, flying = set(), set()
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
