"""The cases of lab 02 and what is right for them. Needs no device: runs apart from the answers."""

import random
from math import inf

from utils.audit.rules import RULES
from utils.course.misconceptions import says
from utils.labs import Criterion, Facts, Judge
from utils.labs.criteria import (
    costs_of,
    criterion,
    did_nothing,
    distance,
    executions,
    not_judged,
    reads,
    right_numbers,
    times,
)
from utils.labs.lab02.classify import findings_cases, findings_words, judge_classify
from utils.labs.lab02.problems import other_weights
from utils.labs.lab02.rewrites import (
    histogram_cases,
    judge_histogram,
    judge_masked_loss,
    masked_cases,
    masked_words,
)
from utils.labs.lab02.truth import clipped_losses
from utils.labs.training import training_case

SAYS = says("lab02")

MOST_COMPILES = 4
"""The first step, the further steps (momentum exists by then), bringing the losses together; and
one to spare for another way to do that."""

_LEAST_NODES = 40
"""Nodes that a training step runs on the device, at the least, for these models: a forward pass has
10, a step with backward, clipping and update 80 or more."""

_FROZEN = SAYS["optimizer-before-the-move"]
_STUCK = (
    "this model has the weights that it came with, and never learns: load those in `checkpoint`,"
    " and make the optimizer when the model is on the device"
)
_UNCLIPPED = SAYS["no-clipping"]
_SUMMED = SAYS["gradients-add-up"]
_NO_MOMENTUM = SAYS["no-momentum"]


def _training_cases(rng: random.Random) -> list[Facts]:
    return [training_case(rng, steps) for steps in (4, rng.randint(5, 7))]


def _training_words(case: Facts) -> str:
    """The case without its shapes, which no criterion depends on."""
    return f"steps = {case['steps']}"


def _known(case: Facts) -> dict[str, list[float]]:
    """What wrong ways to train give, by the message to each."""
    return {
        _FROZEN: clipped_losses({**case, "lr": 0.0}),
        _UNCLIPPED: clipped_losses(case, inf),
        _SUMMED: clipped_losses(case, zero_grad=False),
        _NO_MOMENTUM: clipped_losses(case, momentum=0.0),
    }


# ex2: the port of a script


def _judge_port(case: Facts, facts: Facts) -> list[Criterion]:
    steps, first = case["steps"], other_weights(case)
    known = {
        **_known(case),
        SAYS["checkpoint-forgotten"]: (clipped_losses(case, weights_of=first)),
        _STUCK: clipped_losses({**case, "lr": 0.0}, weights_of=first),
    }
    right = clipped_losses(case)
    advice = (
        SAYS["bfloat16"]
        if _nearly(facts["returned"]["items"], right)
        else "compare with the script: weights from the file, zero_grad, the loss in float32,"
        " clipping, one update per batch"
    )
    losses = right_numbers("losses", 2, facts["returned"], right, known, advice, ("train", "batch"))
    costs = [
        executions(
            "one execution a step", 2, case, facts, steps + 1, "End each step with torch_xla.sync()"
        ),
        reads(1, facts, 1),
        criterion(
            "compiles",
            1,
            facts["compiles"] <= MOST_COMPILES,
            str(facts["compiles"]),
            f"at most {MOST_COMPILES}",
            "the graph differs from step to step: look for a Python number or a shape that changes",
        ),
    ]
    rows = [
        losses,
        _audit(3, facts["audit"]),
        *costs_of(losses.message in (_FROZEN, _STUCK), *costs),
    ]
    return _with_place(1, rows, facts, "torch_xla.device()", steps)


def _nearly(items: list[float | str] | None, right: list[float]) -> bool:
    """Whether these are the right losses but for rounding to a few digits."""
    losses = [item for item in items or () if not isinstance(item, str)]
    if not items or not len(items) == len(losses) == len(right):
        return False
    return distance(losses, right) < 5e-3


