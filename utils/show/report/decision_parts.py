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
            points=tuple(sentence(each.text) for each in decision.decisive),
            most=4,
        ),
        Section("What would change the verdict", points=_flips(decision), most=3),
        Section(
            "Risks",
            points=tuple(
                f"{sentence(each.kind + ': ' + each.text)} What to do: {each.mitigation}."
                for each in decision.risks
            ),
            most=3,
        ),
    )


def _flips(decision: Decision) -> tuple[str, ...]:
    """What is measured comes before what is chosen; answers with the same outcome are joined."""
    outcomes: dict[tuple[str, str, str], list[str]] = {}
    for each in sorted(decision.flips, key=lambda each: isinstance(each.now, str)):
        if each.field in QUESTIONS:
            row = QUESTIONS[each.field]
            about, now, to = row.asks, _amount(row, each.now), _beyond(row, each)
        else:
            about = "How much does Trainium save, in the middle of the draws?"
            now, to = percent(float(each.now)), percent(float(each.to))
        outcomes.setdefault((about, now, each.verdict), []).append(to)
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
            f"{each.what}: {each.todo.rstrip('.')}; the verdict could become"
            f" {' or '.join(map(label, each.verdicts))}"
        )
        for each in decision.missing
    )


def warnings(decision: Decision | None, compared: Comparison) -> tuple[str, ...]:
    """Where answers and audit disagree, and whether verdict and costs belong together."""
    if decision is None:
        return ()
    found = [sentence(each.text) for each in decision.contradictions]
    if decision.saving is None:
        found.append("The verdict was reached without these costs.")
    elif compared.scenario.options[compared.a].context.platform != "trainium" or (
        decision.saving != Saving.of(compared)
    ):
        found.append(
            "The verdict was reached with another cost comparison, in which Trainium was cheaper in"
            f" {percent(decision.saving.probability)} of the draws."
        )
    return tuple(found)


def pilot_sections(pilot: Pilot | None) -> tuple[Section, ...]:
    """The steps of the pilot, how far each is, and what ends it."""
    if pilot is None:
        return ()
    states = [pilot.state(each.key) for each in pilot.steps]
    parts = [
        pilot.blocked,
        f"{states.count('done')} of {len(states)} steps are done; all of them take an estimated"
        f" {roughly(pilot.total_weeks)} weeks",
        f"next: {_started(pilot.next)} ({pilot.next.exit})" if pilot.next else "",
    ]
    return (
        Section(
            "The pilot",
            " ".join(sentence(each) for each in parts if each),
            points=tuple(
                f"{each.title} ({state}, {pilot.weeks[each.key]:.1f} weeks). It ends with a number:"
                f" {each.exit}. Stop if {each.stop}."
                for each, state in zip(pilot.steps, states, strict=True)
            ),
            most=0,
        ),
    )


def _started(step: Step) -> str:
    return step.title[0].lower() + step.title[1:]
