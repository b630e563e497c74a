"""How long one batch takes, as a function of its size.

A `Service` is any function from the number of rows computed to seconds. Whoever calls it states
where its parameters come from: a measurement, a roofline, or an assumption.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Service = Callable[[int], float]


@dataclass(frozen=True)
class Linear:
    """A part that every batch pays once, and one for each row.

    fixed_s: starting a graph, reading the weights. per_item_s: the arithmetic of one row.

    >>> Linear(fixed_s=0.010, per_item_s=0.001)(10)
    0.02
    """

    fixed_s: float
    per_item_s: float

    def __post_init__(self) -> None:
        if self.fixed_s < 0 or self.per_item_s < 0 or self.fixed_s + self.per_item_s <= 0:
            raise ValueError(
                "seconds are 0 or more and not both 0; found"
                f" fixed_s={self.fixed_s!r}, per_item_s={self.per_item_s!r}"
            )

    def __call__(self, size: int) -> float:
        return self.fixed_s + size * self.per_item_s

    def rate_per_s(self, size: int) -> float:
        """Items per second of a server that always has a full batch of that size."""
        return size / self(size)


def exponential(mean_s: float, seed: int) -> Service:
    """A service whose times are drawn anew for each batch: the one of the queue M/M/1.

    It remembers how far it has drawn: make a new one for each simulation.
    """
    if not mean_s > 0:
        raise ValueError(f"mean_s is above 0, found {mean_s!r}")
    random = np.random.default_rng(seed)
    return lambda size: float(random.exponential(mean_s))
