"""What the answers of lab 06 do, as counts and plain values. Judges nothing."""

import time
from typing import Any

from utils.labs import Answer, Facts, Observer, invoke, limit
from utils.labs.lab06 import endings
from utils.labs.lab06.device import LazyDevice
from utils.labs.lab06.examples import ORDER
from utils.labs.lab06.pipeline import Pipeline, batch_of
from utils.labs.lab06.threads import gather_threads
from utils.labs.plain import describe, entries, maybe, number, numbers, text, to_list

_MOST = 100
"""Items that are kept: more is wrong in any case."""

# ex1: a loader

_ENDLESS_S = 4.0
_ENDING_S = 1.5
"""No batch takes any time there: what is not at its end by then waits for what never comes."""
REAL_BATCHES, REAL_MAKE_S, REAL_STEP_S, REAL_TRIES = 16, 0.009, 0.006, 3


def observe_load(answer: Answer, case: Facts) -> Facts:
    """A loader on the fake clock, left early and failing. Raises RuntimeError if it never ends."""
    run = Pipeline(
        case["make_ticks"], case["step_ticks"], case["workers"], case["ahead"], case["salt"]
    )
    kind, stopped = "an iterator", False

    def noted(*inputs: Any) -> Any:
        nonlocal kind
        made = answer(*inputs)
        try:
            return iter(made)
        except TypeError:
            kind = describe(made)
            return iter(())

    def checked(ending: Any, otherwise: Facts) -> Facts:
        nonlocal stopped
        if stopped or not ahead:
            return otherwise
        result, stopped = limit.within(lambda: ending(noted, case, started), _ENDING_S)
        return otherwise if result is None else result

    with gather_threads() as started:
        _, stopped = limit.within(lambda: run.consume(noted), _ENDLESS_S)
        facts, left = run.facts(), started.left()
        if stopped and not facts["stuck"]:
            raise RuntimeError(invoke.ENDLESS)
        stopped = stopped or facts["stuck"]
        ahead = facts["in_consumer"] < facts["begun"]  # else nothing of it is judged
        early = checked(endings.leave_early, {"taken": [], "begun": 0, "more": 0, "left": 0})
        fails = None
        if case["fails"] is not None:
            fails = checked(endings.failing, {"got": [], "raised": "", "left": 0})
        real = None
        if case["real"] and facts["ended"] and ahead:
            real, _ = limit.within(lambda: _real_share(noted), _ENDLESS_S)
        started.left()
    return {
        "kind": kind,
        "run": facts,
        "stopped": stopped,
        "left": left,
        "early": early,
        "fails": fails,
        "real": real,
    }


def _real_share(load: Answer) -> float:
    """The smallest share of waiting of a few runs, by the clock of this machine."""
    from utils.training.loading import Watched

    def make(number: int) -> list[int]:
        time.sleep(REAL_MAKE_S)
        return batch_of(number, 0)

    shares = [1.0]
    for _ in range(REAL_TRIES):
        watched = Watched(load(make, REAL_BATCHES, 3, 3))
        for _ in watched:
            time.sleep(REAL_STEP_S)
        shares.append(watched.waits.share)
        if min(shares) < 0.2:
            break
    return min(shares)


# ex2: predicted waits


def observe_waits(answer: Answer, case: Facts) -> Facts:
    """The waits that the answer predicts for each pipeline. Raises as `called.responses` does."""
    names = ("load_ms", "work_ms", "workers", "prefetch")
    calls = [tuple(pipeline[name] for name in names) for pipeline in case["pipelines"]]
    response = invoke.responses("lab06.ex2", answer, calls, ("utils.training.loading",))
    return {"response": [numbers(to_list(item, _MOST)) for item in response]}


# ex3: a benchmark


def observe_bench(answer: Answer, case: Facts) -> Facts:
    """The result of the benchmark and the log of the device. Raises RuntimeError if endless."""
    device = LazyDevice(case)
    returned, stopped = limit.within(
        lambda: answer(device.step, device.settle, device.clock, case["warmup"], case["repeats"]),
        invoke.SECONDS,
    )
    if stopped:
        raise RuntimeError(invoke.ENDLESS)
    given = entries(returned, "first_s", "median_s")
    items = None if isinstance(given, str) else [number(to_list(v, 1)) for v in given.values()]
    return {
        "kind": describe(returned),
        "items": items,
        "log": device.log,
        "runs": device.runs,
        "most_alive": device.most_alive,
    }


# ex4: read profiles


def observe_profiles(answer: Answer, case: Facts) -> Facts:
    """The shares and the bottleneck of each profile, or what the answer returned instead."""
    response = invoke.responses(
        "lab06.ex4",
        answer,
        [(profile,) for profile in case["profiles"]],
        ("utils.training.traces",),
    )
    return {"response": [_shares(item) for item in response]}


def _shares(response: Any) -> Facts | str:
    given = entries(response, *ORDER, "bottleneck")
    if isinstance(given, str):
        return given
    shares = {name: number(to_list(given[name], 1)) for name in ORDER}
    return {"shares": shares, "bottleneck": text(given["bottleneck"])}


# ex5: diagnoses


def observe_diagnoses(answer: Answer, case: Facts) -> Facts:
    """The cause and the number for each record, or what the answer returned instead."""
    response = invoke.responses(
        "lab06.ex5", answer, [(record,) for record in case["records"]], ("utils.training.loading",)
    )
    return {"response": [_diagnosis(item) for item in response]}


def _diagnosis(response: Any) -> Facts | str:
    given = entries(response, "cause", "number")
    if isinstance(given, str):
        return given
    return {"cause": text(given["cause"]), "number": maybe(given["number"])}


OBSERVERS = {
    "ex1": Observer("load", observe_load),
    "ex2": Observer("predict_waits", observe_waits),
    "ex3": Observer("bench", observe_bench),
    "ex4": Observer("read_profile", observe_profiles),
    "ex5": Observer("diagnose", observe_diagnoses),
}
