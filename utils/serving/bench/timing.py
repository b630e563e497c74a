"""Times of calls in one process: one after the other, when they are due, of texts, of batches.

`measure` waits for each call to its end and keeps the first ones apart. In `open_loop` requests
come when they are due and not when the last one is answered: one worker answers them one at a
time, in order, and a latency lasts from the moment when the request was due, so that a pause counts
for all that it delays. From the moment of sending it would count once, however many waited:
coordinated omission. `tokens` tells the wait for the first token from that for each other, and
`throughput` counts items per second against the batch and the calls under way.
"""

import itertools
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from utils.serving.bench.quantiles import Summary, percentile, summary

Clock = Callable[[], float]
"""Seconds from any moment. The default everywhere is that of this machine."""

CLOCK: Clock = time.perf_counter
"""On Linux it counts from the start of the machine, so that processes can compare moments."""


class Waited(Protocol):
    """What a measurement needs of a device: `utils.xla.devices.Device` has it."""

    def mark_step(self) -> None:
        """Hand over what was recorded, on a lazy device."""

    def wait(self) -> None:
        """Return when all of it is done."""


@dataclass(frozen=True)
class Samples:
    """Times of calls in seconds, in the order in which they were made.

    warmup_s: the calls that were made first and do not count; the first of them compiles.
    seconds: those that count.
    """

    warmup_s: tuple[float, ...]
    seconds: tuple[float, ...]

    @property
    def first_s(self) -> float:
        """The very first call, with what is done only once: tracing, compiling, allocating."""
        return self.warmup_s[0]

    @property
    def summary(self) -> Summary:
        """Percentiles of the calls that count."""
        return summary(self.seconds)


def measure(
    step: Callable[[], Any],
    device: Waited,
    warmup: int = 3,
    repeats: int = 50,
    clock: Clock = CLOCK,
) -> Samples:
    """Time calls of `step`, each from an idle device until its work is done.

    Args:
        step: one call of what is measured; what it returns stays alive until the device is done.
        device: of `utils.xla.devices.get`.
        warmup: calls before those that count, at least 1, since the first compiles.
        repeats: calls that count, at least 1.

    Raises: ValueError for fewer.
    """
    if min(warmup, repeats) < 1:
        raise ValueError(
            f"warmup is {warmup} and repeats {repeats}, but at least 1 is needed: the first call"
            " compiles and must not be among the samples"
        )
    device.wait()  # what was pending before is no part of the first call
    times = [time_call(step, device, clock) for _ in range(warmup + repeats)]
    return Samples(tuple(times[:warmup]), tuple(times[warmup:]))


def time_call(step: Callable[[], Any], device: Waited, clock: Clock = CLOCK) -> float:
    """Seconds of one call, until the device has done all of it."""
    begin = clock()
    kept = step()
    device.mark_step()
    device.wait()
    seconds = clock() - begin
    del kept  # a lazy device drops a result that nobody holds, and computes nothing
    return seconds


@dataclass(frozen=True)
class Arrivals:
    """Requests of one plan.

    plan: its name, such as "steady". rate_per_s: requests per second, planned.
    latencies_s: of each, from when it was due to its answer. sent_s: from when it was sent, as a
    client sees that waits for each answer; nobody should quote it.
    """

    plan: str
    rate_per_s: float
    latencies_s: tuple[float, ...]
    sent_s: tuple[float, ...]

    def __str__(self) -> str:
        due, sent = (
            " and ".join(f"{percentile(seconds, p) * 1e3:.4g}" for p in (50, 99))
            for seconds in (self.latencies_s, self.sent_s)
        )
        return (
            f"{self.plan}, {len(self.latencies_s)} requests at {self.rate_per_s:.4g} per second:"
            f" p50 and p99 {due} ms from when due ({sent} ms from when sent)"
        )


def open_loop(
    step: Callable[[], Any],
    device: Waited,
    due_s: Sequence[float],
    plan: str = "",
    clock: Clock = CLOCK,
    sleep: Callable[[float], None] = time.sleep,
) -> Arrivals:
    """Answer each request with one call of `step`, when it is due or as soon as its turn comes.

    Args:
        step, device: as of `measure`; call `step` before, the first call compiles.
        due_s: when requests are due, in seconds from now, ascending, such as `serving.poisson`
            gives. The time that `sleep` oversleeps counts as latency.

    Raises: ValueError for no request, or one that is due before the one before it.
    """
    if not len(due_s) or not all(a <= b for a, b in itertools.pairwise(due_s)):
        raise ValueError("due_s: one moment at least, and none before the one before it")
    latencies, sent = [], []
    device.wait()
    begin = clock()
    for moment in due_s:
        if (early := begin + moment - clock()) > 0:
            sleep(early)
        sent.append(time_call(step, device, clock))
        latencies.append(clock() - begin - moment)
    rate = len(due_s) / due_s[-1] if due_s[-1] else float("inf")
    return Arrivals(plan, float(rate), tuple(map(float, latencies)), tuple(sent))


