"""Exercise 2, what changes for TorchNeuron: cases, right verdicts, and what speaks for them."""

import random

from utils.labs import Criterion, Facts
from utils.labs.criteria import criterion
from utils.labs.lab15.snippets import SNIPPETS, STATEMENTS, VERDICTS

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
    "step marker": "when does eager mode hand an operator over, and what is left to be marked?",
    "mixed precision": "the block has an argument that names a backend: is there one for the new?",
    "process group": "what does torch.distributed still need to be told, and with which name?",
    "buckets": "does a new shape still cost a compile?",
    "cache": "are compiled graphs still kept, and does a variable still name their folder?",
    "fallbacks": "may operators still run on the host, and are these counters still there to tell?",
    "accelerator": "which vendor does the line name?",
}


def mark_cases(rng: random.Random) -> list[Facts]:
    """The snippets in two orders, so that a list of verdicts in the order shown is no answer."""
    names = list(SNIPPETS)
    return [{"names": rng.sample(names, len(names))} for _ in range(2)]


def mark_words(case: Facts) -> str:
    return f"{len(case['names'])} snippets, {case['names'][0]} first"


def judge_marks(case: Facts, facts: Facts) -> list[Criterion]:
    said, count = facts["said"], len(case["names"])
    if said is None or len(said) != count:
        message = (
            f"`mark` returned {facts['kind']}: return a list of {count} pairs (verdict, key), one"
            " for each name, in their order"
        )
        return [criterion(n, 1, False, "", "", message if n == "device" else "") for n in RIGHT]
    found = dict(zip(case["names"], said, strict=True))
    return [_judged(name, *found[name]) for name in RIGHT]


def _judged(name: str, verdict: str, key: str) -> Criterion:
    right, keys = RIGHT[name]
    if verdict not in VERDICTS:
        message = f"{verdict} is no verdict: choose {', '.join(VERDICTS)}"
    elif verdict != right:
        message = f"you said {verdict}; {_ASK[name]}"
    elif key not in STATEMENTS:
        message = f"{verdict} is right; {key} is none of the statements shown"
    elif key not in keys:
        message = f"{verdict} is right; {key} does not say why. Which statement does?"
    else:
        message = ""
    return criterion(name, 1, not message, right if not message else "", "", message)
