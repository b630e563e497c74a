"""The cases and the judgement of the mended benchmark, exercise 1 of lab 12."""

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.criteria import all_right, criterion, none_judged, times
from utils.labs.lab12.service import TICK_S, TRAITS, Call, Service, replayed
from utils.labs.values import near

SAYS = says("lab12")

NAMES = "traps"


def judge_traps(case: Facts, facts: Facts, weight: int) -> Criterion:
    """One criterion: the traits of each service, found by an experiment."""
    right = [sorted(service["traits"]) for service in case["services"]]
    response = facts["traps"]
    asked = list(zip(right, response, facts["trap_logs"], strict=True))
    wrong = [p for p, (r, s, log) in enumerate(asked) if r != s or _missing_experiment(log)]
    message = ""
    if named := [asked[p] for p in wrong if asked[p][0] != asked[p][1]]:
        message = _wrong_name(*named[0][:2])
        if len({str(item) for item in response}) == 1 and not isinstance(response[0], str):
            message += SAYS["always-all-traps"]
    elif wrong:
        message = next(_missing_experiment(log) for _, _, log in asked if _missing_experiment(log))
    return all_right(NAMES, weight, wrong, len(right), message, response=response)


def _missing_experiment(log: str) -> str:
    """Why no experiment with so few calls can tell all three traits; "" if it may."""
    events = log.split()
    texts = [event for event in events if event.startswith("r")]
    if events.count("c") < 2:
        return SAYS["traps-by-looking"]
    if len(set(texts)) < 2:
        return "`traps` did not send two texts: only a new one tells what compiling took"
    if len(set(texts)) == len(texts):
        return SAYS["traps-without-a-text-sent-twice"]
    return ""


def _wrong_name(right: list[str], response: Any) -> str:
    if isinstance(response, str):
        return f"`traps` returned {response}: return a set of names, empty if there is none"
    if unknown := [item for item in response if item not in TRAITS]:
        return SAYS["another-name"].format(value=unknown[0], TRAITS=", ".join(TRAITS))
    if extra := [item for item in response if item not in right]:
        return SAYS["a-cache-that-is-the-compiler"].format(trait=extra[0], test=_TESTS[extra[0]])
    missing = next(item for item in right if item not in response)
    return f'"{missing}" was not found: {_TESTS[missing]}'


_TESTS = {
    "asynchronous": "does wait() take any time after run() has returned?",
    "compiles": "two texts of one length that are both new differ in nothing but the compiling",
    "remembers": "send a text a third time, when its length is compiled for, and a new one: which"
    " is faster?",
}


TOLERANCE = 1e-9
"""The clock is exact; a percentile of its times in float64 is off by 1e-16."""

ALONE = {"waits": ("asynchronous",), "first calls": ("compiles",), "new texts": ("remembers",)}
"""Criteria that one repair is enough for, and the one trait of the services that show it."""

ALL = "all at once"
WEIGHTS = {**dict.fromkeys(ALONE, 2), ALL: 1, NAMES: 2}


def bench_cases(rng: random.Random) -> list[Facts]:
    """Services with one trait each, one without any; then all the others, with more lengths."""
    alone = [[], *([trait] for trait in TRAITS)]
    several = [[trait for trait in TRAITS if trait != other] for other in TRAITS]
    return [
        {"trap_length": rng.choice((16, 24, 48)), "services": [_case(rng, t, n) for t in kinds]}
        for kinds, n in ((alone, 2), ([*several, list(TRAITS), *alone[1:]], 3))
    ]


def _case(rng: random.Random, traits: list[str], lengths: int) -> Facts:
    per_token = rng.randint(60, 200)
    return {
        "traits": traits,
        "salt": rng.randrange(10**9),
        "send": rng.randint(20, 60),
        "per_token": per_token,
        # More than the slowest of what is not compiled, so that it is seen.
        "compile": rng.randint(800_000, 990_000),
        "lookup": rng.randint(30, 90),
        "lengths": sorted(rng.sample((16, 32, 64, 128, 256), lengths)),
        "repeats": rng.randint(18, 30),
    }


