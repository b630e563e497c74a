"""The cases and the judgement of averaged gradients, exercise 3 of lab 07."""

import random
from collections.abc import Sequence
from typing import Any

from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.criteria import criterion, not_judged, times
from utils.labs.lab07.ranks import data
from utils.labs.truth import loss_and_gradients

SAYS = says("lab07")

ROUGH = 3e-2
"""How far a gradient may lie from the right one, relative to the largest, to be the right average:
sums in bfloat16 lie within, every wrong weighting that is known here lies outside."""
FINE = 1e-5
"""The same for an average in float32: ten times and more what right ways differ by; the tests
measure both."""
PARAMETERS = 4

Local = list[list[float] | None]
"""The gradients of each rank, flat; None without samples."""


def average_cases(rng: random.Random) -> list[Facts]:
    """Equal batches, unequal ones, a rank without samples, and many ranks in bfloat16."""
    equal = [rng.randint(3, 6)] * 4
    unequal = rng.sample(range(1, 20), 3)
    empty = [*rng.sample(range(2, 16), 3), 0]
    many = [*rng.sample(range(1, 30), 6), 0, 0]
    rng.shuffle(empty)
    rng.shuffle(many)
    return [
        {
            "samples": samples,
            "dtype": "bfloat16" if samples is many else "float32",
            "features": rng.randint(3, 6),
            "hidden": rng.randint(4, 8),
            "classes": rng.randint(3, 4),
            "seed": rng.randrange(10**6),
        }
        for samples in (equal, unequal, empty, many)
    ]


def average_words(case: Facts) -> str:
    """What a card says of a case."""
    return (
        f"{len(case['samples'])} ranks with {', '.join(map(str, case['samples']))} samples,"
        f" gradients in {case['dtype']}"
    )


def local_gradients(case: Facts) -> Local:
    """The gradients of each rank, flat and in its format, as float64; None without samples."""
    import torch

    weights, samples = data(case)
    dtype = getattr(torch, case["dtype"])
    result: Local = []
    for x, y in samples:
        if not len(y):
            result.append(None)
            continue
        _, gradients = loss_and_gradients(weights, x, y)
        rounded = [gradient.float().to(dtype).double().flatten() for gradient in gradients]
        result.append(torch.cat(rounded).tolist())
    return result


def truth(case: Facts, local: Local) -> list[float]:
    """The gradient of the mean loss of all samples, flat. local: what `local_gradients` gives."""
    return _weight(local, case["samples"], sum(case["samples"]))


def _weight(local: Local, weights: Sequence[float], over: float) -> list[float]:
    own = [(w, g) for w, g in zip(weights, local, strict=True) if g is not None]
    return [sum(w * g[place] for w, g in own) / over for place in range(len(own[0][1]))]


def ways(case: Facts, local: Local) -> list[tuple[str, list[float]]]:
    """What wrong ways give."""
    samples = case["samples"]
    ones, ranks, total = [1] * len(samples), len(samples), sum(samples)
    busy = sum(map(bool, samples))
    plain = SAYS["the-mean-over-ranks"]
    return [
        (plain, _weight(local, ones, ranks)),
        (plain, _weight(local, ones, busy)),
        (SAYS["a-sum-over-ranks"], _weight(local, ones, 1)),
        (SAYS["a-sum-over-samples"], _weight(local, samples, 1)),
        (SAYS["divided-by-the-ranks"], _weight(local, samples, ranks)),
        ("weighted by samples, then divided by the ranks that have some: divide by all samples",
         _weight(local, samples, busy)),
        ("divided twice: by all samples, and by the ranks",
         _weight(local, samples, total * ranks)),
        ("the largest batch is no common measure: divide by all samples",
         _weight(local, samples, max(samples))),
        ("the weights are the wrong way round: more samples count more",
         _weight(local, [1 / sample if sample else 0 for sample in samples],
                   sum(1 / sample for sample in samples if sample))),
    ]  # fmt: skip


def distance(some: list[float], others: list[float]) -> float:
    """The largest difference, relative to the largest of the others."""
    largest = max(abs(other) for other in others)
    return max(abs(a - b) for a, b in zip(some, others, strict=True)) / (largest or 1.0)


