"""The cases and the judgement of predicted collectives, exercise 2 of lab 07."""

import random
from typing import Any

from utils.labs import Criterion, Facts
from utils.labs.criteria import criterion
from utils.labs.lab07.annotated import FLOAT32

WEIGHTS = {"A": 2, "B": 1, "C": 1, "D": 2, "E": 2}


def predict_cases(rng: random.Random) -> list[Facts]:
    """Sizes at which every layout is worth what it sends: with fewer rows than features the
    compiler would rather send activations than weights in layout D. The first is compiled, too.
    """
    cases = []
    for compiled in (True, False, False):
        inputs, hidden, outputs = rng.sample(range(8, 96, 4), 3)
        rows = 2 * max(inputs, hidden, outputs) + 4 * rng.randint(0, 40)
        sizes = {"rows": rows, "inputs": inputs, "hidden": hidden, "outputs": outputs}
        cases.append({"sizes": sizes, "compiled": compiled})
    return cases


def predict_words(case: Facts) -> str:
    return ", ".join(f"{name} {size}" for name, size in case["sizes"].items())


def parts(sizes: dict[str, int], of: int = 1) -> list[float]:
    """Elements of w1, b1, w2 and b2, with the hidden ones divided among `of` devices."""
    hidden = sizes["hidden"] / of
    return [
        sizes["inputs"] * hidden,
        hidden,
        hidden * sizes["outputs"],
        sizes["outputs"],
    ]


def expected(sizes: dict[str, int]) -> dict[str, tuple[str, int, float]]:
    """Kind, number and bytes of the collectives of each layout; a test holds them equal to what the
    compiler makes.
    """
    rows, hidden = sizes["rows"], sizes["hidden"]
    w1, _, w2, _ = parts(sizes)
    found = {
        "A": ("all-reduce", 5, sum(parts(sizes)) + 1),
        "B": ("all-gather", 1, rows * hidden),
        "C": ("all-reduce", 1, rows * hidden),
        "D": ("all-gather", 2, w1 + w2),
        "E": ("all-reduce", 6, rows / 2 * sizes["outputs"] + sum(parts(sizes, 2)) + 1),
    }
    return {name: (kind, number, size * FLOAT32) for name, (kind, number, size) in found.items()}


_KIND = {
    "A": "each device has gradients of its own rows, and all need their sum",
    "B": "each device computes some of the hidden values, whole ones: what does the second layer"
    " need of them, a sum or all of them side by side?",
    "C": "each device multiplies some of the inputs, so what it has are parts of a sum",
    "D": "the rows stay where they are; what a device lacks for its own rows are the other parts of"
    " the weights",
    "E": "sums are missing twice: of the outputs among the devices of 'model', of the gradients"
    " among those of 'data'",
}
_NUMBER = {
    "A": "which tensors have a sum over rows in them? Each gets a collective of its own, and the"
    " gradients are not all",
    "B": "only one of the layers needs what lies on other devices",
    "C": "after the sum every device has all hidden values, and the second layer needs no more",
    "D": "a collective for each tensor that is divided and needed whole",
    "E": "one in the forward pass; then one for each tensor with a sum over rows in it: the loss"
    " has one, too",
}


