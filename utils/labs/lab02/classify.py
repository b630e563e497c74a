"""What each of the ten findings of exercise 1 of lab 02 does on an XLA device, and why."""

import random

from utils.labs import Criterion, Facts
from utils.labs.criteria import criterion

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
    "B": "what is `place` on a machine without CUDA, and where does the model run then?",
    "C": "look at the dtype of what comes out, and compare it with the one that is asked for",
    "D": "the losses are right. What does the host do in each step, and how many graphs run?",
    "E": "where does `table` lie when it is indexed: on the host, or on the device?",
    "F": "the sum is right. What is the shape of `loss[...]`, and who can know it beforehand?",
    "G": "making the optimizer is one thing: call its step with parameters on the device",
    "H": "compare the output and the counts with and without the line. Who reads the flag?",
    "I": "call it twice with the same seed, and compare the numbers on the device",
    "J": "the output is right. Who decides the `if`, and what does that need?",
}
"""What to look at. None of them names the class."""


def findings_cases(rng: random.Random) -> list[Facts]:
    """One case: the ten findings are the same for everybody."""
    return [{"findings": len(EXPECTED)}]


def findings_words(case: Facts) -> str:
    return f"the {case['findings']} findings A to J"


def judge_classify(case: Facts, facts: Facts) -> list[Criterion]:
    if not facts["kind"].startswith("a dict"):
        first = f'classify returned {facts["kind"]}: return a dict {{"A": "loud", "B": ...}}'
        return [criterion(n, 1, False, "", "", first if n == "A" else "") for n in EXPECTED]
    return [_judge_finding(name, facts["said"].get(name)) for name in EXPECTED]


def _judge_finding(name: str, said: str | None) -> Criterion:
    if said is None:
        message = f'no class yet: add "{name}": and one of {", ".join(KINDS)}'
    elif said not in KINDS:
        message = f"{said} is no class: choose one of {', '.join(KINDS)}"
    else:
        message = f"you said {said}; {_WHY[name]}"
    right = said == EXPECTED[name]
    return criterion(name, 1, right, EXPECTED[name] if right else "", "", message)
