"""The cases and the judgement of the wrong layer, exercise 5 of lab 12."""

import random
from typing import Any

import numpy as np
from scipy.special import log_softmax

from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.criteria import all_right, among, not_asked_for, not_of_the_form, row
from utils.labs.values import Ways, near, right_values

SAYS = says("lab12")

TOLERANCE = 1e-3
"""For numbers of the logits: the same call of the model gives the same bits, and float64 is off by
1e-13."""

SAME = 0.02
"""How far logits that were observed may lie from those that the judge computes on the CPU. Without
a fault they lie within 0.002, measured; no other change is needed to win anything."""

LARGE = ("two rows swapped", "variance over one less", "another epsilon", "bfloat16 weights")
SMALL = ("tanh for erf", "12 bits of weights", "bfloat16 softmax")
WEIGHTS = {"max difference": 1, "KL": 1, "top-1": 1, "large faults": 2, "small and none": 2}


def model_cases(rng: random.Random) -> list[Facts]:
    """Models with one fault or none; those of the second case lie in all sorts of modules."""
    small = [*SMALL, "12 bits of weights"]
    first = [_model(rng, "two rows swapped"), _model(rng, "")]
    faults = rng.sample([*rng.sample(LARGE[1:], 2), *rng.sample(small, 3), ""], 6)
    return [{"models": first}, {"models": [_model(rng, fault) for fault in faults]}]


def _model(rng: random.Random, fault: str) -> Facts:
    from utils.labs.lab12.models import FAULTS

    return {
        "seed": rng.randrange(10**6),
        "offset": float(rng.randint(900, 1200)),
        "fault": fault,
        "module": rng.choice(FAULTS[fault][0]) if fault else None,
    }


def model_words(case: Facts) -> str:
    """What a card says of a case."""
    return f"{len(case['models'])} models of seeds {[model['seed'] for model in case['models']]}"


def label(item: Facts) -> str:
    """A model by its fault and where it is, for messages."""
    return f"{item['fault']} in {item['module']}" if item["module"] else "no fault"


# What is right


def numbers(reference: Any, candidate: Any) -> dict[str, float]:
    """Of the logits [rows, classes] of both."""
    first, second = (np.asarray(item, dtype=np.float64) for item in (reference, candidate))
    return {
        "max_difference": float(abs(first - second).max()),
        "kl": divergence(first, second),
        "top1": float((first.argmax(-1) == second.argmax(-1)).mean()),
    }


def divergence(first: np.ndarray, second: np.ndarray) -> float:
    """KL of the second from the first, in nats, mean over rows."""
    logs, others = log_softmax(first, -1), log_softmax(second, -1)
    return float((np.exp(logs) * (logs - others)).sum(-1).mean())


def _genuine(case: Facts, observed: list[Any]) -> bool:
    """Whether the logits are those of these models: nothing in torch was replaced."""
    from utils.labs.lab12.models import one_thread

    with one_thread():
        return all(
            _same(item, response) for item, response in zip(case["models"], observed, strict=True)
        )


def _same(model: Facts, observed: Any) -> bool:
    from utils.labs.lab12.models import reference, with_fault

    first, x = reference(model["seed"], model["offset"])
    second = with_fault(first, model["module"], model["fault"])
    for some, result in zip((first, second), observed, strict=True):
        right, given = some(x).double().numpy(), np.asarray(result, dtype=np.float64)
        if given.shape != right.shape or not abs(given - right).max() <= SAME:
            return False
    return True


def judge_reports(case: Facts, facts: Facts) -> list[Criterion]:
    """Five criteria: three numbers of the logits, and the module with a large or a small fault."""
    response = facts["response"]
    if odd := not_of_the_form(response, WEIGHTS, SAYS["no-report"]):
        return odd
    if not _genuine(case, facts["logits"]):
        message = "the logits are not those of the models: what was changed in torch?"
        return not_asked_for(WEIGHTS, message, "not judged", others="not judged")
    asked = list(zip(case["models"], response, facts["logits"], strict=True))
    large = [item for item in asked if item[0]["fault"] in LARGE]
    others = [item for item in asked if item[0]["fault"] not in LARGE]
    return [
        *(_number(name, key, asked) for name, key in KEYS.items()),
        among(_modules("large faults", large), large, asked),
        among(_modules("small and none", others), others, asked),
    ]


