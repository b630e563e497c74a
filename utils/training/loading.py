"""Input pipelines: what waiting for data costs, measured on any clock and predicted exactly.

`Watched(loader, clock)` measures any loop over batches. `predict(...)` says what torch's DataLoader
and torch_xla's MpDeviceLoader would do, from the times that loads and steps take: who loads which
batch when, and how long the loop waits for it. The rules are those of torch.utils.data.DataLoader,
which keeps the order, and of MpDeviceLoader, read from their source; loads must not slow each other
down: they wait for storage, or have a core each. `VirtualLoader` runs a real load function in
virtual time, on a `FakeClock`: no thread and no second passes, and the answer is the same on every
machine.
"""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, Protocol


class Clock(Protocol):
    """What code that takes time needs: `now()` in seconds, and `sleep(seconds)`."""

    def now(self) -> float:
        """Seconds from an arbitrary moment."""

    def sleep(self, seconds: float) -> None:
        """Return when so many seconds have passed."""


class RealClock:
    """The clock of this machine; `now` counts from an arbitrary moment."""

    def now(self) -> float:
        """Seconds of this machine's clock."""
        return time.perf_counter()

    def sleep(self, seconds: float) -> None:
        """Really sleep."""
        time.sleep(seconds)


class FakeClock:
    """A clock that moves only when somebody sleeps on it.

    >>> clock = FakeClock()
    >>> clock.sleep(0.25)
    >>> clock.now()
    0.25
    """

    def __init__(self, start_s: float = 0.0) -> None:
        self._now = start_s

    def now(self) -> float:
        """Where the clock stands, in seconds."""
        return self._now

    def sleep(self, seconds: float) -> None:
        """Move the clock by that much, at once."""
        if not seconds >= 0:
            raise ValueError(f"cannot sleep for {seconds} s: give 0 or more")
        self._now += seconds

    def until(self, moment_s: float) -> None:
        """Sleep until that moment; nothing happens if it has passed."""
        self._now = max(self._now, moment_s)

    @contextmanager
    def elsewhere(self, start_s: float) -> Iterator[None]:
        """Within the block it is `start_s`, for work that somebody else does meanwhile.

        After it, the time is what it was before: read `now()` inside to learn when the work ended.
        """
        here, self._now = self._now, start_s
        try:
            yield
        finally:
            self._now = here


@dataclass(frozen=True)
class Waits:
    """Seconds of a loop: waits_s[i] passed before batch i was there, works_s[i] were spent on it.

    >>> Waits((0.9, 0.2, 0.2), (0.6, 0.6, 0.6)).share
    0.25
    """

    waits_s: tuple[float, ...]
    works_s: tuple[float, ...]

    @property
    def first_s(self) -> float:
        """The wait for the first batch: workers start, nothing is fetched ahead yet."""
        return self.waits_s[0] if self.waits_s else 0.0

    @property
    def share(self) -> float:
        """Of the time after the first batch had come and was worked on, the part spent waiting.

        0 is a loop that never waits. A loop of a single batch has no such time: 0 as well.
        """
        waited = sum(self.waits_s[1:])
        total = waited + sum(self.works_s[1:])
        return waited / total if total else 0.0

    @property
    def seconds(self) -> float:
        """All of it, the first wait included."""
        return sum(self.waits_s) + sum(self.works_s)

    def __str__(self) -> str:
        """
        >>> print(Waits((0.9, 0.2, 0.2), (0.6, 0.6, 0.6)))
        3 batches, 25% of the time after the first was waiting
        """
        batches = f"{len(self.waits_s)} batch" + ("es" if len(self.waits_s) != 1 else "")
        return f"{batches}, {self.share:.0%} of the time after the first was waiting"


