"""Launch plans as exercise 3 shows them, and the names of mistakes. Says of no plan what it has."""

import copy
import json
from typing import Any

from utils import launch

MISTAKES = {
    "shutdown": "a shut-down stops the instance and does not end it: its disk is paid on",
    "clock": "UserData has no shut-down, or one after the hours that are planned",
    "disk": "a disk stays, and costs, when the instance is ended",
    "tags": "instance or volume lack the tag course=trainium-course, by which --stop finds them",
    "image": "the software of the image is not for the family of the instance",
    "cost": "total_usd is not instances × hours × usd_per_hour + disk_usd",
    "permissions": "a statement allows all of a service, or RunInstances on everything",
    "quota": "the quota is not the vCPUs of all instances",
}
"""What may be wrong with a plan, by name."""

_REQUEST = ("InstanceType", "MinCount", "MaxCount", "InstanceInitiatedShutdownBehavior",
            "UserData", "BlockDeviceMappings", "TagSpecifications")  # fmt: skip


def vcpus() -> dict[str, int]:
    """The vCPUs of one instance, by its type."""
    from utils.facts import figure

    return {name: int(figure(f"{name}.vcpu").value) for name in ("trn1.2xlarge", "trn1.32xlarge")}


def make_plan(instance: str, hours: float) -> dict[str, Any]:
    """What the course's launcher plans, in the parts that the exercise looks at."""
    made = json.loads(json.dumps(launch.plan("ec2", instance, hours=hours).as_dict()))
    kept = {name: made[name] for name in ("instance", "region", "hours")}
    for part in ("cost", "quota"):
        messages = {"source", "label", "code", "service"}
        kept[part] = {k: v for k, v in made[part].items() if k not in messages}
    kept["image"] = {k: made["image"][k] for k in ("name", "sdk", "families")}
    # The whole policy has more statements, which all plans share.
    kept["policy"] = {"Statement": made["policy"]["Statement"][:5]}
    kept["request"] = {name: made["requests"]["RunInstances"][name] for name in _REQUEST}
    kept["request"]["UserData"] = "\n".join(kept["request"]["UserData"].splitlines()[:4])
    return kept


def example() -> dict[str, Any]:
    """A plan with the two mistakes "disk" and "quota"."""
    plan = copy.deepcopy(make_plan("trn1.2xlarge", 2.0))
    plan["request"]["BlockDeviceMappings"][0]["Ebs"]["DeleteOnTermination"] = False
    plan["quota"] |= {"needed": 1, "unit": "instances"}
    return plan
