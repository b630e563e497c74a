"""The cases and the judgement of LoRA and its merge, exercise 1 of lab 11."""

import math
import random
from typing import Any

import numpy as np

from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.criteria import criterion, not_judged, times
from utils.labs.lab11 import nested

SAYS = says("lab11")

TOLERANCE = 1e-5
"""How far an output may lie from what it was, relative to the largest of them above 1.

Derivation: in 300 correct runs in float32 on the CPU the outputs before and after a merge lay at
most 1.6e-6 apart, and those of a merge without the scale at least 0.4.
"""

NAMES = ("query", "value", "out", "head")


def lora_cases(rng: random.Random) -> list[Facts]:
    """Two names on the CPU; on the XLA device four: a shared layer's, and one that no layer has."""
    return [
        _case(rng, "cpu", ["query", "head"]),
        _case(rng, "xla", ["query", "value", "out", "gate"]),
    ]


def _case(rng: random.Random, device: str, names: list[str]) -> Facts:
    rank = rng.choice([2, 3])
    return {
        "device": device,
        "names": names,
        "rank": rank,
        "alpha": float(rank * rng.choice([1.5, 2.5, 3.5])),
        "width": rng.randint(5, 7),
        "inner": rng.randint(9, 11),
        "classes": rng.choice([4, 8]),
        "seed": rng.randrange(10**6),
    }


def lora_words(case: Facts) -> str:
    """What a card says of a case."""
    return (
        f"a model on {'the CPU' if case['device'] == 'cpu' else 'the XLA device'}, names ="
        f" {', '.join(case['names'])}, rank = {case['rank']}, alpha = {case['alpha']:g}"
    )


def judge_lora(case: Facts, facts: Facts) -> list[Criterion]:
    """Six criteria: layers, trainable parameters, first output, gradients, scaling and merge."""
    groups = nested.places(case)
    wanted = {place for group in groups for place in group}
    layers = _layers(case, facts, wanted)
    model, _ = nested.draw(case)
    sizes = [model.get_submodule(group[0]) for group in groups]
    right = sum(case["rank"] * (size.in_features + size.out_features) for size in sizes)
    result, unfrozen = facts["trainable"], facts["unfrozen"]
    message = SAYS["a-bias-in-the-adapter"]
    if unfrozen:
        message = SAYS["nothing-frozen"].format(value=unfrozen[0])
    passed, measured = result == right and not unfrozen, times(result, "parameter")
    share = criterion("trainable", 1, passed, measured, str(right), message)
    off, target, message = facts["start_off"], f"within {TOLERANCE:g}", SAYS["both-at-random"]
    if isinstance(off, str):
        message = f"the model returned {off} in place of its output"
    start = criterion("output at the start", 1, _small(off), _distance(off), target, message)
    idle = [group[0] for group in groups if not facts["learning"].get(group[0])]
    alike = [group[0] for group in groups if facts["ranks"].get(group[0], 0) < case["rank"]]
    stray = facts["base_gradients"]
    message = SAYS["rows-that-are-alike"].format(value=(alike or ["-"])[0])
    if stray:
        message = (
            "a parameter of the given model has a gradient: requires_grad_(False) keeps autograd"
            " from computing and storing it"
        )
    elif idle:
        message = SAYS["both-at-zero"].format(value=idle[0])
    passed = not idle and not stray and not alike
    measured = f"{times(stray, 'given parameter')} with one, {times(len(idle), 'adapter')} without"
    gradients = criterion("gradients", 2, passed, measured, "adapters only", message)
    scaling = _scaling(case, facts, groups, model)
    merged = _merge(facts)
    if "lora" not in facts["layers"].values() or facts["peft"]:
        # A model without adapters is unchanged, has no gradients and merges well.
        rest = [share, start, gradients, scaling, merged]
        return [layers, *map(not_judged, rest)]
    return [layers, share, start, gradients, scaling, merged]


