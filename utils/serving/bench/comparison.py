"""Is a program faster than it was? Two records, a test, and what the test takes for granted.

The times of one process are not independent: one slow call comes with another, and a process has
its own luck with memory and cores from its start to its end. So the unit of the test is a round, a
process of its own, whose median (or another percentile) is one number. With fewer than `ROUNDS` of
them the unit is a block of calls, longer than times remember each other; that says nothing of
another process. scipy.stats is imported late: it takes a second to load.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from utils.serving.bench.environment import Environment
from utils.serving.bench.quantiles import percentile
from utils.serving.bench.records import Record, Setting

ROUNDS = 5
"""From so many rounds in both records the round is the unit: fewer than 4 and 4 could not reach a p
value below 0.05, whatever they say."""

BLOCKS = 8
"""From so many blocks in both records there may be a verdict."""

LENGTHS = 3
"""A block is so many times as long as times remember each other, else its neighbour still knows
something of it. With 3, in simulations of correlated times of one and the same program, 6 to 8 of
100 pairs are called different at a level of 5; with 1 it is 13, and with single calls 40."""

ALPHA = 0.05
"""So often two runs of one program are called different if their units are independent."""

SEED, RESAMPLES = 0, 2000
Rounds = Sequence[Sequence[float]]
ROUND = "a round"
FASTER, SLOWER, NOT_SHOWN = "faster", "slower", "no difference shown"
_SAME = ("kind", "device", "machine", "cpu", "cores", "threads")
_DRIFT = 0.01


class Unlike(ValueError):
    """Two records that must not be compared: what differs, before and after."""


@dataclass(frozen=True)
class Comparison:
    """What `compare` found.

    before_s, after_s: medians over the units, in seconds. p: the percentile that stands for a unit.
    ratio: after over before, below 1 is faster; low, high: its 95 % interval.
    p_value: of the Mann-Whitney test that neither tends to be larger.
    verdict: "faster", "slower" or "no difference shown".
    unit, units: what one number of the test is, and how many there were before and after.
    notes: what speaks against relying on it. changed: versions, variables and revision that
        differ, with what they were and are.
    """

    before_s: float
    after_s: float
    ratio: float
    low: float
    high: float
    p_value: float
    verdict: str
    unit: str
    units: tuple[int, int]
    notes: tuple[str, ...]
    changed: dict[str, tuple[str, str]]
    p: float = 50.0

    def __str__(self) -> str:
        name = "median" if self.p == 50 else f"p{self.p:g}"
        lines = [
            f"{self.verdict}: {self.before_s * 1e3:.4g} ms before, {self.after_s * 1e3:.4g} ms"
            f" after, ratio {self.ratio:.3f} (95 % interval {self.low:.3f} to {self.high:.3f}),"
            f" p = {self.p_value:.2g}",
            f"one number of the test is the {name} of {self.unit}:"
            f" {self.units[0]} before, {self.units[1]} after",
            *self.notes,
        ]
        if self.unit != ROUND:
            lines.append(
                "the luck of a process is not in this test: two runs of one program can differ by"
                f" it; measure {ROUNDS} rounds"
            )
        if self.verdict != NOT_SHOWN:
            lines.append(
                "what else the machine did in one of the two runs looks the same: repeat both, in"
                " turns, before you believe it"
            )
        lines += [f"{name}: {was} before, {now} after" for name, (was, now) in self.changed.items()]
        return "\n".join(lines)


def compare(before: Record, after: Record, p: float = 50.0) -> Comparison:
    """Compare the warm times of two records of the same thing.

    Args:
        p: the percentile that is compared. One other than 50 needs `ROUNDS` rounds: a block is too
            short to have a tail.

    Raises: Unlike if they measure different things, with different settings, or on different
    machines. Versions, variables and revision may differ, and are reported: that is what one
    compares. ValueError for a percentile that these records do not have.

    A verdict needs both a p value below `ALPHA` and an interval without 1. The Mann-Whitney test
    takes the units for independent and, for an interval of the ratio, both distributions for the
    same but for a factor. The interval is a bootstrap of the units with a fixed seed. Neither knows
    what else the machine did between the two runs: repeat both, in turns, before you believe it.
    """
    from scipy import stats

    check_alike(before, after.what, after.settings, after.environment)
    unit, units = samples_of(before.rounds, after.rounds, p)
    notes = () if unit == ROUND else _doubts(units, (before.rounds, after.rounds))
    if not min(map(len, units)):
        raise Unlike(
            f"one record is shorter than {unit}, which is how long its times remember each other:"
            f" measure more calls, or {ROUNDS} rounds"
        )
    p_value = float(stats.mannwhitneyu(*units, alternative="two-sided").pvalue)
    low, high = ratio_interval(*units)
    ratio = float(np.median(units[1]) / np.median(units[0]))
    cautions = {"before": before.environment.caution, "after": after.environment.caution}
    shown = p_value < ALPHA and not low <= 1 <= high and not notes
    return Comparison(
        before_s=float(np.median(units[0])),
        after_s=float(np.median(units[1])),
        ratio=ratio,
        low=low,
        high=high,
        p_value=p_value,
        verdict=(FASTER if ratio < 1 else SLOWER) if shown else NOT_SHOWN,
        unit=unit,
        units=(len(units[0]), len(units[1])),
        notes=(*notes, *(f"{name}: {text}" for name, text in cautions.items() if text)),
        changed=_changed(before, after),
        p=p,
    )


def samples_of(
    before: Rounds, after: Rounds, p: float = 50.0
) -> tuple[str, tuple[np.ndarray, np.ndarray]]:
    """The numbers that are tested, in seconds, and what one of them is the p-th percentile of."""
    every = (*before, *after)
    check_percentile(p, min(len(before), len(after)), min(map(len, every)))
    if min(len(before), len(after)) >= ROUNDS:
        first, second = (np.array([percentile(calls, p) for calls in r]) for r in (before, after))
        return ROUND, (first, second)
    calls = max(map(memory, every))
    length = LENGTHS * calls if calls > 1 else 1
    unit = "a block of 1 call" if length == 1 else f"a block of {length} calls"
    return unit, (blocks(before, length), blocks(after, length))


def memory(seconds: Sequence[float]) -> int:
    """Over how many calls the times of one process remember each other.

    It is the integrated autocorrelation time of their ranks (a single slow call then weighs no more
    than another), 1 + 2 (r1 + r2 + ...), up to the first correlation that is not above what
    independent times show by chance, rounded up; 1 for independent times.

    >>> memory([1.0, 3.0, 2.0, 4.0, 1.5, 3.5, 2.5, 1.2])
    1
    """
    from scipy.stats import rankdata

    count = len(seconds)
    ranks = rankdata(seconds) - (count + 1) / 2
    power = float(ranks @ ranks)
    if count < 4 or power == 0:
        return 1
    total, chance = 0.0, 2 / math.sqrt(count)
    for lag in range(1, count // 2):
        correlation = float(ranks[:-lag] @ ranks[lag:]) / power
        if correlation <= chance:
            break
        total += correlation
    return math.ceil(1 + 2 * total)


def blocks(rounds: Rounds, length: int) -> np.ndarray:
    """The medians of blocks of `length` calls, within each round; a rest at its start is left out.

    >>> blocks([[9, 1, 2, 3, 4]], 2)
    array([1.5, 3.5])
    """
    results = [
        np.median(np.reshape(item[len(item) % length :], (-1, length)), axis=1)
        for item in map(np.asarray, rounds)
        if len(item) >= length
    ]
    return np.concatenate(results) if results else np.array([])


def ratio_interval(
    before: np.ndarray, after: np.ndarray, level: float = 0.95
) -> tuple[float, float]:
    """Of the ratio of the medians, after over before: a percentile bootstrap with a fixed seed."""
    from scipy import stats

    # scipy resamples two values or more; of one alone, all resamples are the same.
    samples = [np.repeat(values, 2) if len(values) == 1 else values for values in (before, after)]
    interval = stats.bootstrap(
        samples,
        lambda before, after, axis: np.median(after, axis=axis) / np.median(before, axis=axis),
        confidence_level=level,
        n_resamples=RESAMPLES,
        method="percentile",
        rng=np.random.default_rng(SEED),
    ).confidence_interval
    return float(interval.low), float(interval.high)


def check_percentile(p: float, rounds: int, calls: int) -> None:
    """Raise ValueError unless rounds of so many calls can be compared by their p-th percentile.

    rounds, calls: of the record that has fewer.

    >>> check_percentile(99, rounds=5, calls=50)
    Traceback (most recent call last):
    ValueError: a round of 50 calls says nothing of p99: measure 100 calls or more in each
    """
    if not 0 < p < 100:
        raise ValueError(f"p{p:g} cannot be compared: give a percentile above 0 and below 100")
    if p != 50 and rounds < ROUNDS:
        raise ValueError(
            f"p{p:g} can be compared between rounds only: measure at least {ROUNDS} in both records"
            f", one has {rounds}; or compare medians"
        )
    needed = math.ceil(round(100 / min(p, 100 - p), 6))
    if p != 50 and calls < needed:
        raise ValueError(
            f"a round of {calls} calls says nothing of p{p:g}: measure {needed} calls or more in"
            " each"
        )


def check_alike(
    before: Record,
    what: str,
    settings: Mapping[str, Setting],
    environment: Environment | None = None,
) -> None:
    """Raise Unlike, with all that differs, unless a measurement may be compared with `before`.

    environment: None while it is not known yet.
    """
    pairs: dict[str, tuple[object, object]] = {"what": (before.what, what)}
    for name in sorted({*before.settings, *settings}):
        pairs[f"setting {name}"] = (before.settings.get(name), settings.get(name))
    if environment:
        for name in _SAME:
            pairs[name] = (getattr(before.environment, name), getattr(environment, name))
    if other := [f"{name} {a!r} and {b!r}" for name, (a, b) in pairs.items() if a != b]:
        raise Unlike(
            f"these records cannot be compared: {'; '.join(other)}. Measure both with the same"
            " settings on the same machine"
        )


def _doubts(units: Sequence[np.ndarray], series: tuple[Rounds, Rounds]) -> tuple[str, ...]:
    """What forbids a verdict where the unit is a block."""
    from scipy.stats import spearmanr

    results = []
    if (least := min(map(len, units))) < BLOCKS:
        results.append(
            f"only {least} independent blocks in one record, {BLOCKS} are needed: measure more"
            " calls"
        )
    for name, rounds in zip(("before", "after"), series, strict=True):
        drifts = [
            spearmanr(range(len(item)), item).pvalue < _DRIFT and memory(item) > 1
            for item in rounds
            if len(set(item)) > 1
        ]
        if any(drifts):
            results.append(
                f"the times {name} drift from the first call to the last: warm up longer, or"
                f" measure {ROUNDS} rounds"
            )
    return tuple(results)


def _changed(before: Record, after: Record) -> dict[str, tuple[str, str]]:
    was, now = before.environment, after.environment
    pairs = {
        name: (a.get(name, "none"), b.get(name, "none"))
        for a, b in ((was.versions, now.versions), (was.variables, now.variables))
        for name in (*a, *b)
    }
    pairs["system"] = (was.system, now.system)
    pairs["revision"] = (was.revision or "none", now.revision or "none")
    return {name: (a, b) for name, (a, b) in pairs.items() if a != b}
