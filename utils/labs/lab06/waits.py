"""The cases and the judgement of predicted waits, exercise 2 of lab 06."""

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.criteria import all_right, among, not_asked_for, not_judged, row
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


def another_way(
    pipeline: Facts,
    *,
    ahead: Callable[[int, int], int] = lambda workers, prefetch: workers * prefetch,
    free: bool = False,
    ordered_at: str = "taken",
    shifted: bool = True,
) -> Waits:
    """What other rules give.

    ahead: how many batches may be ordered and not taken. free: a batch goes to the first worker
    that is free. ordered_at: "taken" or "done", what of batch i - ahead orders batch i.
    shifted: whether a wait delays what comes after it.
    """
    load, work, workers = pipeline["load_ms"], pipeline["work_ms"], pipeline["workers"]
    limit = ahead(workers, pipeline["prefetch"])
    at: dict[str, list[float]] = {"taken": [], "done": []}
    ends = [0.0] * max(workers, 1)
    waits, asked = [], 0.0
    for number, (make, use) in enumerate(zip(load, work, strict=True)):
        place = ends.index(min(ends)) if free else number % max(workers, 1)
        order = at[ordered_at][number - limit] if 0 < limit <= number else 0.0
        ends[place] = max(ends[place], order if limit else asked) + make
        waits.append(max(0.0, ends[place] - asked))
        taken = asked + waits[-1]
        at["taken"].append(taken)
        asked = (taken if shifted else asked) + use
        at["done"].append(taken + use)
    return waits


def _with_workers(pipeline: Facts, workers: int) -> Waits:
    return another_way({**pipeline, "workers": workers})


WAYS: list[tuple[str, Callable[[Facts], Any]]] = [
    (SAYS["no-bound"], lambda p: another_way(p, ahead=lambda w, _: 10**9 * (w > 0))),
    (SAYS["prefetch-in-all"], lambda p: another_way(p, ahead=lambda w, most: most * (w > 0))),
    (SAYS["whoever-is-free"], lambda p: another_way(p, free=True)),
    (SAYS["ordered-after-the-work"], lambda p: another_way(p, ordered_at="done")),
    (SAYS["waits-delay-nothing"], lambda p: another_way(p, shifted=False)),
    (SAYS["always-without-workers"], lambda p: [float(item) for item in p["load_ms"]]),
    (SAYS["workers-when-there-are-none"], lambda p: _with_workers(p, p["workers"] or 1)),
    (
        SAYS["one-worker-for-all"],
        lambda p: another_way({**p, "workers": 1}, ahead=lambda *_: p["workers"] * p["prefetch"]),
    ),
    (SAYS["load-less-work"], lambda p: _unbounded(p)),
    (SAYS["the-first-is-free"], lambda p: [0.0, *right_waits(p)[1:]]),
    (SAYS["seconds"], lambda p: [w / 1000 for w in right_waits(p)]),
]


def _unbounded(pipeline: Facts) -> Waits:
    loads, works = pipeline["load_ms"], [0, *pipeline["work_ms"]]
    return [load - work for load, work in zip(loads, works, strict=False)]


def judge_waits(case: Facts, facts: Facts) -> list[Criterion]:
    """Three criteria: pipelines without workers, with one, and with several."""
    asked = {
        "without workers": [p for p in case["pipelines"] if p["workers"] == 0],
        "one worker": [p for p in case["pipelines"] if p["workers"] == 1],
        "several workers": [p for p in case["pipelines"] if p["workers"] > 1],
    }
    response = list(zip(case["pipelines"], facts["said"], strict=True))
    shapeless = [row for row in facts["said"] if row["items"] is None]
    if len(shapeless) == len(response):
        kind = shapeless[0]["kind"]
        return _no_prediction(SAYS["the-total"].format(kind=kind))
    if not any(any(row["items"] or []) for row in facts["said"]):
        # No wait at all is no prediction, though a pipeline may happen to have hardly any.
        return _no_prediction(SAYS["nothing-is-waited-for"])
    groups = []
    for name, weight in GROUPS.items():
        item = _group(name, weight, [(p, s) for p, s in response if p in asked[name]])
        item = replace(item, measured=f"{item.measured} pipelines")
        groups.append(among(item, asked[name], case["pipelines"]))
    # Its own inputs, given back, are right without workers.
    same = all(row["items"] == pipeline["load_ms"] for pipeline, row in response)
    same = same and not all(item.passed for item in groups)
    return [not_judged(item) if same and item.passed else item for item in groups]


def _no_prediction(message: str) -> list[Criterion]:
    return not_asked_for(GROUPS, message, "not judged", others="not judged")


def _group(name: str, weight: int, rows: list[tuple[Facts, Facts]]) -> Criterion:
    off = [n for n, (p, s) in enumerate(rows) if not _same(s["items"], right_waits(p))]
    wrong = [(rows[n][0], rows[n][1]["items"], rows[n][1]["kind"]) for n in off]
    if not wrong:
        return all_right(name, weight, [], len(rows), "", "every wait")
    pipeline, items, kind = wrong[0]
    count = len(pipeline["load_ms"])
    if items is None or len(items) != count:
        message = SAYS["one-less"].format(kind=kind, count=count)
    elif strange := [item for item in items if isinstance(item, str)]:
        message = SAYS["text"].format(value=strange[0])
    else:
        counts = [sum(_same(i, way(p)) for p, i, _ in wrong) for _, way in WAYS]
        pairs = enumerate(zip(items, right_waits(pipeline), strict=True))
        place = next(n for n, (a, b) in pairs if a != b)
        message = (
            f"the wait before batch {place} is the first that is wrong: when is its load"
            " ordered, when is its worker free, when does the loop ask?"
        )
        if any(counts):
            message = WAYS[counts.index(max(counts))][0]
    beside = [
        row(f"batch {n}", mine, right)
        for n, (mine, right) in enumerate(zip(items or [], right_waits(pipeline), strict=False))
        if mine != right
    ]
    return all_right(name, weight, off, len(rows), message, "every wait", beside)


def _same(items: Any, right: Waits) -> bool:
    if items is None or len(items) != len(right):
        return False
    pairs = zip(items, right, strict=True)
    return all(not isinstance(mine, str) and abs(mine - wait) < 1e-6 for mine, wait in pairs)
