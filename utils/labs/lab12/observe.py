"""What the answers of lab 12 return, as plain values. Judges nothing.

The course's own benchmark and its simulated services are closed while an answer runs.
"""

import copy
from collections.abc import Set
from itertools import islice
from typing import Any

from utils.labs import Answer, Facts, Observer, invoke, limit, plain
from utils.labs.forbidden import forbid
from utils.labs.lab12 import draws
from utils.labs.lab12.doors import doors
from utils.labs.lab12.service import Front, Service
from utils.labs.plain import describe, entries, numbers, text, to_list

_SHUT = ("utils.serving.bench", "utils.serving")
_MOST = 400
"""Items that are kept: more is wrong in any case."""


def partner(answer: Answer, name: str) -> Answer:
    """The function `name` of the cell that defined `answer`."""
    result = getattr(answer, "__globals__", {}).get(name)
    if not callable(result):
        raise NameError(f"`{name}` is not defined as a function: the cell has to define both")
    return result


def _maybe(value: Any) -> Any:
    return plain.maybe(value, _MOST)


def _list(value: Any) -> Facts:
    result = numbers(to_list(value, _MOST))
    return {**result, "items": result["items"] and result["items"][:_MOST]}


# ex1: a benchmark

_MOST_EVENTS = 2000
"""A hundred times what it takes to find the traits of a service; their logs are sent as text."""


def observe_bench(bench: Answer, case: Facts) -> Facts:
    """What the benchmark returns for each service, what it asked of it, and its traits."""
    traps = partner(bench, "traps")
    used = [Service(item) for item in copy.deepcopy(case["services"])]
    fresh = [Service(item, _MOST_EVENTS) for item in copy.deepcopy(case["services"])]

    def run() -> tuple[list[Any], list[Any]]:
        pairs = zip(used, case["services"], strict=True)
        results = [bench(Front(s), list(c["lengths"]), c["repeats"]) for s, c in pairs]
        return results, [traps(Front(service), case["trap_length"]) for service in fresh]

    with forbid("lab12.ex1", *_SHUT):
        response, stopped = limit.within(run, invoke.SECONDS)
    if stopped:
        raise RuntimeError(invoke.ENDLESS)
    return {
        "bench": [
            {**_times(item), "log": " ".join(service.log)}
            for item, service in zip(response[0], used, strict=True)
        ],
        "traps": [_names(item) for item in response[1]],
        "trap_logs": [" ".join(service.log) for service in fresh],
    }


def _times(response: Any) -> Facts:
    given = entries(response, "first_s", "p50_s", "p99_s")
    if isinstance(given, str):
        return {"kind": given, "first": None, "p50": None, "p99": None}
    percentiles = {name: _maybe(given[f"{name}_s"]) for name in ("p50", "p99")}
    return {"kind": "", "first": _list(given["first_s"]), **percentiles}


def _names(response: Any) -> list[str] | str:
    if not isinstance(response, list | tuple | Set):
        return describe(response)
    return sorted({text(name) for name in islice(response, 9)})


# ex2: percentiles


def observe_percentiles(percentile: Answer, case: Facts) -> Facts:
    """Each percentile with the ends of its interval, and those of whole fleets."""
    merged = partner(percentile, "merged")
    sets = [
        (draws.latencies(set_["kind"], set_["count"], set_["seed"]), set_["p"], set_["level"])
        for set_ in case["sets"]
    ]
    fleets = [(draws.workers(fleet), fleet["p"]) for fleet in case["fleets"]]
    results = [
        plain.maybe_entries(item, "value", "low", "high", most=_MOST)
        for item in invoke.responses("lab12.ex2", percentile, sets, _SHUT)
    ]
    response = invoke.responses("lab12.ex2", merged, fleets, _SHUT)
    return {"percentiles": results, "merged": [_maybe(entry) for entry in response]}


# ex3: an open loop


def observe_open_loops(answer: Answer, case: Facts) -> Facts:
    """The latencies of the open loop of each log, and both p99."""
    logs = [(draws.closed_log(log),) for log in case["logs"]]
    results: list[Facts | str] = []
    for item in invoke.responses("lab12.ex3", answer, logs, _SHUT):
        given = entries(item, "open_ms", "open_p99_ms", "closed_p99_ms")
        if isinstance(given, dict):
            both = {name: _maybe(given[f"{name}_ms"]) for name in ("open_p99", "closed_p99")}
            given = {"open": _list(given["open_ms"]), **both}
        results.append(given)
    return {"response": results}


# ex4: a fleet


def observe_fleets(answer: Answer, case: Facts) -> Facts:
    """The servers of each fleet, their p99, and the servers with one lost."""
    calls = [(draws.arrivals(fleet), dict(fleet["server"])) for fleet in case["fleets"]]
    names = ("servers", "p99_ms", "servers_after_loss")
    response = invoke.responses("lab12.ex4", answer, calls, _SHUT)
    return {"response": [plain.maybe_entries(item, *names, most=_MOST) for item in response]}


# ex5: a recompiled model


_REPORTS_S = 20.0
"""A hundred times what all reports take, once everything is compiled."""


def observe_reports(answer: Answer, case: Facts) -> Facts:
    """What is said of each model, and its logits, computed before the answer is called."""
    from utils.labs.lab12 import compiled, models

    with models.one_thread():
        made = [_model(model) for model in case["models"]]
        logits = [[a(x).tolist(), b(x).tolist()] for a, b, x in made]
        behind = [function for _, b, _ in made for function in (b.alone, b.outputs)]
        calls = [(reference, x) for reference, _, x in made]
        del made

        with doors(*behind) as opened, forbid("lab12.ex5", *_SHUT, "utils.xla.parity"):
            del behind
            pairs = [compiled.Compiled(*two) for two in zip(opened[::2], opened[1::2], strict=True)]
            asked = [(a, b, x) for (a, x), b in zip(calls, pairs, strict=True)]
            response, stopped = limit.within(lambda: [answer(*item) for item in asked], _REPORTS_S)
    if stopped:
        raise RuntimeError(invoke.ENDLESS)
    return {"response": [_report(item) for item in response], "logits": logits}


def _model(case: Facts) -> tuple[Any, Any, Any]:
    """The reference, the compiled model and the inputs. Every program of the model is compiled,
    so that the time of an answer is its own.
    """
    from utils.labs.lab12 import compiled, models

    reference, x = models.reference(case["seed"], case["offset"])
    changed = models.with_fault(reference, case["module"], case["fault"])
    candidate, y = compiled.compiled(changed), x
    for name in models.NAMES:
        y = candidate.alone(name, y)
    return reference, candidate, x


def _report(response: Any) -> Facts | str:
    given = entries(response, "max_difference", "kl", "top1", "module")
    if isinstance(given, str):
        return given
    results = {name: _maybe(given[name]) for name in ("max_difference", "kl", "top1")}
    name = given["module"]
    return {**results, "module": None if name is None else text(name)}


OBSERVERS = {
    "ex1": Observer("bench", observe_bench),
    "ex2": Observer("percentile", observe_percentiles),
    "ex3": Observer("open_loop", observe_open_loops),
    "ex4": Observer("fleet", observe_fleets),
    "ex5": Observer("report", observe_reports),
}