KEYS = {"max difference": "max_difference", "KL": "kl", "top-1": "top1"}
Asked = list[tuple[Facts, Facts, Any]]
"""A model, what was said of it, and the logits of reference and candidate."""


def _ways(logits: Any) -> dict[str, Ways]:
    """What wrong ways give, by number. The records need torch, for which no judge waits."""
    first, second = (np.asarray(logit, dtype=np.float64) for logit in logits)
    right, rows = numbers(first, second), len(first)
    chances = [np.exp(log_softmax(item, -1)) for item in (first, second)]
    return {
        "max_difference": [
            (SAYS["a-mean"], float(abs(first - second).mean())),
            (SAYS["with-signs"], float((second - first).max())),
            (SAYS["with-signs"], float((first - second).max())),
            (SAYS["of-the-probabilities"], float(abs(chances[0] - chances[1]).max())),
        ],
        "kl": [
            (SAYS["a-sum"], right["kl"] * rows),
            (SAYS["mean-of-all"], right["kl"] / first.shape[-1]),
            (SAYS["the-other-way-round"], divergence(second, first)),
            (SAYS["bits"], right["kl"] / np.log(2)),
        ],
        "top1": [
            (SAYS["a-count"], right["top1"] * rows),
            (SAYS["percent"], right["top1"] * 100),
            (SAYS["those-that-differ"], 1 - right["top1"]),
        ],
    }


def _number(name: str, key: str, asked: Asked) -> Criterion:
    right = [numbers(*logits)[key] for _, _, logits in asked]
    values = ["None" if item[key] is None else item[key] for _, item, _ in asked]
    wrong = [p for p, value in enumerate(values) if not near(value, right[p], TOLERANCE)]
    small = key == "kl" and wrong and right[wrong[0]] < 1e-5
    advice = _ADVICE[key] + SAYS["kl-of-float32"] * bool(small)
    labels, ways = [_which(model) for model, _, _ in asked], [_ways(it)[key] for *_, it in asked]
    return right_values(name, WEIGHTS[name], values, right, labels, ways, advice, TOLERANCE)


def _which(model: Facts) -> str:
    return f"seed {model['seed']}, {label(model)}"


_ADVICE = {
    "max_difference": "the largest absolute difference of two logits, of reference(x) and"
    " candidate(x)",
    "kl": "for each row the sum of p (log p - log q), p of the reference and q of the candidate,"
    " both by softmax; the mean over the rows",
    "top1": "the share of rows in which both have their largest logit at the same class",
}


def _modules(name: str, asked: Asked) -> Criterion:
    texts = [s["module"] for _, s, _ in asked]
    wrong = [p for p, (m, _, _) in enumerate(asked) if texts[p] != m["module"]]
    message = _why(asked[wrong[0]][0], texts[wrong[0]]) if wrong else ""
    rows = [row(_which(asked[p][0]), texts[p], asked[p][0]["module"]) for p in wrong]
    return all_right(name, WEIGHTS[name], wrong, len(asked), message, "the module", rows, texts)


def _why(model: Facts, response: str | None) -> str:
    from utils.labs.lab12.models import NAMES

    right = model["module"]
    if response is None:
        return SAYS["a-fixed-limit-of-1e-3"]
    if response not in NAMES:
        return SAYS["the-number-of-the-module"].format(answer=response, NAMES=", ".join(NAMES))
    if right is None:
        return SAYS["a-fixed-limit-of-1e-5"].format(answer=response)
    if NAMES.index(response) > NAMES.index(right):
        return SAYS["the-largest-difference"].format(answer=response)
    return SAYS["the-first-that-differs"].format(answer=response)
