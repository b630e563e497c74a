"""The judgement of a pilot plan, exercise 6 of lab 14: by rules that a plan keeps or breaks."""

import random
import re
from collections.abc import Iterator
from typing import Any

from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.criteria import criterion, not_judged
from utils.labs.lab14.deciding import right
from utils.labs.lab14.examples import BUDGET, QUANTITIES, STEPS

SAYS = says("lab14")

TERMS = ("items", "accepted", "precision", "region", "purchase", "date")
"""What has to be the same on both sides of a benchmark."""
RUNS = 3
LEAST_WEEKS, LEAST_ENGINEERS, LEAST_SERVER_WEEKS = 0.1, 0.1, 0.05
"""Half a working day; half a day of every week; eight hours of a server: less is no work."""
FORMAT = re.compile(r"(float|bf|fp|tf|f|int)[ _-]?\d|e\dm\d|half|single|double")
PURCHASES = ("on demand", "capacity block", "savings plan", "reserved", "spot", "owned")


def by_name(facts: Facts) -> dict[str, Facts]:
    """The steps of a plan by their names."""
    return {step["step"]: step for step in facts["steps"]}


def latest(facts: Facts) -> float | None:
    """Weeks after which a plan has ended, whatever happens; None if it does not say."""
    most = [step["at_most_weeks"] for step in facts["steps"]]
    return None if any(isinstance(item, str) for item in most) else sum(max(0, e) for e in most)


def price(case: Facts, facts: Facts) -> float | None:
    """People and servers; None if a number is missing."""
    total = 0.0
    for step in facts["steps"]:
        numbers = [step["weeks"], step["engineers"], step["server_weeks"]]
        if any(isinstance(number, str) for number in numbers):
            return None
        weeks, engineers, server_weeks = numbers
        rate = case["gpu_server_week" if step["step"] == "baseline" else "trainium_server_week"]
        total += weeks * engineers * case["pay_per_engineer_week"] + server_weeks * rate
    return total


def latest_text(case: Facts, facts: Facts) -> tuple[str, str]:
    """The weeks after which a plan ends at the latest, and the target, as a report shows them."""
    weeks = latest(facts)
    return "" if weeks is None else f"{weeks:g}", f"at most {case['weeks'] / 2:g} weeks"


def price_text(case: Facts, facts: Facts) -> tuple[str, str]:
    """The price of a plan, and the target, as a report shows them."""
    total = price(case, facts)
    return "" if total is None else f"{total:.0f}", f"at most {case['value_of_measuring']}"


def about_time(case: Facts, facts: Facts) -> str:
    """What is wrong with the weeks of a plan; "" if nothing is."""
    steps = by_name(facts)
    for name in STEPS:
        weeks = steps[name]["weeks"]
        if isinstance(weeks, str) or weeks < LEAST_WEEKS:
            return SAYS["no-time"].format(name=name, weeks=weeks)
    port = steps["port"]
    people = port["engineers"]
    if isinstance(people, str) or people <= 0 or people > case["engineers"]:
        return f"port: engineers is {people}: there are {case['engineers']}"
    needed = case["port_weeks"] / people
    if port["weeks"] < needed:
        return SAYS["nobody-has-time-to-port"].format(
            weeks=port["weeks"], people=people, port_weeks=case["port_weeks"], needed=needed
        )
    weeks = latest(facts)
    if weeks is None:
        return "at_most_weeks is missing somewhere: when does the plan end at the latest?"
    if weeks > case["weeks"] / 2:
        return SAYS["no-time-is-left-for-production"].format(weeks=weeks, all_weeks=case["weeks"])
    return ""


def about_price(case: Facts, facts: Facts) -> str:
    """What is wrong with the price of a plan; "" if nothing is."""
    steps = by_name(facts)
    for name in STEPS:
        item = steps[name]
        numbers = [item["weeks"], item["engineers"], item["server_weeks"]]
        if bad := [number for number in numbers if isinstance(number, str) or number < 0]:
            return f"{name}: {bad[0]} where weeks, engineers or server_weeks should be a number"
        if item["engineers"] > case["engineers"]:
            return f"{name}: {item['engineers']:g} engineers, and there are {case['engineers']}"
        if item["engineers"] < LEAST_ENGINEERS:
            return SAYS["nobody-works"].format(name=name, engineers=item["engineers"])
    for name, why in (
        ("baseline", "today's work runs on a GPU server"),
        ("parity", "a device rounds by itself: results are compared on one"),
        ("measure", "throughput is measured on the machine that is to be bought"),
    ):
        if (server_weeks := steps[name]["server_weeks"]) < LEAST_SERVER_WEEKS:
            return f"{name}: server_weeks is {server_weeks:g}, but {why}"
    if (total := price(case, facts)) > case["value_of_measuring"]:
        return SAYS["all-eight-servers"].format(
            total=total, value_of_measuring=case["value_of_measuring"]
        )
    return ""


