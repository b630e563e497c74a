"""Every way that a random function can go, with its probability: a distribution without sampling.

The function is run again and again; each run makes the choices of the last one up to the last
choice that has an outcome left, and takes that.
"""

from collections.abc import Callable, Sequence
from typing import Any

MOST_CHOICES, MOST_RUNS = 40, 6000
"""Of a run, and of all: ten times what is needed."""


class Odd(BaseException):
    """Ends a run whose choice has no probabilities. Not an Exception, so that no answer catches
    it by the way.
    """


class Branches:
    """The choices of one run after another."""

    def __init__(self) -> None:
        self._path: list[tuple[int, list[float]]] = []  # outcome, probabilities
        self._place = 0

    def coin(self, probability: float) -> bool:
        """True with this probability."""
        share = float(probability)
        if not -1e-12 <= share <= 1 + 1e-12:
            raise Odd("coin")
        share = min(max(share, 0.0), 1.0)
        return self._choice([1 - share, share]) == 1

    def draw(self, weights: Sequence[float]) -> int:
        """A place in the list, with a probability in proportion to its weight."""
        shares = [float(weight) for weight in weights]
        if min(shares, default=0.0) < -1e-12:
            raise Odd("negative")
        if not 1e-9 < sum(shares) < float("inf"):
            raise Odd("nothing")
        return self._choice([max(share, 0.0) / sum(shares) for share in shares])

    def _choice(self, shares: list[float]) -> int:
        if self._place == len(self._path):
            if self._place == MOST_CHOICES:
                raise Odd("endless")
            self._path.append((_next(shares, 0), shares))
        self._place += 1
        return self._path[self._place - 1][0]

    def all(self, function: Callable[[], Any]) -> list[tuple[Any, float]]:
        """What each run returns, with its probability. Raises Odd if there are too many."""
        result: list[tuple[Any, float]] = []
        self._path = []
        while True:
            self._place = 0
            value, probability = function(), 1.0
            for outcome, shares in self._path:
                probability *= shares[outcome]
            result.append((value, probability))
            if len(result) > MOST_RUNS:
                raise Odd("endless")
            while self._path:
                outcome, shares = self._path.pop()
                if (other := _next(shares, outcome + 1)) < len(shares):
                    self._path.append((other, shares))
                    break
            if not self._path:
                return result


def _next(shares: list[float], start: int) -> int:
    """The first outcome from `start` on that can happen."""
    return next((n for n in range(start, len(shares)) if shares[n] > 1e-15), len(shares))