def _audit(weight: int, facts: Facts) -> Criterion:
    name, target = "audit", "0 findings"
    if not facts["read"]:
        message = (
            "the source of `train` is not known: write it with def in the cell above, run that"
        )
        return criterion(name, weight, False, "not judged", target, message)
    findings = [(RULES[rule], line) for rule, line in facts["findings"] if rule in RULES]
    response = "; ".join(f"line {line} of the cell: {rule.title}" for rule, line in findings[:3])
    more = f"; and {len(findings) - 3} more" if len(findings) > 3 else ""
    return criterion(
        name,
        weight,
        not facts["findings"],
        times(len(findings), "finding"),
        target,
        response + more,
    )


def _with_place(
    weight: int, rows: list[Criterion], facts: Facts, device: str, steps: int
) -> list[Criterion]:
    """The rows, and after the first of them whether the model ran on the device.

    Right losses and few reads are no merit of a loop that stays on the CPU: if it does, nothing
    else is judged.
    """
    if facts["returned"]["stopped"]:
        steps = facts["steps"]  # no more were begun before the check stopped the answer
    seen = facts["on_device"] == steps
    idle = seen and facts["executions"] >= steps
    idle = idle and sum(facts["graph_nodes"]) < _LEAST_NODES * steps
    moved = seen and not idle
    if not moved:
        unreturned = not facts["returned"]["items"] and not facts["returned"]["stopped"]
        first = rows[0].message if unreturned else ""
        rows = [not_judged(rows[0], first), *map(not_judged, rows[1:])]
    place = criterion(
        "on the device",
        weight,
        moved,
        f"{facts['on_device']} of {times(steps, 'step')}" + idle * ", forward only",
        "all, with the model and its input on XLA",
        SAYS["trained-on-the-cpu-shown-to-the-device"]
        if idle
        else SAYS["stayed-on-the-cpu"].format(device=device),
    )
    return [rows[0], not_judged(place) if did_nothing(facts) else place, *rows[1:]]


# ex5: a step for any device


def _judge_step(case: Facts, facts: Facts) -> list[Criterion]:
    steps, on_cpu, on_xla = case["steps"], facts["cpu"], facts["xla"]
    right, known = clipped_losses(case), _known(case)
    losses = _step_losses("losses on xla", 2, on_xla, right, known)
    costs = [
        executions("one execution a step", 2, case, on_xla, steps, SAYS["compared-with-a-str"]),
        criterion(
            "reads",
            1,
            not on_xla["reads"],
            times(on_xla["reads"], "read"),
            "0",
            SAYS["read-in-each-step"],
        ),
    ]
    rows = [
        losses,
        *costs_of(losses.message == _FROZEN, *costs),
        _step_losses("losses on the cpu", 1, on_cpu, right, known),
        criterion(
            "only the cpu on the cpu",
            1,
            on_cpu["on_device"] == steps and not on_cpu["launched"] + on_cpu["markers"],
            f"{times(on_cpu['on_device'], 'step')} on the cpu, {times(on_cpu['markers'], 'sync')}",
            f"{times(steps, 'step')}, 0 syncs",
            SAYS["sync-without-asking"],
        ),
    ]
    if on_xla["step"] != "function":
        response = SAYS["returns-no-step"].format(step=on_xla["step"])
        first = not_judged(rows[0], response)
        rows = [first, *map(not_judged, rows[1:])]
    return _with_place(1, rows, on_xla, SAYS["only-for-the-cpu"], steps)


def _step_losses(
    name: str, weight: int, facts: Facts, right: list[float], known: dict[str, list[float]]
) -> Criterion:
    returned = facts["returned"]
    if strange := next((item for item in returned["items"] or [] if isinstance(item, str)), None):
        message = SAYS["returns-no-loss"].format(strange=strange)
        return criterion(name, weight, False, strange, "scalar tensors", message)
    advice = "compare with the step for the CPU: zero_grad, backward, clip, update, for each batch"
    return right_numbers(name, weight, returned, right, known, advice, ("step", "batch"))


JUDGES = {
    "ex1": Judge(findings_cases, judge_classify, findings_words),
    "ex2": Judge(_training_cases, _judge_port, _training_words),
    "ex3": Judge(histogram_cases, judge_histogram),
    "ex4": Judge(masked_cases, judge_masked_loss, masked_words),
    "ex5": Judge(_training_cases, _judge_step, _training_words),
}
