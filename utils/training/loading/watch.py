"""Watch a loop over batches: how long it waited for each, and how long it worked on it."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from utils.training.loading.clocks import Clock, RealClock


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
        return Waits(tuple(self._waits), tuple(self._works))