class Watched:
    """Gives the batches of a loader, and keeps how long each was waited for and worked on.

    Args:
        loader: anything that can be iterated over.
        clock: measures; by default the real one.
        finish: called when the loop asks for the next batch, and its time counts as work. Without
            it the clock sees how long the host recorded a step, not how long the device took: give
            a function that waits for the device, such as utils.xla.meter.settle.

    After the loop, and while it runs, `waits` is what was measured in the latest iteration.

    >>> from utils.training.loading import FakeClock, Stored
    >>> clock = FakeClock()
    >>> watched = Watched(Stored(4, load_s=0.1, clock=clock), clock)
    >>> for batch in watched:
    ...     clock.sleep(0.3)
    >>> round(watched.waits.share, 9)
    0.25
    """

    def __init__(
        self,
        loader: Iterable[Any],
        clock: Clock | None = None,
        finish: Callable[[], object] | None = None,
    ) -> None:
        self.loader, self.clock, self.finish = loader, clock or RealClock(), finish
        self._waits: list[float] = []
        self._works: list[float] = []

    def __len__(self) -> int:
        return len(self.loader)  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[Any]:
        waits, works = self._waits, self._works = [], []
        now = self.clock.now
        asked = now()
        batches = iter(self.loader)  # starts the workers, so it belongs to the first wait
        while True:
            try:
                batch = next(batches)
            except StopIteration:
                return
            came = now()
            waits.append(came - asked)
            try:
                yield batch
                if self.finish:
                    self.finish()
            finally:  # also when the loop breaks off
                asked = now()
                works.append(asked - came)

    @property
    def waits(self) -> Waits:
        """What was measured in the latest iteration."""
        return Waits(tuple(self._waits), tuple(self._works))


@dataclass(frozen=True)
class Stored:
    """A map-style dataset whose items come after a sleep, which stands in for storage.

    make: called as make(index), gives the item; by default the index itself.
    load_s: seconds that the reading of an item sleeps, or a function of its index.

    While it sleeps the processor is free, as with a disk or a network. Work that computes, such as
    decoding, is no sleep: it takes a core.

    >>> from utils.training.loading import FakeClock
    >>> clock = FakeClock()
    >>> Stored(3, load_s=0.5, clock=clock)[2], clock.now()
    (2, 0.5)
    """

    count: int
    make: Callable[[int], Any] = int
    load_s: float | Callable[[int], float] = 0.0
    clock: Clock = field(default_factory=RealClock)

    def __post_init__(self) -> None:
        _whole("count", self.count, least=0)
        if not callable(self.load_s):
            _seconds("load_s", self.load_s)

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Any:
        # A sequence that never ends would be iterated for ever.
        if not -self.count <= index < self.count:
            raise IndexError(f"item {index} of {self.count}")
        self.clock.sleep(self.load_s(index) if callable(self.load_s) else self.load_s)
        return self.make(index)


