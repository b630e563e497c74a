"""What to find out next: only what could change the verdict."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from utils.cost.decision.case import Case
from utils.cost.decision.findings import NOTHING, Seen, contradictions
from utils.cost.decision.flips import decided
from utils.cost.decision.judgements import Values
from utils.cost.decision.questions import ANY, KERNELS, QUESTIONS, SHAPES, UNSURE, Answers
from utils.cost.decision.saving import Saving

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
    answers: Answers, saving: Saving | None, found: Seen, values: Values, verdict: str
) -> tuple[Missing, ...]:
    """What could change the verdict, most outcomes first."""

    def other(
        answers: Answers = answers, saving: Saving | None = saving, found: Seen = found
    ) -> str:
        return decided(answers, saving, found, values)

    listed = [_costs(saving, other)]
    if found is NOTHING:
        listed.append(_source(other))
    if answers.capacity == "both" and Case(answers, saving, values, found).only_older:
        listed.append(_generation(answers, other))
    listed += [*_doubted(answers, found, other), *_unsure(answers, other)]
    useful = [
        Missing(what, todo, tuple(sorted(ways - {verdict})))
        for what, todo, ways in listed
        if ways - {verdict}
    ]
    return tuple(sorted(useful, key=lambda each: -len(each.verdicts)))


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
    worst = {other(found=Seen(kernels, shapes)) for kernels in KERNELS for shapes in SHAPES}
    return "an audit of the source", "run utils.audit on the tree that is to run", worst


def _generation(answers: Answers, other: _Verdict) -> _Open:
    newer, none = answers.changed(region=ANY), answers.changed(capacity="GPU only")
    return (
        "the generation promised",
        "ask which generation of Trainium the promise names",
        {other(answers=newer), other(answers=none)},
    )


def _doubted(answers: Answers, found: Seen, other: _Verdict) -> Iterator[_Open]:
    """Answers worse than what the audit found."""
    for doubt in contradictions(answers, found):
        if doubt.field in QUESTIONS and doubt.used == doubt.answered:
            ways = _any_answer(answers, doubt.field, other)
            yield f"the answer on {doubt.field}", "audit the right tree and its packages", ways


def _unsure(answers: Answers, other: _Verdict) -> Iterator[_Open]:
    for name, unsure in UNSURE.items():
        if getattr(answers, name) == unsure:
            ways = _any_answer(answers, name, other)
            yield f"the answer on {name}", QUESTIONS[name].asks, ways


def _any_answer(answers: Answers, name: str, other: _Verdict) -> set[str]:
    return {other(answers=answers.changed(**{name: each})) for each in QUESTIONS[name].allowed}
