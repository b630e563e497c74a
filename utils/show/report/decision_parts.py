"""What the decision rule and the pilot add to a report."""

from utils.cost.checks import check_kind
from utils.cost.decision import QUESTIONS, Decision, Pilot, Saving
from utils.cost.decision.effort import roughly
from utils.cost.decision.flips import Flip
from utils.cost.decision.plan import Step
from utils.cost.decision.questions import Question
from utils.cost.tco.uncertainty import Comparison
from utils.show.report.content import Section
from utils.show.report.wording import label, large, percent, sentence


def check(decision: object, pilot: object) -> None:
    """Raises TypeError unless each is None or what `utils.cost.decision` returns."""
    makes = "what utils.cost.decision.{} returns"
    of_decision = makes.format("decide(answers, audit, comparison)")
    check_kind("decision", decision, Decision | None, of_decision)
    check_kind("pilot", pilot, Pilot | None, makes.format("pilot_of(decision)"))


def sections(decision: Decision | None) -> tuple[Section, ...]:
    """Why, what would change it, and what may still go wrong."""
    if decision is None:
        return ()
    weeks = decision.port_weeks + decision.pilot_weeks
    return (
        Section(
            "Why",
            f"Confidence: {decision.confidence} ({decision.because}). Port and pilot would take an"
            f" estimated {roughly(weeks)} weeks.",
            points=tuple(sentence(item.text) for item in decision.decisive),
            most=4,
        ),
        Section("What would change the verdict", points=_flips(decision), most=3),
        Section(
            "Risks",
            points=tuple(
                f"{sentence(risk.kind + ': ' + risk.text)} What to do: {risk.mitigation}."
                for risk in decision.risks
            ),
            most=3,
        ),
    )


def _flips(decision: Decision) -> tuple[str, ...]:
    """What is measured comes before what is chosen; answers with the same outcome are joined."""
    outcomes: dict[tuple[str, str, str], list[str]] = {}
    for flip in sorted(decision.flips, key=lambda item: isinstance(item.now, str)):
        if flip.field in QUESTIONS:
            row = QUESTIONS[flip.field]
            about, now, to = row.asks, _amount(row, flip.now), _beyond(row, flip)
        else:
            about = "How much does Trainium save, in the middle of the draws?"
            now, to = percent(float(flip.now)), percent(float(flip.to))
        outcomes.setdefault((about, now, flip.verdict), []).append(to)
    return tuple(
        f"{about} Now: {now}. With {' or '.join(to)}: {label(verdict)}."
        for (about, now, verdict), to in outcomes.items()
    ) or ("No single answer, and no other saving, changes the verdict.",)


def _amount(row: Question, value: str | float) -> str:
    if isinstance(value, str):
        return f"“{value}”"
    unit = row.unit.removesuffix("s") if value == 1 and row.whole else row.unit
    return f"{large(value, 4)} {unit}"


def _beyond(row: Question, flip: Flip) -> str:
    """Where it flips, in words; a value hardly beyond the present one is "more than" that."""
    now, to = flip.now, flip.to
    if isinstance(now, str) or isinstance(to, str) or abs(to - now) > 0.01 * abs(now):
        return _amount(row, to)
    return f"{'more' if to > now else 'less'} than {_amount(row, now)}"


def missing(decision: Decision | None) -> tuple[str, ...]:
    """What could change the verdict once it is known."""
    if decision is None:
        return ()
    return tuple(
        sentence(
            f"{item.what}: {item.todo.rstrip('.')}; the verdict could become"
            f" {' or '.join(map(label, item.verdicts))}"
        )
        for item in decision.missing
    )


def warnings(decision: Decision | None, compared: Comparison) -> tuple[str, ...]:
    """Where answers and audit disagree, and whether verdict and costs belong together."""
    if decision is None:
        return ()
    results = [sentence(contradiction.text) for contradiction in decision.contradictions]
    if decision.saving is None:
        results.append("The verdict was reached without these costs.")
    elif compared.scenario.options[compared.a].context.platform != "trainium" or (
        decision.saving != Saving.of(compared)
    ):
        results.append(
            "The verdict was reached with another cost comparison, in which Trainium was cheaper in"
            f" {percent(decision.saving.probability)} of the draws."
        )
    return tuple(results)


def pilot_sections(pilot: Pilot | None) -> tuple[Section, ...]:
    """The steps of the pilot, how far each is, and what ends it."""
    if pilot is None:
        return ()
    states = [pilot.state(step.key) for step in pilot.steps]
    parts = [
        pilot.blocked,
        f"{states.count('done')} of {len(states)} steps are done; all of them take an estimated"
        f" {roughly(pilot.total_weeks)} weeks",
        f"next: {_start(pilot.next)} ({pilot.next.exit})" if pilot.next else "",
    ]
    return (
        Section(
            "The pilot",
            " ".join(sentence(part) for part in parts if part),
            points=tuple(
                f"{item.title} ({state}, {pilot.weeks[item.key]:.1f} weeks). It ends with a number:"
                f" {item.exit}. Stop if {item.stop}."
                for item, state in zip(pilot.steps, states, strict=True)
            ),
            most=0,
        ),
    )


def _start(step: Step) -> str:
    return step.title[0].lower() + step.title[1:]
