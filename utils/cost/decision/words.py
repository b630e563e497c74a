"""A decision as text and as Markdown."""

from utils.cost.decision.effort import roughly
from utils.cost.decision.evidence import Evidence
from utils.cost.decision.flips import Flip
from utils.cost.decision.rule import Decision
from utils.facts.tables import markdown as table

WORK = ("task", "architecture", "framework", "kernels", "shapes")
"""Answers that describe the work; the others are about time, people, places and money."""


def plain(decision: Decision) -> str:
    """Verdict, decisive reasons, three flips and what to find out."""
    lines = [
        f"{decision.headline} (confidence: {decision.confidence}; {decision.because})",
        *(f"  because {each.text} [{each.speaks}]" for each in decision.decisive),
        *(f"  but: {each.text}" for each in decision.contradictions),
    ]
    if decision.flips:
        lines.append(f"  flips: {'; '.join(each.text for each in _first(decision.flips))}")
    if decision.missing:
        lines.append(f"  find out: {'; '.join(each.what for each in decision.missing)}")
    return "\n".join(lines)


def _first(flips: tuple[Flip, ...]) -> list[Flip]:
    """Of three fields the first flip each: what can be acted on comes before what the work is."""
    first = {each.field: each for each in reversed(flips)}
    order = dict.fromkeys((*(each.field for each in flips if each.field not in WORK), *first))
    return [first[name] for name in order][:3]


def markdown(decision: Decision) -> str:
    """All reasons with their sources, all flips and risks, as tables."""
    weeks = roughly(decision.port_weeks + decision.pilot_weeks)
    parts = [
        f"**{decision.headline}**",
        f"Confidence: {decision.confidence}; {decision.because}. Port and pilot: about"
        f" {weeks} weeks (estimate).",
        *(f"- Contradiction: {each.text}" for each in decision.contradictions),
        table(
            ("rule", "speaks", "reason", "sources"),
            [
                (
                    f"**{each.rule}**" if each.decides else each.rule,
                    each.speaks,
                    each.text,
                    "; ".join(_linked(source) for source in each.sources),
                )
                for each in decision.reasons
            ],
        ),
    ]
    if decision.flips:
        rows = [
            (each.field, each.said(each.now), each.said(each.to), each.verdict)
            for each in decision.flips
        ]
        parts.append(table(("what would flip it", "now", "to", "verdict"), rows))
    if decision.missing:
        rows = [(each.what, each.todo, ", ".join(each.verdicts)) for each in decision.missing]
        parts.append(table(("to find out", "how", "could become"), rows))
    rows = [
        (each.kind, each.text, each.mitigation, _linked(each.source)) for each in decision.risks
    ]
    parts.append(table(("risk", "what", "what to do", "source"), rows))
    return "\n\n".join(parts)


def _linked(source: Evidence) -> str:
    return f"[{source.short}]({source.address})" if source.address else source.short


def counted(number: float, unit: str) -> str:
    """A number with its unit, which loses its s beside a one.

    >>> counted(1, "years"), counted(20_000, "votes"), counted(0.9, "of the draws")
    ('1 year', '20,000 votes', '0.9 of the draws')
    """
    return f"{number:,.6g} {unit.removesuffix('s') if number == 1 else unit}"
