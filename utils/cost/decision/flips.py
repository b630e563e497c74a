"""What would change the verdict, found by deciding again: every answer changed alone, another
saving, and what is not known yet.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from utils.cost.decision.findings import NOTHING, Seen, contradictions, correct_answers
from utils.cost.decision.judgements import Values
from utils.cost.decision.questions import (
    ANY,
    KERNELS,
    QUESTIONS,
    SHAPES,
    UNSURE,
    AnswerError,
    Answers,
)
from utils.cost.decision.rules import Case, outcome
from utils.cost.decision.saving import Saving

MONEY = "saving"
_STEPS = 90


@dataclass(frozen=True)
class Flip:
    """One input which, changed alone, changes the verdict.

    field: of the questionnaire, or "saving": the middle saving, with its interval moved along and
    its probability following. now, to: the value and the nearest one that was found to change the
    verdict; between it and the present value the verdict stays.
    """

    field: str
    now: str | float
    to: str | float
    verdict: str

    @property
    def text(self) -> str:
        """
        >>> Flip("deadline_weeks", 26, 6.5, "gpu").text
        'deadline_weeks 26 -> 6.5: gpu'
        """
        return f"{self.field} {self.render(self.now)} -> {self.render(self.to)}: {self.verdict}"

    def render(self, value: str | float) -> str:
        """A value of this field, in words: savings in per cent."""
        if isinstance(value, str):
            return repr(value)
        return f"{value:.1%}" if self.field == MONEY else f"{value:,.10g}"


def verdict_for(answers: Answers, saving: Saving | None, result: Seen, values: Values) -> str:
    """The verdict alone."""
    return outcome(Case(correct_answers(answers, result), saving, values, result)).verdict


def flips(
    answers: Answers, saving: Saving | None, result: Seen, values: Values
) -> tuple[Flip, ...]:
    """Every single change of an answer that changes the verdict, then that of the saving.

    A volume is changed with the saving as it is: the comparison would have to be made again.
    """
    verdict = verdict_for(answers, saving, result, values)
    listed = []
    for name, value in answers.others():
        other = verdict_for(answers.changed(**{name: value}), saving, result, values)
        if other != verdict:
            listed.append(Flip(name, getattr(answers, name), value, other))
    for name, row in QUESTIONS.items():
        if not row.allowed:

            def at(value: float, name: str = name) -> str | None:
                try:
                    other = answers.changed(**{name: value})
                except AnswerError:
                    return None
                return verdict_for(other, saving, result, values)

            now = getattr(answers, name)
            points = _whole(row.high) if row.whole else _spread(row.low, row.high)
            for to, other in _nearest(at, now, verdict, points, row.whole):
                listed.append(Flip(name, now, to, other))
    order = list(QUESTIONS)
    listed.sort(key=lambda item: order.index(item.field))
    if saving is not None:
        listed += money_flips(answers, saving, result, values)
    return tuple(listed)


def money_flips(answers: Answers, saving: Saving, result: Seen, values: Values) -> Iterator[Flip]:
    """The middle savings next to the present one at which the verdict changes."""

    def at(by: float) -> str | None:
        try:
            moved = saving.moved(by)
        except ValueError:  # no comparison could give it
            return None
        return verdict_for(answers, moved, result, values)

    room = 1 - saving.high  # nothing saves more than the whole
    points = [*(room * step / 400 for step in range(1, 401)), *(-step / 100 for step in range(201))]
    for by, other in _nearest(at, 0.0, verdict_for(answers, saving, result, values), points, False):
        yield Flip(MONEY, saving.middle, saving.middle + by, other)


def _spread(low: float, high: float) -> list[float]:
    """From low to high, evenly in the logarithm."""
    least = max(low, 1e-1)
    ratio = math.log(high / least) / _STEPS
    return sorted({low, *(min(high, least * math.exp(ratio * step)) for step in range(_STEPS + 1))})


def _whole(high: float) -> list[float]:
    return [*range(21), *(item for item in (50, 100, 1000) if item <= high)]


def _nearest(
    at: Callable[[float], str | None],
    now: float,
    verdict: str,
    points: Iterable[float],
    whole: bool,
) -> Iterator[tuple[float, str]]:
    """The nearest value below and above at which the verdict is another, and that verdict."""
    ordered = sorted(points)
    below = [item for item in reversed(ordered) if item < now]
    for side in (below, [item for item in ordered if item > now]):
        inner = now
        for outer in side:
            other = at(outer)
            if other is not None and other != verdict:
                yield (outer, other) if whole else _between(at, inner, outer, verdict)
                break
            if other is not None:
                inner = outer


def _between(
    at: Callable[[float], str | None], inner: float, outer: float, verdict: str
) -> tuple[float, str]:
    """The edge between a value with the verdict and one with another, just beyond it."""
    for _ in range(40):
        middle = (inner + outer) / 2
        other = at(middle)
        if other is None or other == verdict:
            inner = middle
        else:
            outer = middle
    for digits in range(2, 8):  # the shortest number that is still beyond the edge
        for nudge in (0, -1, 1):
            size = 10.0 ** (math.floor(math.log10(abs(outer))) - digits + 1) if outer else 1.0
            near = float(f"{outer + nudge * size:.{digits}g}")
            between = min(inner, outer) <= near <= max(inner, outer)
            beyond = near >= outer if outer > inner else near <= outer
            close = abs(near - outer) <= 0.02 * abs(outer)
            if (between or (beyond and close)) and at(near) not in (verdict, None):
                return near, str(at(near))
    return outer, str(at(outer))


_FOR = Saving(0.2, 0.3, 0.4, 0.99, 1e9)
_AGAINST = Saving(-0.4, -0.3, -0.2, 0.01, -1e9)
_Verdict = Callable[..., str]
"""The verdict with other answers, another saving, or other findings of an audit."""
_Open = tuple[str, str, set[str]]
"""What is not known, what to do about it, and the verdicts to which it might lead."""


@dataclass(frozen=True)
class Missing:
    """An answer or a measurement that could change the verdict, and to what."""

    what: str
    todo: str
    verdicts: tuple[str, ...]


def missing(
    answers: Answers, saving: Saving | None, result: Seen, values: Values, verdict: str
) -> tuple[Missing, ...]:
    """What could change the verdict, most outcomes first."""

    def other(
        answers: Answers = answers, saving: Saving | None = saving, result: Seen = result
    ) -> str:
        return verdict_for(answers, saving, result, values)

    listed = [_costs(saving, other)]
    if result is NOTHING:
        listed.append(_source(other))
    if answers.capacity == "both" and Case(answers, saving, values, result).only_older:
        listed.append(_generation(answers, other))
    listed += [*_doubtful(answers, result, other), *_unsure(answers, other)]
    useful = [
        Missing(what, todo, tuple(sorted(ways - {verdict})))
        for what, todo, ways in listed
        if ways - {verdict}
    ]
    return tuple(sorted(useful, key=lambda item: -len(item.verdicts)))


def _costs(saving: Saving | None, other: _Verdict) -> _Open:
    if saving is None:
        return (
            "a cost comparison",
            "compare the costs of both options, with ranges",
            {other(saving=_FOR), other(saving=_AGAINST)},
        )
    # Nothing saves more than the whole: the upper end is as far as the interval can move along.
    ends = (saving.low, min(saving.high, saving.middle + 1 - saving.high))
    return (
        "throughput on both machines",
        f"measure it: the saving may lie from {saving.low:.0%} to {saving.high:.0%}",
        {other(saving=saving.moved(end - saving.middle)) for end in ends},
    )


def _source(other: _Verdict) -> _Open:
    worst = {other(result=Seen(kernels, shapes)) for kernels in KERNELS for shapes in SHAPES}
    return "an audit of the source", "run utils.audit on the tree that is to run", worst


def _generation(answers: Answers, other: _Verdict) -> _Open:
    newer, none = answers.changed(region=ANY), answers.changed(capacity="GPU only")
    return (
        "the generation promised",
        "ask which generation of Trainium the promise names",
        {other(answers=newer), other(answers=none)},
    )


def _doubtful(answers: Answers, result: Seen, other: _Verdict) -> Iterator[_Open]:
    """Answers worse than what the audit found."""
    for doubt in contradictions(answers, result):
        if doubt.field in QUESTIONS and doubt.used == doubt.answered:
            ways = _any_answer(answers, doubt.field, other)
            yield f"the answer on {doubt.field}", "audit the right tree and its packages", ways


def _unsure(answers: Answers, other: _Verdict) -> Iterator[_Open]:
    for name, unsure in UNSURE.items():
        if getattr(answers, name) == unsure:
            ways = _any_answer(answers, name, other)
            yield f"the answer on {name}", QUESTIONS[name].asks, ways


def _any_answer(answers: Answers, name: str, other: _Verdict) -> set[str]:
    return {other(answers=answers.changed(**{name: item})) for item in QUESTIONS[name].allowed}
