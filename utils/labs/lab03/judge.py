"""The cases of lab 03 and what is right for them. Needs no device: runs apart from the answers."""

import random
from collections.abc import Callable
from typing import Any

from utils.course.misconceptions import says
from utils.labs import Criterion, Facts, Judge
from utils.labs.criteria import (
    costs_of,
    criterion,
    did_nothing,
    executions,
    graph_size,
    not_asked_for,
    not_judged,
    reads,
    right_numbers,
    times,
)
from utils.labs.lab03.bench import bench_cases, bench_words, judge_bench
from utils.labs.training import training_case
from utils.labs.truth import true_losses

SAYS = says("lab03")

# ex1: predict

EXPECTED: dict[str, Callable[[int], list[int]]] = {
    "A": lambda steps: [steps, 1],
    "B": lambda steps: [1, 1],
    "C": lambda steps: [2 * steps, 2],
    "D": lambda steps: [steps, 1],
    "E": lambda steps: [0, 0],
    "F": lambda steps: [steps, 1],
}
"""Executions and compiles of each snippet; a test holds them equal to the measurement."""

_REPEATED = SAYS["each-run-compiles"]
_WHY = {
    "A": ("each sync runs what was recorded since the last one", _REPEATED),
    "B": (
        "recording runs nothing: into how many graphs go all the steps that wait for the sync?",
        SAYS["a-compile-for-each-step"],
    ),
    "C": (
        "`.item()` runs a graph for `total`, and the sync still has `x` to run",
        "a graph that ends at `total` is another one than a graph that ends at `x`",
    ),
    "D": (
        SAYS["every-read-executes"],
        "a read of what is computed needs no graph, and a known graph is not compiled again",
    ),
    "E": (
        "a sync computes what still has a name: what has one here when the sync comes?",
        SAYS["a-sync-runs-all-that-was-recorded"],
    ),
    "F": (SAYS["a-read-keeps-the-value"], _REPEATED),
}
"""The likely misconception behind wrong executions, and behind wrong compiles. They name no number:
the first card must not be the answer.
"""


def _predict_cases(rng: random.Random) -> list[Facts]:
    return [{"steps": rng.randint(3, 5)}, {"steps": rng.randint(6, 12)}]


def _pair(pair: list[int]) -> str:
    return f"{times(pair[0], 'execution')} and {times(pair[1], 'compile')}"


def _judge_predict(case: Facts, facts: Facts) -> list[Criterion]:
    message = ""
    if facts["launches"]:
        message = SAYS["measures-instead-of-predicting"]
    elif not facts["kind"].startswith("a dict"):
        message = (
            f'predict returned {facts["kind"]}: return a dict {{"A": (executions, compiles), ...}}'
        )
    if message:
        return not_asked_for(dict.fromkeys(EXPECTED, 1), message)
    return [
        _judge_snippet(name, case["steps"], facts["predicted"].get(name), facts["measured"][name])
        for name in EXPECTED
    ]


def _judge_snippet(name: str, steps: int, response: Any, measured: list[int]) -> Criterion:
    if response is None:
        message = SAYS["one-missing"].format(name=name)
    elif not isinstance(response, list) or not all(isinstance(item, int) for item in response):
        message = SAYS["executions-only"]
    else:
        wrong = [
            (thing, why)
            for thing, mine, right, why in zip(
                ("executions", "compiles"), response, EXPECTED[name](steps), _WHY[name], strict=True
            )
            if mine != right
        ]
        reasons = "; ".join(f"the {thing} are wrong: {why}" for thing, why in wrong)
        message = f"you said {_pair(response)}; {reasons}"
    right = response == EXPECTED[name](steps)
    result = f"{_pair(measured)} in {steps} steps" if right else ""
    return criterion(name, 1, right, result, "", message)


# ex2: a sync budget


def _training_words(case: Facts) -> str:
    """The case without its shapes, which no criterion depends on."""
    return ", ".join(f"{key} = {case[key]}" for key in ("steps", "every") if key in case)


def _mean_cases(rng: random.Random) -> list[Facts]:
    shapes = sorted([(4, 2), (20, 10), (3 * rng.randint(3, 5), 3)])
    return [{**training_case(rng, steps), "every": every} for steps, every in shapes]


