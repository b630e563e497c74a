"""A scenario, and what was decided about it, made into the content of a report."""

import datetime
import re
from collections.abc import Mapping, Sequence

from utils.cost.decision import Decision, Pilot, adjust
from utils.cost.tco.comparison import Warned, warnings
from utils.cost.tco.cost import LINES
from utils.cost.tco.scenario import Scenario
from utils.cost.tco.uncertainty import DRAWS, Comparison, compare, tornado
from utils.show.report import decision_parts, estimates
from utils.show.report.content import Line, Report
from utils.show.report.wording import (
    PER,
    PURCHASES,
    against,
    label,
    money,
    name_of,
    percent,
    sentence,
)

CLAIM = "vendor claim"


def report(
    scenario: Scenario,
    decision: Decision | None = None,
    pilot: Pilot | None = None,
    today: datetime.date | None = None,
    a: str | None = None,
    b: str | None = None,
    draws: int = DRAWS,
) -> Report:
    """The report on a scenario.

    Args:
        decision: what `utils.cost.decision.decide` returned for this work, if it was asked.
        pilot: what `utils.cost.decision.pilot_of` returned, if a pilot is planned.
        today: date of the report, by which prices are judged old; the present day if not given.
        a, b: the options to compare; the first two if not given. draws: from the ranges.

    Raises:
        InputError: for options that there are not. TypeError: for a decision or a pilot that is
            none.

    >>> from utils.cost.tco import scenario
    >>> report(scenario("lora-13b"), today=datetime.date(2026, 11, 20)).name
    'report-lora-13b-2026-11-20'
    """
    decision_parts.check(decision, pilot)
    today = today or datetime.date.today()
    compared = compare(scenario, a, b, draws)
    pair = (compared.a, compared.b)
    swings = tornado(scenario, *pair)
    verdict, headline = verdict_of(compared)
    question = (
        f"Does {label(pair[0], article=True)} cost less than {label(pair[1], article=True)} for"
        " this work?"
    )
    if decision is not None:
        question = "On which machine should this work run?"
        verdict, headline = decision.verdict, f"{decision.headline}."
    given = [estimates.describe(scenario, *input_) for input_ in scenario.inputs.items()]
    return Report(
        name=f"report-{slug(scenario.name)}-{today}",
        title=scenario.title,
        about=scenario.about,
        date=today,
        currency=scenario.currency,
        per=PER[scenario.kind],
        verdict=verdict,
        headline=headline,
        question=question,
        answer=answer(compared),
        costs=estimates.costs(compared),
        decides=estimates.decides(compared, swings),
        break_evens=estimates.break_evens(compared, swings),
        measure=(*estimates.measure(compared), *decision_parts.missing(decision)),
        warnings=(
            *decision_parts.warnings(decision, compared),
            *cautions(warnings(scenario, *pair, today), *pair),
        ),
        decided=decision_parts.sections(decision),
        pilot=decision_parts.pilot_sections(pilot),
        lines=estimates.lines(compared),
        amounts=tuple(
            Line(option, name, float(amount), LINES[name])
            for option in pair
            for name, amount in compared.best[option].lines.items()
        ),
        given=tuple(sorted(given, key=lambda item: not item.shared)),
        method="All costs are estimates of a model: neither offers nor measurements. Each input"
        " has a best guess and a range that is believed to hold it in nearly all cases. Intervals"
        f" and probabilities come from {draws:,} draws from {compared.shape} distributions over"
        " these ranges, each input independent of the others. What the model leaves out is in none"
        " of them.",
        figures=estimates.pictures(compared, swings),
    )


def verdict_of(compared: Comparison) -> tuple[str, str]:
    """What the costs alone say, with the thresholds of the decision rule."""
    values = adjust()
    clear, leaning = values["clear_probability"], values["leaning_probability"]
    first, second = label(compared.a, article=True), label(compared.b, article=True)
    p = compared.probability
    if p >= clear:
        return "yes", f"Yes: {first} costs less, by these estimates."
    if p <= 1 - clear:
        return "no", f"No: {second} costs less, by these estimates."
    if p >= leaning:
        return "open", f"Probably: {first} seems to cost less, but that is not sure."
    if p <= 1 - leaning:
        return "open", f"Probably not: {second} seems to cost less, but that is not sure."
    return "open", "Not known: what is known today does not say which costs less."


def answer(compared: Comparison) -> str:
    """One sentence with the saving, its interval and its probability."""
    scenario = compared.scenario
    a, b = compared.a, compared.b
    first, second = label(a, article=True), label(b, article=True)
    amounts = [money(float(compared.best[o].total), scenario.currency) for o in (a, b)]
    saving = against(compared.saving)
    low, high = (against(item) for item in compared.interval())
    p = compared.probability
    cheaper = "none" if p == 0 else "all" if p == 1 else percent(p)
    than = "as" if saving == "the same" or saving.endswith("much") else "than"
    text = (
        f"{first} costs an estimated {saving} {than} {second} ({amounts[0]} against {amounts[1]} a"
        f" {PER[scenario.kind]}); nine draws of ten from the believed ranges lie between {low} and"
        f" {high}, and {first} is cheaper in {cheaper} of them{behind(compared)}."
    )
    return text[0].upper() + text[1:]


def behind(compared: Comparison) -> str:
    """The chips on which the MFU of either option was measured, if any is known."""
    known = [
        f"that of {label(option, article=True)} on {item.chip}"
        for option in (compared.a, compared.b)
        if (item := compared.scenario.inputs_of(option).get("mfu")) and item.chip
    ]
    return f"; the MFU was measured by others, {' and '.join(known)}" if known else ""


def cautions(result: Sequence[Warned], a: str, b: str) -> tuple[str, ...]:
    """Warnings as sentences: what holds for both options is said once, claims of vendors are
    listed in one, and options have the names that a reader knows.

    >>> cautions([Warned("price", "the price of gpu is old"), Warned("price", "the price of tpu is"
    ...     " old"), Warned("date", "gpu is of May")], "gpu", "tpu")
    ('The price of either option is old.', 'The GPU is of May.')
    """
    claimed = [name_of(path) for item in result if item.kind == CLAIM for path in item.paths]
    claimed = [name if ":" in name else name[0].lower() + name[1:] for name in claimed]
    texts = [item.text for item in result if item.kind != CLAIM]
    swapped = {_with(text, {a: b, b: a}) for text in texts}
    either = {a: "either option", b: "either option"}
    known = {**PURCHASES, **{option: label(option, article=True) for option in (a, b)}}
    message = [_with(text, either if text in swapped else known) for text in texts]
    if claimed:
        message.append("Said by a vendor, not measured: " + "; ".join(claimed))
    return tuple(dict.fromkeys(sentence(text) for text in message))


def _with(text: str, names: Mapping[str, str]) -> str:
    """The text with other names for options, where they stand as words of their own."""
    words = "|".join(re.escape(name) for name in names)
    return re.sub(rf"(?<![\w.-])(?:{words})(?![\w.-])", lambda it: names[it.group()], text)


def slug(name: str) -> str:
    """A name that is safe in any file system.

    >>> slug("../Chat & <b>more</b>"), slug("é")
    ('chat-b-more-b', 'scenario')
    """
    return re.sub("[^a-z0-9]+", "-", name.lower()).strip("-")[:60].strip("-") or "scenario"
