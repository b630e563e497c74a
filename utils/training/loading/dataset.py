"""A stand-in for storage: items that take a stated time to arrive."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from utils.training.loading.checks import seconds, whole
from utils.training.loading.clocks import Clock, RealClock


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
        whole("count", self.count, least=0)
        if not callable(self.load_s):
            seconds("load_s", self.load_s)

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Any:
        # A sequence that never ends would be iterated for ever.
        if not -self.count <= index < self.count:
            raise IndexError(f"item {index} of {self.count}")
        self.clock.sleep(self.load_s(index) if callable(self.load_s) else self.load_s)
        return self.make(index)
