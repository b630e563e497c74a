"""The cases and the judgement of inputs ranked by influence, exercise 5 of lab 13."""

import random
from pathlib import Path
from typing import Any

from utils.course.misconceptions import says
from utils.facts.records import read_yaml
from utils.labs import Criterion, Facts
from utils.labs.criteria import criterion, not_asked_for
from utils.labs.lab13.models import MODELS
from utils.labs.values import near, right_values
from utils.labs.wrong_answers import Known, message_of, replies

SAYS = says("lab13")

TOLERANCE = 1e-9

BASES: dict[str, dict[str, list[float]]] = read_yaml(Path(__file__).with_name("bases.yaml"))
"""Model to its inputs: from where the best guess is drawn, and the widest low and high end, as
shares of it."""


def ranking_cases(rng: random.Random) -> list[Facts]:
    """A plain run, one with ties, one with an interval that is best inside of its range, one whose
    credits pay it all at one end, a service whose least number of servers is never reached, and
    each with inputs known in one direction only.
    """
    return [_case(rng, *item) for item in (
        ("job", "plain"), ("job", "ties"), ("saving", "inside"), ("credited", "plain"),
        ("service", "idle"),
    )]  # fmt: skip


def _case(rng: random.Random, model: str, kind: str) -> Facts:
    while True:
        names = list(BASES[model])
        rng.shuffle(names)
        ranges = {name: _range(rng, *BASES[model][name]) for name in names}
        tied = ("engineers", "weeks") if kind == "ties" else ()
        free = [name for name in names if name not in (*tied, "least_servers")]
        for name, end in zip(rng.sample(free, 3), (0, 2, None), strict=True):
            low, best, high = ranges[name]
            # Known in one direction only, or not in question at all.
            ends = (best, best) if end is None else (best, high) if end == 0 else (low, best)
            ranges[name] = [ends[0], best, ends[1]]
        ranges |= {name: [1.0, 2.0, 8.0] for name in tied}
        case = {"model": model, "ranges": ranges}
        if _suits(case, kind):
            return case


def _range(rng: random.Random, least: float, most: float, low: float, high: float) -> list[float]:
    best = float(f"{rng.uniform(least, most):.3g}")
    ends = rng.uniform(low, (1 + low) / 2), rng.uniform((1 + high) / 2, high)
    return [float(f"{best * ends[0]:.3g}"), best, float(f"{best * ends[1]:.3g}")]


def _suits(case: Facts, kind: str) -> bool:
    """Whether the recorded wrong ways rank in another order, and no two swings nearly agree."""
    right = truth(case)
    swings = [swing for _, swing in right]
    tied = sum(near(a, b, TOLERANCE) for a, b in zip(swings, swings[1:], strict=False))
    close = sum(near(a, b, 0.01) for a, b in zip(swings, swings[1:], strict=False))
    if tied != close or tied != (kind == "ties"):
        return False
    order, came = [name for name, _ in right], list(case["ranges"])
    if [name for name, item in right if not item] != ["least_servers"] * (kind == "idle"):
        return False
    # Sorted by swing alone, equal ones would stay as they came in, which must not be by name.
    if kind == "ties" and came.index("engineers") < came.index("weeks"):
        return False
    others = {SAYS[name] for name in RANKED_OTHERWISE[: 6 if kind == "inside" else 5]}
    return not any(
        _order(facts) == [came.index(name) for name in order]
        for text, facts in replies("lab13.ex5", case)
        if text in others
    )


RANKED_OTHERWISE = (
    "by-width", "by-relative-width", "by-elasticity", "only-upward", "only-downward", "two-ends"
)  # fmt: skip
"""The records whose answers a draw must refuse; the last only where a cost is least inside."""


def _order(facts: Facts) -> list[int]:
    """The places of the inputs that an answer ranked, in its order."""
    return [place for place, _ in facts["items"]]


def cost_with(case: Facts, name: str, value: float) -> float:
    """The cost with one input at another value, all others at their best guess."""
    best = {item: middle for item, (_, middle, _) in case["ranges"].items()}
    return MODELS[case["model"]]({**best, name: value})


