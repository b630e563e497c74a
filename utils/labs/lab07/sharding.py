"""The cases and the judgement of an annotated MLP, exercise 1 of lab 07."""

import math
import random
from collections import Counter

from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.criteria import criterion, not_judged, times

SAYS = says("lab07")

SIZES = (
    "rows {sizes[rows]}, inputs {sizes[inputs]}, hidden {sizes[hidden]}, outputs {sizes[outputs]}"
)
WORDS = "a mesh of {mesh[0]} by {mesh[1]}, " + SIZES

TOLERANCE = 1e-4
"""How far an output may lie from float64, relative to the largest. Float32 sums of some hundred
products lie a hundred times closer."""
FLOAT32 = 4


def annotated_cases(rng: random.Random) -> list[Facts]:
    """A mesh of 1 by 4, one of 2 by 2, and another of 1 by 4."""
    cases = []
    for mesh in ((1, 4), (2, 2), (1, 4)):
        sizes = {
            "rows": 8 * rng.randint(1, 4),
            "inputs": 8 * rng.randint(3, 10),
            "hidden": 16 * rng.randint(6, 12),
            "outputs": 8 * rng.randint(2, 6),
        }
        cases.append({"mesh": list(mesh), "sizes": sizes | {"seed": rng.randrange(10**6)}})
    return cases


def payload(case: Facts) -> int:
    """Bytes of the one all-reduce: the rows of a device, all outputs."""
    return case["sizes"]["rows"] // case["mesh"][0] * case["sizes"]["outputs"] * FLOAT32


def judge_annotated(case: Facts, facts: Facts) -> list[Criterion]:
    """Four criteria: the output, the weights on a device, one collective and its payload."""
    sizes, off = case["sizes"], facts["difference"]
    right = off is not None and off <= TOLERANCE
    measured = "equal" if right else "nan" if off is None else f"off by {off:.2g}"
    target = f"within {TOLERANCE:g}"
    output = criterion("output", 1, right, measured, target, SAYS["another-model"])
    memory = _memory(case, facts)
    result = facts["collectives"]
    is_one = len(result) == 1 and result[0][0] == "all-reduce"
    small, sent = payload(case), sum(size for _, size, _ in result)
    fits, bytes_of = is_one and sent == small, (f"{sent:.0f} bytes", f"{small} bytes")
    why_not = _why_not_one(case, facts)
    alone = criterion("one collective", 3, is_one, _join_names(result), "1 all-reduce", why_not)
    size = criterion("payload", 2, fits, *bytes_of, _why_not_small(case, facts))
    if not right:
        # Of another computation it means nothing what it sends.
        memory, alone, size = (not_judged(item) for item in (memory, alone, size))
    elif not memory.passed:
        whole = all(facts["shards"][item] == shape for item, shape in _whole(sizes).items())
        # Without a mark the output is right and nothing is sent, which is no merit.
        output = not_judged(output) if whole else output
        alone, size = not_judged(alone), not_judged(size)
    elif not alone.passed:
        size = not_judged(size)
    return [output, memory, alone, size]


def _whole(sizes: dict[str, int]) -> dict[str, list[int]]:
    return {
        "first": [sizes["hidden"], sizes["inputs"]],
        "second": [sizes["outputs"], sizes["hidden"]],
    }


def _memory(case: Facts, facts: Facts) -> Criterion:
    """Whether each device holds its part of both weights and no more."""
    parts, target = case["mesh"][1], f"1/{case['mesh'][1]} of both weights"
    shares = [
        math.prod(shape) / max(math.prod(facts["shards"][name]), 1)
        for name, shape in _whole(case["sizes"]).items()
    ]
    texts = SAYS["does-nothing"], SAYS["the-second-weight-left-whole"]
    wrong = [text for text, share in zip(texts, shares, strict=True) if share < parts]
    message = f"{' and '.join(wrong)}: mark it along the axis 'model'"
    if wrong and any(1 < share < parts for share in shares):
        message = "a weight is divided, but not among all devices of the axis 'model'"
    if not wrong and any(share > parts for share in shares):
        message = SAYS["both-axes-for-a-weight"]
    measured = " and ".join(f"1/{share:g}" for share in shares)
    passed = all(share == parts for share in shares)
    return criterion("weights on a device", 3, passed, measured, target, message)


def _join_names(result: list) -> str:
    kinds = Counter(kind for kind, _, _ in result)
    return ", ".join(f"{count} {kind}" for kind, count in kinds.items()) or "none"


def _why_not_one(case: Facts, facts: Facts) -> str:
    """What in the annotation makes the compiler send something else."""
    sizes, shards, result = case["sizes"], facts["shards"], facts["collectives"]
    kinds = [kind for kind, _, _ in result]
    by_outputs = {
        name: shards[name][0] < shape[0] for name, shape in _whole(sizes).items()
    }  # out features divided, otherwise the in features
    if not result:
        return "nothing is sent: then no device needs what another one holds"
    if by_outputs["first"] and by_outputs["second"]:
        return SAYS["both-by-outputs"]
    if not by_outputs["first"] and by_outputs["second"]:
        return SAYS["rows-then-columns"]
    if not by_outputs["first"]:
        return SAYS["both-by-inputs"].format(listed=_join_names(result))
    if "collective-permute" in kinds:
        return "a tensor lies on one axis of the mesh and is needed on the other, so it is moved"
    if shards["x"][1] < sizes["inputs"]:
        return SAYS["features-of-x-divided"]
    return SAYS["x-along-model"].format(listed=_join_names(result))


def _why_not_small(case: Facts, facts: Facts) -> str:
    if facts["shards"]["first"][0] == case["sizes"]["hidden"]:
        return SAYS["rows-then-columns"]
    if case["mesh"][0] > 1 and facts["shards"]["x"][0] == case["sizes"]["rows"]:
        return SAYS["all-rows-on-every-device"]
    return f"{times(len(facts['collectives']), 'collective')}, but larger than the output needs"
