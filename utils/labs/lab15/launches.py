"""Exercise 3, two mistakes in a launch plan: plans with mistakes, and which they have."""

import random
import re
from collections.abc import Callable
from typing import Any

from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.criteria import criterion, not_asked_for
from utils.labs.lab15.reading import MISTAKES, make_plan, vcpus

SAYS = says("lab15")

_ASK = {
    "shutdown": SAYS["stopped-is-fine"],
    "clock": SAYS["minutes-as-hours"],
    "disk": "DeleteOnTermination in every entry of BlockDeviceMappings",
    "tags": SAYS["one-tag-is-enough"],
    "image": SAYS["the-whole-name"],
    "cost": SAYS["no-disk-in-the-cost"],
    "permissions": SAYS["any-star"],
    "quota": SAYS["instances-for-vcpus"],
}


def launch_cases(rng: random.Random) -> list[Facts]:
    """Eight plans: each mistake stands in two of them, and each plan has two."""
    names = list(MISTAKES)
    while True:
        pairs = [*_pairs(rng, names), *_pairs(rng, names)]
        if len({frozenset(pair) for pair in pairs}) == len(pairs):
            break
    return [{"plans": _plant(rng, pairs), "facts": {"vcpu": vcpus()}}]


def _pairs(rng: random.Random, names: list[str]) -> list[tuple[str, str]]:
    mixed = rng.sample(names, len(names))
    return list(zip(mixed[::2], mixed[1::2], strict=True))


def launch_words(case: Facts) -> str:
    """What a card says of a case."""
    return f"{len(case['plans'])} plans with two mistakes each"


def _plan(rng: random.Random) -> Facts:
    """A right plan, with what of it is looked at."""
    instance = rng.choice(["trn1.2xlarge", "trn1.2xlarge", "trn1.32xlarge"])
    hours = rng.choice([1.5, 2.0, 3.0, 4.0, 6.0])
    return make_plan(instance, hours)


def _plant(rng: random.Random, pairs: list[tuple[str, str]]) -> list[Facts]:
    """A plan with each pair of mistakes; of a mistake that can be made in two ways, each once."""
    made: dict[str, int] = {}
    plans = []
    for pair in pairs:
        plan = _plan(rng)
        for name in pair:
            made.setdefault(name, rng.randint(0, 1))
            made[name] += 1
            PLANT[name](plan, bool(made[name] % 2))
        plans.append(plan)
    return plans


def _shutdown(plan: Facts, other: bool) -> None:
    plan["request"]["InstanceInitiatedShutdownBehavior"] = "stop"


def _clock(plan: Facts, other: bool) -> None:
    data = plan["request"]["UserData"]
    line = next(item for item in data.splitlines() if item.startswith("shutdown"))
    late = re.sub(r"\+\d+", f"+{int(60 * plan['hours']) + 60}", line, count=1) + "\n"
    plan["request"]["UserData"] = data.replace(line + "\n", late if other else "")


def _disk(plan: Facts, other: bool) -> None:
    plan["request"]["BlockDeviceMappings"][-1]["Ebs"]["DeleteOnTermination"] = False


def _tags(plan: Facts, other: bool) -> None:
    for tagspecification in plan["request"]["TagSpecifications"]:
        if tagspecification["ResourceType"] == ("volume" if other else "instance"):
            tagspecification["Tags"] = [
                tag for tag in tagspecification["Tags"] if tag["Key"] != "course"
            ]


def _image(plan: Facts, other: bool) -> None:
    plan["image"] = {"name": "torchneuron", "sdk": "2.33", "families": ["trn2"]}


def _cost(plan: Facts, other: bool) -> None:
    """The price of one hour, or without the disk."""
    cost = plan["cost"]
    per_hour = cost["usd_per_hour"] * cost["instances"]
    cost["total_usd"] = per_hour + cost["disk_usd"] if other else per_hour * cost["hours"]


def _permissions(plan: Facts, other: bool) -> None:
    statements = plan["policy"]["Statement"]
    started = next(
        statement for statement in statements if "ec2:RunInstances" in statement["Action"]
    )
    started |= {"Action": ["ec2:*"]} if other else {"Resource": "*"}


def _quota(plan: Facts, other: bool) -> None:
    plan["quota"] |= {"needed": 4} if other else {"needed": 1, "unit": "instances"}


PLANT: dict[str, Callable[[Facts, bool], None]] = {
    "shutdown": _shutdown,
    "clock": _clock,
    "disk": _disk,
    "tags": _tags,
    "image": _image,
    "cost": _cost,
    "permissions": _permissions,
    "quota": _quota,
}


def mistakes(plan: Facts, vcpu: dict[str, int]) -> set[str]:
    """The names of what is wrong with a plan."""
    request, cost = plan["request"], plan["cost"]
    clock = re.search(r"^shutdown -P \+(\d+)", request["UserData"], re.MULTILINE)
    tagged = {
        tagspecification["ResourceType"]
        for tagspecification in request["TagSpecifications"]
        if {"Key": "course", "Value": "trainium-course"} in tagspecification["Tags"]
    }
    total = cost["instances"] * cost["hours"] * cost["usd_per_hour"] + cost["disk_usd"]
    needed = vcpu[plan["instance"]] * cost["instances"]
    results = {
        "shutdown": request["InstanceInitiatedShutdownBehavior"] != "terminate",
        "clock": clock is None or int(clock[1]) > 60 * plan["hours"],
        "disk": not all(e["Ebs"]["DeleteOnTermination"] for e in request["BlockDeviceMappings"]),
        "tags": not {"instance", "volume"} <= tagged,
        "image": plan["instance"].partition(".")[0] not in plan["image"]["families"],
        "cost": abs(total - cost["total_usd"]) > 0.01,
        "permissions": any(map(_too_wide, plan["policy"]["Statement"])),
        "quota": (plan["quota"]["unit"], plan["quota"]["needed"]) != ("vCPU", needed),
    }
    return {name for name, wrong in results.items() if wrong}


def _too_wide(statement: Any) -> bool:
    actions = statement["Action"]
    wide = any(action == "*" or action.endswith(":*") for action in actions)
    return wide or ("ec2:RunInstances" in actions and statement["Resource"] == "*")


def judge_launches(case: Facts, facts: Facts) -> list[Criterion]:
    """One criterion per kind of mistake: found where it is, and nowhere else."""
    response = facts["response"]
    right = [mistakes(plan, case["facts"]["vcpu"]) for plan in case["plans"]]
    if any(item is None for item in response) or len(response) != len(right):
        message = SAYS["a-text"].format(kind=facts["kind"])
        return not_asked_for(dict.fromkeys(MISTAKES, 1), message, at="shutdown")
    rows = []
    for name, what in MISTAKES.items():
        missed = sum(name in r and name not in s for r, s in zip(right, response, strict=True))
        alarms = sum(name in s and name not in r for r, s in zip(right, response, strict=True))
        message = ""
        if missed:
            message = f"not seen in {missed} of 2 plans: {what}. {_ASK[name]}"
        elif alarms:
            message = f"named for {alarms} of 6 plans that do not have it. {_ASK[name]}"
        measured = f"{2 - missed} of 2 found, {alarms} false"
        rows.append(criterion(name, 1, not message, measured, "2 of 2 found, 0 false", message))
    # To name everything, or nothing, is no reading.
    if len({frozenset(item) for item in response}) == 1:
        first = SAYS["names-all"]
        return [criterion(r.name, 1, False, r.measured, r.target, first * (k == 0))
                for k, r in enumerate(rows)]  # fmt: skip
    return rows