def swing(case: Facts, name: str) -> float:
    """How far the cost goes as one input moves through low, best and high."""
    costs = [cost_with(case, name, value) for value in case["ranges"][name]]
    return max(costs) - min(costs)


def truth(case: Facts) -> list[tuple[str, float]]:
    """Name and swing of every input that has a range, the widest first, ties by name."""
    return sorted(
        ((name, swing(case, name)) for name in open_inputs(case)), key=lambda it: (-it[1], it[0])
    )


def open_inputs(case: Facts) -> list[str]:
    """The names of the inputs in question, whose range has a width."""
    return [name for name, (low, _, high) in case["ranges"].items() if low < high]


def ranking_words(case: Facts) -> str:
    """What a card says of a case."""
    names = list(case["ranges"])
    return f"{len(names)} inputs, {len(open_inputs(case))} in question, the first {names[0]}"


def judge_ranking(case: Facts, facts: Facts) -> list[Criterion]:
    """Two criteria: the order of the inputs, and the swing of each."""
    items, right = facts["items"], truth(case)
    strange = [item for item in items or [] if isinstance(item, str)]
    if not items or strange:
        what = f"{facts['kind']} with {strange[0]}" if strange else facts["kind"]
        message = SAYS["names-alone"].format(what=what)
        weights = {"order": 3, "swings": 3}
        return not_asked_for(weights, message, facts["kind"], "pairs", others="not judged")
    names = list(case["ranges"])
    response = [(names[item] if isinstance(item, int) else item, swing) for item, swing in items]
    order = [name for name, _ in response]
    return [
        _judge_order(case, facts, order, right),
        _judge_swings(case, facts, dict(response), right),
    ]


def _judge_order(
    case: Facts, facts: Facts, response: list[str], right: list[tuple[str, float]]
) -> Criterion:
    order = [name for name, _ in right]
    hits = sum(a == b for a, b in zip(response, order, strict=False))
    message = "" if response == order else _about_order(case, facts, response, right)
    return criterion("order", 3, response == order, f"{hits} of {len(order)}", "all", message)


def _about_order(
    case: Facts, facts: Facts, response: list[str], right: list[tuple[str, float]]
) -> str:
    order, swings = [name for name, _ in right], dict(right)
    fixed = [name for name in response if name in case["ranges"] and name not in swings]
    if fixed:
        return SAYS["what-is-not-in-question"].format(value=fixed[0])
    if missing := [name for name in order if name not in response]:
        also = ", also one that moves nothing" if not swings[missing[0]] else ""
        return SAYS["what-moves-nothing"].format(value=missing[0], also=also)
    if sorted(response) != sorted(order):
        return "each input belongs in it once, under the name that came in"
    if response == order[::-1]:
        return SAYS["smallest-first"]
    by_swing = [swings[name] for name in response]
    if all(a >= b or near(a, b, TOLERANCE) for a, b in zip(by_swing, by_swing[1:], strict=False)):
        return SAYS["ties-backward"]
    place = next(p for p, (a, b) in enumerate(zip(response, order, strict=True)) if a != b)
    shown = SAYS["by-the-best-guess"].format(
        right=order[place],
        swing=swings[order[place]],
        given=response[place],
        less=swings[response[place]],
    )

    def alike(other: Facts) -> bool:
        return _order(other) == _order(facts)

    text = message_of("lab13.ex5", case, alike, "", facts)
    return f"{text}. {shown}" if text else shown


def _judge_swings(
    case: Facts, facts: Facts, response: dict[str, float | str], right: list[tuple[str, float]]
) -> Criterion:
    """Whether the swing beside each name is right, in whatever order they stand."""
    names = [name for name, _ in right]
    if not any(name in response for name in names):
        return criterion("swings", 3, False, "not judged", "", "")
    values = [response.get(name, "nothing") for name in names]
    came = list(case["ranges"])

    def numbers(facts: Facts) -> list[Any]:
        swings = dict(facts["items"])
        return [swings[came.index(name)] for name in names]

    known = Known("lab13.ex5", case, numbers, facts)
    advice = (
        "the largest less the smallest cost of low, best and high, with all others at their best"
    )
    swings = [number for _, number in right]
    return right_values("swings", 3, values, swings, names, known, advice, TOLERANCE)
