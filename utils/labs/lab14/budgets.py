"""Time, price and benchmark of a pilot plan, exercise 6 of lab 14."""

import re
from typing import Any

from utils.course.misconceptions import says
from utils.labs import Facts
from utils.labs.lab14.deciding import right
from utils.labs.lab14.examples import STEPS

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


def latest_said(case: Facts, facts: Facts) -> tuple[str, str]:
    """The weeks after which a plan ends at the latest, and the target, as a report shows them."""
    weeks = latest(facts)
    return "" if weeks is None else f"{weeks:g}", f"at most {case['weeks'] / 2:g} weeks"


def price_said(case: Facts, facts: Facts) -> tuple[str, str]:
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
