"""Whether the traits of services are named, and by experiment: a part of exercise 1 of lab 12."""

from typing import Any

from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.criteria import all_right
from utils.labs.lab12.service import TRAITS

SAYS = says("lab12")

NAMES = "traps"


def judge_traps(case: Facts, facts: Facts, weight: int) -> Criterion:
    """One criterion: the traits of each service, found by an experiment."""
    right = [sorted(service["traits"]) for service in case["services"]]
    response = facts["traps"]
    asked = list(zip(right, response, facts["trap_logs"], strict=True))
    wrong = [p for p, (r, s, log) in enumerate(asked) if r != s or _unasked(log)]
    message = ""
    if named := [asked[p] for p in wrong if asked[p][0] != asked[p][1]]:
        message = _misnamed(*named[0][:2])
        if len({str(item) for item in response}) == 1 and not isinstance(response[0], str):
            message += SAYS["always-all-traps"]
    elif wrong:
        message = next(_unasked(log) for _, _, log in asked if _unasked(log))
    return all_right(NAMES, weight, wrong, len(right), message, said=response)


def _unasked(log: str) -> str:
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


def _misnamed(right: list[str], said: Any) -> str:
    if isinstance(said, str):
        return f"`traps` returned {said}: return a set of names, empty if there is none"
    if unknown := [item for item in said if item not in TRAITS]:
        return SAYS["another-name"].format(value=unknown[0], TRAITS=", ".join(TRAITS))
    if extra := [item for item in said if item not in right]:
        return SAYS["a-cache-that-is-the-compiler"].format(trait=extra[0], test=_TESTS[extra[0]])
    missing = next(item for item in right if item not in said)
    return f'"{missing}" was not found: {_TESTS[missing]}'


_TESTS = {
    "asynchronous": "does wait() take any time after run() has returned?",
    "compiles": "two texts of one length that are both new differ in nothing but the compiling",
    "remembers": "send a text a third time, when its length is compiled for, and a new one: which"
    " is faster?",
}
