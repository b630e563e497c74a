"""The formulas of exercise 4 of lab 07: memory and seconds of a layout."""

from collections.abc import Iterator

from utils.labs import Facts

AXES = ("data", "tensor", "pipeline")
Layout = tuple[int, int, int]
"""Sizes of data, tensor and pipeline."""


def options(question: Facts) -> Iterator[Layout]:
    """Layouts (data, tensor, pipeline) that the rules allow."""
    model, cluster = question["model"], question["cluster"]
    chips = cluster["chips"]
    for tensor in _divisors(chips):
        for pipeline in _divisors(chips // tensor):
            data = chips // tensor // pipeline
            whole, shared = model["layers"] % pipeline == 0, model["sequences"] % data == 0
            if cluster["chips_per_server"] % tensor == 0 and whole and shared:
                yield data, tensor, pipeline


def _divisors(number: int) -> list[int]:
    return [item for item in range(1, number + 1) if number % item == 0]


def fit(question: Facts) -> list[Layout]:
    """The allowed layouts that fit into the memory of a chip."""
    room = question["cluster"]["memory_gb"]
    return [item for item in options(question) if memory_gb(question, item) <= room]


def parameters(question: Facts) -> float:
    """How many parameters the layers of the model have."""
    return 12.0 * question["model"]["layers"] * question["model"]["width"] ** 2


def states_gb(question: Facts, layout: Layout) -> float:
    """Weights, gradients and optimizer of one chip, in 10^9 bytes."""
    _, tensor, pipeline = layout
    return 16 * parameters(question) / (tensor * pipeline) / 1e9


def memory_gb(question: Facts, layout: Layout) -> float:
    """States and activations of one chip, in 10^9 bytes."""
    model, (data, tensor, pipeline) = question["model"], layout
    flight = min(pipeline, model["sequences"] // data)
    layer = 34.0 * model["length"] * model["width"] / tensor
    return states_gb(question, layout) + layer * model["layers"] / pipeline * flight / 1e9


def parts_s(question: Facts, layout: Layout) -> tuple[float, float, float]:
    """Seconds of a step: computing and the all-reduces of the layers, each with its part of the
    bubble, and the all-reduce of the gradients.
    """
    model, cluster, (data, tensor, pipeline) = question["model"], question["cluster"], layout
    mine = model["sequences"] / data
    stretch = (mine + pipeline - 1) / mine
    flop = 6 * parameters(question) * model["sequences"] * model["length"]
    size = 2.0 * model["length"] * model["width"]
    calls = 4 * model["layers"] / pipeline * mine
    gradients = 2 * parameters(question) / (tensor * pipeline)
    return (
        stretch * flop / (cluster["chips"] * cluster["tflops"] * 1e12),
        stretch * calls * ring_s(size, tensor, cluster["inside_gb_per_s"]),
        ring_s(gradients, data, cluster["between_gb_per_s"]),
    )


def step(question: Facts, layout: Layout) -> float:
    """Seconds of a step."""
    return sum(parts_s(question, layout))


def ring_s(size: float, ranks: int, gb_per_s: float) -> float:
    """Seconds of an all-reduce of so many bytes among the ranks of a ring."""
    return 2 * (ranks - 1) / ranks * size / (gb_per_s * 1e9)


def best(question: Facts) -> Layout | None:
    """The layout that fits and has the shortest step; None if none fits."""
    return min(fit(question), key=lambda item: step(question, item), default=None)
