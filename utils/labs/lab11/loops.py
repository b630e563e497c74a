"""The cases and the judgement of the two training loops, exercises 2 and 3 of lab 11."""

import random
from dataclasses import replace
from typing import Any

from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.criteria import (
    at_most,
    criterion,
    did_nothing,
    executions,
    not_judged,
    right_numbers,
    times,
)
from utils.labs.lab11 import truth, tuned

SAYS = says("lab11")

TOLERANCE = 2e-5
"""How far a loss may lie from the one computed in float64.

Derivation: over correct runs in float32 on the CPU, padded and not, the farthest loss lay below
2e-6, and XLA lies within that. The limit is ten times this spread. Wrong losses lie more than
twenty limits away. The tests measure both.
"""

MOST_COMPILES_TUNING = 2
"""The first step, in which AdamW makes its state, and all others."""

MOST_COMPILES_ACCUMULATING = 4
"""The first micro-batch, in which there are no gradients to add to; all others; the update, by
itself or with the last micro-batch, which may be a second or a later one.
"""


def tuning_cases(rng: random.Random) -> list[Facts]:
    """Two trainings, of four and six steps."""
    return [_tuning_case(rng, 4), _tuning_case(rng, 6)]


def _tuning_case(rng: random.Random, steps: int) -> Facts:
    """Batches whose longest sentences all differ, the first and the last with fewer sentences; the
    longest of all is not in the first batch.
    """
    longest = rng.sample(range(7, 15), steps - 1)
    longest.insert(rng.randint(1, steps - 1), rng.randint(15, 17))
    lengths, many = [], rng.choice([3, 4])
    for step, most in enumerate(longest):
        rows = many if 0 < step < steps - 1 else many - 1
        item = [most, *(rng.randint(3, most - 2) for _ in range(rows - 1))]
        rng.shuffle(item)
        lengths.append(item)
    top = rng.choice([0.02, 0.03, 0.04])
    rates = [round(top * min(1, k / 2) * (1 - k / (steps - 1)), 6) for k in range(steps)]
    return {"lengths": lengths, "rates": rates, "seed": rng.randrange(10**6)}


def tuning_words(case: Facts) -> str:
    """What a card says of a case."""
    shapes = ", ".join(f"{len(length)}×{max(length)}" for length in case["lengths"])
    return f"batches of sentences × longest: {shapes}; rates = {case['rates']}"


def judge_tuning(case: Facts, facts: Facts) -> list[Criterion]:
    """Four criteria: losses, tokens that enter, executions and compiles."""
    steps, rates = len(case["rates"]), case["rates"]
    right, model = truth.tuning(case)
    known = {
        SAYS["no-update"]: (truth.tuning(case, [0.0] * steps)[0]),
        SAYS["the-rate-of-the-first-step"]: (truth.tuning(case, [rates[1]] * steps)[0]),
        SAYS["the-rate-afterwards"]: (truth.tuning(case, [0.0, *rates[:-1]])[0]),
    }
    targets = sum(n - 1 for length in case["lengths"] for n in length)
    largest = max(len(length) for length in case["lengths"]), max(map(max, case["lengths"]))
    places = sum(_size(shape) for shape in facts["shapes"])
    begins_right = _begins_right(facts["returned"]["items"], right)
    advice = SAYS["weight-decay"] if begins_right else SAYS["padding-counts"]
    losses = right_numbers(
        "losses", 3, facts["returned"], right, known, advice, ("fine_tune", "batch"), TOLERANCE
    )
    most = steps * largest[0] * largest[1]
    padded = SAYS["padded-to-a-hundred"].format(rows=largest[0], longest=largest[1])
    message = SAYS["sentences-are-cut"] if places < targets else padded
    measured, passed = times(places, "token"), targets <= places <= most
    entered = criterion("tokens", 1, passed, measured, f"{targets} to {most}", message)
    advice, asked = "End each step with torch_xla.sync()", {"steps": _steps_begun(facts, steps)}
    ran = executions("one execution a step", 1, asked, facts, steps + 2, advice)
    compiled = compiles_at_most(3, MOST_COMPILES_TUNING, facts, _tuning_advice(facts))
    rows = [losses, entered, ran, compiled]
    if fault := _not_the_model(facts, losses, model, tuned.batches(case)[0], TOLERANCE):
        return _nothing_counts(rows, fault)
    if not compiled.passed and len({tuple(shape) for shape in facts["shapes"]}) > 2:
        # Right losses of a loop without padding are no merit of a mask.
        return [*map(not_judged, rows[:3]), compiled]
    if not losses.passed or places < targets or facts["waiting"] > 1:
        # Nor are few graphs one of a loop that computes something else.
        return [losses, entered, ran, not_judged(compiled)]
    return rows


def _tuning_advice(facts: Facts) -> str:
    shapes = {tuple(shape) for shape in facts["shapes"]}
    if len(shapes) > 1:
        return SAYS["each-its-own-length"].format(shapes=len(shapes))
    return SAYS["a-rate-as-a-number"]


def accumulating_cases(rng: random.Random) -> list[Facts]:
    """Steps of two to five micro-batches; in the second case one has no targets."""
    return [_accumulating_case(rng, [2, 3, 2]), _accumulating_case(rng, [3, 5, 2, 4], empty=True)]


