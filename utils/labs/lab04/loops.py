"""The cases and the judgement of the uneven batches and sentences, exercises 2 and 3 of lab 04."""

import math
import operator
import random
from typing import Any

from utils.xla.buckets import padded_tokens, powers_of_two
from utils.xla.corpus import sentences
from utils.labs import Criterion, Facts
from utils.labs.criteria import (
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
    return f"batches of {_listed(case['sizes'])} rows, warmup = {case['warmup']}"


def _listed(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers))


def judge_steady_loop(case: Facts, facts: Facts) -> list[Criterion]:
    steps, sizes, compiles = case["steps"], case["sizes"], facts["compiles"]
    rows = [shape[0] for shape in facts["shapes"] if shape]
    dropped = len(rows) < steps or any(a < b for a, b in zip(rows, sizes, strict=False))
    advice = (
        "a padded row must not count: neither in the sum of the losses nor in the number of rows"
        " that it is divided by"
    )
    known = {
        "these are the losses of a model that never learns: is there an update in each step?": (
            batch_losses({**case, "lr": 0.0})
        ),
        "these are losses without the warm-up: each step's loss is scaled before backward": (
            batch_losses({**case, "warmup": [1.0] * steps})
        ),
        "the gradients of earlier steps are still there: optimizer.zero_grad() before backward": (
            batch_losses(case, kept=1.0)
        ),
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
        "rows were dropped: every sample has to enter the model, and the largest batch may stand"
        " anywhere"
        if dropped
        else "more rows than needed: pad to the largest batch, no further",
    )
    ran = executions(
        "one execution a step", 1, case, facts, steps + 1, "End each step with torch_xla.sync()"
    )
    steady = criterion(
        "compiles",
        4,
        compiles <= MOST_COMPILES_STEADY,
        str(compiles),
        f"at most {MOST_COMPILES_STEADY}",
        "the batches have one shape, and the graph still differs from step to step: a Python"
        " number that chooses a place in a tensor on the device is a part of it"
        if len(set(rows)) == 1
        else f"batches of {len(set(rows))} shapes enter the model, and each is a graph. It is not"
        " the only thing that differs from step to step",
    )
    if not _trained_on_device(facts):
        message = "every step belongs on torch_xla.device(), whole: forward, backward and update"
        return _off_device([losses, entered, ran, steady], facts, message)
    if losses.passed and not _near(facts["loss_after"], loss_after(case)):
        message = (
            "the losses are right, but they are not those of the model on the device: train the"
            " model that is given, there, up to its last step"
        )
        return _off_device([losses, entered, ran, steady], facts, message)
    if dropped or facts["waiting"] > 1:
        # Few compiles are no merit of what leaves out the batches that differ, or runs all at once.
        return [losses, entered, ran, not_judged(steady)]
    if sum(rows) == sum(sizes) and not steady.passed:
        # Nor are right losses one of a loop that has no padded row to leave out.
        return [*map(not_judged, (losses, entered, ran)), steady]
    return [losses, entered, ran, steady]


def _near(found: float | str, right: float) -> bool:
    return not isinstance(found, str) and abs(found - right) <= TOLERANCE


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
    return f"{COUNT} sentences of {_listed(sorted(_lengths(case)))} tokens to predict"


def _lengths(case: Facts) -> list[int]:
    """Tokens to predict in each sentence: all but the first."""
    return [len(line) - 1 for line in sentences(COUNT, case["text"])]


def judge_bucketed_losses(case: Facts, facts: Facts) -> list[Criterion]:
    lengths, compiles, right = _lengths(case), facts["compiles"], sentence_losses(case)
    shapes = [tuple(shape) for shape in facts["shapes"]]
    real, tokens = sum(lengths), sum(math.prod(shape) for shape in shapes)
    mean = sum(map(operator.mul, right, lengths)) / real
    known = {"this is one mean for all sentences: each has a mean of its own": [mean] * COUNT}
    buckets = [min((s[-1] for s in shapes if s and s[-1] >= n), default=n) for n in lengths]
    known["the sums are right, and divided by the whole bucket: only real targets count"] = [
        loss * n / bucket for loss, n, bucket in zip(right, lengths, buckets, strict=True)
    ]
    advice = (
        "padding goes to the right, where it changes no logit before it, and its targets must not"
        " count: neither in the sum nor in the number it is divided by"
    )
    if _in_another_order(facts["returned"]["items"], right):
        advice = "the losses are right, but they are not in the order of the sentences"
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
        "tokens are missing: each one but the last of a sentence goes into the model"
        if tokens < real
        else "too much padding: a short sentence belongs into a shorter bucket, and a batch"
        " needs no row that holds no sentence",
    )
    few = criterion(
        "shapes",
        1,
        len(set(shapes)) <= MOST_SHAPES,
        str(len(set(shapes))),
        f"at most {MOST_SHAPES}",
        "each shape that enters the model is a graph, a batch with another number of rows too",
    )
    compiled = criterion(
        "compiles",
        2,
        compiles <= MOST_SHAPES + 1,
        str(compiles),
        f"at most {MOST_SHAPES + 1}",
        "one for each shape, and one that brings the losses together: what else differs? A Python"
        " number that cuts or takes a row of a tensor on the device is a part of the graph: pad on"
        " the CPU, before .to, and read all losses of a batch at once",
    )
    if not 0 < facts["on_device"] == facts["steps"]:
        message = "every sentence belongs through the model on torch_xla.device()"
        return _off_device([losses, enough, few, compiled], facts, message)
    if losses.passed and facts["sentences_in"] < COUNT:
        message = (
            "the losses are right, but they are not of what entered the model on the device: only"
            f" {facts['sentences_in']} of {times(COUNT, 'sentence')} did"
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