def judge_average(case: Facts, facts: Facts) -> list[Criterion]:
    """Four criteria: ranks that take part, the average, its precision, and all-reduces."""
    rounds = facts["rounds"]
    part = criterion("every rank takes part", 2, *_part(case, facts))
    met = not facts["problem"]
    average, fine = _averages(case, facts) if met else _not_compared()
    few = rounds <= PARAMETERS + 1
    target, text = f"at most {PARAMETERS + 1}", SAYS["a-reduce-too-many"] if rounds else ""
    calls = criterion("all-reduces", 1, few and rounds > 0, str(rounds), target, text)
    return [part, average, fine, calls if met else not_judged(calls)]


def _not_compared() -> tuple[Criterion, Criterion]:
    rows = (("averages", 3), ("precision", 2))
    first, second = (not_judged(criterion(*row, False, "", "", "")) for row in rows)
    return first, second


def _part(case: Facts, facts: Facts) -> tuple[bool, str, str, str]:
    """passed, measured, target and message of whether all ranks met."""
    problem, target = facts["problem"], "all, each time"
    if not problem:
        # What came back says more, if it is nothing.
        message = SAYS["nothing-reduced"] if isinstance(facts["returned"][0], list) else ""
        return facts["rounds"] > 0, times(facts["rounds"], "round"), target, message
    if problem["kind"] == "mismatch":
        (first, one), (second, two) = problem["shapes"]
        message = SAYS["formats-differ"].format(
            one=one, first=first, rank=problem["rank"], two=two, second=second
        )
        return False, "mismatch", target, message
    ended, waiting = problem["ended"], problem["waiting"]
    empty = [rank for rank in ended if not case["samples"][rank]]
    why = (
        SAYS["leaves-early"].format(value=empty[0])
        if empty
        else "each rank has to call it equally often"
    )
    message = (
        f"{times(len(waiting), 'rank')} would wait for ever in all_reduce, because"
        f" {times(len(ended), 'rank')} had returned: {why}"
    )
    return False, "hang", target, message


def _averages(case: Facts, facts: Facts) -> tuple[Criterion, Criterion]:
    local = local_gradients(case)
    right, names = truth(case, local), ("averages", "precision")
    targets = (f"within {ROUGH:g}", f"within {FINE:g}")
    sizes = _sizes(case)

    def both(measured: str, message: str) -> tuple[Criterion, Criterion]:
        failed = criterion(names[0], 3, False, measured, targets[0], message)
        return failed, not_judged(criterion(names[1], 2, False, "", "", ""))

    farthest, worst = -1.0, 0
    flat: list[Any] = []
    for rank, returned in enumerate(facts["returned"]):
        asked = SAYS["one-tensor"].format(PARAMETERS=PARAMETERS)
        if not isinstance(returned, list):
            text = SAYS["does-nothing-3"].format(returned=returned, asked=asked)
            return both(returned.partition(" with ")[0], text)
        if [len(item) for item in returned] != sizes:
            result = ", ".join(str(len(item)) for item in returned)
            text = f"tensors of {result} elements came back: {asked}, in its shape"
            return both(times(len(returned), "item"), text)
        flat.append([value for item in returned for value in item])
        if strange := [value for value in flat[-1] if isinstance(value, str)]:
            text = f"rank {rank} returned {strange[0]}: 0 / 0 is none of its gradients"
            return both(strange[0], text)
        off = distance(flat[-1], right)
        if off > farthest:
            farthest, worst = off, rank
    if farthest > ROUGH:
        known = [text for text, way in ways(case, local) if distance(flat[worst], way) <= FINE]
        own = local[worst]
        if own is not None and distance(flat[worst], own) <= FINE:
            known = [SAYS["its-own-gradients"].format(worst=worst)]
        if any(distance(item, flat[0]) > FINE for item in flat):
            known += ["ranks return different averages: after a step their weights would differ"]
        text = [*known, "weight each rank's gradient by its samples, and divide by all samples"][0]
        return both(f"off by {farthest:.2g}", text)
    average = criterion(names[0], 3, True, "equal", targets[0], "")
    text = "this is less than float32 can do: which format is summed in?"
    if case["dtype"] == "bfloat16":
        text = SAYS["summed-in-bfloat16"]
    close = farthest <= FINE
    measured = "equal" if close else f"off by {farthest:.2g}"
    return average, criterion(names[1], 2, close, measured, targets[1], text)


def _sizes(case: Facts) -> list[int]:
    features, hidden, classes = case["features"], case["hidden"], case["classes"]
    return [hidden * features, hidden, classes * hidden, classes]
