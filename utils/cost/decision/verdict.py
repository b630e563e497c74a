"""`decide`: from answers, an audit and a cost comparison to Trainium, GPU, either or neither."""

from dataclasses import dataclass, field

from utils.audit import Report
from utils.cost.checks import check_kind
from utils.cost.decision.effort import pilot_weeks, port_weeks, roughly
from utils.cost.decision.evidence import Evidence, evidence
from utils.cost.decision.findings import (
    NOTHING,
    Contradiction,
    Seen,
    contradictions,
    correct_answers,
    summarise,
)
from utils.cost.decision.flips import Flip, Missing, flips, missing
from utils.cost.decision.judgements import JUDGEMENTS, Values, adjust
from utils.cost.decision.questions import Answers
from utils.cost.decision.rules import GPU, ROWS, TRAINIUM, Case, Outcome, Risk, Row, outcome, risks
from utils.cost.decision.saving import Saving
from utils.cost.tco.uncertainty import Comparison
from utils.facts.tables import markdown

VERDICTS = {
    "trainium": "Trainium: go into the pilot, and let its stop rules end it",
    "gpu": "GPU: do not port now",
    "either": "Either: too little speaks for a move or against it; stay, or take what is free",
    "neither": "Neither: choose no machine now",
}
CONFIDENCES = ("low", "moderate", "high")
WORK = ("task", "architecture", "framework", "kernels", "shapes")
"""Answers that describe the work; the others are about time, people, places and money."""


@dataclass(frozen=True)
class Reason:
    """A row of the rule that holds: its words for this case, what it speaks for, and its sources.

    speaks: such as "closes trainium", "+2", "at most either". decides: whether the verdict
    would be another without it.
    """

    rule: str
    stage: str
    speaks: str
    text: str
    sources: tuple[Evidence, ...]
    decides: bool


@dataclass(frozen=True, repr=False)
class Decision:
    """A verdict and all that stands behind it.

    verdict: one of `VERDICTS`. confidence: one of `CONFIDENCES`, and `because` says why. reasons:
    in the order of the table. flips, risks, missing: see their classes. answers: as given; used: as
    the audit leaves them. votes: those of money and preferences, for Trainium if positive.
    port_weeks, pilot_weeks: estimated, by the calendar.
    """

    verdict: str
    confidence: str
    because: str
    reasons: tuple[Reason, ...]
    contradictions: tuple[Contradiction, ...]
    flips: tuple[Flip, ...]
    risks: tuple[Risk, ...]
    missing: tuple[Missing, ...]
    votes: int
    port_weeks: float
    pilot_weeks: float
    answers: Answers
    used: Answers
    saving: Saving | None
    audited: Seen = field(default=NOTHING)

    @property
    def headline(self) -> str:
        """The verdict as a sentence."""
        return VERDICTS[self.verdict]

    @property
    def decisive(self) -> tuple[Reason, ...]:
        """The reasons without which the verdict would be another; where several would do alone,
        those that speak for it. Neither, for want of a GPU, names what speaks against Trainium too.
        """
        sign = {"trainium": "+", "gpu": "-"}.get(self.verdict, ("+", "-"))
        closed = {reason.speaks for reason in self.reasons if reason.stage == "veto"}
        if self.verdict == "neither" and "closes both" not in closed:
            against = ("closes",) if "closes trainium" in closed else ("closes", "-")
            return tuple(reason for reason in self.reasons if reason.speaks.startswith(against))
        return (
            tuple(reason for reason in self.reasons if reason.decides)
            or tuple(reason for reason in self.reasons if reason.stage == "veto")
            or tuple(reason for reason in self.reasons if reason.speaks.startswith(sign))
        )

    def __repr__(self) -> str:
        """Verdict, decisive reasons, three flips and what to find out."""
        lines = [
            f"{self.headline} (confidence: {self.confidence}; {self.because})",
            *(f"  because {reason.text} [{reason.speaks}]" for reason in self.decisive),
            *(f"  but: {doubt.text}" for doubt in self.contradictions),
        ]
        if self.flips:
            lines.append(f"  flips: {'; '.join(flip.text for flip in _first(self.flips))}")
        if self.missing:
            lines.append(f"  find out: {'; '.join(gap.what for gap in self.missing)}")
        return "\n".join(lines)

    def _repr_markdown_(self) -> str:
        """All reasons with their sources, all flips and risks, as tables."""
        weeks = roughly(self.port_weeks + self.pilot_weeks)
        reasons = [
            (
                f"**{reason.rule}**" if reason.decides else reason.rule,
                reason.speaks,
                reason.text,
                "; ".join(_with_links(source) for source in reason.sources),
            )
            for reason in self.reasons
        ]
        parts = [
            f"**{self.headline}**",
            f"Confidence: {self.confidence}; {self.because}. Port and pilot: about"
            f" {weeks} weeks (estimate).",
            *(f"- Contradiction: {doubt.text}" for doubt in self.contradictions),
            markdown(("rule", "speaks", "reason", "sources"), reasons),
        ]
        if self.flips:
            changes = [
                (flip.field, flip.render(flip.now), flip.render(flip.to), flip.verdict)
                for flip in self.flips
            ]
            parts.append(markdown(("what would flip it", "now", "to", "verdict"), changes))
        if self.missing:
            gaps = [(gap.what, gap.todo, ", ".join(gap.verdicts)) for gap in self.missing]
            parts.append(markdown(("to find out", "how", "could become"), gaps))
        listed = [
            (risk.kind, risk.text, risk.mitigation, _with_links(risk.source)) for risk in self.risks
        ]
        parts.append(markdown(("risk", "what", "what to do", "source"), listed))
        return "\n\n".join(parts)


