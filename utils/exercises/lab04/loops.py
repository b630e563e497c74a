"""The cases and the judgement of the uneven batches and sentences, exercises 2 and 3 of lab 04."""

import random

from utils.buckets import padded_tokens, powers_of_two
from utils.corpus import sentences
from utils.exercises import Criterion, Facts
from utils.exercises.lab03.criteria import (
    criterion,
    did_nothing,
    executions,
    not_judged,
    right_numbers,
    times,
)
from utils.exercises.lab03.training import training_case
from utils.exercises.lab04.texts import COUNT
from utils.exercises.lab04.truth import batch_losses, sentence_losses

TOLERANCE = 1e-5
"""How far a loss may lie from the one computed in float64.

Derivation: over correct runs in float32 on the CPU, padded and not, in either order of the rows,
the farthest loss lay below 1e-6, and XLA lies within that. The limit is ten times this spread.
Wrong losses, of padded rows counted or of rows dropped, lie more than a hundred limits away. The
tests measure both.
"""

# ex2: the recompile storm

MOST_COMPILES_STEADY = 2
"""The step, and one more, such as to bring the losses together."""

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
    steps, real, rows = case["steps"], sum(case["sizes"]), facts["rows"]
    most, compiles = steps * max(case["sizes"]), facts["compiles"]
    advice = (
        "a padded row must not count: neither in the sum of the losses nor in the number of rows"
        " that it is divided by"
    )
    known = {
        "these are the losses of a model that never learns: is there an update in each step?": (
            batch_losses({**case, "lr": 0.0})
        ),
        "these are losses without the warm-up: each step's gradient is scaled by its weight": (
            batch_losses({**case, "warmup": [1.0] * steps})
        ),
    }
    rows_judged = [
        right_numbers(
            "losses",
            2,
            facts["returned"],
            batch_losses(case),
            known,
            advice,
            ("steady_loop", "batch"),
            TOLERANCE,
        ),
        criterion(
            "rows",
            1,
            real <= rows <= most,
            times(rows, "row"),
            f"{real} to {most}",
            "rows were dropped: every sample has to enter the model"
            if rows < real
            else "more rows than needed: pad to the largest batch, no further",
        ),
        executions(
            "one execution a step", 1, case, facts, steps + 1, "End each step with torch_xla.sync()"
        ),
        criterion(
            "compiles",
            4,
            compiles <= MOST_COMPILES_STEADY,
            str(compiles),
            f"at most {MOST_COMPILES_STEADY}",
            "the graph still differs from step to step. Two things can change it here: the shape"
            " of a batch, and a Python number that chooses a place in a tensor on the device",
        ),
    ]
    if not _trained_on_device(facts, steps):
        return _off_device(rows_judged, facts)
    if rows == real and compiles > MOST_COMPILES_STEADY:
        rows_judged[:3] = map(not_judged, rows_judged[:3])
        # Right losses are no merit of a loop that has no padded row to leave out.
    return rows_judged


def _trained_on_device(facts: Facts, steps: int) -> bool:
    return facts["on_device"] == steps and sum(facts["graph_nodes"]) >= TRAINING_NODES * steps


def _off_device(rows: list[Criterion], facts: Facts) -> list[Criterion]:
    """Nothing counts that was not done on the device; the first row says so, or what else is wrong
    with what was returned.
    """
    wrong_return = did_nothing(facts) or facts["returned"]["stopped"]
    message = (
        rows[0].message
        if wrong_return
        else "every step belongs on torch_xla.device(), whole: forward, backward and update"
        if "rows" in facts
        else "every sentence belongs through the model on torch_xla.device()"
    )
    return [not_judged(rows[0], message), *map(not_judged, rows[1:])]


# ex3: pad to buckets

MOST_COMPILES_PADDED = 3
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
    real, tokens, compiles = sum(_lengths(case)), facts["tokens"], facts["compiles"]
    most = int(MOST_TIMES_TOKENS * real)
    right = sentence_losses(case)
    weighted = [loss * length for loss, length in zip(right, _lengths(case), strict=True)]
    known = {
        "these are sums: divide each by the number of real targets": weighted,
        "this is one mean for all sentences: each has a mean of its own": [sum(weighted) / real]
        * COUNT,
    }
    advice = (
        "padding goes to the right, where it changes no logit before it, and its targets must not"
        " count: neither in the sum nor in the number it is divided by. Are the losses in the order"
        " of the sentences?"
    )
    rows = [
        right_numbers(
            "losses",
            2,
            facts["returned"],
            right,
            known,
            advice,
            ("bucketed_losses", "sentence"),
            TOLERANCE,
        ),
        criterion(
            "tokens",
            3,
            real <= tokens <= most,
            f"{tokens / real:.2f} × the tokens",
            f"1 to {MOST_TIMES_TOKENS:.2f} ×",
            "tokens are missing: each one but the last of a sentence goes into the model"
            if tokens < real
            else "too much padding: a short sentence belongs into a shorter bucket, and a batch"
            " needs no row that holds no sentence",
        ),
        criterion(
            "compiles",
            3,
            compiles <= MOST_COMPILES_PADDED,
            str(compiles),
            f"at most {MOST_COMPILES_PADDED}",
            "each shape that enters the model is a graph, a batch with another number of rows too;"
            " and so is each operator on the device that brings the losses together",
        ),
    ]
    if not tokens or facts["on_device"] != facts["steps"]:
        return _off_device(rows, facts)
    if tokens == real and compiles > MOST_COMPILES_PADDED:
        # Right losses of sentences as they are say nothing of a mask.
        rows[:2] = map(not_judged, rows[:2])
    return rows
