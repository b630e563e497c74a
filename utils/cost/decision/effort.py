"""How long a port may take: a guess, made of `JUDGEMENTS`, until a pilot has been timed."""

from utils.cost.decision.findings import NOTHING, Seen
from utils.cost.decision.judgements import Values
from utils.cost.decision.plan import steps
from utils.cost.decision.questions import Answers


def roughly(estimate: float) -> str:
    """As an estimate is said: two digits.

    >>> roughly(8.46), roughly(23_640)
    ('8.5', '24,000')
    """
    return f"{float(f'{estimate:.2g}'):,.10g}"


def port_effort(answers: Answers, values: Values, result: Seen = NOTHING) -> float:
    """Engineer weeks of a port."""
    served = answers.framework == "vLLM"
    weeks = values["serve_weeks"] if served else values["port_weeks"]
    if answers.framework == "PyTorch/XLA":
        weeks += values["xla_weeks"]
    if answers.kernels != "none":
        weeks += values["replacement_weeks"]
    if answers.kernels == "central":
        weeks += values["central_weeks"]
    if answers.shapes != "static":
        weeks += values["bucket_weeks"]
    if answers.shapes == "data-dependent":
        weeks += values["dynamic_weeks"]
    weeks += result.errors / values["errors_per_week"]
    factor = {"none": "novice_factor", "Trainium": "expert_factor"}.get(answers.experience)
    return weeks * (values[factor] if factor else 1)


def port_weeks(answers: Answers, values: Values, result: Seen = NOTHING) -> float:
    """Weeks by the calendar: a few can share the work, and somebody has to be found first."""
    hands = min(max(answers.engineers, 1), values["team"])
    waiting = 0 if answers.engineers else values["hiring_weeks"]
    return waiting + port_effort(answers, values, result) / hands


def pilot_weeks() -> float:
    """Weeks by the calendar of the pilot beside the port itself: those of its other steps."""
    return sum(step.weeks for step in steps().values())


def weeks_needed(answers: Answers, values: Values, result: Seen = NOTHING) -> float:
    """Weeks by the calendar of port and pilot."""
    return port_weeks(answers, values, result) + pilot_weeks()


def price_of_trying(answers: Answers, values: Values, result: Seen = NOTHING) -> float:
    """Pay of port and pilot, with one engineer for the pilot."""
    return values["week_pay"] * (port_effort(answers, values, result) + pilot_weeks())
