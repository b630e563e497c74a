"""What instruments and models hand to a pilot, as far as it reads them."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from utils.cost.tco.comparison import Warned

WARNED = {
    "work": "same-work",
    "quality": "same-quality",
    "precision": "same-quality",
    "region": "same-terms",
    "purchase": "same-terms",
    "price": "same-terms",
    "old price": "same-terms",
    "date": "same-terms",
    "peak for measured": "measured",
    "throughput of others": "measured",
    "vendor claim": "vendor",
}
"""Kind of a warning of `utils.cost.tco.comparison` -> the check of the benchmark list that it
fails."""

SILENT = frozenset(WARNED.values()) - {"same-quality"}
"""Checks that are done where no warning speaks against them. That both are held to one score, which
a scenario says, is an intention: only somebody who compared the scores can say that they reach it.
"""


class Parities(Protocol):
    """What is read of a result of `utils.xla.parity.compare`: the quantities outside tolerance."""

    @property
    def outside(self) -> tuple[str, ...]: ...


@dataclass(frozen=True)
class Throughput:
    """Units per second measured on a device, and those at which both options cost the same.

    Raises:
        ValueError: for numbers that are none, or a machine that is not the one to be bought.
    """

    measured: float
    needed: float
    unit: str
    machine: str

    def __post_init__(self) -> None:
        for name in ("measured", "needed"):
            value = getattr(self, name)
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if not number or not math.isfinite(value) or value <= 0:
                raise ValueError(f"{name}: {value!r} is not allowed; allowed: a number above 0")
        if not self.machine.strip() or self.machine.lower().startswith("cpu"):
            raise ValueError(
                f"machine: {self.machine!r} is not allowed; allowed: the instance measured, as the"
                " time of a CPU says nothing about Trainium"
            )


def doubts(warnings: Iterable[Warned]) -> dict[str, str]:
    """Check of the benchmark list -> what was warned of, at most twice in full."""
    said: dict[str, list[str]] = {}
    for each in warnings:
        if each.kind not in WARNED:
            raise ValueError(
                f"warnings: {each.kind!r} is not allowed; allowed: {', '.join(WARNED)}"
            )
        said.setdefault(WARNED[each.kind], []).append(each.text)
    return {
        key: "; ".join(texts[:2]) + (f"; {len(texts) - 2} more" if len(texts) > 2 else "")
        for key, texts in said.items()
    }
