"""The cases and the judgement of the benchmark, exercise 3 of lab 03."""

import random
from dataclasses import replace
from typing import Any

from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.criteria import criterion, not_judged, times
from utils.labs.lab03 import fake
from utils.labs.wrong_answers import message_of

SAYS = says("lab03")


def bench_cases(rng: random.Random) -> list[Facts]:
    """Cases without and with warm-up; the last has 200 samples."""
    shapes = ((0, 2 * rng.randint(2, 3)), (2, 2 * rng.randint(3, 6) + 1), (3, 200))
    return [_bench_case(rng, warmup, repeats) for warmup, repeats in shapes]


def _bench_case(rng: random.Random, warmup: int, repeats: int) -> Facts:
    # All different and in no order, with a long tail, so that no rank is mistaken for another.
    work = rng.sample(range(1000, 3000), warmup + repeats)
    slow = rng.sample(range(warmup, warmup + repeats), 1 + repeats // 40)
    # Steps as wide as the range above keep the slow ones different, too.
    for call, extra in zip(slow, rng.sample(range(10_000, 30_000, 2_000), len(slow)), strict=True):
        work[call] += extra
    return {
        "warmup": warmup,
        "repeats": repeats,
        "enqueue_ticks": rng.randint(20, 60),
        "pending_ticks": rng.randint(50_000, 90_000),
        "compile_ticks": [rng.randint(200_000, 400_000) for _ in range(min(warmup, 2))],
        "work_ticks": work,
    }


def bench_words(case: Facts) -> str:
    """The case with its samples as a reader checks them: in milliseconds and sorted."""
    warmup, repeats = case["warmup"], case["repeats"]
    ticks = sorted(fake.call_ticks(case, call) for call in range(warmup, warmup + repeats))
    in_ms = [f"{tick * fake.TICK_S * 1e3:.3f}" for tick in ticks]
    samples = in_ms if repeats <= 8 else [*in_ms[:3], "...", *in_ms[-3:]]
    ends = ", ".join(
        f"{name} {fake.percentile(ticks, percent) * fake.TICK_S * 1e3:.3f}"
        for name, percent in (("median", 50), ("p99", 99))
    )
    return (
        f"warmup = {warmup}, repeats = {repeats}, samples in ms, sorted:"
        f" {', '.join(samples)}; {ends}"
    )


def _quantile(
    name: str, case: Facts, facts: Facts, response: Any, percent: int, sound: bool
) -> Criterion:
    """sound: whether the samples were taken as asked."""
    warmup, repeats = case["warmup"], case["repeats"]
    calls = [fake.call_ticks(case, call) for call in range(warmup + repeats)]
    samples = calls[warmup:]
    target = f"rank {-(-percent * repeats // 100)} of {repeats}"
    if _no_number(response):
        return criterion(name, 2, False, "no number", target, "")

    def is_response(ticks: float) -> bool:
        return abs(response - ticks * fake.TICK_S) < 1e-9

    def alike(known: Facts) -> int:
        # Other samples have other ranks: one that fits by chance would mislead.
        taken = sound and all(item.passed for item in _order(case, known))
        others = zip(known["returned"]["items"], facts["returned"]["items"], strict=True)
        same = [abs(a - b) < 1e-9 for a, b in others]
        return taken * same[percent == 99] * sum(same)

    passed = is_response(fake.percentile(samples, percent))
    known = "" if passed else message_of("lab03.ex3", case, alike, "")
    reasons = [known] if known else []
    if is_response(fake.percentile(calls, percent)):
        reasons.append(SAYS["warm-up-among-the-samples"])
    if response <= 2 * case["enqueue_ticks"] * fake.TICK_S:
        reasons.append(SAYS["clock-stopped-too-early"])
    reasons.append(
        SAYS["milliseconds"] if sound else SAYS["first-sample-not-idle-so-wrong-percentiles"]
    )
    return criterion(name, 2, passed, f"{response * 1e3:.3f} ms", target, reasons[0])


def _order(case: Facts, facts: Facts) -> list[Criterion]:
    """Three criteria for the order of the calls."""
    log, warmup, repeats = facts["log"], case["warmup"], case["repeats"]
    before, timed = fake.split_log(log, warmup)
    called, syncs = log.count("f"), timed.count("s")
    if syncs == repeats:
        timing = SAYS["clock-stopped-too-early-in-words"]
    elif syncs < repeats:
        timing = SAYS["no-sync-in-the-sample"]
    else:
        timing = SAYS["two-syncs-a-sample"]
    idle = fake.starts_idle(before) and bool(timed)
    return [
        criterion(
            "calls of fn",
            1,
            called == warmup + repeats,
            str(called),
            f"{warmup} + {repeats}",
            SAYS["no-warm-up"],
        ),
        criterion(
            "idle at the start",
            1,
            idle,
            "idle" if idle else "not idle",
            "sync, then start the clock",
            SAYS["first-sample-not-idle"],
        ),
        criterion(
            "one sync a sample",
            2,
            fake.samples_in(timed) == repeats,
            f"{times(syncs, 'sync')} for {times(repeats, 'sample')}",
            "fn, sync, clock",
            timing,
        ),
    ]


def judge_bench(case: Facts, facts: Facts) -> list[Criterion]:
    """Three criteria for the order of the calls, and one each for the median and the p99."""
    log, order = facts["log"], _order(case, facts)
    called, items = log.count("f"), facts["returned"]["items"] or []
    median, p99 = items if len(items) == 2 else (None, None)
    sound = all(item.passed for item in order)
    rows = [
        *order,
        _quantile("median", case, facts, median, 50, sound),
        _quantile("p99", case, facts, p99, 99, sound),
    ]
    missing = [row for row, item in zip(rows[3:], (median, p99), strict=True) if _no_number(item)]
    unreturned = SAYS["one-number"].format(returned=_return_text(items, facts))
    if not called:
        # Nothing else can be said of what never ran.
        first = SAYS["makes-up-two-numbers"]
        first = f"{unreturned}. Besides, {first}" if missing else first
        return [
            criterion(order[0].name, order[0].weight, False, "0", order[0].target, first),
            *map(not_judged, rows[1:]),
        ]
    if "c" not in log:
        first = SAYS["another-clock"]
        return [
            rows[0],
            not_judged(rows[1]),
            not_judged(rows[2], first),
            *map(not_judged, rows[3:]),
        ]
    return [
        replace(row, message=unreturned if row is missing[0] else "") if row in missing else row
        for row in rows
    ]


def _no_number(value: Any) -> bool:
    return not isinstance(value, int | float)


def _return_text(items: list[Any], facts: Facts) -> str:
    kind = facts["returned"]["kind"]
    if len(items) == 2:
        kind = f"({', '.join(item if _no_number(item) else 'a number' for item in items)})"
    return f"`bench` returned {kind}"