def _judge_mean_losses(case: Facts, facts: Facts) -> list[Criterion]:
    losses, every = true_losses(case), case["every"]
    ends = range(every, len(losses) + 1, every)
    windows = [losses[end - every : end] for end in ends]
    known = {
        SAYS["sums"]: [sum(window) for window in windows],
        SAYS["last-losses"]: [window[-1] for window in windows],
        SAYS["never-begins-anew"]: [sum(losses[:end]) / end for end in ends],
    }
    means = [sum(window) / every for window in windows]
    advice = SAYS["windows-shifted-by-one"]
    budget = case["steps"] + len(windows)
    end = SAYS["no-sync-but-the-read"]
    return [
        right_numbers(
            "mean losses", 2, facts["returned"], means, known, advice, ("mean_losses", "window")
        ),
        executions("executions", 4, case, facts, budget, end),
        reads(2, facts, len(windows)),
    ]


# ex4: a graph that grows


def _loop_cases(rng: random.Random) -> list[Facts]:
    return [training_case(rng, steps) for steps in (4, rng.randint(5, 7))]


def _judge_fixed_loop(case: Facts, facts: Facts) -> list[Criterion]:
    end = SAYS["unchanged"]
    advice = SAYS["no-zero-grad"]
    steps, right = case["steps"], true_losses(case)
    return [
        right_numbers("losses", 2, facts["returned"], right, {}, advice, ("fixed_loop", "batch")),
        executions("one execution a step", 3, case, facts, steps + 1, end),
        graph_size(2, steps, facts),
        reads(1, facts, 1),
    ]


# ex5: from PyTorch on the CPU to XLA

MOST_COMPILES = 4
"""The first step, the further steps (momentum exists by then), bringing the losses together; and
one to spare for another way to do that."""

TRAINING_NODES = 32
"""A training step of these models is a graph of 43 nodes or more, its forward pass one of 10."""


def _judge_train(case: Facts, facts: Facts) -> list[Criterion]:
    steps, right = case["steps"], true_losses(case)
    known = {SAYS["optimizer-made-before-the-move"]: true_losses({**case, "lr": 0.0})}
    advice = SAYS["data-moved-once-only"]
    compiles = facts["compiles"]
    losses = right_numbers("losses", 2, facts["returned"], right, known, advice, ("train", "batch"))
    rows = [
        losses,
        *costs_of(
            losses.message in known,
            executions(
                "one execution a step", 3, case, facts, steps + 1, SAYS["no-sync-but-the-read"]
            ),
            reads(2, facts, 1),
            criterion(
                "compiles",
                1,
                compiles <= MOST_COMPILES,
                str(compiles),
                f"at most {MOST_COMPILES}",
                SAYS["indexed-on-the-device"],
            ),
        ),
    ]
    moved = facts["on_device"] == steps
    trained = sum(facts["graph_nodes"]) >= TRAINING_NODES * steps
    if not (moved and trained):
        # Right losses and few reads are no merit of a loop that stays on the CPU.
        unreturned = not facts["returned"]["items"] and not facts["returned"]["stopped"]
        rows = [
            not_judged(row, row.message if unreturned and row.name == "losses" else "")
            for row in rows
        ]
    place = criterion(
        "on the device",
        2,
        moved and trained,
        f"{facts['on_device']} of {times(steps, 'step')}",
        "all, with the model and its input on XLA",
        SAYS["trains-a-copy-on-the-cpu"] if moved else SAYS["never-moved"],
    )
    # What was returned comes first: a loop that returns nothing may have no other fault.
    return [rows[0], not_judged(place) if did_nothing(facts) else place, *rows[1:]]


JUDGES = {
    "ex1": Judge(_predict_cases, _judge_predict),
    "ex2": Judge(_mean_cases, _judge_mean_losses, _training_words),
    "ex3": Judge(bench_cases, judge_bench, bench_words),
    "ex4": Judge(_loop_cases, _judge_fixed_loop, _training_words),
    "ex5": Judge(_loop_cases, _judge_train, _training_words),
}
