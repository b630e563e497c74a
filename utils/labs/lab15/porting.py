"""Exercise 1, the script of lab 02 on any device: cases, and whether it ran rightly on three."""

import random
from math import inf

from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.criteria import criterion, distance, not_judged, right_numbers, times
from utils.labs.lab02.truth import clipped_losses
from utils.labs.training import training_case

SAYS = says("lab15")

MIXED = 0.1
"""How far a loss may lie from float64 in mixed precision: products in BF16 have 8 bits."""

_FROZEN = SAYS["the-optimizer-before-the-move"]
_UNCLIPPED = SAYS["no-clipping"]


def port_cases(rng: random.Random) -> list[Facts]:
    """One training of three to five steps."""
    return [training_case(rng, rng.randint(3, 5))]


def port_words(case: Facts) -> str:
    """What a card says of a case."""
    return f"{case['steps']} steps"


def judge_port(case: Facts, facts: Facts) -> list[Criterion]:
    """Seven criteria: losses on three devices, calls, mixed precision, executions and names."""
    steps, fake = case["steps"], facts["fake"]
    right = clipped_losses(case)
    known = {
        _FROZEN: clipped_losses({**case, "lr": 0.0}),
        _UNCLIPPED: clipped_losses(case, inf),
        "these are the losses of gradients that add up: where is zero_grad?": clipped_losses(
            case, zero_grad=False
        ),
    }
    advice = (
        "compare with the script: weights from the file, float32 unless `mixed`, clipping, one"
        " update a batch"
    )

    def losses(name: str, weight: int, where: str) -> Criterion:
        asked = ("train", "batch")
        return right_numbers(name, weight, facts[where], right, known, advice, asked)

    rows = [
        losses("losses on cpu", 1, "cpu"),
        losses("losses on xla", 2, "xla"),
        losses("losses on a device of our own", 1, "own"),
        _order(3, steps, fake["log"]),
        _mix(1, right, facts["mixed"], fake["mixed_log"]),
        _counts(1, steps, facts["xla"]),
        _names(1, facts["named"]),
    ]
    # To run on the CPU whatever is asked for, and to return nothing, wins nothing.
    if not facts["cpu"]["items"]:
        return [rows[0], *map(not_judged, rows[1:])]
    if facts["xla"]["on_device"] != steps:
        message = SAYS["stays-on-the-cpu"].format(on_device=facts["xla"]["on_device"], steps=steps)
        rows = [rows[0], *map(not_judged, rows[1:])]
        rows[1] = not_judged(rows[1], message)
    return rows


def _order(weight: int, steps: int, log: str) -> Criterion:
    """forward F, backward B, update U, mark_step M, wait W."""
    name, target = "order of a step", "forward, backward, update, mark_step"
    plain = "".join(letter for letter in log if letter in "FBUMW")
    message, done = "", plain.count("M")
    if plain.rstrip("W") != "FBUM" * steps:
        if not done:
            message = SAYS["no-step-marker"]
        elif done != steps:
            message = SAYS["marked-once-after-the-loop"].format(
                done=times(done, "time"), steps=times(steps, "step")
            )
        elif plain.strip("W").replace("W", "") == "FBUM" * steps:
            message = SAYS["waits-in-each-step"]
        else:
            message = SAYS["marked-before-the-update"]
    elif plain.count("W") != 1:
        message = SAYS["never-waits"]
    return criterion(name, weight, not message, f"{done} of {steps} marked", target, message)


def _mix(weight: int, right: list[float], items: list, log: str) -> Criterion:
    """A enters autocast, a leaves it."""
    name, target = "mixed precision", "forward and loss within device.autocast"
    # All after a step's mark is the next one's; without any mark there is one step to look at.
    steps = log.split("M")[:-1] or [log]
    message = ""
    if "A" not in log:
        message = SAYS["no-autocast"]
    elif not all(map(_forward_alone, steps)):
        message = SAYS["backward-in-autocast"]
    elif items is None or len(items) != len(right) or any(isinstance(x, str) for x in items):
        message = "with mixed=True it returned something else than a float a batch"
    elif distance(items, right) > MIXED:
        message = "with mixed=True the losses are others: is it the same training?"
    return criterion(name, weight, not message, "", target, message)


def _forward_alone(step: str) -> bool:
    """Whether the forward pass of a step is within autocast, and its backward after that."""
    entered = step.find("A") < step.find("F") < step.find("a") < step.find("B")
    return entered and "A" in step and step.rfind("A") < step.find("B")


def _counts(weight: int, steps: int, xla: Facts) -> Criterion:
    ran, reads = xla["executions"], xla["reads"]
    message = ""
    if reads > 1:
        message = SAYS["reads-in-each-step"]
    elif not steps <= ran <= steps + 1:
        message = "one execution a step, and one to bring the losses together"
    measured = f"{times(ran, 'execution')}, {times(reads, 'read')}"
    target = f"{steps} to {steps + 1}, 1 read"
    return criterion("executions on xla", weight, not message, measured, target, message)


def _names(weight: int, named: list) -> Criterion:
    message = ""
    if named is None:
        message = "the source of `train` is not known: write it with def in the cell above"
    elif named:
        word, line = named[0]
        message = (
            f"line {line} of the cell names {word}: ask `device`, which knows, and leave out what"
            " only a GPU has"
        )
    measured = times(len(named or []), "name")
    return criterion("no backend named", weight, not message, measured, "0 names", message)
