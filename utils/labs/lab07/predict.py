"""The cases and the judgement of predicted collectives, exercise 2 of lab 07."""

import random
from typing import Any

from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.criteria import criterion, not_asked_for
from utils.labs.lab07.sharding import FLOAT32
from utils.labs.wrong_answers import message_of

SAYS = says("lab07")

WEIGHTS = {"A": 1, "B": 1, "C": 1, "D": 1, "E": 2}


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


def parts(sizes: dict[str, int], of: int = 1) -> list[float]:
    """Elements of w1, b1, w2 and b2, with the hidden ones divided among `of` devices."""
    hidden = sizes["hidden"] / of
    return [sizes["inputs"] * hidden, hidden, hidden * sizes["outputs"], sizes["outputs"]]


def collectives(sizes: dict[str, int]) -> dict[str, tuple[str, int, float]]:
    """Kind, number and bytes of the collectives of each layout; a test holds them equal to what the
    compiler makes.
    """
    rows, hidden = sizes["rows"], sizes["hidden"]
    w1, _, w2, _ = parts(sizes)
    results = {
        "A": ("all-reduce", 5, sum(parts(sizes)) + 1),
        "B": ("all-gather", 1, rows * hidden),
        "C": ("all-reduce", 1, rows * hidden),
        "D": ("all-gather", 2, w1 + w2),
        "E": ("all-reduce", 6, rows / 2 * sizes["outputs"] + sum(parts(sizes, 2)) + 1),
    }
    return {name: (kind, number, size * FLOAT32) for name, (kind, number, size) in results.items()}


_KIND = {
    "A": SAYS["nothing-is-sent"],
    "B": SAYS["a-sum-of-columns"],
    "C": SAYS["parts-gathered"],
    "D": SAYS["nothing-in-d"],
    "E": "sums are missing twice: of the outputs among the devices of 'model', of the gradients"
    " among those of 'data'",
}
_NUMBER = {
    "A": SAYS["no-loss-in-the-number"],
    "B": "only one of the layers needs what lies on other devices",
    "C": "after the sum every device has all hidden values, and the second layer needs no more",
    "D": SAYS["one-weight"],
    "E": SAYS["no-forward-pass"],
}


def judge_predict(case: Facts, facts: Facts) -> list[Criterion]:
    """One criterion for each of the five layouts."""
    right = collectives(case["sizes"])
    if facts["predicted"] is None:
        message = SAYS["does-nothing-2"].format(kind=facts["kind"])
        return not_asked_for(WEIGHTS, message, facts["kind"], "a dict of 5")
    return [
        _judge_layout(name, weight, case, right[name], facts) for name, weight in WEIGHTS.items()
    ]


def _judge_layout(
    name: str, weight: int, case: Facts, right: tuple[str, int, float], facts: Facts
) -> Criterion:
    response = facts["predicted"].get(name)
    message = _about(name, case, right, response)
    compiled = facts["compiled"] and facts["compiled"][name]
    shown = ""
    if not message:
        (kind, (number, size)) = next(iter((compiled or {right[0]: right[1:]}).items()))
        shown = f"{number} {kind}, {size:.0f} bytes"
    return criterion(name, weight, not message, shown, "", message)


def _about(name: str, case: Facts, right: tuple[str, int, float], response: Any) -> str:
    """What is wrong with a prediction; "" if nothing is."""
    kind, number, size = right
    if response is None:
        return SAYS["empty"].format(name=name)
    if isinstance(response, str):
        return f"found {response}: return a dict {{kind: (number, bytes)}}"
    if set(response) != {kind}:
        result = " and ".join(sorted(response)) or "no collective"
        return f"{result} is not what is needed: {_KIND[name]}"
    pair = response[kind]
    if isinstance(pair, str) or any(isinstance(item, str) for item in pair):
        return SAYS["a-number"].format(pair=pair, kind=kind)
    if pair[0] != number:
        return f"{pair[0]:g} is not the number of them: {_NUMBER[name]}"
    if pair[1] == size:
        return ""
    advice = "which tensors are the results, and how large is each on one device?"

    def alike(facts: Facts) -> bool:
        return facts["predicted"][name] == {kind: pair}

    known = message_of("lab07.ex2", {**case, "compiled": False}, alike, advice)
    return f"{pair[1]:g} bytes is not their payload: {known}"
