"""The cases of lab 04 and what is right for them. Needs no device: runs apart from the answers."""

import random
from collections.abc import Callable
from typing import Any

from utils.course.misconceptions import says
from utils.labs import Criterion, Facts, Judge
from utils.labs.criteria import criterion, not_asked_for, times
from utils.labs.lab04 import histograms, loops, plans

SAYS = says("lab04")

# ex1: graph identity


def _different(values: list[float]) -> int:
    return len(set(values))


def _sides(values: list[float]) -> int:
    return len({value > 0.5 for value in values})


def _special(values: list[float]) -> int:
    return len({value == 1 for value in values})


EXPECTED: dict[str, Callable[[list[float]], int]] = {
    "A": _different,
    "B": _sides,
    "C": _different,
    "D": _special,
    "E": _different,
    "F": _special,
    "G": _special,
    "H": lambda values: 1,
}
"""Compiles of each edit; a test holds them equal to the measurement."""

_WHY = {
    "A": SAYS["a-shape-is-an-input"],
    "B": SAYS["each-value-a-dtype"],
    "C": SAYS["equal-shapes-are-equal-graphs"],
    "D": SAYS["each-multiplier-baked-in"],
    "E": SAYS["the-exponent-is-an-input"],
    "F": "measure it: 0.25, 0.5 and 0.75 first, then 1.0",
    "G": SAYS["each-learning-rate-compiles"],
    "H": SAYS["moved-data-is-baked-in"],
}
"""The likely misconception. They name no count: the first card must not be the answer."""

_REPEATED = SAYS["each-run-compiles"]


def _identity_cases(rng: random.Random) -> list[Facts]:
    ordinary = [eighth / 8 for eighth in range(1, 8)]
    low, high = ordinary[:4], ordinary[4:]
    first = rng.sample(low, rng.randint(2, 4))
    second = [*rng.sample(low, rng.randint(1, 3)), *rng.sample(high, rng.randint(2, 3)), 1.0]
    return [{"values": _with_repeats(rng, *item)} for item in ((first, 5), (second, 9))]


def _with_repeats(rng: random.Random, values: list[float], length: int) -> list[float]:
    """How many values there are says nothing of how many are different."""
    values = values + rng.choices(values, k=length - len(values))
    rng.shuffle(values)
    return values


def _judge_identity(case: Facts, facts: Facts) -> list[Criterion]:
    message = ""
    if facts["launches"]:
        message = SAYS["measures-in-place-of-a-formula"]
    elif not facts["kind"].startswith("a dict"):
        message = f'new_graphs returned {facts["kind"]}: return a dict {{"A": compiles, ...}}'
    if message:
        return not_asked_for(dict.fromkeys(EXPECTED, 1), message)
    return [
        _judge_edit(name, case["values"], facts["predicted"].get(name), facts["measured"][name])
        for name in EXPECTED
    ]


def _judge_edit(name: str, values: list[float], response: Any, measured: int) -> Criterion:
    right = EXPECTED[name](values)
    if response is None:
        message = SAYS["one-missing"].format(name=name)
    elif not isinstance(response, int):
        message = SAYS["yes-or-no"]
    else:
        repeated = response == len(values) and right == len(set(values))
        message = f"you said {times(response, 'compile')}: {_REPEATED if repeated else _WHY[name]}"
    passed = response == right
    return criterion(name, 1, passed, times(measured, "compile") if passed else "", "", message)


JUDGES = {
    "ex1": Judge(_identity_cases, _judge_identity, "values = {values}".format_map),
    "ex2": Judge(loops.storm_cases, loops.judge_steady_loop, loops.storm_words),
    "ex3": Judge(loops.sentence_cases, loops.judge_bucketed_losses, loops.sentence_words),
    "ex4": Judge(
        histograms.histogram_cases, histograms.judge_choose_buckets, histograms.histogram_words
    ),
    "ex5": Judge(plans.plan_cases, plans.judge_plan, plans.plan_words),
}
