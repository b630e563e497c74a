"""The cases and the judgement of profiles read, exercise 5 of lab 10."""

import functools
import random

from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.criteria import criterion, not_asked_for
from utils.labs.lab10.reading import ACTIONS, summary

SAYS = says("lab10")

EACH = 2
"""Profiles of each kind in a case."""
LOOK = {
    "block": SAYS["the-same-for-all"],
    "lengthen": SAYS["busy-taken-for-moving"],
    "rotate": SAYS["one-place-for-each-tile"],
    "rebalance": "one of vector, scalar and gpsimd is full while others are not",
    "fuse": SAYS["intermediates-not-looked-at"],
    "stop": "moving near 1 with every byte needed, or mfu near 1: the bound is reached",
}


@functools.cache
def profiles() -> tuple[tuple[str, dict[str, float]], ...]:
    """What mends each variant, and what its profile says."""
    from utils.nki import simulator

    simulator.use()
    from utils.labs.lab10.variants import variants
    from utils.nki.simulator.arrays import Shape
    from utils.nki.simulator.profile import profile

    return tuple(
        (
            variant.action,
            summary(profile(variant.kernel, target="trn2")(*(Shape(*s) for s in variant.shapes))),
        )
        for variant in variants()
    )


def cases(rng: random.Random) -> list[Facts]:
    """Some profiles of each kind, in any order; a little off, so that no list of numbers helps."""
    chosen = []
    for action in ACTIONS:
        chosen += rng.sample([numbers for name, numbers in profiles() if name == action], EACH)
    rng.shuffle(chosen)
    return [{"profiles": [_off(rng, item) for item in chosen]}]


def _off(rng: random.Random, numbers: dict[str, float]) -> dict[str, float]:
    """The numbers with up to half a percent more or less each."""
    return {
        name: round(min(value * rng.uniform(0.995, 1.005), max(1.0, value)), 3)
        for name, value in numbers.items()
    }


def truths(case: Facts) -> list[str]:
    """For each profile of a case what mends the variant that it is nearest to."""

    def apart(some: dict[str, float], other: dict[str, float]) -> float:
        return sum(abs(some[name] - other[name]) / (abs(other[name]) + 0.1) for name in other)

    return [
        min(profiles(), key=lambda known: apart(profile, known[1]))[0]
        for profile in case["profiles"]
    ]


def judge(case: Facts, facts: Facts) -> list[Criterion]:
    """One criterion for each action: named where it mends, and nowhere else."""
    right, text = truths(case), facts["response"]
    if text is None or len(text) != len(right):
        fault = SAYS["one-word"].format(kind=facts["kind"], right=len(right))
        return not_asked_for(dict.fromkeys(ACTIONS, 1), fault)
    strange = [item for item in text if item not in ACTIONS]
    made: list[Criterion] = []
    for name in ACTIONS:
        missed = [n for n, (a, b) in enumerate(zip(right, text, strict=True)) if a == name != b]
        wrongly = [n for n, (a, b) in enumerate(zip(right, text, strict=True)) if b == name != a]
        hit = right.count(name) - len(missed)
        message = ""
        if strange:
            message = SAYS["sentences"].format(value=strange[0], ACTIONS=", ".join(ACTIONS))
            message *= all(item.passed for item in made)
        elif missed:
            message = SAYS["by-the-busiest-engine"].format(
                value=missed[0], value_2=text[missed[0]], value_3=LOOK[name]
            )
        elif wrongly:
            is_of = right[wrongly[0]]
            message = f"profile {wrongly[0]} is none, it is {is_of}: {LOOK[is_of]}"
        count, many = right.count(name), f", {len(wrongly)} too many" * bool(wrongly)
        good = not missed and not wrongly
        made.append(
            criterion(name, 1, good, f"{hit} of {count}{many}", f"{count} of {count}", message)
        )
    return made