@dataclass(frozen=True)
class Tokens:
    """Times of generated texts, in seconds.

    first_s: of each text, from the request until its first token is computed. It lies on the device
        then; who reads it pays the way to the host on top.
    next_s: of each text, between each token and the one before.
    """

    first_s: tuple[float, ...]
    next_s: tuple[tuple[float, ...], ...]

    @property
    def to_first(self) -> Summary:
        """Time to first token, over the texts."""
        return summary(self.first_s)

    @property
    def per_output_token(self) -> Summary:
        """Time per output token after the first, one mean for each text, over the texts."""
        return summary(sum(gaps) / len(gaps) for gaps in self.next_s)

    @property
    def between(self) -> Summary:
        """Time from one token to the next, over all tokens: where a text stalls, p99 shows it."""
        return summary(gap for gaps in self.next_s for gap in gaps)

    @property
    def tokens_per_second(self) -> float:
        """Tokens over seconds, first tokens and their wait among them, of one text at a time."""
        gaps = [gap for text in self.next_s for gap in text]
        return (len(self.first_s) + len(gaps)) / (sum(self.first_s) + sum(gaps))


def tokens(
    begin: Callable[[], Any],
    step: Callable[[], Any],
    device: Waited,
    count: int = 32,
    texts: int = 8,
    warmup: int = 1,
    clock: Clock = CLOCK,
) -> Tokens:
    """Time the generation of texts of `count` tokens, one text after the other.

    Args:
        begin: takes a prompt in and returns the first token; all that a text starts with.
        step: returns one token more, of the text begun last.
        device: of `utils.xla.devices.get`.
        count: tokens of one text, at least 2. texts: that count. warmup: texts before them, at
            least 1: the first compiles.

    Each token ends with the device idle, as it must be before somebody can read it. Let `begin` and
    `step` read it (`.item()`) if that is to be part of the times.

    Raises: ValueError for a smaller number.
    """
    for name, value, least in (("count", count, 2), ("texts", texts, 1), ("warmup", warmup, 1)):
        if value < least:
            raise ValueError(f"{name} is {value}, but at least {least} is needed")
    device.wait()
    firsts, gaps = [], []
    for _ in range(warmup + texts):
        firsts.append(time_call(begin, device, clock))
        gaps.append(tuple(time_call(step, device, clock) for _ in range(count - 1)))
    return Tokens(tuple(firsts[warmup:]), tuple(gaps[warmup:]))


@dataclass(frozen=True)
class Rate:
    """What one setting delivers.

    batch: items of one call. concurrency: calls under way at a time, in each process. processes:
    side by side. calls: that count, of all processes.
    seconds: from the first hand-over to the last answer. latencies_s: of each call, from its
        hand-over until the host had waited for it and for those that were under way with it.

    No interval: with few calls a difference of some percent is chance, and the largest of several
    rates is a little too large.
    """

    batch: int
    concurrency: int
    processes: int
    calls: int
    seconds: float
    latencies_s: tuple[float, ...]

    @property
    def items_per_second(self) -> float:
        """The throughput: items of all calls over `seconds`."""
        return self.batch * self.calls / self.seconds

    def __str__(self) -> str:
        p50 = percentile(self.latencies_s, 50)
        return (
            f"batch {self.batch}, {self.concurrency} under way, processes {self.processes}:"
            f" {self.items_per_second:.4g} items/s, median latency {p50 * 1e3:.4g} ms"
        )


def throughput(
    make: Callable[[int], Callable[[], Any]],
    device: Waited,
    batches: Iterable[int] = (1, 2, 4, 8),
    concurrency: Iterable[int] = (1,),
    calls: int = 24,
    warmup: int = 2,
    clock: Clock = CLOCK,
) -> tuple[Rate, ...]:
    """Measure every batch with every number of calls under way, within one process.

    Args:
        make: of a batch size, returns one call on so many items.
        device: of `utils.xla.devices.get`.
        concurrency: so many calls are handed over before the host waits for them. A device that
            works while the host records gains by it; on eager CPU a call is done when it returns,
            and nothing can be gained. See `side_by_side` for several processes.
        calls: that count, of each setting, at least; rounded up to whole groups.
        warmup: calls of each batch before.

    Raises: ValueError for a number below 1.
    """
    batches, concurrency = tuple(batches), tuple(concurrency)
    for name, numbers in (
        ("batches", batches), ("concurrency", concurrency), ("calls, warmup", (calls, warmup)),
    ):  # fmt: skip
        if not numbers or min(numbers) < 1:
            raise ValueError(f"{name}: {numbers}, but every number must be at least 1")
    rates = []
    for batch in batches:
        step = make(batch)
        for _ in range(warmup):
            _group(step, device, 1, clock)
        for at_a_time in concurrency:
            groups = -(-calls // at_a_time)
            begin = clock()
            latencies = [
                latency for _ in range(groups) for latency in _group(step, device, at_a_time, clock)
            ]
            seconds = clock() - begin
            rates.append(Rate(batch, at_a_time, 1, len(latencies), seconds, tuple(latencies)))
    return tuple(rates)


def _group(step: Callable[[], Any], device: Waited, size: int, clock: Clock) -> list[float]:
    """Hand over so many calls, wait for all, and return the latency of each."""
    begins, kept = [], []
    for _ in range(size):
        begins.append(clock())
        kept.append(step())
        device.mark_step()
    device.wait()
    end = clock()
    return [end - begin for begin in begins]