class VirtualLoader:
    """Gives the batches of torch's DataLoader, in its order, at its moments of a fake clock.

    Args:
        dataset: with len() and [index]; its [index] takes time by clock.sleep.
        batch_size: items of a batch, a list; None gives the items themselves.
        workers, prefetch: num_workers and prefetch_factor. What a worker sleeps costs the loop
            nothing until it asks for a batch that is not ready.

    Every item is really read, in the order in which the loop takes batches. The last batch may be
    smaller.

    Raises:
        ValueError: a size or a prefetch below 1, workers below 0.
        TypeError: a clock that is no FakeClock, or a dataset without len(), as an endless one.

    >>> from utils.training.loading import Stored, Watched
    >>> clock = FakeClock()
    >>> data = Stored(12, load_s=0.02, clock=clock)
    >>> watched = Watched(VirtualLoader(data, clock, batch_size=2, workers=2), clock)
    >>> for batch in watched:
    ...     clock.sleep(0.02)
    >>> batch, round(watched.waits.share, 9)
    ([10, 11], 0.0)
    """

    def __init__(
        self,
        dataset: Any,
        clock: FakeClock,
        batch_size: int | None = None,
        workers: int = 0,
        prefetch: int = 2,
    ) -> None:
        if batch_size is not None:
            _whole("batch_size", batch_size, least=1)
        _whole("workers", workers, least=0)
        _whole("prefetch", prefetch, least=1)
        if not isinstance(clock, FakeClock):
            raise TypeError(f"the clock is a {type(clock).__name__}, and must be a FakeClock")
        if not hasattr(dataset, "__len__"):
            raise TypeError(
                f"the dataset is a {type(dataset).__name__}, without len(): give one of known size,"
                " such as Stored or a list"
            )
        self.dataset, self.clock, self.batch_size = dataset, clock, batch_size
        self.workers, self.prefetch = workers, prefetch

    def __len__(self) -> int:
        return -(-len(self.dataset) // (self.batch_size or 1))

    def __iter__(self) -> Iterator[Any]:
        clock, ahead = self.clock, self.workers * self.prefetch
        free = [clock.now()] * self.workers
        ordered = [clock.now()] * min(ahead, len(self))
        for number in range(len(self)):
            if not self.workers:
                yield self._batch(number)
                continue
            worker = number % self.workers
            with clock.elsewhere(max(free[worker], ordered[number])):
                batch = self._batch(number)
                free[worker] = clock.now()
            clock.until(free[worker])
            ordered.append(clock.now())  # a batch that is taken orders another
            yield batch

    def _batch(self, number: int) -> Any:
        if self.batch_size is None:
            return self.dataset[number]
        first = number * self.batch_size
        indices: Sequence[int] = range(first, min(first + self.batch_size, len(self.dataset)))
        return [self.dataset[index] for index in indices]


@dataclass(frozen=True)
class Uploader:
    """The threads of torch_xla's MpDeviceLoader, with the names of its arguments.

    One thread takes batches from the loader and puts up to `loader_prefetch_size` aside; another
    collects `device_prefetch_size` of them before it uploads any, then hands them over one by one.

    upload_s: seconds that the transfer of one batch to the device takes.
    """

    loader_prefetch_size: int = 16
    device_prefetch_size: int = 8
    upload_s: float = 0.0

    def __post_init__(self) -> None:
        _whole("loader_prefetch_size", self.loader_prefetch_size, least=1)
        _whole("device_prefetch_size", self.device_prefetch_size, least=1)
        _seconds("upload_s", self.upload_s)


@dataclass(frozen=True)
class Schedule:
    """What happens to each batch, in seconds from the start of the loop.

    workers[i]: the worker that loads batch i; 0 is also the loop itself when there are no workers.
    begins_s[i], ends_s[i]: when its load begins and ends.
    asked_s[i], taken_s[i], done_s[i]: when the loop asks for it, has it, and has worked on it.
    """

    workers: tuple[int, ...]
    begins_s: tuple[float, ...]
    ends_s: tuple[float, ...]
    asked_s: tuple[float, ...]
    taken_s: tuple[float, ...]
    done_s: tuple[float, ...]

    @property
    def waits(self) -> Waits:
        """The same record as `Watched` measures."""
        return Waits(
            tuple(t - a for a, t in zip(self.asked_s, self.taken_s, strict=True)),
            tuple(d - t for t, d in zip(self.taken_s, self.done_s, strict=True)),
        )


def workers_needed(load_s: float, work_s: float) -> int:
    """The fewest workers that load batches as fast as the loop uses them.

    Raises:
        ValueError: a load below 0 seconds, or a work that takes none.

    >>> workers_needed(load_s=0.050, work_s=0.020)
    3
    """
    _seconds("load_s", load_s)
    if not _seconds("work_s", work_s):
        raise ValueError("work_s is 0, and must be more than 0: no number of workers keeps up")
    # The quotient of decimals may lie a rounding error above a whole number.
    return max(1, math.ceil(load_s / work_s * (1 - 1e-12)))


def predict(
    load_s: float | Sequence[float],
    work_s: float | Sequence[float],
    batches: int | None = None,
    workers: int = 0,
    prefetch: int = 2,
    uploader: Uploader | None = None,
) -> Schedule:
    """What a loop over a loader does.

    Args:
        load_s: seconds that the load of a batch takes, one number or one for each batch.
        work_s: seconds that the loop works on a batch, likewise.
        batches: their number, if both are single numbers.
        workers, prefetch: num_workers and prefetch_factor of the DataLoader. Without workers the
            loop loads each batch itself when it asks for it, and prefetch says nothing.
        uploader: for a loop over MpDeviceLoader(loader, device).

    Raises:
        ValueError: for a time below 0, no batch, or numbers of batches that differ.

    >>> predict(0.03, 0.01, batches=30).waits.share
    0.75
    >>> round(predict(0.03, 0.01, batches=30, workers=3).waits.share, 9)
    0.0
    """
    loads, works = _times(load_s, work_s, batches)
    _whole("workers", workers, least=0)
    _whole("prefetch", prefetch, least=1)
    loop = _Loader(loads, workers, prefetch)
    asked, taken, done = [], [], []

    def work(batch: int, ready: float, ask: float) -> None:
        asked.append(ask)
        taken.append(max(ask, ready))
        done.append(taken[-1] + works[batch])

    if uploader is None:
        for batch in range(len(loads)):
            ask = done[-1] if done else 0.0
            work(batch, loop.take(batch, ask), ask)
    else:
        _upload(loop, uploader, len(loads), work, taken, done)
    return Schedule(
        tuple(loop.workers), tuple(loop.begins), tuple(loop.ends),
        tuple(asked), tuple(taken), tuple(done),
    )  # fmt: skip


class _Loader:
    """DataLoader: at first prefetch * workers batches are ordered; each one taken orders another.

    Batch i goes to worker i modulo workers, and a worker loads its batches one after the other.
    """

    def __init__(self, loads: list[float], workers: int, prefetch: int) -> None:
        self.loads, self.count, self.ahead = loads, workers, workers * prefetch
        self.workers: list[int] = []
        self.begins: list[float] = []
        self.ends: list[float] = []
        self.taken: list[float] = []

    def take(self, batch: int, asked: float) -> float:
        """The moment at which the next batch, asked for at `asked`, is had."""
        if self.count:
            ordered = self.taken[batch - self.ahead] if batch >= self.ahead else 0.0
            free = self.ends[batch - self.count] if batch >= self.count else 0.0
            begin = max(ordered, free)
        else:
            begin = asked
        self.workers.append(batch % self.count if self.count else 0)
        self.begins.append(begin)
        self.ends.append(begin + self.loads[batch])
        self.taken.append(max(asked, self.ends[-1]))
        return self.taken[-1]


def _upload(
    loader: _Loader, rules: Uploader, batches: int, work: Any, taken: list[float], done: list[float]
) -> None:
    put: list[float] = []  # when the first thread has put a batch aside
    got: list[float] = []  # when the second has collected it
    handed: list[float] = []  # when it lies ready for the loop
    group = rules.device_prefetch_size
    for batch in range(batches):
        have = loader.take(batch, put[-1] if put else 0.0)
        room = got[batch - rules.loader_prefetch_size] if batch >= rules.loader_prefetch_size else 0
        put.append(max(have, room))
        # Within a group it only collects; a new one begins when the last is handed over.
        free = (handed[-1] if batch % group == 0 else got[-1]) if batch else 0.0
        got.append(max(put[-1], free))
        if (batch + 1) % group and batch + 1 < batches:
            continue
        first = len(handed)
        ready = got[-1] + rules.upload_s * (batch + 1 - first)
        for member in range(first, batch + 1):
            ready = max(ready, taken[member - group] if member >= group else 0.0)
            handed.append(ready)
            work(member, ready, done[-1] if done else 0.0)


def _times(
    load_s: float | Sequence[float], work_s: float | Sequence[float], batches: int | None
) -> tuple[list[float], list[float]]:
    if batches is not None:
        _whole("batches", batches, least=1)
    given: dict[str, Any] = {"load_s": load_s, "work_s": work_s}
    for name, value in given.items():
        if isinstance(value, str) or not isinstance(value, Real) and not hasattr(value, "__iter__"):
            raise ValueError(
                f"{name} is {value!r}: give seconds, or a list with those of each batch"
            )
    lists = {name: list(value) for name, value in given.items() if not isinstance(value, Real)}
    counts = {len(v) for v in lists.values()} | ({batches} if batches is not None else set())
    if len(counts) != 1 or not (count := counts.pop()) > 0:
        raise ValueError(
            "say how many batches there are: batches=20, or one time for each in load_s or work_s,"
            f" of equal number; found {batches=}, "
            + ", ".join(f"{len(values)} in {name}" for name, values in lists.items())
        )
    loads, works = (
        [_seconds(name, number) for number in lists.get(name, [value] * count)]
        for name, value in given.items()
    )
    return loads, works


def _whole(name: str, number: Any, least: int) -> None:
    """
    >>> _whole("workers", 2, least=0)

    Raises:
        ValueError: number is no whole number from `least` on.
    """
    if isinstance(number, bool) or not isinstance(number, Integral) or number < least:
        raise ValueError(f"{name} is {number!r}, and must be a whole number from {least} on")


def _seconds(name: str, number: Any) -> float:
    """The number as a float.

    >>> _seconds("load_s", 1)
    1.0

    Raises:
        ValueError: it is no finite number of 0 or more.
    """
    if (
        isinstance(number, bool)
        or not isinstance(number, Real)
        or not 0 <= float(number) < math.inf
    ):
        raise ValueError(f"{name} is {number!r}, and must be seconds, 0 or more")
    return float(number)
