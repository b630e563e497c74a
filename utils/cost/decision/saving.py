"""What the decision reads of a cost comparison: how much Trainium saves, and how sure that is."""

import math
from dataclasses import dataclass, fields
from statistics import NormalDist

import numpy as np

from utils.cost.checks import check_kind, is_number
from utils.cost.tco.uncertainty import Comparison

_NORMAL = NormalDist()
_Z95 = _NORMAL.inv_cdf(0.95)
_LEAST = 1e-6  # a sample never shows that something is impossible
_ROUNDING = 0.02  # of percentiles and a share that come from the same finite sample


@dataclass(frozen=True)
class Saving:
    """The saving of the Trainium option, as a fraction of what the GPU option costs.

    low, middle, high: its 5, 50 and 95 % points; negative where Trainium costs more, at most 1.
    probability: that Trainium is the cheaper of the two. amount: money saved over the horizon, port
    included, at the best guesses. cost: what the GPU option costs over the horizon, if known; it
    says how the amount follows when the saving moves.

    Raises:
        ValueError: for numbers that no comparison can give.
    """

    low: float
    middle: float
    high: float
    probability: float
    amount: float
    cost: float | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name == "cost" and value is None:
                continue
            if not is_number(value):
                raise ValueError(
                    f"{field.name}: {value!r} is not allowed; allowed: a finite number"
                )
        if self.cost is not None and self.cost <= 0:
            raise ValueError(f"cost: {self.cost:g} is not allowed; allowed: above 0, or None")
        if not 0 <= self.probability <= 1:
            raise ValueError(f"probability: {self.probability!r} is not allowed; allowed: 0 to 1")
        if not self.low <= self.middle <= self.high <= 1:
            raise ValueError(
                f"low, middle, high: {self.low:g}, {self.middle:g}, {self.high:g} are not allowed;"
                " allowed: in rising order, at most 1 (nothing saves more than the whole)"
            )
        for place, point in ((0.05, self.low), (0.5, self.middle), (0.95, self.high)):
            # The share of draws above zero is at least 1 - place where this point is above zero.
            if (point > 0 and self.probability < 1 - place - _ROUNDING) or (
                point < 0 and self.probability > 1 - place + _ROUNDING
            ):
                raise ValueError(
                    f"probability: {self.probability:g} does not fit a {place:.0%} point of"
                    f" {point:g}; allowed: {'at least' if point > 0 else 'at most'} {1 - place:g}"
                )

    @classmethod
    def of(cls, given: "Saving | Comparison") -> "Saving":
        """The saving that a comparison of the cost model states.

        Raises:
            TypeError: if it is no comparison. ValueError: if its first option is not Trainium.
        """
        if isinstance(given, Saving):
            return given
        allowed = "what utils.cost.tco.compare(...) returns, a Saving, or None"
        check_kind("comparison", given, Comparison, allowed)
        platform = given.scenario.options[given.a].context.platform
        if platform != "trainium":
            raise ValueError(
                f"comparison: its first option {given.a!r} runs on {platform!r}; allowed: the"
                " saving of a Trainium option against another"
            )
        low, middle, high = map(float, np.quantile(given.savings, (0.05, 0.5, 0.95)))
        cost = float(given.best[given.b].overall)
        return cls(low, middle, high, given.probability, given.amount, cost)

    def moved(self, by: float) -> "Saving":
        """All points shifted by a fraction of the GPU option's cost, and the rest accordingly.

        Between its points the saving is taken as normal on either side of the middle; that this
        is not quite the given probability is carried along.

        >>> Saving(0.05, 0.2, 0.35, 0.98, 100_000).moved(-0.2).probability
        0.5
        """
        if not by:
            return self
        low, middle, high = self.low + by, self.middle + by, self.high + by
        if high > 1:
            raise ValueError(f"by: {by:g} is not allowed; allowed: at most {1 - self.high:g}")
        known = _NORMAL.inv_cdf(min(max(self.probability, _LEAST), 1 - _LEAST))
        score = _score(self.low, self.middle, self.high)
        slip = known / score if known * score > 0 else 1.0
        probability = _NORMAL.cdf(_score(low, middle, high) * slip)
        # What the points themselves say holds: the slip corrects between them.
        for place, point in ((0.05, low), (0.5, middle), (0.95, high)):
            probability = max(probability, 1 - place) if point > 0 else probability
            probability = min(probability, 1 - place) if point < 0 else probability
        cost = self.cost
        if cost is None:  # an amount at best guesses may differ in sign from the middle
            cost = max(0.0, self.amount / self.middle) if self.middle else 0.0
        return Saving(low, middle, high, probability, self.amount + by * cost, self.cost)


def _score(low: float, middle: float, high: float) -> float:
    """How many standard deviations of its side the middle lies above zero."""
    side = (middle - low if middle > 0 else high - middle) / _Z95
    if side == 0:
        return math.copysign(1 / _LEAST, middle) if middle else 0.0
    return middle / side
