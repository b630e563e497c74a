"""What the answers of lab 05 return, as plain values. Judges nothing."""

from typing import Any

import numpy as np

from utils.labs import Answer, Facts, Observer, limit
from utils.labs.forbidden import forbid
from utils.labs.lab05 import inputs
from utils.labs.plain import describe, number, numbers

COURSE = (
    "utils.chip.formats",
    "utils.chip.mx",
    "utils.chip.accumulate",
    "utils.training.precision.rounding",
)
"""What the course has for these exercises; it refuses to be called while an answer runs."""

_MOST_VALUES = 4096


def _call(exercise: str, answer: Answer, *inputs_: Any) -> tuple[Any, bool]:
    """What an answer returns, and whether it was stopped."""
    with forbid(f"lab05.{exercise}", *COURSE):
        return limit.within(lambda: answer(*inputs_))


def _array(value: Any) -> np.ndarray | None:
    """A plain array of real numbers; of a subclass, what it is a view of."""
    if not isinstance(value, np.ndarray) or value.dtype.names or value.dtype.kind not in "fiuV":
        return None
    return value.view(np.ndarray)


def _kind(value: Any) -> str:
    """As `describe`; of an array that does not hold real numbers, also what it holds."""
    if not isinstance(value, np.ndarray):
        return describe(value)
    return "a ndarray" if _array(value) is not None else f"a ndarray of {value.dtype.name[:20]}"


def _values(array: np.ndarray | None) -> list[Any] | None:
    if array is None or array.size > _MOST_VALUES:
        return None
    try:
        return [number(float(item)) for item in array.ravel()]
    except (TypeError, ValueError):  # bytes without a meaning
        return None


def _numbers(value: Any) -> Facts:
    """As `numbers`; an array of one dimension counts as a list."""
    array = _array(value)
    if array is None or array.ndim != 1 or array.dtype.kind == "V":
        return numbers(value)
    return {**numbers(array[:_MOST_VALUES].tolist()), "kind": f"an array of {array.size}"}


def observe_rounding(answer: Answer, case: Facts) -> Facts:
    """The codes that the answer gives to the numbers of a case."""
    response, _ = _call(
        "ex1", answer, list(case["numbers"]), case["exponent_bits"], case["mantissa_bits"]
    )
    return {"returned": _numbers(response)}


def observe_stochastic(answer: Answer, case: Facts) -> Facts:
    """Whether a seed repeats and another differs, and the results of every value."""
    x = inputs.rounding_values(case)
    if case["columns"]:
        x = x.reshape(-1, case["columns"])
    before = x.copy()
    results, stopped = [], False
    for seed in (case["seed"], case["seed"], case["seed"] + 1):
        response, ended = _call("ex2", answer, x, np.random.default_rng(seed))
        results.append(response)
        stopped |= ended
        if ended:
            break
    first = _array(results[0])
    facts: Facts = {
        "stopped": stopped,
        "kind": _kind(results[0]),
        "dtype": "" if first is None else str(first.dtype),
        "same_shape": first is not None and first.shape == x.shape,
        "input_changed": not np.array_equal(x, before),
        "repeats": False,
        "differs": False,
        "seen": None,
    }
    if stopped or first is None or not facts["same_shape"] or facts["dtype"] != "float32":
        return facts
    again, other = (_array(result) for result in results[1:])
    facts["repeats"] = again is not None and np.array_equal(first, again, equal_nan=True)
    facts["differs"] = other is not None and not np.array_equal(first, other, equal_nan=True)
    facts["seen"] = [_counts(part) for part in first.reshape(len(case["values"]), -1)]
    return facts


def _counts(part: np.ndarray) -> list[list[Any]]:
    """The most frequent results, and how often each came."""
    values, counts = np.unique(part, return_counts=True)
    order = np.argsort(-counts)[:5]
    return [[number(float(values[place])), int(counts[place])] for place in order]


def observe_product(answer: Answer, case: Facts) -> Facts:
    """The product, how much of it the engine multiplied, and in which dtypes it was added."""
    from utils.labs.lab05.engine import TensorEngine

    a, b = inputs.operands(case)
    engine = TensorEngine()
    response, stopped = _call("ex3", answer, a, b, engine)
    result = _array(response)
    values = _values(result)
    if values is not None and any(isinstance(value, str) for value in values):
        values = None
    return {
        "stopped": stopped,
        "kind": _kind(response),
        "shape": [] if result is None else list(result.shape),
        "dtype": "" if result is None else str(result.dtype),
        "values": values,
        "products": engine.products,
        "sums": sorted(engine.sums),
    }


def observe_update(answer: Answer, case: Facts) -> Facts:
    """The weights after training, the steps that were taken and the dtypes that were seen."""
    import torch

    from utils.labs.lab05 import stalls

    dtypes: set[str] = set()
    steps = 0

    def watch(weights: list[Any]) -> None:
        nonlocal steps
        steps += 1
        if not all(isinstance(weight, torch.Tensor) for weight in weights):
            raise TypeError("`weights` holds something that is no tensor: change them in place")
        dtypes.update(str(weight.dtype).removeprefix("torch.") for weight in weights)

    def train() -> Any:
        # Of torch's own generators, so that an update with noise is the same at every check.
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(case["seed"])
            return stalls.train(answer, case, watch)

    with forbid("lab05.ex4", *COURSE):
        result, stopped = limit.within(train)
    weights = None
    if result is not None:
        watch(result[0])
        steps -= 1
        weights = [
            [number(item) for item in w.detach().cpu().double().flatten().tolist()[:_MOST_VALUES]]
            for w in result[0]
        ]
    return {"stopped": stopped, "steps": steps, "dtypes": sorted(dtypes), "weights": weights}


def observe_scales(answer: Answer, case: Facts) -> Facts:
    """The scales that the answer chooses for the tensors of a case."""
    response, stopped = _call("ex5", answer, inputs.tensors(case))
    return {"stopped": stopped, "returned": _numbers(response)}


def _pair_kind(value: Any) -> str:
    if not isinstance(value, list | tuple) or len(value) != 2:
        return describe(value)
    return " and ".join(_kind(item) for item in value)


def observe_blocks(answer: Answer, case: Facts) -> Facts:
    """The scale codes and the elements of the blocks, with their shapes."""
    response, stopped = _call("ex6", answer, inputs.blocks(case), case["element"])
    pair = response if isinstance(response, list | tuple) and len(response) == 2 else (None, None)
    codes, elements = map(_array, pair)
    if codes is None or elements is None:
        codes = elements = None
    return {
        "stopped": stopped,
        "kind": _pair_kind(response),
        "codes": _values(codes),
        "codes_shape": [] if codes is None else list(codes.shape),
        "elements": _values(elements),
        "elements_shape": [] if elements is None else list(elements.shape),
    }


OBSERVERS = {
    "ex1": Observer("round_by_hand", observe_rounding),
    "ex2": Observer("round_stochastically", observe_stochastic),
    "ex3": Observer("tiled_product", observe_product),
    "ex4": Observer("update", observe_update),
    "ex5": Observer("choose_scales", observe_scales),
    "ex6": Observer("mx_quantise", observe_blocks),
}
