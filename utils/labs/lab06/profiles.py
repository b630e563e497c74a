"""The cases and the judgement of read profiles, exercise 4 of lab 06."""

import random
from collections.abc import Iterator
from typing import Any

from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.criteria import criterion, none_judged
from utils.labs.lab06.examples import KINDS, ORDER
from utils.labs.lab06.tapes import Events, draw
from utils.labs.wrong_answers import message_of

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


def _spans(events: Events) -> Iterator[tuple[str, float, float]]:
    for event in events:
        if event["ph"] == "X" and event["name"] in KINDS:
            yield KINDS[event["name"]], event["ts"], event["ts"] + event["dur"]


def _window(events: Events) -> tuple[float, float]:
    steps = [event for event in events if event["ph"] == "X" and event["name"] == "step"]
    return min(e["ts"] for e in steps), max(e["ts"] + e["dur"] for e in steps)


def _cover(events: Events, window: tuple[float, float]) -> dict[str, float]:
    """Microseconds of the window by kind; a moment counts once, as the first kind in ORDER."""
    begin, end = window
    spans = [
        (kind, max(a, begin), min(b, end)) for kind, a, b in _spans(events) if a < end > begin < b
    ]
    edges = sorted({begin, end, *(a for _, a, _ in spans), *(b for _, _, b in spans)})
    result = dict.fromkeys(ORDER, 0.0)
    for a, b in zip(edges, edges[1:], strict=False):
        here = {kind for kind, first, last in spans if first <= a and b <= last}
        if kind := next((item for item in ORDER if item in here), None):
            result[kind] += b - a
    return result


def right_shares(events: Events) -> dict[str, float]:
    """The share of the window of steps that each kind covers, from 0 to 1."""
    begin, end = _window(events)
    return {kind: time / (end - begin) for kind, time in _cover(events, (begin, end)).items()}


def judge_profiles(case: Facts, facts: Facts) -> list[Criterion]:
    """One criterion for the share of each kind, one for the bottleneck."""
    response = list(zip(case["profiles"], facts["response"], strict=True))
    rows = [_share(kind, weight, case, response) for kind, weight in WEIGHTS.items()]
    rows.append(_bottleneck(response))
    if missing := [item for item in facts["response"] if isinstance(item, str)]:
        message = SAYS["does-nothing-4"].format(value=missing[0], ORDER=", ".join(ORDER))
        return none_judged(rows, message)
    return rows


def _share(kind: str, weight: int, case: Facts, texts: list[tuple[Events, Any]]) -> Criterion:
    texts = [(events, item) for events, item in texts if isinstance(item, dict)]
    off = [(e, s) for e, s in texts if not _near(s["shares"][kind], right_shares(e)[kind])]
    target = "to 1 in 10^6"
    if not off:
        result = f"{texts[0][1]['shares'][kind]:.4f}" if texts else ""
        return criterion(kind, weight, True, result, target, "")
    events, first = off[0]
    share = first["shares"][kind]
    if isinstance(share, str):
        return criterion(
            kind, weight, False, share, target, SAYS["text-2"].format(kind=kind, share=share)
        )
    message = f"no moment counts as {kind}: which events of the table are of that kind?"
    if share:
        message = "look at one moment after the other: which events of the table cover it?"
    place, answers = case["profiles"].index(events), [item for _, item in texts]

    def alike(known: Facts) -> int:
        pairs = zip(known["response"], answers, strict=True)
        same = sum(_near(a["shares"][k], b["shares"][k]) for a, b in pairs for k in ORDER)
        return same if _near(known["response"][place]["shares"][kind], share) else 0

    message = message_of("lab06.ex4", case, alike, message)
    return criterion(kind, weight, False, f"{share:.4g}", target, message)


def _bottleneck(response: list[tuple[Events, Any]]) -> Criterion:
    for events, item in response:
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


def _near(response: Any, right: float) -> bool:
    return not isinstance(response, str) and abs(response - right) <= TOLERANCE * max(
        1.0, abs(right)
    )
