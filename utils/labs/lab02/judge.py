"""The cases of lab 02 and what is right for them. Needs no device: runs apart from the answers."""

import random
from math import inf

from utils.audit.rules import RULES
from utils.course.misconceptions import says
from utils.labs import Criterion, Facts, Judge
from utils.labs.criteria import (
    TOLERANCE,
    costs_of,
    criterion,
    did_nothing,
    distance,
    executions,
    first_of,
    none_judged,
    not_judged,
    reads,
    right_numbers,
    times,
)
from utils.labs.lab02.classify import findings_cases, judge_classify
from utils.labs.lab02.problems import other_weights
from utils.labs.lab02.rewrites import (
    histogram_cases,
    judge_histogram,
    judge_masked_loss,
    masked_cases,
    masked_words,
)
from utils.labs.lab02.truth import clipped_losses, shared_losses
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


FAR = 20
"""How many tolerances the losses of a mistake lie from the right ones, in drawn cases."""


def _training_cases(rng: random.Random) -> list[Facts]:
    return [_telling_case(rng, steps) for steps in (4, rng.randint(5, 7))]


def _telling_case(rng: random.Random, steps: int) -> Facts:
    """A training in which clipping, learning and the first weights show in the losses."""
    while True:
        case = training_case(rng, steps)
        right = clipped_losses(case)
        others = (
            clipped_losses({**case, "lr": 0.0}),
            clipped_losses(case, inf),
            clipped_losses(case, weights_of=other_weights(case)),
        )
        if all(distance(right, other) > FAR * TOLERANCE for other in others):
            return case


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
        _audit(3, facts["audit"], "train"),
        *costs_of(losses.message in (_FROZEN, _STUCK), *costs),
    ]
    return _with_place(1, rows, facts, "torch_xla.device()", steps)


def _nearly(items: list[float | str] | None, right: list[float]) -> bool:
    """Whether these are the right losses but for rounding to a few digits."""
    losses = [item for item in items or () if not isinstance(item, str)]
    if not items or not len(items) == len(losses) == len(right):
        return False
    return distance(losses, right) < 5e-3


def _audit(weight: int, facts: Facts, answer: str) -> Criterion:
    name, target = "audit", "0 findings"
    if not facts["read"]:
        message = (
            f"the source of `{answer}` is not known: write it with def in the cell above, run that"
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


# ex5: the port of a script of PyTorch/XLA

BF16_TOLERANCE = 0.01
"""How far a loss of a training in bfloat16 may lie from the one in float64: two times and more the
farthest of 240 right trainings. A test measures it."""

_WAYS: dict[str, Facts] = {
    "a-sum-of-gradients": {"share": "sum"},
    "no-clipping": {"max_norm": inf},
    "trained-apart": {"share": "own"},
    "clipped-before-the-mean": {"clip_first": True},
    "gradients-add-up": {"zero_grad": False},
    "no-momentum": {"momentum": 0.0},
}
"""Wrong ways to train, by their misconceptions; first those that are hardest to tell apart."""


def _legacy_cases(rng: random.Random) -> list[Facts]:
    """A short training and a longer one, in each of which every wrong way is told apart."""
    cases = []
    for steps in (8, 10):
        while True:
            case = training_case(rng, steps)
            case |= {"rows": rng.randint(8, 12), "lr": rng.choice([0.3, 0.4, 0.5])}
            right = shared_losses(case)
            ways = (shared_losses(case, **way) for way in _WAYS.values())
            if all(_apart(right, losses) > 3 * BF16_TOLERANCE for losses in ways):
                break
        cases.append(case)
    return cases


def _apart(some: list[list[float]], others: list[list[float]]) -> float:
    return max(distance(*both) for both in zip(some, others, strict=True))


def _judge_legacy(case: Facts, facts: Facts) -> list[Criterion]:
    right = shared_losses(case)
    passes = [item for process in facts["plain"] for item in process["passes"]]
    advice = "compare with the script: zero_grad, the mean of all gradients, clipping, one update"
    asked = ("train_ported", "batch")

    def losses(ways: dict[str, list[list[float]]]) -> list[Criterion]:
        return [
            right_numbers(
                "losses without a chip",
                3,
                process["returned"],
                right[rank],
                {text: item[rank] for text, item in ways.items()},
                advice,
                asked,
                BF16_TOLERANCE,
            )
            for rank, process in enumerate(facts["plain"])
        ]

    judged = losses({})
    if not all(row.passed for row in judged):
        judged = losses({SAYS[name]: shared_losses(case, **way) for name, way in _WAYS.items()})
    mixed = sum(item["output"] == "bfloat16" and item["weights"] == "float32" for item in passes)
    # What is slow may be the price of a loss that is wanted.
    needed = [
        [rule, line]
        for rule, line in facts["audit"]["findings"]
        if rule in RULES and RULES[rule].kind != "slow"
    ]
    rows = [
        next((row for row in judged if not row.passed), judged[0]),
        _audit(2, {**facts["audit"], "findings": needed}, "train_ported"),
        criterion(
            "mixed precision",
            1,
            mixed == len(passes),
            f"{mixed} of {times(len(passes), 'step')}",
            "all: products in bfloat16, weights in float32",
            SAYS["no-autocast"],
        ),
        _on_neuron(2, facts["neuron"], case["steps"]),
    ]
    if any(len(process["passes"]) != case["steps"] for process in facts["plain"]):
        message = f"in each process each of {case['steps']} batches passes through `model` once"
        return none_judged(rows, rows[0].message or message)
    return rows


def _on_neuron(weight: int, processes: list[Facts], steps: int) -> Criterion:
    """Whether model, batches, process group and mixed precision go to Neuron where it is there."""
    passes = [item for process in processes for item in process["passes"]]
    there = sum(item["there"] for item in passes)
    backends = {name for process in processes for name in process["backends"]}
    cast = sum(item["output"] == "bfloat16" for item in passes)
    message = first_of(
        (there < len(processes) * steps, SAYS["trains-on-the-host"]),
        (
            not all("neuron" in name for name in backends),
            SAYS["gloo-on-neuron"].format(backend=", ".join(sorted(backends))),
        ),
        (cast < len(processes) * steps, SAYS["autocast-of-the-cpu"]),
    )
    measured = f"{min(there, cast)} of {times(len(processes) * steps, 'step')}"
    return criterion(
        "on a machine with Neuron",
        weight,
        not message,
        measured,
        "all there and in bfloat16, the group of Neuron",
        message,
    )


JUDGES = {
    "ex1": Judge(findings_cases, judge_classify, "the {findings} findings A to J".format_map),
    "ex2": Judge(_training_cases, _judge_port, "steps = {steps}".format_map),
    "ex3": Judge(histogram_cases, judge_histogram),
    "ex4": Judge(masked_cases, judge_masked_loss, masked_words),
    "ex5": Judge(_legacy_cases, _judge_legacy, "steps = {steps}".format_map),
}
