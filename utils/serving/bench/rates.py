"""Throughput: items per second against the batch, and against how many calls are under way, in one
process or in several side by side.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from utils.cost import tco
from utils.serving.bench.quantiles import percentile
from utils.serving.bench.timing import CLOCK, Clock, Waited, timed
from utils.serving.bench.workers import Handle, Worker


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
        return self.batch * self.calls / self.seconds

    def point(self, p: float = 99) -> tco.Point:
        """As the cost model takes it, for `tco.fastest_within`: latency is the p-th percentile."""
        return tco.Point(self.batch, percentile(self.latencies_s, p), self.items_per_second)

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
    _positive("batches", batches)
    _positive("concurrency", concurrency)
    _positive("calls and warmup", (calls, warmup))
    rates = []
    for batch in batches:
        step = make(batch)
        for _ in range(warmup):
            _group(step, device, 1, clock)
        for at_a_time in concurrency:
            groups = -(-calls // at_a_time)
            begin = clock()
            latencies = [
                each for _ in range(groups) for each in _group(step, device, at_a_time, clock)
            ]
            seconds = clock() - begin
            rates.append(Rate(batch, at_a_time, 1, len(latencies), seconds, tuple(latencies)))
    return tuple(rates)


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
    return tuple(
        _pool(make, kind, batch, count, calls, warmup, environment, timeout_s) for count in workers
    )


def _pool(
    make: Callable[[Any], Callable[[], Any]],
    kind: str,
    batch: int,
    count: int,
    calls: int,
    warmup: int,
    environment: Mapping[str, str] | None,
    timeout_s: float,
) -> Rate:
    if min(count, calls, warmup) < 1:
        raise ValueError(f"workers {count}, calls {calls}, warmup {warmup}: each is at least 1")
    with ExitStack() as opened:
        pool = [
            opened.enter_context(Worker(_caller(make), kind, timeout_s, environment))
            for _ in range(count)
        ]
        for number, size in ((0, warmup), (1, calls)):
            for each in pool:
                each.wait_ready()
                each.send(number, size)
            answers = [each.receive()[1] for each in pool]
    begins, ends, latencies = zip(*answers, strict=True)
    every = tuple(one for each in latencies for one in each)
    return Rate(batch, 1, count, len(every), max(ends) - min(begins), every)


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


def _caller(make: Callable[[Any], Callable[[], Any]]) -> Callable[[Any], Handle]:
    def made(device: Any) -> Handle:
        step = make(device)

        def call(times: int) -> tuple[float, float, list[float]]:
            begin = CLOCK()
            seconds = [timed(step, device) for _ in range(times)]
            return begin, CLOCK(), seconds

        return call

    return made


def _positive(name: str, numbers: Sequence[int]) -> None:
    if not numbers or min(numbers) < 1:
        raise ValueError(f"{name}: {numbers}, but every number must be at least 1")
