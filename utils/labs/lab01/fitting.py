"""The cases and the judgement of fitting a model into cores, exercise 3 of lab 01."""

import random
from typing import Any

from utils.chip.hardware import machine
from utils.chip.training_memory import training_bytes
from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.criteria import criterion, not_asked_for, not_judged
from utils.labs.lab01.sheets import INSTANCES, TRAINIUM
from utils.labs.values import near, right_values
from utils.labs.wrong_answers import Known, message_of

SAYS = says("lab01")

GIB = 2**30
WEIGHTS = {"bytes": 5, "stage": 3}
STAGES = (0, 1, 2, 3)
_REST = ("gradients", "master", "moments")
RECIPE_DTYPES = {
    "fp32": {"weights": "fp32", "gradients": "fp32", "master": None, "moments": "fp32"},
    "mixed": {"weights": "bf16", "gradients": "bf16", "master": "fp32", "moments": "fp32"},
    "mixed-fp32-gradients": {"weights": "bf16", **dict.fromkeys(_REST, "fp32")},
    "bf16-sr": {"weights": "bf16", "gradients": "bf16", "master": None, "moments": "fp32"},
    "bf16": {"weights": "bf16", "gradients": "bf16", "master": None, "moments": "bf16"},
}
"""The dtypes behind the recipes of `utils.chip.training_memory`; a test holds the bytes equal."""


def fitting_cases(rng: random.Random) -> list[Facts]:
    """Jobs for which stage 0, 1, 2, 3 and none is right; those that fit do so by a few percent."""
    kinds = [0, *rng.sample((1, 2, 3), 3), None, rng.choice((1, 2)), "activations"]
    every = list(RECIPE_DTYPES)
    recipes = [*rng.sample(every, len(every)), *rng.choices(every, k=len(kinds) - len(every))]
    return [_case(rng, *item) for item in zip(kinds, recipes, strict=True)]


def _case(rng: random.Random, kind: Any, recipe: str) -> Facts:
    while True:
        key = rng.choice(TRAINIUM)
        chip, instance = machine(key), machine(INSTANCES[key])
        cores = chip.cores * rng.choice([c for c in (1, 2, 4, 16) if c <= instance.chips])
        case: Facts = {
            "recipe": recipe,
            "dtypes": RECIPE_DTYPES[recipe],
            "cores": cores,
            "cores_per_chip": chip.cores,
            "hbm_gib_per_chip": chip.hbm_bytes / GIB,
            "tensor_parallel": rng.choice([t for t in (1, 2, 4, 8) if t <= cores // 2] or [1]),
            "activation_gib": rng.randint(4, 24) / 8,
        }
        room = case["hbm_gib_per_chip"] / chip.cores
        if case["activation_gib"] > room / 2:
            continue
        wanted = rng.choice((0, 1, 2)) if kind == "activations" else 3 if kind is None else kind
        filled = (1.03, 1.5) if kind is None else (0.95, 0.995)
        left = (room - case["activation_gib"]) * GIB * rng.uniform(*filled)
        if kind == "activations":  # too full by less than activations in GB would leave free
            left = (room - case["activation_gib"] * rng.uniform(0.95, 0.99)) * GIB
        case["parameters"] = float(f"{left / (state({**case, 'parameters': 1.0})[wanted]):.3g}")
        if _suits(case, kind, wanted):
            return case


def _suits(case: Facts, kind: Any, wanted: int) -> bool:
    chosen = stage(case)
    if kind == "activations":  # without them, or in GB, a lower stage would do
        smaller = case["activation_gib"] * 1e9 / GIB
        lower = [stage({**case, "activation_gib": item}) for item in (0.0, smaller)]
        return lower == [wanted, wanted] and wanted != chosen
    # In GB in place of GiB it would not fit.
    tight = case["hbm_gib_per_chip"] * 1e9 / GIB
    return chosen == kind and (kind is None or stage({**case, "hbm_gib_per_chip": tight}) != kind)


def state(case: Facts) -> list[float]:
    """Bytes of the state on each core, by stage."""
    ways = case["cores"] // case["tensor_parallel"]
    job, tensor = (case["parameters"], case["recipe"], ways), case["tensor_parallel"]
    return [training_bytes(*job, item, tensor).total for item in STAGES]


def room_bytes(case: Facts) -> float:
    """Bytes of HBM that one core has: an equal share of its chip's."""
    return case["hbm_gib_per_chip"] / case["cores_per_chip"] * GIB


def stage(case: Facts) -> int | None:
    """The lowest stage that fits with the activations."""
    used = [item + case["activation_gib"] * GIB for item in state(case)]
    return next((item for item in STAGES if used[item] <= room_bytes(case)), None)


WORDS = (
    "{parameters:g} parameters, {recipe}, {cores} cores, tensor parallel {tensor_parallel},"
    " {activation_gib:g} GiB activations"
)
_ADVICE = "add up bytes per parameter, and divide each part by those who share it at this stage"


def judge_fit(case: Facts, facts: Facts) -> list[Criterion]:
    """Two criteria: the bytes of the state at every stage, and the lowest stage that fits."""
    items, kind = facts["items"], facts["kind"]
    if items is None or len(items) != len(STAGES):
        message = SAYS["the-stage-alone"].format(kind=kind)
        return not_asked_for(WEIGHTS, message, kind, "four numbers", others="not judged")
    labels = [f"bytes at stage {item}" for item in STAGES]
    known = Known("lab01.ex3", case, lambda facts: facts["items"])
    first = right_values("bytes", WEIGHTS["bytes"], items, state(case), labels, known, _ADVICE)
    second = _judge_stage(case, facts["stage"])
    blank = not any(isinstance(item, int | float) for item in items)
    # A stage that follows from wrong bytes tells nothing more.
    follows = not first.passed and not second.passed
    return [first, not_judged(second) if blank or follows else second]


def _judge_stage(case: Facts, response: Any) -> Criterion:
    right = stage(case)
    if response is not None and response not in STAGES:
        result = SAYS["no-stage"] if response == "nothing" else f"{response} is no stage"
        message = f"{result}: return 0, 1, 2, 3, or None if nothing fits"
    else:
        advice = "the lowest stage whose bytes, with the activations, are at most a core's share"
        if right is None:
            advice = "it does not even fit at stage 3: return None"

        def alike(facts: Facts) -> bool:
            right = all(map(near, facts["items"], state(case)))
            return facts["stage"] == response and right

        message = message_of("lab01.ex3", case, alike, advice)
    shown = "none" if response in (None, "nothing") else str(response)
    return criterion(
        "stage", WEIGHTS["stage"], response == right, shown, "the lowest that fits", message
    )
