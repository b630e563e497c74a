"""What was measured: the entries of utils/facts/data/nki_measurements.yaml, which explains the
fields."""

import functools
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

FILE = Path(__file__).parents[2] / "facts" / "data" / "nki_measurements.yaml"
CLASSES = ("hard", "soft", "rank", "bound", "generalise", "kept out")
SAME_ACTIVITY = 1.0
"""Engines that were active for times this close, in % of the kernel's, are equally busy."""


@dataclass(frozen=True)
class Measurement:
    """One published number; the file says what each field holds. `kind` is its class."""

    id: str
    kernel: str
    inputs: tuple[str, ...]
    target: str
    schedule: str
    quantity: str
    value: float
    unit: str
    kind: str
    source: str
    where: str
    arguments: dict[str, Any] = field(default_factory=dict)
    row: int | None = None
    ladder: str | None = None
    busiest: str | None = None
    active: dict[str, float] = field(default_factory=dict)
    hbm: dict[str, float] = field(default_factory=dict)
    note: str = ""

    @property
    def busy(self) -> frozenset[str]:
        """Engines the source shows to be the busiest; more than one if they are close."""
        if not self.busiest:
            return frozenset()
        most = self.active.get(self.busiest, math.inf)
        close = {name for name, share in self.active.items() if most - share <= SAME_ACTIVITY}
        return frozenset({self.busiest, *close})

    def shapes(self) -> list[tuple[tuple[int, ...], str]]:
        """(shape, dtype) of each input.

        >>> measurements()["exp-4-all"].shapes()
        [((4, 4096), 'bfloat16')]
        """
        pairs = (text.split() for text in self.inputs)
        return [(tuple(map(int, shape.split("x"))), dtype) for dtype, shape in pairs]


@functools.cache
def _content() -> dict[str, Any]:
    return yaml.safe_load(FILE.read_text(encoding="utf-8"))


def url(source: str) -> str:
    """The address of a source."""
    return _content()["sources"][source]["url"]


@functools.cache
def measurements() -> dict[str, Measurement]:
    """All published measurements by id."""
    results = {}
    for entry in _content()["measurements"]:
        fields = dict(entry)
        made = Measurement(kind=fields.pop("class"), inputs=tuple(fields.pop("inputs")), **fields)
        results[made.id] = made
    return results


def select(row: str | None = None, target: str | None = None) -> list[Measurement]:
    """Measurements by id, row number, ladder or kernel, and by chip. LookupError: there is none."""
    results = [
        measurement
        for measurement in measurements().values()
        if target in (None, measurement.target)
        and row
        in (None, measurement.id, str(measurement.row), measurement.ladder, measurement.kernel)
    ]
    if not results:
        known = ", ".join(measurements())
        raise LookupError(f"no measurement is {row!r} on {target or 'any chip'}; there are {known}")
    return results
