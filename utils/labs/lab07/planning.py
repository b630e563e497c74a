"""The formulas of exercise 4 of lab 07: memory and seconds of a layout, right or with a wrong rule.

`rules` change one thing each: what a wrong way computes, so that it can be told by its numbers.
"""

from collections.abc import Iterator
from typing import Any

from utils.labs import Facts

AXES = ("data", "tensor", "pipeline")
Layout = tuple[int, int, int]
"""Sizes of data, tensor and pipeline."""


def allowed(question: Facts, **rules: Any) -> Iterator[Layout]:
    """Layouts (data, tensor, pipeline) that the rules allow. rules: those of a wrong way."""
    model, cluster = question["model"], question["cluster"]
    chips = cluster["chips"]
    per_server = chips if rules.get("across") else cluster["chips_per_server"]
    for tensor in _divisors(chips):
        for pipeline in _divisors(chips // tensor):
            data = chips // tensor // pipeline
            whole = rules.get("parts") or model["layers"] % pipeline == 0
            shared = rules.get("rows") or model["sequences"] % data == 0
            if per_server % tensor == 0 and whole and shared:
                yield data, tensor, pipeline


def _divisors(number: int) -> list[int]:
    return [item for item in range(1, number + 1) if number % item == 0]


def fit(question: Facts, **rules: Any) -> list[Layout]:
    """The allowed layouts that fit into the memory of a chip."""
    room = question["cluster"]["memory_gb"]
    return [
        item for item in allowed(question, **rules) if memory_gb(question, item, **rules) <= room
    ]


def parameters(question: Facts) -> float:
    """How many parameters the layers of the model have."""
    return 12.0 * question["model"]["layers"] * question["model"]["width"] ** 2


def memory_gb(question: Facts, layout: Layout, **rules: Any) -> float:
    """Of one chip, in 10^9 bytes."""
    model, (data, tensor, pipeline) = question["model"], layout
    over = {"tensor": tensor, "pipeline": pipeline, "nothing": 1, "all": data * tensor * pipeline}
    shards = over.get(rules.get("states", ""), tensor * pipeline)
    states = rules.get("bytes", 16) * parameters(question) / shards
    mine = model["sequences"] // data
    flight = {"one": 1, "every": mine}.get(rules.get("flight", ""), min(pipeline, mine))
    layer = 34.0 * model["length"] * model["width"] / (1 if rules.get("whole") else tensor)
    stage = model["layers"] / (1 if rules.get("stages") else pipeline)
    activations = 0.0 if rules.get("no_activations") else layer * stage * flight
    return (states + activations) / rules.get("giga", 1e9)


def step(question: Facts, layout: Layout, **rules: Any) -> float:
    """Seconds of a step."""
    model, cluster, (data, tensor, pipeline) = question["model"], question["cluster"], layout
    tokens = model["sequences"] * model["length"]
    flop = rules.get("flop", 6) * parameters(question) * tokens
    compute = flop / ((1 if rules.get("one_chip") else cluster["chips"]) * cluster["tflops"] * 1e12)
    mine = model["sequences"] / data
    size = 2.0 * model["length"] * model["width"]
    stage = model["layers"] / (1 if rules.get("stages") else pipeline)
    calls = rules.get("calls", 4) * stage * (1 if rules.get("once") else mine)
    inside = cluster["inside_gb_per_s"] * 1e9
    reducing = calls * _ring(size, tensor, inside, **rules)
    stretch = (mine + pipeline - 1) / mine
    if rules.get("bubble") == "none":
        stretch = 1.0
    elif rules.get("bubble") == "stages":
        stretch = (mine + pipeline - 1) / pipeline
    elif rules.get("bubble") == "idle share":
        stretch = 1 + (pipeline - 1) / (mine + pipeline - 1)
    shards = {"nothing": 1, "pipeline": pipeline, "tensor": tensor}.get(
        rules.get("gradients", ""), tensor * pipeline
    )
    between = inside if rules.get("fast") else cluster["between_gb_per_s"] * 1e9
    gradients = _ring(rules.get("gradient_bytes", 2) * parameters(question) / shards, data, between,
                      **rules)  # fmt: skip
    reducing *= not rules.get("no_tensor")
    gradients *= not rules.get("no_gradients")
    if rules.get("bubble") == "compute":
        return compute * stretch + reducing + gradients
    if rules.get("overlap"):
        return max((compute + reducing) * stretch, gradients)
    return (compute + reducing) * stretch + gradients


def _ring(size: float, ranks: int, rate: float, **rules: Any) -> float:
    factor = {"once": 1.0 * (ranks > 1), "half": (ranks - 1) / ranks}.get(
        rules.get("ring", ""), 2 * (ranks - 1) / ranks
    )
    return factor * size / rate


def best(question: Facts, **rules: Any) -> Layout | None:
    """The layout that fits and has the shortest step; None if none fits."""
    result = fit(question, **rules)
    return min(result, key=lambda item: step(question, item, **rules)) if result else None
