"""What each of the ten findings of exercise 1 of lab 02 does on an XLA device, and why."""

import random

from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.criteria import criterion, not_asked_for

SAYS = says("lab02")

KINDS = ("loud", "silent", "slow", "fine")

EXPECTED = {
    "A": "loud",
    "B": "silent",
    "C": "silent",
    "D": "slow",
    "E": "fine",
    "F": "slow",
    "G": "loud",
    "H": "fine",
    "I": "silent",
    "J": "slow",
}
"""A test runs each of them on an XLA device and holds this equal to what happens."""

_WHY = {
    "A": "the line needs an NVIDIA driver. What does PyTorch do where there is none?",
    "B": SAYS["asking-raises"],
    "C": SAYS["losses-look-right"],
    "D": SAYS["a-read-is-free"],
    "E": SAYS["by-its-rule"],
    "F": SAYS["a-mask-is-fine"],
    "G": SAYS["the-constructor-is-silent"],
    "H": SAYS["the-flag-misleads"],
    "I": SAYS["a-seed-is-a-seed"],
    "J": SAYS["an-if-is-fine"],
}
"""What to look at. None of them names the class."""


def findings_cases(rng: random.Random) -> list[Facts]:
    """One case: the ten findings are the same for everybody."""
    return [{"findings": len(EXPECTED)}]


def judge_classify(case: Facts, facts: Facts) -> list[Criterion]:
    """One criterion per finding: the class that the answer gives it."""
    if not facts["kind"].startswith("a dict"):
        first = f'classify returned {facts["kind"]}: return a dict {{"A": "loud", "B": ...}}'
        return not_asked_for(dict.fromkeys(EXPECTED, 1), first)
    return [_judge_finding(name, facts["response"].get(name)) for name in EXPECTED]


def _judge_finding(name: str, response: str | None) -> Criterion:
    if response is None:
        message = f'no class yet: add "{name}": and one of {", ".join(KINDS)}'
    elif response not in KINDS:
        message = SAYS["unknown-word"].format(answer=response, KINDS=", ".join(KINDS))
    else:
        message = f"you said {response}; {_WHY[name]}"
    right = response == EXPECTED[name]
    return criterion(name, 1, right, EXPECTED[name] if right else "", "", message)
