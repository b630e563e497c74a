"""A benchmark as it is kept: what was measured, with which settings, where, and every sample.

A `Record` is printed in words, and written as JSON. msgspec holds each value of a file to the type
that its field declares, and nothing is converted in silence. Numbers that JSON does not have are
written as "inf" and "-inf".
"""

import json
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from utils.course.files import replace_file
from utils.course.shown import columns
from utils.serving.bench.agreement import Fidelity
from utils.serving.bench.cold import ColdStart
from utils.serving.bench.environment import Environment
from utils.serving.bench.money import Given
from utils.serving.bench.quantiles import Summary, percentile, summary
from utils.serving.bench.timing import Arrivals, Rate, Tokens
from utils.serving.bench.workers import Recovery

FORMAT = "trainium-course bench"
Setting = str | int | float | bool
VERSION = 2
"""Of the file. A field that is added, removed or means something else makes it one more."""

UNBOUNDED = ("max_difference", "kl", "kl_max", "rate_per_s")
"""Fields whose number may be infinite: a candidate without numbers, requests all due at once."""


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
        return tuple(second for calls in self.rounds for second in calls)

    @property
    def summary(self) -> Summary:
        """Over all rounds. Its intervals take all times for independent."""
        return summary(self.seconds)

    def __str__(self) -> str:
        """All of it, a part to a paragraph; what was not measured is not mentioned."""
        parts = ("\n".join(filter(None, lines)) for lines in self._paragraphs())
        return "\n\n".join(filter(None, parts))

    def _paragraphs(self) -> Iterator[list[str]]:
        where = self.environment
        settings = ", ".join(f"{name} {value}" for name, value in self.settings.items())
        yield [f"{self.what}: {settings}", str(where), where.caution]
        medians = [percentile(calls, 50) for calls in self.rounds]
        yield [
            f"warm, {len(medians)} processes: {self.summary}",
            "intervals take all calls for independent; the processes tell whether they are:",
            f"median {_range(medians)}, first call {_range(self.first_s)}",
        ]
        if self.arrivals:
            yield ["one worker, requests on their own time:", *map(str, self.arrivals)]
        if self.cold:
            stages = {name.removesuffix("_s"): s for name, s in self.cold.stages.items()}
            stages["first answer after"] = self.cold.first_answer_s
            yield [
                "cold start of a process, seconds (files and compilers may have their caches):",
                *columns([(name, f"{seconds:.3f}") for name, seconds in stages.items()]),
            ]
        if self.rates:
            calls = min(rate.calls for rate in self.rates)
            lead = f"throughput of a few calls ({calls} or more), a first look:"
            yield [lead, *map(str, self.rates)]
        if self.tokens:
            yield [
                f"first token: {self.tokens.to_first.p50}",
                f"each other token: {self.tokens.between.p50}; {self.tokens.between.p95}",
                f"{self.tokens.tokens_per_second:.4g} tokens/s, one text at a time",
            ]
        bits = {None: "", True: "the same bits", False: "other bits"}[self.repeatable]
        yield [
            f"against eager CPU in float32: {self.fidelity}" if self.fidelity else "",
            bits and f"the same inputs twice on this device: {bits}",
        ]
        if self.recovery:
            yield [str(self.recovery)]
        if bills := [str(bill) for bill in (self.usd_per_million, self.joules_per_query) if bill]:
            best = max(self.rates, key=lambda rate: rate.items_per_second)
            yield [f"at the highest rate, which a queue of users never keeps up: {best}", *bills]
        yield [f"not measured, {part}: {why}" for part, why in self.missing.items()]


def _range(seconds: Sequence[float]) -> str:
    """
    >>> _range([0.25, 0.003])
    '3 to 250 ms'
    """
    return f"{min(seconds) * 1e3:.4g} to {max(seconds) * 1e3:.4g} ms"


def to_json(record: Record) -> str:
    """The text of a file, which `from_json` reads back to an equal record."""
    content = {"format": FORMAT, "version": VERSION, "record": _plain(record)}
    return json.dumps(content, indent=1, allow_nan=False) + "\n"


def from_json(text: str, name: str = "the text") -> Record:
    """The record in a text. name: of the file, for the message.

    Raises: Unreadable for what is no JSON, no record, a newer version, or one with a wrong value.
    """
    try:
        content = json.loads(text, object_pairs_hook=_with_infinities)
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
        record = replace(msgspec.convert(content.get("record"), Record))  # with its defaults
    except msgspec.ValidationError as error:
        raise Unreadable(f"{name}: {error}; record it anew rather than repair it") from None
    # msgspec fills in what is missing and passes over what it does not know.
    if other := _differing(content["record"], json.loads(to_json(record))["record"]):
        raise Unreadable(f"{name} has other fields than a record: {other}; record it anew")
    return record


def _differing(given: Any, kept: Any) -> str:
    """The names of fields that only one of two objects has, at any depth."""
    if isinstance(given, dict):
        pairs = [(given[name], kept[name]) for name in given if name in kept]
        names = [repr(name) for name in sorted({*given} ^ {*kept})]
    else:
        pairs = list(zip(given, kept, strict=True)) if isinstance(given, list) else []
        names = []
    return ", ".join([*names, *filter(None, (_differing(*pair) for pair in pairs))])


def _plain(value: Any) -> Any:
    """As `msgspec.to_builtins`, and infinite numbers as texts: msgspec would write null."""
    value = msgspec.to_builtins(value)
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(part) for part in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _with_infinities(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    infinite = {"inf": math.inf, "-inf": -math.inf}
    return {
        name: infinite[value] if name in UNBOUNDED and value in ("inf", "-inf") else value
        for name, value in pairs
    }


def save(record: Record, path: str | os.PathLike) -> None:
    """Write the file whole or not at all."""
    replace_file(Path(path), to_json(record))


def load(path: str | os.PathLike) -> Record:
    """Raises: Unreadable as `from_json`, also for a file that is not there."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Unreadable(f"{path} cannot be read: {error}") from None
    return from_json(text, str(path))
