"""Exercise 2, what changes for TorchNeuron: cases, right verdicts, and what speaks for them."""

import random

from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.criteria import criterion, not_asked_for
from utils.labs.lab15.snippets import SNIPPETS, STATEMENTS, VERDICTS

SAYS = says("lab15")

RIGHT = {
    "device": ("replace", ("torchneuron-device", "torchneuron-accelerator")),
    "step marker": ("drop", ("torchneuron-eager",)),
    "mixed precision": ("replace", ("torchneuron-autocast",)),
    "process group": ("replace", ("torchneuron-distributed",)),
    "buckets": ("unchanged", ("torchneuron-compile",)),
    "cache": ("replace", ("neuron-cache-torchneuron",)),
    "fallbacks": ("elsewhere", ("torchneuron-fallback", "torchneuron-profiler")),
    "accelerator": ("unchanged", ("torchneuron-accelerator",)),
}
"""The verdict, and the statements that it may rest on."""

_ASK = {
    "device": "does the program still ask torch_xla where its tensors go, and what is it called?",
    "step marker": SAYS["the-marker-becomes-a-wait"],
    "mixed precision": SAYS["autocast-stays"],
    "process group": "what does torch.distributed still need to be told, and with which name?",
    "buckets": SAYS["any-shape-is-free"],
    "cache": SAYS["no-cache"],
    "fallbacks": SAYS["no-fallbacks"],
    "accelerator": SAYS["a-vendor-in-torch-accelerator"],
}


def mark_cases(rng: random.Random) -> list[Facts]:
    """The snippets in two orders, so that a list of verdicts in the order shown is no answer."""
    names = list(SNIPPETS)
    return [{"names": rng.sample(names, len(names))} for _ in range(2)]


def mark_words(case: Facts) -> str:
    """What a card says of a case."""
    return f"{len(case['names'])} snippets, {case['names'][0]} first"


def judge_marks(case: Facts, facts: Facts) -> list[Criterion]:
    """One criterion per snippet: its verdict, and the statement that says why."""
    response, count = facts["response"], len(case["names"])
    if response is None or len(response) != count:
        message = SAYS["a-dict"].format(kind=facts["kind"], count=count)
        return not_asked_for(dict.fromkeys(RIGHT, 1), message)
    results = dict(zip(case["names"], response, strict=True))
    return [_judge(name, *results[name]) for name in RIGHT]


def _judge(name: str, verdict: str, key: str) -> Criterion:
    right, keys = RIGHT[name]
    if verdict not in VERDICTS:
        message = SAYS["a-verdict-of-its-own"].format(verdict=verdict, VERDICTS=", ".join(VERDICTS))
    elif verdict != right:
        message = SAYS["the-order-of-the-cell"].format(verdict=verdict, value=_ASK[name])
    elif key not in STATEMENTS:
        message = SAYS["a-statement-of-its-own"].format(verdict=verdict, key=key)
    elif key not in keys:
        message = SAYS["the-cache-of-xla"].format(verdict=verdict, key=key)
    else:
        message = ""
    return criterion(name, 1, not message, right if not message else "", "", message)