def _accumulating_case(rng: random.Random, micros: list[int], empty: bool = False) -> Facts:
    """Micro-batches of one shape with very different numbers of targets."""
    longest, lengths = rng.randint(9, 12), []
    for count in micros:
        step = []
        for place in range(count):
            few = place % 2 == 1
            low, high = (2, 3) if few else (longest - 2, longest + 1)
            step.append([rng.randint(low, high) for _ in range(3)])
        lengths.append(step)
    if empty:
        lengths[1][-1] = [1, 1, 1]
    return {
        "longest": longest,
        "lengths": lengths,
        "lr": rng.choice([0.15, 0.2, 0.25]),
        "seed": rng.randrange(10**6),
    }


def accumulating_words(case: Facts) -> str:
    """What a card says of a case."""
    tokens = [[sum(n - 1 for n in rows) for rows in step] for step in case["lengths"]]
    return f"tokens to predict in the micro-batches of each step: {tokens}"


def judge_accumulating(case: Facts, facts: Facts) -> list[Criterion]:
    """Three criteria: losses, executions and compiles."""
    steps, micros = len(case["lengths"]), sum(map(len, case["lengths"]))
    right, model = truth.accumulating(case)
    summed = SAYS["no-division"]
    ways = {
        SAYS["mean-of-means"]: "means",
        SAYS["the-means-added-up"]: "sum of means",
        summed: "sum",
        SAYS["padding-is-a-target"]: "padded",
    }
    known = {text: truth.accumulating(case, way)[0] for text, way in ways.items()}
    known[SAYS["never-zeroed"]] = truth.accumulating(case, kept=1.0)[0]
    still = truth.accumulating({**case, "lr": 0.0})[0]
    known[SAYS["no-update-in-a-step"]] = still
    items = facts["returned"]["items"]
    advice = SAYS["an-update-after-each"]
    if _begins_right(items, right):
        advice = SAYS["zeroed-in-each"]
    # Only the first loss tells: with gradients so large the later ones are chance.
    elif _begins_right(items, known[summed], relative=TOLERANCE):
        advice = summed
    losses = right_numbers(
        "losses", 3, facts["returned"], right, known, advice, ("accumulate", "step"), TOLERANCE
    )
    advice = "End each micro-batch with torch_xla.sync(): what it holds is freed then"
    asked = {"steps": _steps_begun(facts, micros)}
    ran = executions("one by one", 2, asked, facts, micros + 2 * steps + 1, advice)
    if not did_nothing(facts) and facts["steps"] != micros and not facts["returned"]["stopped"]:
        began = times(facts["steps"], "time")
        message = SAYS["all-at-once"].format(times=began, micros=micros)
        ran = replace(ran, passed=False, message=message)
    compiled = compiles_at_most(2, MOST_COMPILES_ACCUMULATING, facts, SAYS["only-real-tokens"])
    rows = [losses, ran, compiled]
    probe = tuned.sentences(case["seed"], [9, 5])
    if fault := _not_the_model(facts, losses, model, probe, TOLERANCE):
        return _nothing_counts(rows, fault)
    if not losses.passed or not ran.passed:
        return [losses, ran, not_judged(compiled)]
    return rows


def _steps_begun(facts: Facts, steps: int) -> int:
    """Of a stopped answer whose steps wait, those that began: that they wait is what to say."""
    return facts["steps"] if facts["returned"]["stopped"] and facts["waiting"] > 1 else steps


def _begins_right(items: Any, right: list[float], relative: float = 0.0) -> bool:
    if not items or isinstance(items[0], str):
        return False
    return abs(items[0] - right[0]) <= TOLERANCE + relative * abs(right[0])


def _size(shape: list[int]) -> int:
    return shape[0] * shape[1] if len(shape) == 2 else 0


def compiles_at_most(weight: int, most: int, facts: Facts, message: str) -> Criterion:
    """Whether an answer compiled no more than allowed; one that was stopped may have had more."""
    result = at_most("compiles", weight, facts["compiles"], most, message)
    more = " or more" * facts["returned"]["stopped"]
    return replace(result, measured=f"{result.measured}{more}")


def _not_the_model(
    facts: Facts, losses: Criterion, model: Any, probe: list[list[int]], tolerance: float
) -> str:
    """Why nothing counts: the work was not done on the device, or not with the given model."""
    if did_nothing(facts):
        return ""
    if not facts["on_device"] >= facts["steps"] > 0:
        return SAYS["steps-outside-the-given-model"]
    if facts["returned"]["stopped"]:
        return ""
    moved, after = facts["base_moved"], facts["loss_after"]
    if isinstance(moved, str) or moved > 0:
        return SAYS["the-base-trains"]
    if losses.passed and (
        isinstance(after, str) or abs(after - truth.mean_loss(model, probe)) > tolerance
    ):
        return (
            "the losses are right, but they are not those of the model on the device: train the"
            " model that is given, there, up to its last step"
        )
    return ""


def _nothing_counts(rows: list[Criterion], message: str) -> list[Criterion]:
    return [not_judged(rows[0], message), *map(not_judged, rows[1:])]