def about_benchmark(case: Facts, facts: Facts) -> str:
    """What is wrong with the benchmark of a plan; "" if nothing is."""
    sides = facts["benchmark"]
    for side in ("trainium", "gpu"):
        if not sides.get(side):
            return SAYS["one-side"].format(side=side)
        for name in (*TERMS, "from", "runs", "cold_apart"):
            if name not in sides[side]:
                return f"{side}: {name!r} is missing"
        if sides[side]["from"] != "own run":
            return SAYS["figures-of-the-vendor"].format(side=side, source=sides[side]["from"])
        runs = sides[side]["runs"]
        if isinstance(runs, bool) or not isinstance(runs, int | float) or runs < RUNS:
            return SAYS["one-run"].format(side=side, runs=runs, RUNS=RUNS)
        if sides[side]["cold_apart"] is not True:
            return SAYS["cold-and-warm-together"].format(side=side)
        accepted = sides[side]["accepted"]
        if not _is_number(accepted) or accepted > 1:
            return SAYS["true-for-a-share"].format(
                side=side, accepted=accepted, accepted_least=case["accepted_least"]
            )
        if accepted < case["accepted_least"]:
            return SAYS["faster-and-worse"].format(side=side, accepted=accepted)
    for name in TERMS:
        a, b = sides["trainium"][name], sides["gpu"][name]
        if a != b:
            return SAYS["another-precision"].format(name=name, a=a, b=b)
        if text := _about_term(name, a):
            return text
    return ""


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _about_term(name: str, value: Any) -> str:
    """Whether a term of a benchmark says something that can be the same, or not, elsewhere."""
    text = value.lower() if isinstance(value, str) else ""
    plain, region = re.sub(r"[ _-]+", " ", text), right("ferry").region
    counts = bool(re.search(r"\d", text)) or (_is_number(value) and value > 0)
    good, wanted = {
        "items": (counts, "how many are worked on, as a number"),
        "accepted": (counts, "a share"),
        "precision": (bool(FORMAT.search(text)), 'name the format, such as "BF16"'),
        "region": (region in text, f"the data must stay in {region}, and prices differ by region"),
        "purchase": (
            any(purchase in plain for purchase in PURCHASES),
            f"say how, such as {', '.join(PURCHASES)}",
        ),
        "date": (counts, 'which prices and versions, such as "2025-06"'),
    }[name]
    return "" if good else f"{name}: {value!r}: {wanted}"


BEFORE = (
    ("audit", "port", SAYS["port-before-audit"]),
    ("baseline", "parity", "results are compared with those of the baseline"),
    ("port", "parity", "only what runs has results"),
    ("parity", "measure", SAYS["speed-before-parity"]),
    ("measure", "sign", "the decision is made again with what was measured"),
)
"""A step, one that comes after it, and why."""

NOBODY = {
    "confidence": SAYS["a-feeling"],
    "lines changed": SAYS["lines"],
    "seconds on the CPU": SAYS["a-laptop"],
    "peak over peak": SAYS["a-peak"],
}
"""Quantities that decide nothing, and why."""

NEEDED: dict[str, tuple[tuple[str, str, float, float, str], ...]] = {
    "baseline": (
        ("spread of three runs", "<=", 0.005, 0.15, "without its spread one run compares nothing"),
    ),
    "audit": (
        ("kernels without replacement", "<=", 0, 0, "one kernel that nobody replaces stops it all"),
    ),
    "port": (
        ("graphs after warm-up", "<=", 0, 0, SAYS["one-graph-is-no-harm"]),
    ),
    "parity": (
        ("values outside tolerance", "<=", 0, 0, "one quantity outside is a result that differs"),
        ("accepted answers", ">=", BUDGET["accepted_least"], 1,
         SAYS["no-captains"]),
    ),
    "measure": (
        ("throughput over break-even", ">=", 1, 3, SAYS["half-is-enough"]),
    ),
    "sign": (("open contract items", "<=", 0, 0, "what is open when one signs stays open"),),
}  # fmt: skip
"""Step to what has to end it: quantity, comparison, the limits that are allowed, and why."""

