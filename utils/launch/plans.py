"""What a launch would start, cost, be allowed to do, and how it ends: `plan("ec2")`. Pure: nothing
here talks to AWS or needs to be configured.
"""

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

from utils.facts import Unknown, figure
from utils.launch import clusters, known, policy, requests
from utils.launch.cost import Cost, cost, dollars
from utils.launch.guides import Guide, cluster_guide, ec2_guide, studio_guide, training_job_guide
from utils.launch.known import Image, Quota
from utils.launch.names import tags

HOURS = (0.5, 24.0)
"""The least and the most that can be asked for."""
DISK_GB = (30, 2000)
REGION = "us-east-1"
RUN = "plan"
"""The name of a run that is only planned; a start draws its own."""


@dataclass(frozen=True)
class Plan:
    """One launch, written down before anything starts.

    where, title, starts: the place, in words, and whether the launcher starts it at all.
    hours: how long it may run. disk_gb: its disk.
    image: what it boots. cost: what it costs at most.
    quota: what the account must be allowed, None if the course does not know the machine's vCPUs.
    tags: on everything that is started. policy: the IAM document that is enough for it.
    requests: the calls by name, as far as they are known before the start.
    guide: how to reach it, how it ends, what nobody can promise, how to undo it by hand.
    template: the file for a cluster's tool, otherwise empty.
    """

    where: str
    title: str
    starts: bool
    instance: str
    region: str
    run: str
    hours: float
    disk_gb: int
    image: Image
    cost: Cost
    quota: Quota | None
    tags: dict[str, str]
    policy: dict[str, Any]
    requests: dict[str, dict[str, Any]]
    guide: Guide
    template: str

    def refusals(self, limit_usd: float | None) -> tuple[str, ...]:
        """Why this is not started under a spending limit; empty if nothing speaks against it.

        >>> [why.partition(" ")[0] for why in plan("hyperpod").refusals(limit_usd=None)]
        ['a', 'no', 'its']
        """
        found = []
        if not self.starts:
            found.append(
                f"{self.title} is only planned here, never started: follow the steps of the plan"
            )
        if limit_usd is None:
            found.append("no spending limit is given: add --limit and what it may cost, in USD")
        elif not 0 < limit_usd < math.inf:
            found.append(f"a limit of {limit_usd:g} USD is none: give what it may cost")
        if self.cost.total_usd is None:
            found.append(
                f"its price is unknown: {self.cost.said}. Look it up on the price page of AWS and "
                "give it with --price, in USD for an hour"
            )
        elif limit_usd is not None and not self.cost.total_usd <= limit_usd:
            found.append(
                f"it can cost {dollars(self.cost.total_usd)} USD, which is above the limit of "
                f"{limit_usd:.2f}: ask for fewer hours, a smaller machine or a higher limit"
            )
        return tuple(found)

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain dicts, lists, texts and numbers, for JSON."""
        return dataclasses.asdict(self)

    def __str__(self) -> str:
        from utils.launch.words import text

        return text(self)


def plan(
    where: str = "ec2",
    instance: str = "",
    region: str = REGION,
    hours: float = 2.0,
    *,
    image: str = "",
    disk_gb: int = 0,
    usd_per_hour: float | None = None,
    run: str = RUN,
    owner: str = "you",
    domain: str = "DOMAIN",
    user: str = "USER",
    role: str = "ROLE",
    bucket: str = "BUCKET",
) -> Plan:
    """What a launch would be.

    Args:
        where: one of `utils.launch.known.places()`.
        instance: an EC2 type, on SageMaker with "ml." before it; the place's smallest by default.
        hours: how long it may run, within `HOURS`.
        image: on EC2 "xla" (the default, for the course's device cells) or "torchneuron".
        disk_gb: of its disk; by default what the Neuron guide asks for.
        usd_per_hour: the price you looked up, where the course has none.
        run, owner: for the tags. domain, user: of Studio. role, bucket: of a training job.

    Raises:
        ValueError: if there is no such place, machine there, image for it, or region that has it,
            or the hours or the price cannot be; says what there is.

    >>> planned = plan("ec2", "trn1.2xlarge", hours=2)
    >>> planned.quota.needed, planned.quota.unit, round(planned.cost.total_usd, 2)
    (8, 'vCPU', 2.8)
    """
    place = known.place(where)
    instance = instance or place.default
    _check(place, instance, region, hours)
    disk_gb = disk_gb or int(figure("launch.disk.size").to("GB"))
    if not DISK_GB[0] <= disk_gb <= DISK_GB[1]:
        raise ValueError(f"a disk of {disk_gb} GB: ask for {DISK_GB[0]} to {DISK_GB[1]}")
    booted = _image(place.name, image, instance, region)
    marks = tags(run, owner, None)
    idle = requests.IDLE_MINUTES / 60 if where == "studio" else 0.0
    billed = cost(instance, region, hours + idle, disk_gb, usd_per_hour=usd_per_hour)
    allowed: dict[str, Any] = {}
    calls: dict[str, dict[str, Any]] = {}
    template = ""
    match where:
        case "ec2":
            allowed = policy.ec2(instance, region, disk_gb)
            calls["RunInstances"] = requests.run_instances(
                instance, hours, disk_gb, booted.python, run, marks
            )
            guide = ec2_guide(region, requests.minutes(hours), booted.python)
        case "training-job":
            allowed = policy.training_job(instance, region, 60 * requests.minutes(hours), bucket)
            calls["CreateTrainingJob"] = requests.create_training_job(
                instance, hours, disk_gb, booted.key, run, marks, role, bucket
            )
            guide = training_job_guide(region, 60 * requests.minutes(hours))
        case "studio":
            allowed = policy.studio(instance, region)
            calls["CreateSpace"] = requests.create_space(
                instance, disk_gb, domain, user, run, marks
            )
            calls["CreateApp"] = requests.create_app(instance, domain, run, marks)
            guide = studio_guide(region, requests.IDLE_MINUTES)
        case _:
            cluster = clusters.CLUSTERS[where](instance, region)
            guide, template = cluster_guide(cluster), cluster.template
    return Plan(
        where=where,
        title=place.title,
        starts=place.starts,
        instance=instance,
        region=region,
        run=run,
        hours=hours,
        disk_gb=disk_gb,
        image=booted,
        cost=billed,
        quota=_quota(where, instance),
        tags=marks,
        policy=allowed,
        requests=calls,
        guide=guide,
        template=template,
    )


def _check(place: known.Place, instance: str, region: str, hours: float) -> None:
    if instance not in place.instances:
        raise ValueError(
            f"{place.title} cannot be {instance}: there are {', '.join(place.instances)}"
        )
    regions = known.offered(instance)
    if regions and region not in regions:
        raise ValueError(
            f"no {instance} in {region}, as far as the course knows: "
            f"{known.ec2_type(instance)} is offered in {', '.join(regions)}"
        )
    if not HOURS[0] <= hours <= HOURS[1]:
        raise ValueError(f"{hours:g} hours: ask for {HOURS[0]:g} to {HOURS[1]:g}")


def _image(where: str, name: str, instance: str, region: str) -> Image:
    choices = ("xla", "torchneuron") if where == "ec2" else ()
    if name and name not in choices:
        there = f"there are {' and '.join(choices)}" if choices else "it has one image; name none"
        raise ValueError(f"no image {name!r} for {where}: {there}")
    default = {"ec2": "xla", "studio": "studio"}.get(where, "container")
    found = known.image(name or default, region)
    if known.family(instance) not in found.families:
        raise ValueError(
            f"{found.title} does not run on {instance}, only on the families "
            f"{', '.join(found.families)}: {found.notes[0][0]}"
        )
    return found


def _quota(where: str, instance: str) -> Quota | None:
    try:
        return known.quota(where, instance)
    except Unknown:
        return None
