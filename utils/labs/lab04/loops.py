"""The cases and the judgement of the uneven batches and sentences, exercises 2 and 3 of lab 04."""

import math
import operator
import random
from typing import Any

from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.criteria import (
    costs_of,
    criterion,
    did_nothing,
    distance,
    executions,
    not_judged,
    right_numbers,
    times,
)
from utils.labs.lab04.texts import COUNT
from utils.labs.lab04.truth import batch_losses, loss_after, sentence_losses
from utils.labs.training import training_case
from utils.xla.buckets import padded_tokens, powers_of_two
from utils.xla.corpus import sentences

SAYS = says("lab04")

TOLERANCE = 1e-5
"""How far a loss may lie from the one computed in float64.

Derivation: over correct runs in float32 on the CPU, padded and not, in either order of the rows,
the farthest loss lay below 1e-6, and XLA lies within that. The limit is ten times this spread.
Wrong losses, of padded rows counted or of rows dropped, lie more than a hundred limits away. The
tests measure both.
"""

# ex2: the recompile storm

MOST_COMPILES_STEADY = 2
"""The step, and one more, such as another way to bring the losses together."""

TRAINING_NODES = 32
"""A training step of these models is a graph of 43 nodes or more, its forward pass one of 10."""


def storm_cases(rng: random.Random) -> list[Facts]:
    """A loop whose first batch is the largest, and one whose largest batch comes later."""
    return [_storm_case(rng, 4, largest_at=0), _storm_case(rng, 7, largest_at=rng.randint(2, 5))]


def _storm_case(rng: random.Random, steps: int, largest_at: int) -> Facts:
    most = rng.randint(11, 18)
    # All different, so that each is a shape of its own; the largest need not come first.
    sizes = sorted(rng.sample(range(most - steps - 2, most), steps - 1), reverse=True)
    sizes.insert(largest_at, most)
    # 0, 1 and -1 are built into a graph, and so they are left out.
    warmup = [(step + 1) / 8 for step in range(steps)]
    return {**training_case(rng, steps), "rows": most, "sizes": sizes, "warmup": warmup}


def storm_words(case: Facts) -> str:
    """What a card says of a case."""
    return f"batches of {_join_names(case['sizes'])} rows, warmup = {case['warmup']}"


def _join_names(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers))


def judge_steady_loop(case: Facts, facts: Facts) -> list[Criterion]:
    """Four criteria, among them the losses, the rows that entered and the compiles."""
    steps, sizes, compiles = case["steps"], case["sizes"], facts["compiles"]
    rows = [shape[0] for shape in facts["shapes"] if shape]
    dropped = len(rows) < steps or any(a < b for a, b in zip(rows, sizes, strict=False))
    advice = SAYS["padded-rows-count-as-class-0"]
    known = {
        SAYS["no-update"]: (batch_losses({**case, "lr": 0.0})),
        SAYS["warm-up-forgotten"]: (batch_losses({**case, "warmup": [1.0] * steps})),
        SAYS["gradients-of-all-steps-so-far"]: (batch_losses(case, kept=1.0)),
    }
    losses = right_numbers(
        "losses",
        2,
        facts["returned"],
        batch_losses(case),
        known,
        "" if dropped else advice,
        ("steady_loop", "batch"),
        TOLERANCE,
    )
    entered = criterion(
        "rows",
        1,
        not dropped and max(rows) <= max(sizes),
        times(sum(rows), "row"),
        f"{sum(sizes)} at least, {max(sizes)} a step at most",
        SAYS["cut-to-the-smallest-batch"] if dropped else SAYS["padded-to-a-hundred"],
    )
    ran = executions("one execution a step", 1, case, facts, steps + 1, SAYS["no-sync"])
    steady = criterion(
        "compiles",
        4,
        compiles <= MOST_COMPILES_STEADY,
        str(compiles),
        f"at most {MOST_COMPILES_STEADY}",
        SAYS["only-the-batches-padded"]
        if len(set(rows)) == 1
        else SAYS["the-given-loop"].format(len=len(set(rows))),
    )
    if not _trained_on_device(facts):
        message = SAYS["on-the-cpu"]
        return _off_device([losses, entered, ran, steady], facts, message)
    if losses.passed and not _near(facts["loss_after"], loss_after(case)):
        message = SAYS["losses-from-the-cpu-beside-work-on-the-device"]
        return _off_device([losses, entered, ran, steady], facts, message)
    if dropped or facts["waiting"] > 1:
        # Few compiles are no merit of what leaves out the batches that differ, or runs all at once.
        return [losses, entered, ran, not_judged(steady)]
    if sum(rows) == sum(sizes) and not steady.passed:
        # Nor are right losses one of a loop that has no padded row to leave out.
        return [*map(not_judged, (losses, entered, ran)), steady]
    return [losses, entered, *costs_of(losses.message == SAYS["no-update"], ran, steady)]