CAPACITY = "servers promised in writing"

OCCURS: dict[str, tuple[str, float, float]] = {
    "spread of three runs": ("<=", 0, 1),
    CAPACITY: (">=", 0, 2 * BUDGET["servers_needed"]),
    "kernels without replacement": ("<=", 0, 50),
    "graphs after warm-up": ("<=", 0, 1000),
    "operators on the CPU": ("<=", 0, 100),
    "values outside tolerance": ("<=", 0, 1000),
    "accepted answers": (">=", 0.1, 1),
    "throughput over break-even": (">=", 0.1, 3),
    "open contract items": ("<=", 0, 50),
    "votes": (">=", -3, 6),
}
"""Quantity to which way is better, and between what it may lie: a condition outside says nothing.
"""


def plan_cases(rng: random.Random) -> list[Facts]:
    """One case: the plan of the ferry company."""
    return [dict(BUDGET)]


def plan_words(case: Facts) -> str:
    """What a card says of a case."""
    return (
        f"the ferry company, with {case['weeks']} weeks and a pilot worth at most"
        f" {case['value_of_measuring']:,}"
    )


def judge_plan(case: Facts, facts: Facts) -> list[Criterion]:
    """One criterion for the six steps, and one per rule of a plan."""
    missing = _about_steps(facts)
    results = [_rule("six steps", missing)]
    for name, about in _ABOUT.items():
        # Of steps that are not there nothing can be said; the benchmark stands by itself.
        if missing and name != "benchmark":
            results.append(not_judged(_rule(name, "")))
        else:
            sums = _SUMS[name](case, facts) if name in _SUMS else ("", "")
            results.append(_rule(name, about(case, facts), *sums))
    return results


def _rule(name: str, text: str, measured: str = "", target: str = "") -> Criterion:
    return criterion(name, 1, not text, measured, target, text)


def _about_steps(facts: Facts) -> str:
    if not facts["kind"].startswith("a dict"):
        return SAYS["prose"].format(kind=facts["kind"])
    if not facts["steps"]:
        return SAYS["only-the-steps"].format(steps_kind=facts["steps_kind"])
    names = [step["step"] for step in facts["steps"]]
    if unknown := [name for name in names if name not in STEPS]:
        return f"{unknown[0]} is no step; there are {', '.join(STEPS)}"
    if missing := [name for name in STEPS if name not in names]:
        return f"the step {missing[0]!r} is missing: a pilot has all six"
    if len(names) > len(STEPS):
        twice = next(name for name in STEPS if names.count(name) > 1)
        return f"the step {twice!r} stands there twice"
    return ""


def _about_order(case: Facts, facts: Facts) -> str:
    names = [step["step"] for step in facts["steps"]]
    for first, later, why in BEFORE:
        if names.index(first) > names.index(later):
            return f"{first!r} comes before {later!r}: {why}"
    early = facts["steps"][: names.index("port")]
    if not any(CAPACITY in _quantities(item["exit"]) for item in early):
        return SAYS["no-capacity"].format(CAPACITY=CAPACITY)
    return ""


def _quantities(conditions: Any) -> list[str]:
    return [condition[0] for condition in conditions if isinstance(condition, list)]


def _about_conditions(step: str, what: str, conditions: Any) -> str:
    """Whether conditions can be decided by numbers at all."""
    example = f'[("{NEEDED[step][0][0]}", "{NEEDED[step][0][1]}", ...)]'
    if isinstance(conditions, str) or not conditions:
        response = conditions if isinstance(conditions, str) else "empty"
        return SAYS["exit-as-a-sentence"].format(
            step=step, what=what, answer=response, example=example
        )
    for condition in conditions:
        if isinstance(condition, str):
            return f"{step}: {what} holds {condition}: write (quantity, comparison, limit)"
        quantity, compare, limit = condition
        if quantity not in QUANTITIES:
            return SAYS["a-quantity-of-ones-own"].format(step=step, quantity=quantity)
        if quantity in NOBODY:
            return f"{step}: {quantity!r}: {NOBODY[quantity]}"
        if compare not in ("<=", ">="):
            return f'{step}: {quantity!r}: {compare} is no comparison: "<=" or ">="'
        if isinstance(limit, str):
            return SAYS["a-word-as-the-limit"].format(step=step, quantity=quantity, limit=limit)
    return ""


