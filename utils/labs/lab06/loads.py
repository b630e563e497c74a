"""The cases and the judgement of the loader, exercise 1 of lab 06."""

import random

from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.criteria import at_most, criterion, none_judged
from utils.training.loading import Waits

SAYS = says("lab06")

LIMIT = 0.10
"""The largest share of waiting. A loader that keeps to the rules has less than 6 % in the cases
that are drawn, one with one thread, or without work ahead, more than 20 %: the tests measure both.
"""
REAL_LIMIT = 0.40
"""On the clock of this machine: a starved loader waits 60 % of the time there, a right one hardly.
It is only said, and decides nothing."""

COUNT = 16
SHAPES = ((1, 1), (4, 2), (3, 3))
"""Workers and batches ahead. In the second, two workers of four have nothing to do."""


def _batches(count: int) -> str:
    return "1 batch" if count == 1 else f"{count} batches"


def load_cases(rng: random.Random) -> list[Facts]:
    """Three pairs of workers and batches ahead, with times in ticks drawn for each."""
    return [_case(rng, workers, ahead) for workers, ahead in SHAPES]


def _case(rng: random.Random, workers: int, ahead: int) -> Facts:
    step = 10 * rng.randint(20, 40)
    together = min(workers, ahead)
    # As much as the workers can do in the steps, less a margin; the first is late, so that
    # batches are not ready in the order in which they are begun.
    most = step * together * 3 // 4
    makes = [rng.randint(most * 3 // 4, most) for _ in range(COUNT)]
    makes[0] = 2 * most
    return {
        "count": COUNT,
        "workers": workers,
        "ahead": ahead,
        "make_ticks": makes,
        "step_ticks": [step] * COUNT,
        "taken": rng.randint(2, 4),
        "fails": rng.randint(4, 7) if ahead > 2 else None,
        "salt": rng.randint(1, 10**6),
        "real": (workers, ahead) == (3, 3),
    }


def load_words(case: Facts) -> str:
    """What a card says of a case."""
    makes, step = case["make_ticks"], case["step_ticks"][0]
    return (
        f"count = {case['count']}, workers = {case['workers']}, ahead = {case['ahead']}; a batch"
        f" takes {min(makes[1:])} to {max(makes[1:])} ms to make, a step {step} ms"
    )


def judge_load(case: Facts, facts: Facts) -> list[Criterion]:
    """Six criteria: order, wait share, batches ahead, made at a time, an error, threads."""
    run = facts["run"]
    first = _order(case, facts)
    rows = [_wait_share(case, facts), *_limits(case, facts), *_endings(case, facts)]
    # Who waits for no batch that make made keeps every limit, and has shown nothing.
    nothing = -1 in run["got"] or len(run["got"]) < case["count"] // 2
    if nothing or run["in_consumer"] == run["begun"]:
        message = first.message or (SAYS["the-given-one"])
        return none_judged([first, *rows], message)
    return [first, *rows]


def _order(case: Facts, facts: Facts) -> Criterion:
    run, count = facts["run"], case["count"]
    got = run["got"]
    message = ""
    if facts["kind"] in ("None", "a function"):
        message = SAYS["does-nothing"].format(kind=facts["kind"])
    elif run["stuck"] or facts["stopped"]:
        message = SAYS["for-ever"].format(batches=_batches(len(got)))
    elif -1 in got:
        message = SAYS["changed-batches"]
    elif sorted(got) != sorted(set(got)):
        message = SAYS["without-end"]
    elif len(got) < count and got == list(range(len(got))) and not run["ended"]:
        message = f"the loop got {len(got)} of {count} batches, and then nothing"
    elif sorted(got) != list(range(count)):
        message = SAYS["the-last-are-lost"].format(len=len(set(got)), count=count)
    elif got != list(range(count)):
        message = SAYS["as-they-are-ready"]
    elif run["twice"]:
        message = SAYS["made-anew"].format(batches=_batches(run["twice"]))
    passed = got == list(range(count)) and run["ended"] and not run["twice"] and not run["stuck"]
    mixed = ", not in order" * (got != list(range(len(got))))
    endless = ", waiting for another" * (not mixed and len(got) >= count and not run["ended"])
    measured = f"{len(got)} of {count}{mixed}{endless}"
    return criterion("batches in order", 2, passed, measured, "each once", message)


def _wait_share(case: Facts, facts: Facts) -> Criterion:
    waits = facts["run"]["waits"]
    target = f"at most {LIMIT:.0%}"
    if len(waits) < case["count"] or facts["run"]["stuck"]:
        return criterion("wait share", 3, False, "not judged", target, "")
    record = Waits(tuple(map(float, waits[: case["count"]])), tuple(map(float, case["step_ticks"])))
    measured = f"{record.share:.1%}"
    if facts["real"] is not None:
        below = "at most" if facts["real"] <= REAL_LIMIT else "more than"
        measured += f"; {below} {REAL_LIMIT:.0%} by the clock of this machine"
    together, most = facts["run"]["most_together"], min(case["workers"], case["ahead"])
    if together < most:
        message = (
            SAYS["one-thread"].format(batches=_batches(together), most=most)
            if together == 1
            else f"at most {together} batches were being made at a time, where {most} may be"
        )
    else:
        message = SAYS["next-after-the-step"]
    return criterion("wait share", 3, record.share <= LIMIT, measured, target, message)


def _limits(case: Facts, facts: Facts) -> list[Criterion]:
    run, early = facts["run"], facts["early"]
    ahead = max(run["most_ahead"], early["begun"] - len(early["taken"]))
    message = SAYS["map" if ahead > case["ahead"] + case["workers"] else "one-too-many"]
    threads = run["most_together"], case["workers"], SAYS["a-thread-for-each-place"]
    return [
        at_most("batches ahead", 2, ahead, case["ahead"], message),
        at_most("made at a time", 1, *threads),
    ]


def _endings(case: Facts, facts: Facts) -> list[Criterion]:
    early = facts["early"]
    fails = facts["fails"] or {"raised": "as it was", "got": None, "left": 0}
    arrived = fails["raised"] == "as it was" and fails["got"] in (
        None,
        list(range(case["fails"] or 0)),
    )
    if fails["raised"] == "as it was":
        message = SAYS["errors-at-once"].format(
            batches=_batches(len(fails["got"] or [])), fails=case["fails"]
        )
    elif fails["raised"]:
        message = SAYS["another-error"]
    else:
        message = SAYS["errors-are-skipped"]
    left = max(facts["left"], early["left"], fails["left"])
    places = (
        ("after the last batch", facts["left"]),
        (SAYS["threads-that-stay"], early["left"]),
        ("after an error", fails["left"]),
    )
    ends = "batches are made after the loader was closed"
    if left:
        which = " and ".join(text for text, count in places if count)
        ends = (
            f"threads are left {which}: each keeps its batch for good. A generator that is closed"
            " runs its `finally`: end the threads there, and free one that waits for a place"
        )
    came, ended = "yes" if arrived else "no", not left and not early["more"]
    return [
        criterion("an error arrives", 1, arrived, came, "at its batch", message),
        criterion("threads end", 1, ended, f"{left} left", "0 left", ends),
    ]
