"""A second look at a plan before it starts, and at plans that others wrote: what is wrong with it.

It reads the plain dict of `Plan.as_dict()`, so that a plan from a file can be reviewed too.
"""

from typing import Any

from utils.launch import known, policy
from utils.launch.names import EXPIRES_TAG, OWN, OWNER_TAG, RUN_TAG, TAG, unlisted
from utils.launch.requests import IDLE_MINUTES, minutes, user_data

PlanDict = dict[str, Any]


def review(plan: PlanDict, limit_usd: float | None = None) -> tuple[str, ...]:
    """What is wrong with a plan; empty if it may start.

    Args:
        plan: as `Plan.as_dict()` gives it.
        limit_usd: if given, the cost is held against it too.

    >>> from utils.launch import plan
    >>> planned = plan("ec2").as_dict()
    >>> planned["requests"]["RunInstances"]["InstanceInitiatedShutdownBehavior"] = "stop"
    >>> review(planned)
    ('RunInstances: a shut-down would only stop the instance, and its disk would go on costing',)
    """
    found = [*_cost(plan, limit_usd), *_image(plan), *_quota(plan)]
    found += [f"permissions: {each}" for each in policy.too_wide(plan["policy"])]
    for name, request in plan["requests"].items():
        looked = _CALLS.get(name, _strange)(plan, request)
        found += [f"{name}: {each}" for each in looked]
    return tuple(found)


def _cost(plan: PlanDict, limit_usd: float | None) -> list[str]:
    bill, found = plan["cost"], []
    total = bill["total_usd"]
    if total is None:
        return ["cost: the price is not known"]
    parts = bill["instances"] * bill["hours"] * (bill["usd_per_hour"] or 0) + bill["disk_usd"]
    if abs(total - parts) > 0.005:
        found.append(f"cost: hours, price and disk make {parts:.2f} USD, not {total:.2f}")
    if bill["hours"] < plan["hours"]:
        found.append("cost: fewer hours are paid for than asked for")
    if limit_usd is not None and total > limit_usd:
        found.append(f"cost: {total:.2f} USD is above the limit of {limit_usd:.2f}")
    return found


def _image(plan: PlanDict) -> list[str]:
    families = plan["image"]["families"]
    if known.family(plan["instance"]) in families:
        return []
    return [f"image: its software runs on {', '.join(families)}, not on {plan['instance']}"]


def _quota(plan: PlanDict) -> list[str]:
    asked = plan["quota"]
    if asked is None:
        return ["quota: what to ask for is not known"]
    right = known.quota(plan["where"], plan["instance"], plan["cost"]["instances"])
    if (asked["unit"], asked["service"]) != (right.unit, right.service):
        return [f"quota: {right.service} counts {right.unit}, not {asked['unit']}"]
    if asked["needed"] < right.needed:
        return [f"quota: {asked['needed']} {asked['unit']} do not hold {right.needed}"]
    return []


def _marks(tags: list[dict[str, str]]) -> list[str]:
    there = unlisted(tags)
    found = [f"no tag {key}" for key in (OWNER_TAG, RUN_TAG, EXPIRES_TAG) if key not in there]
    return (
        found if there.get(TAG) == OWN else [f"no tag {TAG}={OWN}: --stop cannot find it"] + found
    )


def _run_instances(plan: PlanDict, request: dict[str, Any]) -> list[str]:
    found = []
    if request.get("InstanceInitiatedShutdownBehavior") != "terminate":
        found.append("a shut-down would only stop the instance, and its disk would go on costing")
    found += _clock(plan, request.get("UserData", ""))
    disks = request.get("BlockDeviceMappings", ())
    if not disks or not all(each["Ebs"].get("DeleteOnTermination") for each in disks):
        found.append("a disk would stay when the instance is gone")
    if not request.get("ClientToken"):
        found.append("no client token: a repeated call would start a second instance")
    if (request.get("MinCount"), request.get("MaxCount")) != (1, plan["cost"]["instances"]):
        found.append("it starts another number of instances than the cost counts")
    if request["InstanceType"] != plan["instance"]:
        found.append("it starts another machine than the plan names")
    if request.get("MetadataOptions", {}).get("HttpTokens") != "required":
        found.append("its metadata would answer without a token")
    if "KeyName" in request:
        found.append("a key pair is named, but nobody is to log in through a port")
    marked = {s["ResourceType"]: s["Tags"] for s in request.get("TagSpecifications", ())}
    return found + [e for kind in ("instance", "volume") for e in _marks(marked.get(kind, []))]


def _clock(plan: PlanDict, script: str) -> list[str]:
    """Whether the first command of the script sets a clock, one that is early enough, and whether
    what follows is what the course would send: it could take the clock back.
    """
    hours = plan["hours"]
    commands = [line for line in script.splitlines() if line.strip() and line[0] != "#"]
    words = commands[0].split() if commands else []
    if words[:2] != ["shutdown", "-P"] or not words[2:] or not words[2].lstrip("+").isdigit():
        return ["the first command does not set the clock that ends the instance"]
    if int(words[2]) > minutes(hours):
        return [
            f"its clock rings after {int(words[2])} minutes, past the {hours:g} h that are paid for"
        ]
    if script != user_data(hours, plan["image"].get("python", "")):
        return ["its script is not the course's: what follows the clock may take it back"]
    return []


def _strange(plan: PlanDict, request: dict[str, Any]) -> list[str]:
    return [f"no call of the course: it makes {', '.join(_CALLS)}"]


def _training_job(plan: PlanDict, request: dict[str, Any]) -> list[str]:
    found = []
    seconds = request.get("StoppingCondition", {}).get("MaxRuntimeInSeconds")
    if seconds is None:
        found.append("no MaxRuntimeInSeconds: the job may run for a day")
    elif seconds > plan["hours"] * 3600:
        found.append(f"MaxRuntimeInSeconds is {seconds}, past the {plan['hours']:g} h asked for")
    resource = request["ResourceConfig"]
    if resource.get("KeepAlivePeriodInSeconds"):
        found.append("the machine would be kept, and paid for, after the job")
    if resource["InstanceCount"] != plan["cost"]["instances"]:
        found.append("it starts another number of instances than the cost counts")
    return found + _marks(request.get("Tags", []))


def _space(plan: PlanDict, request: dict[str, Any]) -> list[str]:
    lab = request["SpaceSettings"]["JupyterLabAppSettings"]
    idle = lab.get("AppLifecycleManagement", {}).get("IdleSettings", {})
    found = _marks(request.get("Tags", []))
    if idle.get("IdleTimeoutInMinutes") != IDLE_MINUTES:
        found.append(f"an idle app is not shut down after {IDLE_MINUTES} minutes")
    return found


def _app(plan: PlanDict, request: dict[str, Any]) -> list[str]:
    return _marks(request.get("Tags", []))


_CALLS = {
    "RunInstances": _run_instances,
    "CreateTrainingJob": _training_job,
    "CreateSpace": _space,
    "CreateApp": _app,
}