def bench_words(case: Facts) -> str:
    """What a card says of a case."""
    item = case["services"][0]
    return (
        f"{len(case['services'])} services, the first with lengths {item['lengths']} and repeats ="
        f" {item['repeats']}"
    )


def label(case: Facts) -> str:
    """A service by its traits, for messages."""
    return (
        "a service that is " + " and ".join(_SAID[trait] for trait in case["traits"])
        if case["traits"]
        else "a service without any of the traits"
    )


_SAID = {
    "asynchronous": "asynchronous",
    "compiles": "compiling for each new length",
    "remembers": "answering from a cache what it has seen",
}


@dataclass(frozen=True)
class Run:
    """What was asked of one service, and what is right for it."""

    case: Facts
    service: Service
    elapsed: list[int]

    @cached_property
    def by_length(self) -> dict[int, list[Call]]:
        """The calls of the service by the length that they asked for."""
        results: dict[int, list[Call]] = {length: [] for length in self.case["lengths"]}
        for call in self.service.calls:
            results.setdefault(call.request.length, []).append(call)
        return results

    @cached_property
    def usual(self) -> dict[int, list[Call]]:
        """The calls of each length that did the usual work: neither compiled nor remembered."""
        return {
            length: [call for call in calls if not call.compiled and not call.remembered]
            for length, calls in self.by_length.items()
        }

    @cached_property
    def samples(self) -> list[int] | None:
        """Ticks of the last `repeats` of them of each length; None if there are fewer."""
        results = [self.usual[length][-self.case["repeats"] :] for length in self.case["lengths"]]
        if any(len(item) < self.case["repeats"] for item in results):
            return None
        return [call.ticks for item in results for call in item]

    @property
    def timed(self) -> bool:
        """Whether each of these calls lies between two readings of the clock that tell its time."""
        last = {id(c) for some in self.usual.values() for c in some[-self.case["repeats"] :]}
        return all(
            ticks == call.ticks
            for call, ticks in zip(self.service.calls, self.elapsed, strict=True)
            if id(call) in last
        )

    @property
    def first(self) -> list[float]:
        """Seconds of the first call of each length, on an idle service."""
        calls = (self.by_length[length][:1] for length in self.case["lengths"])
        return [call[0].ticks * TICK_S if call else 0.0 for call in calls]


def percentiles(ticks: Sequence[float]) -> list[float]:
    """p50 and p99 in seconds."""
    return [float(np.percentile(ticks, p)) * TICK_S for p in (50, 99)] if ticks else [0.0, 0.0]


def _is(response: Facts, ticks: Sequence[float]) -> bool:
    right = percentiles(ticks)
    return all(near(response[n], r, TOLERANCE) for n, r in zip(("p50", "p99"), right, strict=True))


def judge_bench(case: Facts, facts: Facts) -> list[Criterion]:
    """One criterion per trait alone, one for all other services, one for `traps`."""
    response = facts["bench"]
    runs = [Run(c, *replayed(c, s["log"])) for c, s in zip(case["services"], response, strict=True)]
    asked = list(zip(runs, response, strict=True))
    rows = [*(_alone(name, asked) for name in ALONE), _together(asked)]
    if message := _nothing(runs, response):
        rows = none_judged(rows, message)
    return [*rows, judge_traps(case, facts, WEIGHTS[NAMES])]


def _nothing(runs: list[Run], response: list[Facts]) -> str:
    """Why there is nothing to judge of `bench`; "" if there is."""
    if strange := next((item["kind"] for item in response if item["kind"]), ""):
        return (
            f"`bench` returned {strange}: return {{'first_s': [...], 'p50_s': ..., 'p99_s': ...}}"
        )
    if not all(run.service.calls for run in runs):
        return "`service.run` was never called: there is nothing that was timed"
    if not all("c" in run.service.log for run in runs):
        return SAYS["another-clock"]
    return ""


