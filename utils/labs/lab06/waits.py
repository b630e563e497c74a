"""The cases and the judgement of predicted waits, exercise 2 of lab 06."""

import random
from dataclasses import replace
from typing import Any

from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.criteria import all_right, among, not_asked_for, not_judged, row
from utils.labs.wrong_answers import message_of
from utils.training.loading import predict

SAYS = says("lab06")

Waits = list[float]
GROUPS = {"without workers": 1, "one worker": 2, "several workers": 3}
MANY = (0, 1, 2, 2, 3, 4, 5, 6)
"""Workers of the long pipelines."""


def wait_cases(rng: random.Random) -> list[Facts]:
    """Pipelines by number of workers; the first of each case is short enough for paper."""
    cases = []
    for workers in (0, 1, 2, 3, 5):
        cases.append({"pipelines": [_pipeline(rng, workers, n) for n in (5, 9, 14)]})
    cases.append({"pipelines": [_pipeline(rng, workers, 30) for workers in MANY]})
    return cases


def _pipeline(rng: random.Random, workers: int, batches: int) -> Facts:
    """Loads of all sorts, so that sometimes the loop and sometimes the loader is the slower."""
    scale = max(workers, 1)
    work = [rng.randint(10, 60) for _ in range(batches)]
    load = [rng.randint(4 * scale, 55 * scale) for _ in range(batches)]
    for place in rng.sample(range(batches), 1 + batches // 8):
        load[place] += 100 * scale
    return {"load_ms": load, "work_ms": work, "workers": workers, "prefetch": rng.randint(1, 3)}


def wait_words(case: Facts) -> str:
    """What a card says of a case."""
    first = case["pipelines"][0]
    if len(first["load_ms"]) > 9:
        return f"{len(case['pipelines'])} pipelines of {len(first['load_ms'])} batches"
    return ", ".join(f"{name} = {value}" for name, value in first.items())


def right_waits(pipeline: Facts) -> Waits:
    """Milliseconds; the rules are those of lesson 06, in one place."""
    given = pipeline["load_ms"], pipeline["work_ms"]
    result = predict(*given, workers=pipeline["workers"], prefetch=pipeline["prefetch"])
    return list(result.waits.waits_s)


def judge_waits(case: Facts, facts: Facts) -> list[Criterion]:
    """Three criteria: pipelines without workers, with one, and with several."""
    asked = {
        "without workers": [p for p in case["pipelines"] if p["workers"] == 0],
        "one worker": [p for p in case["pipelines"] if p["workers"] == 1],
        "several workers": [p for p in case["pipelines"] if p["workers"] > 1],
    }
    response = list(zip(case["pipelines"], facts["response"], strict=True))
    shapeless = [row for row in facts["response"] if row["items"] is None]
    if len(shapeless) == len(response):
        kind = shapeless[0]["kind"]
        return _no_prediction(SAYS["the-total"].format(kind=kind))
    if not any(any(row["items"] or []) for row in facts["response"]):
        # No wait at all is no prediction, though a pipeline may happen to have hardly any.
        return _no_prediction(SAYS["nothing-is-waited-for"])
    groups = []
    for name, weight in GROUPS.items():
        item = _group(name, weight, case, facts, [(p, s) for p, s in response if p in asked[name]])
        item = replace(item, measured=f"{item.measured} pipelines")
        groups.append(among(item, asked[name], case["pipelines"]))
    # Its own inputs, given back, are right without workers.
    same = all(row["items"] == pipeline["load_ms"] for pipeline, row in response)
    same = same and not all(item.passed for item in groups)
    return [not_judged(item) if same and item.passed else item for item in groups]


def _no_prediction(message: str) -> list[Criterion]:
    return not_asked_for(GROUPS, message, "not judged", others="not judged")


def _group(
    name: str, weight: int, case: Facts, facts: Facts, pairs: list[tuple[Facts, Facts]]
) -> Criterion:
    off = [n for n, (p, s) in enumerate(pairs) if not _same(s["items"], right_waits(p))]
    if not off:
        return all_right(name, weight, [], len(pairs), "", "every wait")
    pipeline, response = pairs[off[0]]
    items, count, right = response["items"], len(pipeline["load_ms"]), right_waits(pipeline)
    wrong = [
        n for n, (mine, wait) in enumerate(zip(items or [], right, strict=False)) if mine != wait
    ]
    if items is None or len(items) != count:
        message = SAYS["one-less"].format(kind=response["kind"], count=count)
    elif strange := [item for item in items if isinstance(item, str)]:
        message = SAYS["text"].format(value=strange[0])
    else:
        message = (
            f"the wait before batch {wrong[0]} is the first that is wrong: when is its load"
            " ordered, when is its worker free, when does the loop ask?"
        )
        reply, place = facts["response"], case["pipelines"].index(pipeline)

        def alike(known: Facts) -> int:
            same = [
                _same(a["items"], b["items"]) for a, b in zip(known["response"], reply, strict=True)
            ]
            return same[place] * sum(same)

        message = message_of("lab06.ex2", case, alike, message)
    beside = [row(f"batch {n}", items[n], right[n]) for n in wrong]
    return all_right(name, weight, off, len(pairs), message, "every wait", beside)


def _same(items: Any, others: Any) -> bool:
    if items is None or others is None or len(items) != len(others):
        return False
    pairs = zip(items, others, strict=True)
    return all(not isinstance(mine, str) and abs(mine - wait) < 1e-6 for mine, wait in pairs)