def _about_exits(case: Facts, facts: Facts) -> Iterator[str]:
    steps = by_name(facts)
    for step in STEPS:
        conditions = steps[step]["exit"]
        if text := _about_conditions(step, "exit", conditions):
            yield text
            continue
        for quantity, compare, least, most, why in NEEDED[step]:
            own = [condition for condition in conditions if condition[0] == quantity]
            if not own:
                yield f"{step}: {quantity!r} has to be part of how it ends: {why}"
            for *_, limit in (item for item in own if item[1] == compare):
                if not least <= limit <= most:
                    allowed = f"{least:g}" if least == most else f"{least:g} to {most:g}"
                    yield f"{step}: {quantity!r} {compare} {limit:g}: {why}; sensible is {allowed}"
        for quantity, compare, limit in conditions:
            if compare != OCCURS[quantity][0]:
                yield SAYS["the-wrong-way-round"].format(
                    step=step, quantity=quantity, compare=compare
                )
            elif quantity == CAPACITY and limit < case["servers_needed"]:
                needed = case["servers_needed"]
                yield SAYS["capacity-for-one-server"].format(
                    step=step, CAPACITY=CAPACITY, compare=compare, limit=limit,
                    servers_needed=needed,
                )  # fmt: skip
            elif text := _about_limit(step, quantity, limit):
                yield text


def _about_limit(step: str, quantity: str, limit: float) -> str:
    _, least, most = OCCURS[quantity]
    if least <= limit <= most:
        return ""
    return SAYS["a-stop-that-never-happens"].format(
        step=step, quantity=quantity, limit=limit, least=least, most=most
    )


def _about_stops(facts: Facts) -> Iterator[str]:
    steps = by_name(facts)
    for step in STEPS:
        item = steps[step]
        if text := _about_conditions(step, "stop", item["stop"]):
            yield SAYS["no-stop"].format(text=text)
            continue
        if isinstance(item["exit"], str):
            continue
        for ends in [e for e in item["exit"] if isinstance(e, list) and not isinstance(e[2], str)]:
            for stops in item["stop"]:
                if stops[0] == ends[0] and _both(stops, ends):
                    yield SAYS["a-stop-that-the-exit-meets"].format(
                        step=step, quantity=stops[0], end=ends[1], end_limit=ends[2],
                        stop=stops[1], stop_limit=stops[2],
                    )  # fmt: skip
        for quantity, compare, limit in item["stop"]:
            if compare == OCCURS[quantity][0]:
                yield SAYS["a-stop-if-all-goes-well"].format(
                    step=step, quantity=quantity, compare=compare
                )
            elif text := _about_limit(step, quantity, limit):
                yield text
        own = _quantities(item["exit"]) + ["votes"] * (step == "sign")
        if step != "port" and not any(stop[0] in own for stop in item["stop"]):
            first = NEEDED[step][0][0]
            yield SAYS["a-stop-beside-the-point"].format(step=step, first=first)
    weeks = [(name, steps[name]["weeks"], steps[name]["at_most_weeks"]) for name in STEPS]
    for name, planned, most in weeks:
        if isinstance(most, str) or isinstance(planned, str):
            yield f"{name}: at_most_weeks is {most}: after how many weeks does it stop?"
        elif not planned <= most <= 2 * planned:
            yield SAYS["it-may-take-for-ever"].format(name=name, planned=planned, most=most)


def _both(a: list[Any], b: list[Any]) -> bool:
    """Whether a value can meet two conditions on the same quantity."""
    if a[1] == b[1]:
        return True
    low, high = (a[2], b[2]) if a[1] == ">=" else (b[2], a[2])
    return low <= high


_ABOUT = {
    "order": _about_order,
    "exits": lambda case, facts: next(_about_exits(case, facts), ""),
    "stops": lambda case, facts: next(_about_stops(facts), ""),
    "time": about_time,
    "price": about_price,
    "benchmark": about_benchmark,
}
"""The rules beside that of the six steps: what is wrong, or ""."""
_SUMS = {"time": latest_text, "price": price_text}
"""What is added up for a rule, and what it may be, for the card."""
