"""The cases and the judgement of read profiles, exercise 4 of lab 06."""

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.criteria import criterion, none_judged
from utils.labs.lab06.examples import KINDS, ORDER
from utils.labs.lab06.tapes import HOST, SECOND, Events, draw

SAYS = says("lab06")

WEIGHTS = {"execute": 2, "compile": 1, "transfer": 1, "data": 1, "trace": 1}
BOTTLENECK = 2
TOLERANCE = 1e-6
"""How far a share may lie from the right one: times are sums of microseconds, in float64 exact to
1e-12. The wrong ways that are known lie 1e-3 away or more in some profile of a check; the tests
measure it."""
CLEAR = 0.06
"""By how much the largest share exceeds the next one."""


def profile_cases(rng: random.Random) -> list[Facts]:
    """Three profiles at first, one whose device works, one that compiles and one that starves; then
    more of each kind.
    """
    plan = [["execute"], ["compile"], ["data"], ["trace", "execute"], ["transfer", "data"]]
    return [{"profiles": [_profile(rng, kind) for kind in kinds]} for kinds in plan]


def profile_words(case: Facts) -> str:
    """What a card says of a case."""
    counts = [len(events) for events in case["profiles"]]
    return f"{' and '.join(map(str, counts))} events"


def _profile(rng: random.Random, bottleneck: str) -> Events:
    while True:
        events = draw(rng, bottleneck)
        shares = right_shares(events)
        largest, second = sorted(shares.values(), reverse=True)[:2]
        if shares[bottleneck] == largest > second + CLEAR and min(shares.values()) > 0.005:
            return events


# What is right, and what other ways give


def _spans(events: Events) -> Iterator[tuple[str, float, float, int]]:
    for event in events:
        if event["ph"] == "X" and event["name"] in KINDS:
            yield KINDS[event["name"]], event["ts"], event["ts"] + event["dur"], event["tid"]


def _window(events: Events) -> tuple[float, float]:
    steps = [event for event in events if event["ph"] == "X" and event["name"] == "step"]
    return min(e["ts"] for e in steps), max(e["ts"] + e["dur"] for e in steps)


def _covered(events: Events, order: Sequence[str], window: tuple[float, float]) -> dict[str, float]:
    """Microseconds of the window by kind; a moment counts once, as the first kind in `order`."""
    begin, end = window
    spans = [
        (kind, max(a, begin), min(b, end))
        for kind, a, b, _ in _spans(events)
        if a < end > begin < b
    ]
    edges = sorted({begin, end, *(a for _, a, _ in spans), *(b for _, _, b in spans)})
    result = dict.fromkeys(ORDER, 0.0)
    for a, b in zip(edges, edges[1:], strict=False):
        here = {kind for kind, first, last in spans if first <= a and b <= last}
        if kind := next((item for item in order if item in here), None):
            result[kind] += b - a
    return result


def _over(found: dict[str, float], total: float) -> dict[str, float]:
    return {kind: time / total for kind, time in found.items()}


def _whole(events: Events) -> tuple[float, float]:
    timed = [event for event in events if event["ph"] == "X"]
    return min(e["ts"] for e in timed), max(e["ts"] + e["dur"] for e in timed)


def _shares(
    events: Events,
    order: Sequence[str] = ORDER,
    window: Callable[[Events], tuple[float, float]] = _window,
    keep: Callable[[Facts], bool] = lambda event: True,
) -> dict[str, float]:
    """The share of a window that each kind covers; keep: which events count."""
    begin, end = window(events)
    kept = [event for event in events if keep(event)]
    return _over(_covered(kept, order, (begin, end)), (end - begin) or 1.0)


def right_shares(events: Events) -> dict[str, float]:
    """The share of the window of steps that each kind covers, from 0 to 1."""
    return _shares(events)


def _sums(events: Events, clipped: bool = True, over_sums: bool = False) -> dict[str, float]:
    """What events take, be there others at the same time or not."""
    first, last = _window(events)
    begin, end = (first, last) if clipped else _whole(events)
    result = dict.fromkeys(ORDER, 0.0)
    for kind, a, b, _ in _spans(events):
        result[kind] += max(0.0, min(b, end) - max(a, begin))
    return _over(result, sum(result.values()) if over_sums else last - first)


def _each_alone(events: Events) -> dict[str, float]:
    return {kind: _shares(events, (kind,))[kind] for kind in ORDER}


def _of_covered(events: Events) -> dict[str, float]:
    result = _covered(events, ORDER, _window(events))
    return _over(result, sum(result.values()))


def _in_steps(events: Events) -> dict[str, float]:
    steps = [event for event in events if event["ph"] == "X" and event["name"] == "step"]
    parts = [_covered(events, ORDER, (e["ts"], e["ts"] + e["dur"])) for e in steps]
    total = sum(step["dur"] for step in steps)
    return {kind: sum(part[kind] for part in parts) / total for kind in ORDER}


