"""The cases and the judgement of a natively divided training step, exercise 6 of lab 07."""

import math
import random

from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.criteria import criterion, not_judged
from utils.labs.lab07 import native

SAYS = says("lab07")
CLOSE = 1e-4
"""How far a value may lie from one process's, relative to the largest: float32 sums lie within a
hundredth of it, every wrong way that is known here lies outside.
"""
DATA, MODEL = native.MESH


def native_cases(rng: random.Random) -> list[Facts]:
    """Equal batches, then unequal ones."""
    even, few = rng.randint(3, 8), rng.randint(1, 3)
    return [
        {"rows": rows, "width": 4 * rng.randint(2, 3), "blocks": rng.randint(2, 3),
         "seed": rng.randrange(10**6)}
        for rows in ([even, even], [few + rng.randint(3, 6), few])
    ]  # fmt: skip


def native_words(case: Facts) -> str:
    """What a card says of a case."""
    return (
        f"a mesh of {DATA} by {MODEL}, {case['blocks']} blocks of width {case['width']},"
        f" {' and '.join(map(str, case['rows']))} rows along 'data'"
    )


def truth(case: Facts, weights: tuple[float, ...] | None = None) -> tuple[float, list[float]]:
    """The loss and the flat gradient of one process: the mean over all rows, or each data rank's
    mean by other weights.
    """
    import torch

    model, rows = native.build(case)
    weights = weights or tuple(count / sum(case["rows"]) for count in case["rows"])
    losses = [(model(x) - y).square().mean() for x, y in rows]
    loss = sum(weight * one for weight, one in zip(weights, losses, strict=True))
    gradients = torch.autograd.grad(loss, list(model.parameters()))
    return loss.item(), torch.cat([one.double().flatten() for one in gradients]).tolist()


def share_of(case: Facts) -> int:
    """Numbers of the parameters on one rank: of a block both weights and the first bias are divided
    along both axes, everything else along "data".
    """
    import torch

    model, _ = native.build(case)

    def rows_of(parameter: torch.Tensor, parts: int) -> int:
        return math.ceil(len(parameter) / parts) * parameter[0].numel()

    total = 0
    for name, one in model.named_parameters():
        if name.endswith("down.weight"):  # columns along "model", rows along "data"
            total += rows_of(one, DATA) // MODEL
        else:
            total += rows_of(one, DATA * MODEL if ".up." in name else DATA)
    return total


def judge_native(case: Facts, facts: Facts) -> list[Criterion]:
    """Five criteria: what a rank holds, the wrapping, gradients, the loss and the norm."""
    blocks, size = case["blocks"], share_of(case)
    names = (("parameters on a rank", 2), ("reduce-scatters", 1), ("gradients", 1), ("loss", 1),
             ("norm", 1))  # fmt: skip
    if facts["error"]:
        first = criterion(*names[0], False, "none", f"{size}", _failure(facts["error"]))
        others = [not_judged(criterion(*name, False, "", "", "")) for name in names[1:]]
        return [first, *others]
    seen = facts["ranks"]
    largest = max(rank["held"] for rank in seen)
    divided = criterion(*names[0], largest == size, str(largest), str(size), _undivided(seen, size))
    scatters = {rank["scatters"] for rank in seen}
    wrapped = scatters == {blocks + 1}
    units = criterion(*names[1], wrapped, ", ".join(map(str, sorted(scatters))), str(blocks + 1),
                      _unwrapped(scatters, blocks))  # fmt: skip
    loss, gradient = truth(case)
    right = near(seen[0]["gradients"], gradient)
    whole = criterion(*names[2], right, "equal" if right else "others", f"within {CLOSE:g}",
                      "" if right else _gradients(case, seen))  # fmt: skip
    norm = math.hypot(*gradient)
    losses, norms = zip(*(rank["returned"] for rank in seen), strict=True)
    said_loss = all(near([value], [loss]) for value in losses)
    said_norm = all(near([value], [norm]) for value in norms)
    return [
        divided,
        units,
        whole,
        criterion(*names[3], said_loss, _shown(losses), f"{loss:.5g}", _losses(case, losses)),
        criterion(*names[4], said_norm, _shown(norms), f"{norm:.5g}", _norms(seen, norms)),
    ]


def near(some: list | None, others: list[float]) -> bool:
    """Whether all numbers lie close, relative to the largest."""
    if some is None or len(some) != len(others) or any(isinstance(one, str) for one in some):
        return False
    largest = max(map(abs, others))
    return all(abs(a - b) <= CLOSE * largest for a, b in zip(some, others, strict=True))


def _shown(values: tuple) -> str:
    return ", ".join(dict.fromkeys(one if isinstance(one, str) else f"{one:.5g}" for one in values))


def _failure(error: str) -> str:
    if "('data', 'data'" in error:  # divided once by the root, and again by a block
        return SAYS["root-before-blocks"]
    if "('model', 'data')" in error:
        return SAYS["mesh-turned-round"]
    if "device mesh" in error or "DeviceMesh" in error:
        return SAYS["fsdp-before-tensor-parallelism"]
    return f"{error}: every rank has to take part in every collective, with equal shapes"


def _undivided(seen: list[Facts], size: int) -> str:
    if any(rank["axes"] and "data" not in rank["axes"] for rank in seen):
        return SAYS["mesh-turned-round"]
    if all(not rank["axes"] for rank in seen):
        return SAYS["nothing-sharded"]
    return SAYS["no-tensor-parallelism"]


def _unwrapped(scatters: set[int], blocks: int) -> str:
    if scatters == {1}:
        return SAYS["root-before-blocks"]
    if scatters == {0}:
        return "nothing is scattered: did a backward run after the model had been wrapped?"
    return f"each of {blocks} blocks is wrapped alone, and the root takes what is left"


def _gradients(case: Facts, seen: list[Facts]) -> str:
    """Which known mistake gives these gradients."""
    if any(rank["axes"] and "data" not in rank["axes"] for rank in seen):
        return SAYS["mesh-turned-round"]
    own = seen[0]["gradients"]
    if own is None:
        return "a parameter has no gradient: leave what backward made in the model"
    share = [count / sum(case["rows"]) for count in case["rows"]]
    known = (
        ("mean-of-means", (1 / DATA,) * DATA),
        ("not-undone-the-mean-over-ranks", tuple(one / DATA for one in share)),
        ("a-sum-over-rows", tuple(float(count) / DATA for count in case["rows"])),
    )
    for name, weights in known:
        if near(own, truth(case, weights)[1]):
            return SAYS[name]
    return "compare with one process that has all rows: loss.backward() there gives these gradients"


def _losses(case: Facts, losses: tuple) -> str:
    own = [truth(case, tuple(float(i == place) for i in range(DATA)))[0] for place in range(DATA)]
    if any(near([value], [one]) for value in losses for one in own):
        return SAYS["a-loss-of-its-own"]
    return "the mean over the rows of all ranks: add up sums and counts along 'data', then divide"


def _norms(seen: list[Facts], norms: tuple) -> str:
    if any(near([value], [rank["own_norm"]]) for value, rank in zip(norms, seen, strict=True)):
        return SAYS["norm-of-a-shard"]
    return "the root of the sum of all squares of the whole gradient"