def _layers(case: Facts, facts: Facts, wanted: set[str]) -> Criterion:
    kinds = {place: kind for place, kind in facts["layers"].items() if place != "shared"}
    missing = sorted(place for place in wanted if kinds[place] != "lora")
    others = sorted(place for place in kinds if place not in wanted and kinds[place] != "linear")
    message = ""
    if facts["peft"]:
        message = SAYS["peft"]
    elif missing and len(missing) == len(wanted):
        message = SAYS["hooks"].format(value=missing[0])
    elif missing:
        message = SAYS["one-place-of-a-shared-layer"].format(value=missing[0])
    elif others:
        message = SAYS["by-a-part-of-the-name"].format(value=others[0])
    elif facts["layers"]["shared"] != "True":
        message = SAYS["a-shared-layer-twice"]
    done = len(wanted) - len(missing)
    measured, target = f"{done} of {len(wanted)} places", "all named, no others, shared ones still"
    return criterion("layers", 2, not message, measured, f"{target} shared", message)


def _scaling(case: Facts, facts: Facts, groups: list[list[str]], model: Any) -> Criterion:
    """Whether each layer computes base + alpha / rank · x A^T B^T, whatever its matrices hold."""
    right, message, measured = case["alpha"] / case["rank"], "", ""
    for first in (group[0] for group in groups):
        base, seen = model.get_submodule(first), facts["maps"].get(first)
        if seen is None or "rows" not in seen:
            message = f"`{first}` trains no two matrices"
            break
        result = _array(seen["rows"])
        offset = _array(seen["offset"])
        bias = 0.0 if base.bias is None else base.bias.detach().numpy()
        if offset is None or result is None or not abs(offset - bias).max() <= TOLERANCE * 10:
            message = (
                f"`{first}` makes something else of zeros than its bias: the bias belongs to the"
                " base, once, and the adapter has none"
            )
            break
        change = (result - offset).T - base.weight.detach().numpy()
        scale = _scale(change, seen["matrices"])
        if scale is None:
            message = (
                f"what `{first}` adds to its base is no multiple of B · A, with A [rank, in] and"
                " B [out, rank]"
            )
            break
        measured = f"{scale:.4g}"
        if abs(scale - right) > 1e-3 * right:
            message = _why(scale, case)
            break
    return criterion("scaling", 2, not message, measured or "none", f"{right:g}", message)


def _why(scale: float, case: Facts) -> str:
    rank, alpha = case["rank"], case["alpha"]
    known = {
        1.0: SAYS["no-scale"],
        alpha: SAYS["alpha-as-the-scale"],
        rank / alpha: SAYS["upside-down"],
        1 / rank: "alpha is missing in the factor alpha / rank",
        alpha / math.sqrt(rank): SAYS["rank-stabilised"],
    }
    results = [text for value, text in known.items() if abs(scale - value) <= 1e-3 * value]
    return [*results, SAYS["an-integer-factor"].format(scale=scale)][0]


def _scale(change: np.ndarray, matrices: list[Any]) -> float | None:
    """The factor of the product of two of the matrices that gives `change`; None if none does."""
    known = [item for item in map(_array, matrices) if item is not None and item.ndim == 2]
    if len(known) != 2:
        return None
    for a, b in (known, known[::-1]):
        for left in (a, a.T):
            for right in (b, b.T):
                if left.shape[1] != right.shape[0]:
                    continue
                product = left @ right
                if product.shape != change.shape:
                    continue
                scale = float((product * change).sum() / (product**2).sum())
                if abs(scale * product - change).max() <= 10 * TOLERANCE * abs(change).max():
                    return scale
    return None


def _array(values: Any) -> np.ndarray | None:
    try:
        made = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        return None
    return made if np.isfinite(made).all() else None


def _merge(facts: Facts) -> Criterion:
    places = {place: kind for place, kind in facts["merged"].items() if place != "shared"}
    left = sorted(place for place, kind in places.items() if kind != "linear")
    off, message = facts["merge_off"], ""
    if left:
        message = SAYS["merged-and-left"].format(value=left[0])
    elif facts["merged"]["shared"] != "True":
        message = (
            "a layer that stood in two places has become two: merge it once, and put it in both"
        )
    elif not _small(off):
        message = SAYS["merged-without-the-scale"]
    elif not facts["same_keys"]:
        message = SAYS["merged-with-a-bias-of-its-own"]
    return criterion("merge", 2, not message, _distance(off), f"within {TOLERANCE:g}", message)


def _small(off: float | str) -> bool:
    return not isinstance(off, str) and off <= TOLERANCE


def _distance(off: float | str) -> str:
    return off if isinstance(off, str) else "equal" if off <= TOLERANCE else f"off by {off:.2g}"
