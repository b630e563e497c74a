"""The cases and the judgement of four mended kernels, exercise 6 of lab 09."""

import random
from typing import Any

import numpy as np

from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.criteria import criterion, not_asked_for
from utils.labs.kernel_replay import farthest, generator, replay
from utils.labs.lab09.rows import draw_numbers
from utils.labs.lab09.rules import RULES

SAYS = says("lab09")

BROKEN_RULE = {
    "a": ("partitions",),
    "b": ("dma-psum",),
    "c": ("broadcast",),
    "d": ("columns", "bank"),
}
"""A row of 512 values in FP32 is a bank: whoever has too many columns is in two banks, too."""
ARGUMENTS = {
    "a": [((256, 64), "float32")],
    "b": [((128, 128), "bfloat16"), ((128, 256), "bfloat16")],
    "c": [((128, 256), "float32"), ((1, 256), "float32")],
    "d": [((64, 128), "bfloat16"), ((64, 1024), "bfloat16")],
}
RIGHT: dict[str, Any] = {
    "a": lambda x: 2 * x,
    "b": lambda x, y: x.T @ y,
    "c": lambda x, y: x + y,
    "d": lambda x, y: x.T @ y,
}
PAIR = "a pair"
TOLERANCE = 2e-6
"""Products of BF16 are exact in FP32; sums of 128 of them lose less than 1e-6 of the largest."""


def cases(rng: random.Random) -> list[Facts]:
    """One case: the shapes and types of the arguments of all four kernels."""
    return [{"arguments": {n: [[list(s), t] for s, t in a] for n, a in ARGUMENTS.items()}}]


def judge(case: Facts, facts: Facts) -> list[Criterion]:
    """Two criteria for each kernel: the broken rule that is named, and the mended kernel."""
    if facts["kind"] != f"a dict of {len(ARGUMENTS)}":
        fault = SAYS["no-dict"].format(kind=facts["kind"])
        names = [f"{part} {name}" for name in ARGUMENTS for part in ("rule", "kernel")]
        return not_asked_for(dict.fromkeys(names, 1), fault)
    made = []
    for name in ARGUMENTS:
        result = facts["kernels"].get(name, {"pair": "None"})
        made += [_name(name, result), _repairs(name, case, result)]
    return made


def _name(name: str, result: Facts) -> Criterion:
    response = result.get("rule", "")
    message = SAYS["a-wrong-rule"].format(name=name)
    if result["pair"] != PAIR:
        message = SAYS["a-rule-without-a-kernel"].format(name=name, pair=result["pair"])
    elif response not in RULES:
        message = SAYS["no-rule-of-the-list"].format(name=name)
    measured = "named" if response in RULES else ""
    return criterion(f"rule {name}", 1, response in BROKEN_RULE[name], measured, "", message)


def _repairs(name: str, case: Facts, result: Facts) -> Criterion:
    label = f"kernel {name}"
    if result["pair"] != PAIR:
        return criterion(label, 1, False, "", "", "")
    if "error" in result:
        text = SAYS["not-mended"].format(name=name, error=result["error"])
        return criterion(label, 1, False, "", "", text)
    rng = generator(result)
    inputs = tuple(
        draw_numbers(rng, {"rows": shape[0], "columns": shape[1], "dtype": dtype})
        for shape, dtype in case["arguments"][name]
    )
    run = replay(result, inputs, f"kernel {name}")
    if run.fault:
        return criterion(label, 1, False, run.detail, "", run.fault)
    right = RIGHT[name](*(input_.astype(np.float64) for input_ in inputs))
    output = run.outputs[0]
    off = farthest(output, right) if output.shape == right.shape else float("inf")
    message = f"kernel {name} runs, but its result is not what its docstring says"
    if output.shape != right.shape:
        message = f"the result of kernel {name} has another shape than before"
    elif output.dtype != np.float32:
        message = SAYS["a-product-in-another-type"].format(name=name, dtype=output.dtype)
    target = f"off by at most {TOLERANCE:.2g}"
    measured = target if off <= TOLERANCE else f"off by {off:.2g}"
    return criterion(label, 1, off <= TOLERANCE, measured, target, message)
