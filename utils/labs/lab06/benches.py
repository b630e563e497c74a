"""The cases and the judgement of the benchmark, exercise 3 of lab 06."""

import random
import re
import statistics
from typing import Any

from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.criteria import criterion, first_of, none_judged
from utils.labs.lab06.device import TICK_S, call_ticks
from utils.labs.wrong_answers import message_of

SAYS = says("lab06")

SHAPES = ((0, 3), (2, 6), (3, 9), (5, 20))
"""warmup and repeats; with an even and an odd number of samples."""


def bench_cases(rng: random.Random) -> list[Facts]:
    """Four pairs of warmup and repeats, with times of the calls drawn for each."""
    return [_case(rng, warmup, repeats) for warmup, repeats in SHAPES]


def _case(rng: random.Random, warmup: int, repeats: int) -> Facts:
    calls = 1 + warmup + repeats
    compiles = [0] * calls
    compiles[0] = rng.randint(300_000, 500_000)  # less than what is pending: it would hide in that
    if warmup > 1:
        # As with momentum, which does not exist before the first step: another graph.
        compiles[1] = rng.randint(200_000, 290_000)
    if repeats > 8:
        compiles[rng.randrange(warmup + 2, calls)] = rng.randint(100_000, 190_000)
    # What has not run before is slower for a while, so the warm-up is told from the samples.
    work = [*rng.sample(range(7000, 9000), 1 + warmup), *rng.sample(range(1000, 6000), repeats)]
    return {
        "warmup": warmup,
        "repeats": repeats,
        "record_ticks": rng.randint(100, 300),
        "pending_ticks": rng.randint(600_000, 900_000),
        "compile_ticks": compiles,
        "work_ticks": work,
    }


def bench_words(case: Facts) -> str:
    """What a card says of a case."""
    warmup, repeats = case["warmup"], case["repeats"]
    ticks = [call_ticks(case, call) for call in range(1 + warmup + repeats)]
    median = statistics.median(ticks[1 + warmup :])
    return (
        f"warmup = {warmup}, repeats = {repeats}; the first call takes"
        f" {ticks[0] * TICK_S * 1e3:.3f} ms, the median of the samples is"
        f" {median * TICK_S * 1e3:.3f} ms"
    )


def judge_bench(case: Facts, facts: Facts) -> list[Criterion]:
    """Five criteria: calls, steps that ran once, `first_s`, `median_s`, and results held."""
    log, calls = facts["log"], 1 + case["warmup"] + case["repeats"]
    held, kept = facts["most_alive"], SAYS["all-are-kept"]
    rows = [
        _calls(case, log, calls),
        _once(facts, calls),
        _first(case, facts),
        _median(case, facts),
        criterion("results held", 1, held <= 2, str(held), "at most 2 at a time", kept),
    ]
    if not log.count("f"):
        message = SAYS["does-nothing-3"].format(returned=_return_text(facts))
        return none_judged(rows, message)
    if "c" not in log:
        message = SAYS["another-clock"]
        return [*rows[:2], *none_judged(rows[2:], message)]
    if facts["items"] is None:
        message = f'{_return_text(facts)}: return {{"first_s": ..., "median_s": ...}}, in seconds'
        return [*rows[:2], *none_judged(rows[2:4], message), rows[4]]
    return rows


def _return_text(facts: Facts) -> str:
    return SAYS["a-pair"].format(kind=facts["kind"])


def _calls(case: Facts, log: str, calls: int) -> Criterion:
    result, target = log.count("f"), f"1 + {case['warmup']} + {case['repeats']}"
    passed = result == calls
    return criterion("calls of step", 1, passed, str(result), target, SAYS["no-first"])


def _once(facts: Facts, calls: int) -> Criterion:
    runs, reads, called = facts["runs"], facts["log"].count("i"), facts["log"].count("f")
    once = sum(count == 1 for count in runs)
    message = first_of(
        (max(runs) > 1, SAYS["read-and-settled"]),
        (reads, SAYS["read-in-place-of-settled"]),
        (sum(runs) == called < calls, "all that were called ran: call the missing ones"),
        otherwise=SAYS["dropped"],
    )
    passed = once == len(runs) and not reads
    return criterion("each step ran once", 2, passed, f"{once} of {len(runs)}", "all", message)


def _first(case: Facts, facts: Facts) -> Criterion:
    right = call_ticks(case, 0)
    response = (facts["items"] or [None, None])[0]
    log = facts["log"]
    before = log[: log.index("f")] if "f" in log else log
    unread = "the clock is not read before the first call: it is the one that compiles"
    second = "this is the second call: the first one compiles, and is what a cold start costs"
    message = first_of(
        ("c" not in before, unread),
        (not re.search(r"sc+$", before), SAYS["busy-at-first"]),
        (_is(response, case["record_ticks"]), SAYS["no-wait"]),
        (case["warmup"] and _is(response, call_ticks(case, 1)), second),
        otherwise="this is not the time of the first call alone, from settle to settle",
    )
    return _number("first_s", 2, response, right, "the first call", message)


def _median(case: Facts, facts: Facts) -> Criterion:
    ticks = [call_ticks(case, call) for call in range(len(case["work_ticks"]))]
    samples = ticks[1 + case["warmup"] :]
    response, right = (facts["items"] or [None, None])[1], statistics.median(samples)

    def alike(known: Facts) -> bool:
        same = known["log"].count("f") == facts["log"].count("f")
        return same and _is(response, known["items"][1] / TICK_S)

    message = message_of("lab06.ex3", case, alike, SAYS["one-loop-for-all"])
    if facts["log"].count("f") < len(ticks):
        message = "these are other samples than those that were asked for: calls are missing"
    return _number("median_s", 2, response, right, f"of {len(samples)} samples", message)


def _is(response: Any, ticks: float) -> bool:
    return isinstance(response, int | float) and abs(response - ticks * TICK_S) < 1e-9


def _number(
    name: str, weight: int, response: Any, right: float, target: str, message: str
) -> Criterion:
    if not isinstance(response, int | float):
        result = response if isinstance(response, str) else "no number"
        return criterion(name, weight, False, result, target, f"{name} is {result}: return seconds")
    return criterion(name, weight, _is(response, right), milliseconds(response), target, message)


def milliseconds(seconds: float) -> str:
    """
    >>> milliseconds(0.25)
    '250.000 ms'
    """
    return f"{seconds * 1e3:.3f} ms"