def _first(flips: tuple[Flip, ...]) -> list[Flip]:
    """Of three fields the first flip each: what can be acted on comes before what the work is."""
    first = {flip.field: flip for flip in reversed(flips)}
    order = dict.fromkeys((*(flip.field for flip in flips if flip.field not in WORK), *first))
    return [first[name] for name in order][:3]


def _with_links(source: Evidence) -> str:
    return f"[{source.short}]({source.address})" if source.address else source.short


def decide(
    answers: Answers,
    audit: Report | None = None,
    comparison: Saving | Comparison | None = None,
    judgements: Values | None = None,
) -> Decision:
    """Apply the rule.

    Args:
        answers: the questionnaire.
        audit: of the source tree that is to run; what it finds overrules answers that are better.
        comparison: of the cost model, with Trainium as its first option; or a `Saving`.
        judgements: `adjust(...)` with other thresholds than ours.

    Raises:
        TypeError, ValueError: for an audit or a comparison that is none, or judgements that are not
            whole; answers check themselves.
    """
    check_kind("answers", answers, Answers, "Answers(...)")
    values = adjust() if judgements is None else judgements
    if lacking := [name for name in JUDGEMENTS if name not in values]:
        raise ValueError(f"judgements: {lacking[0]!r} is missing; allowed: adjust(...), or None")
    match_ = summarise(audit, values)
    saving = None if comparison is None else Saving.of(comparison)
    case = Case(correct_answers(answers, match_), saving, values, match_)
    result = outcome(case)
    confidence, because = _confidence(case, result)
    return Decision(
        verdict=result.verdict,
        confidence=confidence,
        because=because,
        reasons=tuple(_reason(row, case, result) for row in result.rows),
        contradictions=contradictions(answers, match_),
        flips=flips(answers, saving, match_, values),
        risks=risks(case, result.verdict),
        missing=missing(answers, saving, match_, values, result.verdict),
        votes=result.votes,
        port_weeks=port_weeks(case.answers, values, match_),
        pilot_weeks=pilot_weeks(),
        answers=answers,
        used=case.answers,
        saving=saving,
        audited=match_,
    )


def _reason(row: Row, case: Case, result: Outcome) -> Reason:
    without = outcome(case, tuple(item for item in ROWS if item is not row))
    return Reason(
        row.name,
        row.stage,
        row.speaks,
        row.reason(case),
        tuple(map(evidence, row.sources)),
        without.verdict != result.verdict,
    )


def _confidence(case: Case, result: Outcome) -> tuple[str, str]:
    """How sure the verdict is, in a word, and why."""
    against = [row for row in result.rows if TRAINIUM in row.closes]
    if against and any(not row.judged for row in against):
        return "high", "a veto that rests on a fact or on your answer, not on an estimate"
    if against:
        return "moderate", "the veto rests on an estimate of ours: see the judgement it names"
    if GPU not in result.open:
        why = "only Trainium can be had: it was not chosen, it is left"
        if result.verdict == "neither":
            why = "only Trainium can be had, and the votes speak against it"
        return "moderate", why
    if case.saving is None:
        return "low", "no cost comparison: only preferences were weighed"
    if result.verdict == "either" and result.votes >= case.values["lead"]:
        held = " and ".join(f"'{row.name}'" for row in result.rows if row.holds_back)
        return "moderate", f"the votes are for Trainium, held back by {held}"
    if result.verdict == "either":
        return "moderate", "the costs were compared, and neither money nor preferences lead"
    far = abs(result.votes) >= 2 * case.values["lead"]
    if far and case.audited.files and not case.audited.unread:
        return "high", "money and preferences have a wide lead together, and the source was audited"
    if far:
        return "moderate", "a wide lead, but the source was not audited as a whole"
    return "moderate", "a lead of few votes: see what would flip it"
