"""The cases and the judgement of the nearest flip of an unknown rule, exercise 3 of lab 14."""

import random
from typing import Any

from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.criteria import about_all, among, criterion, not_asked_for

SAYS = says("lab14")

WIDTH = 0.02
"""No verdict holds over less than this share of what is allowed."""
PRECISION = 1e-6
"""How far beyond the edge a value may lie, as a share of what is allowed."""
WORDS = ("gpu", "either", "trainium", "neither")

KINDS = ("above", "below", "nearer above", "nearer below", "there and back", "narrow", "never")


def edge_cases(rng: random.Random) -> list[Facts]:
    """Rules with one edge, with several, with a verdict that returns, and with no edge at all."""
    groups = [("above", "below"), ("nearer above", "nearer below"), ("there and back", "narrow"),
              ("never", "below")]  # fmt: skip
    results = [{"rules": [_rule(rng, kind) for kind in group]} for group in groups]
    mixed = rng.sample(KINDS, len(KINDS))
    return [*results, {"rules": [_rule(rng, kind) for kind in mixed]}]


def _rule(rng: random.Random, kind: str) -> Facts:
    low = round(rng.uniform(-5, 20), 2)
    span = round(10 ** rng.uniform(-0.5, 2.5), 3)

    def at(share: float) -> float:
        return low + share * span

    one, other, third = rng.sample(WORDS, 3)
    place = rng.uniform(0.35, 0.65)
    near, far = rng.uniform(0.07, 0.13), rng.uniform(0.2, 0.3)
    edges, verdicts = {
        "above": ([place + far], [one, other]),
        "below": ([place - far], [other, one]),
        "nearer above": ([place - far, place + near], [third, one, other]),
        "nearer below": ([place - near, place + far], [other, one, third]),
        # Both ends say what holds now.
        "there and back": ([place + near, place + near + 0.06], [one, other, one]),
        "narrow": ([place - far - 0.025, place - far], [one, other, one]),
        "never": ([], [one]),
    }[kind]
    return {
        "low": low,
        "high": low + span,
        "now": at(place),
        "edges": [at(share) for share in edges],
        "verdicts": verdicts,
        "kind": kind,
    }


def edge_words(case: Facts) -> str:
    """What a card says of a case."""
    first = case["rules"][0]
    return (
        f"{len(case['rules'])} rules, first from {first['low']:.4g} to {first['high']:.4g},"
        f" now at {first['now']:.4g}"
    )


def verdict(rule: Facts, value: float) -> str:
    """The verdict of a rule for a value."""
    return rule["verdicts"][sum(value >= edge for edge in rule["edges"])]


def flips(rule: Facts) -> list[tuple[float, str]]:
    """Every edge with the verdict on its far side, the nearest first."""
    now, verdicts = rule["now"], rule["verdicts"]
    results = [(edge, verdicts[place + (edge > now)]) for place, edge in enumerate(rule["edges"])]
    return sorted(results, key=lambda item: abs(item[0] - now))


def judge_edges(case: Facts, facts: Facts) -> list[Criterion]:
    """Three criteria: the verdict beyond the nearest edge, its value, and None without an edge."""
    pairs = list(zip(case["rules"], (rule["response"] for rule in facts["rules"]), strict=True))
    if all(response is None for _, response in pairs) and any(rule["edges"] for rule, _ in pairs):
        weights, message = {"verdict": 2, "value": 3, "None": 1}, SAYS["nothing-ever-flips"]
        return not_asked_for(weights, message, "None", others="not judged")
    some = [pair for pair in pairs if pair[0]["edges"]]
    none = [response for rule, response in pairs if not rule["edges"]]
    return [
        among(about_all("verdict", 2, [_about_verdict(*pair) for pair in some]), some, pairs),
        among(about_all("value", 3, [_about_value(*pair) for pair in some]), some, pairs),
        _judge_none(none, some),
    ]


def _judge_none(none: list[Any], some: list[tuple[Facts, Any]]) -> Criterion:
    wrong = [response for response in none if response is not None]
    # Where nothing was found at all, None shows nothing.
    idle = not any(isinstance(response, list) for _, response in some)
    message = SAYS["an-end-where-nothing-flips"] if wrong else ""
    measured = f"{len(none) - len(wrong)} of {len(none)}"
    return criterion("None", 1, not wrong and not idle, measured, "all", message)


def _about_verdict(rule: Facts, response: Any) -> str:
    now = verdict(rule, rule["now"])
    if response is None:
        return SAYS["only-upwards"].format(now=now, WIDTH=WIDTH)
    if response == "too many calls":
        return SAYS["a-million-steps"]
    if isinstance(response, str):
        return SAYS["only-the-value"].format(answer=response)
    if response[1] == now:
        return SAYS["halving-between-the-ends"].format(now=now)
    if response[1] != flips(rule)[0][1]:
        if any(response[1] == item for _, item in flips(rule)[1:]):
            return SAYS["upwards-first"]
        return f"beyond the nearest flip the verdict is not {response[1]}: ask `verdict_at` there"
    return ""


def _about_value(rule: Facts, response: Any) -> str:
    if not isinstance(response, list):
        return _about_verdict(rule, response)
    value, (edge, _), now = response[0], flips(rule)[0], rule["now"]
    if isinstance(value, str):
        return f"the value is {value}: return a number"
    off, room = abs(value - edge), PRECISION * (rule["high"] - rule["low"])
    inside = rule["low"] <= value <= rule["high"]
    if inside and verdict(rule, value) == verdict(rule, now):
        if off <= room:
            return SAYS["the-last-value-that-agrees"]
        return "at this value the verdict is the one that holds now"
    if off <= room:
        return ""
    if any(abs(value - other) <= room for other, _ in flips(rule)[1:]):
        return SAYS["upwards-first"]
    if off <= WIDTH * (rule["high"] - rule["low"]):
        return SAYS["from-low"].format(
            value=off / (rule["high"] - rule["low"]), PRECISION=PRECISION
        )
    return "that is beyond a flip, but far from where the verdict changes first: go out from now"
