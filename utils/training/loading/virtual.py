"""A DataLoader in virtual time: real load functions, a fake clock, no thread and no second."""

from collections.abc import Iterator, Sequence
from typing import Any

from utils.training.loading.checks import whole
from utils.training.loading.clocks import FakeClock


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
            whole("batch_size", batch_size, least=1)
        whole("workers", workers, least=0)
        whole("prefetch", prefetch, least=1)
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
