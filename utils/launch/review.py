"""A second look at a plan before it starts, and at plans that others wrote: what is wrong with it.

It reads the plain dict of `Plan.as_dict()`, so that a plan from a file can be reviewed too.
"""

from typing import Any

from utils.launch import known
from utils.launch.launch_plans import IDLE_MINUTES, Request, minutes, reads, user_data
from utils.launch.names import EXPIRES_TAG, OWN, OWNER_TAG, RUN_TAG, TAG, to_dict

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
    faults = [*_cost(plan, limit_usd), *_image(plan), *_quota(plan)]
    faults += [f"permissions: {fault}" for fault in too_wide(plan["policy"])]
    for name, request in plan["requests"].items():
        faults += [f"{name}: {fault}" for fault in _CALLS.get(name, _strange)(plan, request)]
    return tuple(faults)


def too_wide(document: dict[str, Any]) -> tuple[str, ...]:
    """What an IAM policy allows that no run of the course needs.

    >>> too_wide({"Statement": [{"Sid": "All", "Effect": "Allow", "Action": "ec2:*",
    ...                          "Resource": "*"}]})
    ('All allows ec2:*', 'All allows ec2:* on everything')
    """
    faults: list[str] = []
    for statement in document.get("Statement", ()):
        if statement["Effect"] != "Allow":
            continue
        sid, actions = statement.get("Sid", "a statement"), _as_list(statement["Action"])
        faults += [f"{sid} allows {action}" for action in actions if "*" in action]
        if "*" in _as_list(statement["Resource"]):
            changes = [action for action in actions if not reads(action)]
            faults += [f"{sid} allows {action} on everything" for action in changes]
    return tuple(faults)


def _as_list(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value


def _cost(plan: PlanDict, limit_usd: float | None) -> list[str]:
    bill = plan["cost"]
    total = bill["total_usd"]
    if total is None:
        return ["cost: the price is not known"]
    faults = []
    parts = bill["instances"] * bill["hours"] * (bill["usd_per_hour"] or 0) + bill["disk_usd"]
    if abs(total - parts) > 0.005:
        faults.append(f"cost: hours, price and disk make {parts:.2f} USD, not {total:.2f}")
    if bill["hours"] < plan["hours"]:
        faults.append("cost: fewer hours are paid for than asked for")
    if limit_usd is not None and total > limit_usd:
        faults.append(f"cost: {total:.2f} USD is above the limit of {limit_usd:.2f}")
    return faults


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


def _tags(request: Request) -> list[str]:
    """Whether the tags by which the launcher finds what it started are all there."""
    tags = to_dict(request.get("Tags", []))
    faults = [] if tags.get(TAG) == OWN else [f"no tag {TAG}={OWN}: --stop cannot find it"]
    return faults + [
        f"no tag {key}" for key in (OWNER_TAG, RUN_TAG, EXPIRES_TAG) if key not in tags
    ]


def _run_instances(plan: PlanDict, request: Request) -> list[str]:
    disks = request.get("BlockDeviceMappings", ())
    kept = not disks or not all(disk["Ebs"].get("DeleteOnTermination") for disk in disks)
    behaviour = request.get("InstanceInitiatedShutdownBehavior")
    count = (request.get("MinCount"), request.get("MaxCount"))
    tokens = request.get("MetadataOptions", {}).get("HttpTokens")
    checks = {
        "a shut-down would only stop the instance, and its disk would go on costing": (
            behaviour != "terminate"
        ),
        **dict.fromkeys(_clock(plan, request.get("UserData", "")), True),
        "a disk would stay when the instance is gone": kept,
        "no client token: a repeated call would start a second instance": (
            not request.get("ClientToken")
        ),
        "it starts another number of instances than the cost counts": (
            count != (1, plan["cost"]["instances"])
        ),
        "it starts another machine than the plan names": (
            request["InstanceType"] != plan["instance"]
        ),
        "its metadata would answer without a token": tokens != "required",
        "a key pair is named, but nobody is to log in through a port": "KeyName" in request,
    }
    tagged = {part["ResourceType"]: part for part in request.get("TagSpecifications", ())}
    faults = [fault for fault, wrong in checks.items() if wrong]
    return faults + [f for kind in ("instance", "volume") for f in _tags(tagged.get(kind, {}))]


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


def _strange(plan: PlanDict, request: Request) -> list[str]:
    return [f"no call of the course: it makes {', '.join(_CALLS)}"]


def _training_job(plan: PlanDict, request: Request) -> list[str]:
    faults = []
    seconds = request.get("StoppingCondition", {}).get("MaxRuntimeInSeconds")
    if seconds is None:
        faults.append("no MaxRuntimeInSeconds: the job may run for a day")
    elif seconds > plan["hours"] * 3600:
        faults.append(f"MaxRuntimeInSeconds is {seconds}, past the {plan['hours']:g} h asked for")
    resource = request["ResourceConfig"]
    if resource.get("KeepAlivePeriodInSeconds"):
        faults.append("the machine would be kept, and paid for, after the job")
    if resource["InstanceCount"] != plan["cost"]["instances"]:
        faults.append("it starts another number of instances than the cost counts")
    return faults + _tags(request)


def _space(plan: PlanDict, request: Request) -> list[str]:
    lab = request["SpaceSettings"]["JupyterLabAppSettings"]
    idle = lab.get("AppLifecycleManagement", {}).get("IdleSettings", {})
    faults = _tags(request)
    if idle.get("IdleTimeoutInMinutes") != IDLE_MINUTES:
        faults.append(f"an idle app is not shut down after {IDLE_MINUTES} minutes")
    return faults


def _app(plan: PlanDict, request: Request) -> list[str]:
    return _tags(request)


_CALLS = {
    "RunInstances": _run_instances,
    "CreateTrainingJob": _training_job,
    "CreateSpace": _space,
    "CreateApp": _app,
}