def _listed_steps(last: int) -> Callable[[Events], tuple[float, float]]:
    """From the first step of the list to that at place `last`: the list is in no order."""

    def window(events: Events) -> tuple[float, float]:
        steps = [event for event in events if event["ph"] == "X" and event["name"] == "step"]
        return steps[0]["ts"], steps[last]["ts"] + steps[last]["dur"]

    return window


_UNSORTED = (
    "this is not the time from the first step to the end of the last: the list is in no order, so"
    " look for the smallest begin and the largest end"
)
_DOUBLE = SAYS["sums"]
_ORDER_LOST = SAYS["each-kind-alone"]
WAYS: list[tuple[str, Callable[[Events], dict[str, float]]]] = [
    (_DOUBLE, _sums),
    (_DOUBLE, lambda events: _sums(events, clipped=False)),
    (_DOUBLE, lambda events: _sums(events, over_sums=True)),
    (_DOUBLE, lambda events: _sums(events, clipped=False, over_sums=True)),
    (_ORDER_LOST, _each_alone),
    (_ORDER_LOST, lambda events: _shares(events, ORDER[::-1])),
    (_ORDER_LOST, lambda events: _shares(events, (*ORDER[1:], "execute"))),
    (SAYS["the-whole-file"], lambda events: _shares(events, window=_whole)),
    (SAYS["shares-of-what-is-covered"], _of_covered),
    (
        SAYS["one-thread-of-the-device"],
        lambda events: _shares(events, keep=lambda event: event.get("tid") != SECOND),
    ),
    (
        SAYS["the-host-only"],
        lambda events: _shares(events, keep=lambda event: event.get("tid") == HOST),
    ),
    (
        "the whole reaches from the first step to the end of the last: the time between two steps"
        " belongs to it",
        _in_steps,
    ),
    (_UNSORTED, lambda events: _shares(events, window=_listed_steps(-1))),
    (_UNSORTED, lambda events: _shares(events, window=_listed_steps(0))),
    (SAYS["percent"], lambda events: _over(_shares(events), 0.01)),
    (SAYS["microseconds"], lambda events: _covered(events, ORDER, _window(events))),
]


def judge_profiles(case: Facts, facts: Facts) -> list[Criterion]:
    """One criterion for the share of each kind, one for the bottleneck."""
    response = list(zip(case["profiles"], facts["said"], strict=True))
    rows = [_share(kind, weight, response) for kind, weight in WEIGHTS.items()]
    rows.append(_bottleneck(response))
    if missing := [item for item in facts["said"] if isinstance(item, str)]:
        message = SAYS["does-nothing-4"].format(value=missing[0], ORDER=", ".join(ORDER))
        return none_judged(rows, message)
    return rows


def _share(kind: str, weight: int, said: list[tuple[Events, Any]]) -> Criterion:
    said = [(events, item) for events, item in said if isinstance(item, dict)]
    off = [(e, s) for e, s in said if not _near(s["shares"][kind], right_shares(e)[kind])]
    target = "to 1 in 10^6"
    if not off:
        result = f"{said[0][1]['shares'][kind]:.4f}" if said else ""
        return criterion(kind, weight, True, result, target, "")
    events, first = off[0]
    share = first["shares"][kind]
    if isinstance(share, str):
        return criterion(
            kind, weight, False, share, target, SAYS["text-2"].format(kind=kind, share=share)
        )
    scored = [
        (sum(_near(s["shares"][k], way(e)[k]) for e, s in off for k in ORDER), text, way)
        for text, way in WAYS
        if _near(share, way(events)[kind])
    ]
    message = f"no moment counts as {kind}: which events of the table are of that kind?"
    if share:
        message = "look at one moment after the other: which events of the table cover it?"
    if scored:
        message = max(scored, key=lambda item: item[0])[1]
    return criterion(kind, weight, False, f"{share:.4g}", target, message)


def _bottleneck(said: list[tuple[Events, Any]]) -> Criterion:
    for events, item in said:
        if not isinstance(item, dict):
            continue
        right = right_shares(events)
        largest, named = max(right, key=lambda kind: right[kind]), item["bottleneck"]
        if named == largest:
            continue
        if named not in ORDER:
            message = SAYS["a-share-for-a-name"].format(named=named, ORDER=", ".join(ORDER))
            return criterion("bottleneck", BOTTLENECK, False, "no kind", "", message)
        message = SAYS["the-smallest"].format(named=named) + (
            "it happens while the device executes, and is hidden by it"
            if largest == "execute"
            else "for most of the time in which the device stands still, it is something else"
            if named != "execute"
            else SAYS["always-the-device"]
        )
        return criterion("bottleneck", BOTTLENECK, False, "another", "", message)
    return criterion("bottleneck", BOTTLENECK, True, "right", "", "")


def _near(said: Any, right: float) -> bool:
    return not isinstance(said, str) and abs(said - right) <= TOLERANCE * max(1.0, abs(right))