def ways(name: str, sizes: dict[str, int]) -> list[tuple[str, float]]:
    """What wrong ways give for the bytes of a layout. The most telling first."""
    rows, inputs, hidden, outputs = (sizes[n] for n in ("rows", "inputs", "hidden", "outputs"))
    right = expected(sizes)[name][2]
    w1, b1, w2, b2 = parts(sizes)
    halves = parts(sizes, 2)
    loss = "the loss is a mean over all rows: it is reduced with the gradients"
    bias = "biases have gradients, too"
    own = {
        "A": [
            (loss, sum(parts(sizes))),
            (bias, w1 + w2 + 1),
            (bias, w1 + w2),
            ("gradients are as large as the weights, whatever the number of rows",
             rows * outputs),
            ("each device has gradients for all weights, of its own rows: none is divided",
             sum(parts(sizes)) / 4 + 1),
        ],
        "B": [
            ("the hidden values are needed, not the outputs", rows * outputs),
            ("the result of a gather is all of it: what a device puts in is a quarter",
             rows * hidden / 4),
            ("values are gathered here: the weights stay where they are", w1),
            ("values are gathered here: the weights stay where they are", w2),
        ],
        "C": [
            ("the sum is over the inputs: it is the hidden values that are summed", rows * inputs),
            ("the hidden values are needed, not the outputs", rows * outputs),
            ("partial sums are as large as the sum: each device has all hidden values",
             rows * hidden / 4),
        ],
        "D": [
            ("the biases are not marked: they are whole already", sum(parts(sizes))),
            ("both layers' weights are needed whole", w1),
            ("both layers' weights are needed whole", w2),
            ("the result of a gather is all of it: what a device puts in is a quarter",
             (w1 + w2) / 4),
            ("the activations of a device's rows stay with it", rows * (inputs + hidden)),
            ("the activations of a device's rows stay with it", rows * (hidden + outputs)),
        ],
        "E": [
            (loss, right / FLOAT32 - 1),
            ("a group of 'model' has half of the rows: the outputs of these are reduced",
             rows * outputs + sum(halves) + 1),
            ("a device holds half of what is divided along 'model', and so are its gradients",
             rows / 2 * outputs + sum(parts(sizes)) + 1),
            ("a device holds half of what is divided along 'model', and so are its gradients",
             rows * outputs + sum(parts(sizes)) + 1),
            ("the bias of the second layer is not marked: its gradient is whole",
             right / FLOAT32 - b2 / 2),
            ("the forward pass has its collective, too", sum(halves) + 1),
            ("gradients are reduced among the devices of 'data', too", rows / 2 * outputs),
            (bias, rows / 2 * outputs + halves[0] + halves[2] + 1),
        ],
    }  # fmt: skip
    common = [
        ("these are elements: an element of float32 has 4 bytes", right / FLOAT32),
        ("count what is on one device after it, once: not for every device", 4 * right),
        ("count what is on one device after it, once: how it travels is another matter",
         1.5 * right),
        ("count what is on one device after it, once: how it travels is another matter",
         2 * right),
        ("the bytes are those of all collectives of the layout together",
         right / expected(sizes)[name][1]),
        ("float32 has 4 bytes, not 2", right / 2),
        ("float32 has 4 bytes, not 8", right * 2),
    ]  # fmt: skip
    return [(text, number * FLOAT32) for text, number in own[name]] + common


def judge_predict(case: Facts, facts: Facts) -> list[Criterion]:
    right = expected(case["sizes"])
    if facts["predicted"] is None:
        message = (
            f"`predict` returned {facts['kind']}: return a dict of the layouts, such as"
            ' {"A": {kind: (number, bytes)}, ...}'
        )
        rows = [criterion(n, w, False, "", "", "") for n, w in WEIGHTS.items()]
        first = criterion("A", WEIGHTS["A"], False, facts["kind"], "a dict of 5", message)
        return [first, *rows[1:]]
    return [
        _judge_layout(name, weight, case["sizes"], right[name], facts)
        for name, weight in WEIGHTS.items()
    ]


def _judge_layout(
    name: str, weight: int, sizes: dict[str, int], right: tuple[str, int, float], facts: Facts
) -> Criterion:
    said = facts["predicted"].get(name)
    message = _about(name, sizes, right, said)
    compiled = facts["compiled"] and facts["compiled"][name]
    shown = ""
    if not message:
        (kind, (number, size)) = next(iter((compiled or {right[0]: right[1:]}).items()))
        shown = f"{number} {kind}, {size:.0f} bytes"
    return criterion(name, weight, not message, shown, "", message)


def _about(name: str, sizes: dict[str, int], right: tuple[str, int, float], said: Any) -> str:
    """What is wrong with a prediction; "" if nothing is."""
    kind, number, size = right
    if said is None:
        return f'no prediction yet: add "{name}": {{kind: (number, bytes)}}'
    if isinstance(said, str):
        return f"found {said}: return a dict {{kind: (number, bytes)}}"
    if set(said) != {kind}:
        found = " and ".join(sorted(said)) or "no collective"
        return f"{found} is not what is needed: {_KIND[name]}"
    pair = said[kind]
    if isinstance(pair, str) or any(isinstance(each, str) for each in pair):
        return f"found {pair} for {kind}: return a pair of numbers, (number, bytes)"
    if pair[0] != number:
        return f"{pair[0]:g} is not the number of them: {_NUMBER[name]}"
    if pair[1] == size:
        return ""
    known = [text for text, way in ways(name, sizes) if pair[1] == way]
    advice = "which tensors are the results, and how large is each on one device?"
    return f"{pair[1]:g} bytes is not their payload: {[*known, advice][0]}"
