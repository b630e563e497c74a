"""A benchmark as it is kept: what was measured, with which settings, where, and every sample."""

import json
import math
import os
from dataclasses import dataclass, field
from pathlib import Path

from utils.serving.bench.agreement import Fidelity
from utils.serving.bench.arrivals import Arrivals
from utils.serving.bench.cold import ColdStart
from utils.serving.bench.environment import Environment
from utils.serving.bench.killing import Recovery
from utils.serving.bench.money import Given
from utils.serving.bench.quantiles import Summary, summary
from utils.serving.bench.rates import Rate
from utils.serving.bench.streams import Tokens
from utils.serving.bench.typed import Malformed, from_plain, to_plain

FORMAT = "trainium-course bench"
Setting = str | int | float | bool
VERSION = 2
"""Of the file. A field that is added, removed or means something else makes it one more."""


class Unreadable(ValueError):
    """A file that is no record: what was found, and what to do."""


@dataclass(frozen=True)
class Record:
    """One benchmark.

    what: the name of what was measured.
    settings: all that somebody chose: batch, format, repeats. Records with others are unlike.
    environment: where.
    rounds: the warm times in seconds, in order; each round is a process of its own.
    first_s: the first call of each round, in seconds.
    The rest is None, or empty, where it was not measured. repeatable: did the same inputs give the
    same bits twice on this device. missing: what was to be measured and failed, and why.
    """

    what: str
    settings: dict[str, Setting]
    environment: Environment
    rounds: tuple[tuple[float, ...], ...]
    first_s: tuple[float, ...]
    arrivals: tuple[Arrivals, ...] = ()
    cold: ColdStart | None = None
    rates: tuple[Rate, ...] = ()
    tokens: Tokens | None = None
    fidelity: Fidelity | None = None
    repeatable: bool | None = None
    recovery: Recovery | None = None
    usd_per_million: Given | None = None
    joules_per_query: Given | None = None
    missing: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.rounds or not all(self.rounds):
            raise ValueError("rounds: at least one round with at least one time is needed")
        every = (*self.first_s, *self.seconds)
        if not all(0 < seconds < math.inf for seconds in every):
            raise ValueError("rounds, first_s: a time is not above 0 s and finite")
        if len(self.first_s) != len(self.rounds):
            raise ValueError(f"first_s: {len(self.first_s)} for {len(self.rounds)} rounds")

    @property
    def seconds(self) -> tuple[float, ...]:
        """The warm times of all rounds, one after the other."""
        return tuple(each for one in self.rounds for each in one)

    @property
    def summary(self) -> Summary:
        """Over all rounds. Its intervals take all times for independent."""
        return summary(self.seconds)


def to_json(record: Record) -> str:
    """The text of a file, which `from_json` reads back to an equal record."""
    content = {"format": FORMAT, "version": VERSION, "record": to_plain(record)}
    return json.dumps(content, indent=1, allow_nan=False) + "\n"


def from_json(text: str, name: str = "the text") -> Record:
    """The record in a text. name: of the file, for the message.

    Raises: Unreadable for what is no JSON, no record, a newer version, or one with a wrong value.
    """
    try:
        content = json.loads(text)
    except ValueError as error:
        raise Unreadable(
            f"{name} is no JSON ({error}): it may be cut off; record it anew with"
            " `course.py bench --out`"
        ) from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise Unreadable(
            f'{name} is no record of a benchmark: its "format" is not "{FORMAT}". Give a file that'
            " `course.py bench --out` wrote"
        )
    version = content.get("version")
    if version != VERSION:
        newer = isinstance(version, int) and version > VERSION
        advice = "update the course" if newer else "record it anew"
        raise Unreadable(f"{name} has version {version!r}, this course reads {VERSION}: {advice}")
    try:
        return from_plain(Record, content.get("record"))
    except Malformed as error:
        raise Unreadable(f"{name}: {error}; record it anew rather than mend it") from None


def save(record: Record, path: str | os.PathLike) -> None:
    """Write the file whole or not at all."""
    target = Path(path)
    half = target.with_name(target.name + ".part")
    half.write_text(to_json(record), encoding="utf-8")
    os.replace(half, target)


def load(path: str | os.PathLike) -> Record:
    """Raises: Unreadable as `from_json`, also for a file that is not there."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Unreadable(f"{path} cannot be read: {error}") from None
    return from_json(text, str(path))