def _alone(name: str, asked: list[tuple[Run, Facts]]) -> Criterion:
    """Whether p50 and p99 are right where one trait alone can spoil them."""
    own = [(r, s) for r, s in asked if tuple(r.case["traits"]) == ALONE[name]]
    return _right(name, own)


def _together(asked: list[tuple[Run, Facts]]) -> Criterion:
    own = [(r, s) for r, s in asked if len(r.case["traits"]) != 1]
    result = _right(ALL, own)
    if not result.passed:
        return result
    for run, response in own:
        items = (response["first"] or {}).get("items")
        if items is None or len(items) != len(run.first):
            kind = response["first"]["kind"]
            message = f"first_s is {kind}: return a list, one number per length"
        elif not all(near(a, b, TOLERANCE) for a, b in zip(items, run.first, strict=True)):
            message = SAYS["no-first"].format(label=label(run.case))
        else:
            continue
        return criterion(ALL, WEIGHTS[ALL], False, result.measured, result.target, message)
    return result


def _right(name: str, asked: list[tuple[Run, Facts]]) -> Criterion:
    wrong = [
        p for p, (r, s) in enumerate(asked) if not (r.samples and _is(s, r.samples) and r.timed)
    ]
    message = f"{label(asked[wrong[0]][0].case)}: {_why(*asked[wrong[0]])}" if wrong else ""
    return all_right(name, WEIGHTS[name], wrong, len(asked), message, "p50 and p99 exact")


def _why(run: Run, response: Facts) -> str:
    """What is wrong with two percentiles."""
    for name in ("p50", "p99"):
        if not isinstance(response[name], int | float):
            result = "None" if response[name] is None else response[name]
            return f"{name}_s is {result}: return seconds, a number"
    if near(response["p50"], run.case["send"] * TICK_S, TOLERANCE):
        return SAYS["as-given"]
    if "asynchronous" in run.case["traits"] and re.search(r"r\S+ c", " ".join(run.service.log)):
        return SAYS["wait-before-the-call"]
    if run.samples and _is(response, run.samples):
        return "the clock was not read before and after each call: what was returned was not timed"
    repeats, known = run.case["repeats"], _known(run)
    samples = [ticks for ticks in (run.samples, *known.values()) if ticks]
    if any(near(response["p50"], percentiles(ticks)[0] * 1e3, 1e-6) for ticks in samples):
        return SAYS["milliseconds"]
    if texts := [text for text, ticks in known.items() if ticks and _is(response, ticks)]:
        return texts[0]
    short = [length for length in run.case["lengths"] if len(run.usual[length]) < repeats]
    if short:
        length = short[0]
        had = run.by_length[length]
        if again := sum(call.remembered for call in had):
            return SAYS["a-text-sent-before"].format(
                again=again, times=times(len(had), "call"), length=length
            )
        return SAYS["too-few"].format(
            times=times(len(run.usual[length]), "call"), length=length, repeats=repeats
        )
    return (
        "the samples are not one call each, from an idle service until the answer is there, or some"
        " of them were left out"
    )


def _known(run: Run) -> Mapping[str, Sequence[float]]:
    """Messages, and the samples that wrong ways take: of the calls that were made, because any
    texts may be sent.
    """
    every = [call for length in run.case["lengths"] for call in run.by_length[length]]
    later, usual = run.service.calls[1:], run.samples or []
    results: dict[str, Sequence[float]] = {
        SAYS["the-slowest-dropped"]: sorted(usual)[: -len(run.case["lengths"])],
        SAYS["the-last-length"]: usual[-run.case["repeats"] :],
        SAYS["the-mean"]: [float(np.mean(usual))] if usual else [],
    }
    for name, calls in (("first-among-the-samples", every), ("one-warm-up-for-all", later)):
        if any(call.compiled for call in calls):
            results[SAYS[name]] = [call.ticks for call in calls]
    return results
