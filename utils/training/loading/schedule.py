"""An exact model of the loaders: who loads which batch when, and how long the loop waits for it.

The rules are those of torch.utils.data.DataLoader, which keeps the order, and of torch_xla's
MpDeviceLoader, read from their source. Loads must not slow each other down: they wait for storage,
or have a core each.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

from utils.training.loading.checks import seconds, whole
from utils.training.loading.watch import Waits


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
        whole("loader_prefetch_size", self.loader_prefetch_size, least=1)
        whole("device_prefetch_size", self.device_prefetch_size, least=1)
        seconds("upload_s", self.upload_s)


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
    seconds("load_s", load_s)
    if not seconds("work_s", work_s):
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
    whole("workers", workers, least=0)
    whole("prefetch", prefetch, least=1)
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
        for each in range(first, batch + 1):
            ready = max(ready, taken[each - group] if each >= group else 0.0)
            handed.append(ready)
            work(each, ready, done[-1] if done else 0.0)


def _times(
    load_s: float | Sequence[float], work_s: float | Sequence[float], batches: int | None
) -> tuple[list[float], list[float]]:
    if batches is not None:
        whole("batches", batches, least=1)
    given = {"load_s": load_s, "work_s": work_s}
    for name, value in given.items():
        if isinstance(value, str) or not isinstance(value, Real) and not hasattr(value, "__iter__"):
            raise ValueError(
                f"{name} is {value!r}: give seconds, or a list with those of each batch"
            )
    lists = {name: list(v) for name, v in given.items() if not isinstance(v, Real)}
    counts = {len(v) for v in lists.values()} | ({batches} if batches is not None else set())
    if len(counts) != 1 or not (count := counts.pop()) > 0:
        raise ValueError(
            "say how many batches there are: batches=20, or one time for each in load_s or work_s,"
            f" of equal number; found {batches=}, "
            + ", ".join(f"{len(v)} in {name}" for name, v in lists.items())
        )
    loads, works = (
        [seconds(name, each) for each in lists.get(name, [value] * count)]
        for name, value in given.items()
    )
    return loads, works