def _near(value: float | str, right: float) -> bool:
    return not isinstance(value, str) and abs(value - right) <= TOLERANCE


def _trained_on_device(facts: Facts) -> bool:
    steps = facts["steps"]
    trained = sum(facts["graph_nodes"]) >= TRAINING_NODES * steps
    return 0 < facts["on_device"] == steps and trained


def _off_device(rows: list[Criterion], facts: Facts, message: str) -> list[Criterion]:
    """Nothing counts that was not done on the device; the first row says so, unless nothing was
    done at all.
    """
    if did_nothing(facts) or facts["returned"]["stopped"]:
        message = rows[0].message
    return [not_judged(rows[0], message), *map(not_judged, rows[1:])]


# ex3: pad to buckets

MOST_SHAPES = 3
"""Each is a compile; one more compile may bring the losses together."""

MOST_TIMES_TOKENS = 1.40


def sentence_cases(rng: random.Random) -> list[Facts]:
    """Two texts."""
    return [_sentence_case(rng), _sentence_case(rng)]


def _sentence_case(rng: random.Random) -> Facts:
    """Sentences for which three powers of two will do, and one length for all will not."""
    while True:
        text = rng.randrange(10**6)
        lengths = [len(line) - 1 for line in sentences(COUNT, text)]
        real, powers = sum(lengths), powers_of_two(max(lengths), 32)
        in_powers = padded_tokens(lengths, powers) <= (MOST_TIMES_TOKENS - 0.02) * real
        if len(powers) <= 3 and in_powers and COUNT * max(lengths) > 1.8 * real:
            return {"text": text, "seed": rng.randrange(10**6)}


def sentence_words(case: Facts) -> str:
    """What a card says of a case."""
    return f"{COUNT} sentences of {_join_names(sorted(_lengths(case)))} tokens to predict"


def _lengths(case: Facts) -> list[int]:
    """Tokens to predict in each sentence: all but the first."""
    return [len(line) - 1 for line in sentences(COUNT, case["text"])]


def judge_bucketed_losses(case: Facts, facts: Facts) -> list[Criterion]:
    """Four criteria: losses, padded tokens, shapes and compiles."""
    lengths, compiles, right = _lengths(case), facts["compiles"], sentence_losses(case)
    shapes = [tuple(shape) for shape in facts["shapes"]]
    real, tokens = sum(lengths), sum(math.prod(shape) for shape in shapes)
    mean = sum(map(operator.mul, right, lengths)) / real
    known = {"this is one mean for all sentences: each has a mean of its own": [mean] * COUNT}
    buckets = [min((s[-1] for s in shapes if s and s[-1] >= n), default=n) for n in lengths]
    known[SAYS["padding-counts-in-the-divisor"]] = [
        loss * n / bucket for loss, n, bucket in zip(right, lengths, buckets, strict=True)
    ]
    advice = SAYS["targets-of-0"]
    if _in_another_order(facts["returned"]["items"], right):
        advice = SAYS["in-the-order-of-the-buckets"]
    losses = right_numbers(
        "losses",
        2,
        facts["returned"],
        right,
        known,
        "" if tokens < real else advice,
        ("bucketed_losses", "sentence"),
        TOLERANCE,
    )
    enough = criterion(
        "tokens",
        3,
        real <= tokens <= MOST_TIMES_TOKENS * real,
        f"{tokens / real:.2f} × the tokens",
        f"1 to {MOST_TIMES_TOKENS:.2f} ×",
        SAYS["cut-to-32"] if tokens < real else SAYS["one-bucket-for-all"],
    )
    few = criterion(
        "shapes",
        1,
        len(set(shapes)) <= MOST_SHAPES,
        str(len(set(shapes))),
        f"at most {MOST_SHAPES}",
        SAYS["no-padding"],
    )
    compiled = criterion(
        "compiles",
        2,
        compiles <= MOST_SHAPES + 1,
        str(compiles),
        f"at most {MOST_SHAPES + 1}",
        SAYS["padded-on-the-device"],
    )
    if not 0 < facts["on_device"] == facts["steps"]:
        message = SAYS["on-the-cpu-2"]
        return _off_device([losses, enough, few, compiled], facts, message)
    if losses.passed and facts["sentences_in"] < COUNT:
        message = SAYS["losses-from-the-cpu-beside-work-on-the-device-2"].format(
            sentences_in=facts["sentences_in"], COUNT=times(COUNT, "sentence")
        )
        return _off_device([losses, enough, few, compiled], facts, message)
    if tokens == real and not few.passed:
        # Right losses of sentences as they are say nothing of a mask.
        return [*map(not_judged, (losses, enough)), few, not_judged(compiled)]
    return [losses, enough, few, not_judged(compiled) if not few.passed else compiled]


def _in_another_order(items: Any, right: list[float]) -> bool:
    if not items or len(items) != len(right) or any(isinstance(item, str) for item in items):
        return False
    return distance(sorted(items), sorted(right)) <= TOLERANCE
