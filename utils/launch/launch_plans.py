"""What a launch would start, cost, be allowed to do, and how it ends: `plan("ec2")`. Pure: nothing
here talks to AWS or needs to be configured.

An `Order` is what was asked for. `plan` checks it against `known` and fills it into the templates:
`places.yaml` has the calls, permissions and words of each place, `templates/` the script that an
instance runs first and the page that `str(plan)` prints.
"""

import dataclasses
import functools
import json
import math
import re
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2

from utils.facts import Unknown, figure
from utils.facts.records import read_yaml
from utils.launch import known
from utils.launch.known import Image, Place, Price, Quota
from utils.launch.names import name, tags, to_list

HERE = Path(__file__).parent
HOURS = (0.5, 24.0)
"""The least and the most that can be asked for."""
DISK_GB = (30, 2000)
REGION = "us-east-1"
RUN = "plan"
"""The name of a run that is only planned; a start draws its own."""
IDLE_MINUTES = 60
"""The least that Studio takes as the time after which an idle app is shut down."""
EARLY_MINUTES = 5
"""The clock ends this long before the paid hours: the system starts before it and stops after."""
DISK_ELSEWHERE = 4
"""The course has the price of a disk on EC2 in us-east-1 alone. In other regions and on SageMaker
so many times that price is counted: an allowance of ours and no price, so that "at most" holds.
"""
READS = ("Describe", "List", "Get")
"""How the names of IAM's actions begin that change nothing."""

Request = dict[str, Any]
"""A call's arguments, as boto3 takes them."""


@dataclass(frozen=True)
class Order:
    """What is asked for.

    where: one of `known.places()`.
    instance: an EC2 type, on SageMaker with "ml." before it; empty for the place's smallest.
    hours: how long it may run, within `HOURS`.
    image: on EC2 "xla" (the default, for the course's device cells) or "torchneuron".
    disk_gb: of its disk, within `DISK_GB`; 0 for what the Neuron guide asks for.
    usd_per_hour: the price you looked up, where the course has none.
    run, owner: for the tags. domain, user: of Studio. role, bucket: of a training job.
    """

    where: str = "ec2"
    instance: str = ""
    region: str = REGION
    hours: float = 2.0
    image: str = ""
    disk_gb: int = 0
    usd_per_hour: float | None = None
    run: str = RUN
    owner: str = "you"
    domain: str = "DOMAIN"
    user: str = "USER"
    role: str = "ROLE"
    bucket: str = "BUCKET"


@dataclass(frozen=True)
class Cost:
    """The parts of a bill, in USD.

    hours: that are paid for; more than asked where nothing ends the machine at the minute.
    disk_usd: outside of EC2 in us-east-1 an allowance, see `DISK_ELSEWHERE`.
    usd_per_hour, total_usd: None if no source gives the price.
    label: which price it is; source: its address, empty if the learner gave it.
    """

    hours: float
    instances: int
    usd_per_hour: float | None
    disk_gb: int
    disk_usd: float
    total_usd: float | None
    label: str
    source: str


@dataclass(frozen=True)
class Guide:
    """steps: before and after the start. ends: what ends it, first to last. not_promised: what
    stays possible all the same. tear_down: how to undo it by hand.
    """

    steps: tuple[str, ...]
    ends: tuple[str, ...]
    not_promised: tuple[str, ...]
    tear_down: tuple[str, ...]


@dataclass(frozen=True)
class Plan:
    """One launch, written down before anything starts.

    where, title, starts: the place, in words, and whether the launcher starts it at all.
    hours: how long it may run. disk_gb: its disk.
    image: what it boots. cost: what it costs at most.
    quota: what the account must be allowed, None if the course does not know the machine's vCPUs.
    tags: on everything that is started. policy: the IAM document that is enough for it.
    requests: the calls by name, as far as they are known before the start: without what is looked
        up then (image, root device, security group). The subnet is the region's default.
    guide: how to reach it, how it ends, what nobody can promise, how to undo it by hand.
    template: the file for a cluster's tool, otherwise empty. The launcher starts no cluster: that
        is many things made over minutes, by a tool with its own way to undo them.
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
    requests: dict[str, Request]
    guide: Guide
    template: str

    def refusals(self, limit_usd: float | None) -> tuple[str, ...]:
        """Why this is not started under a spending limit; empty if nothing speaks against it.

        >>> [why.partition(" ")[0] for why in plan("hyperpod").refusals(limit_usd=None)]
        ['a', 'no', 'its']
        """
        reasons = []
        if not self.starts:
            reasons.append(
                f"{self.title} is only planned here, never started: follow the steps of the plan"
            )
        if limit_usd is None:
            reasons.append("no spending limit is given: add --limit and what it may cost, in USD")
        elif not 0 < limit_usd < math.inf:
            reasons.append(f"a limit of {limit_usd:g} USD is none: give what it may cost")
        if self.cost.total_usd is None:
            reasons.append(
                f"its price is unknown: {self.cost.label}. Look it up on the price page of AWS and "
                "give it with --price, in USD for an hour"
            )
        elif limit_usd is not None and not self.cost.total_usd <= limit_usd:
            reasons.append(
                f"it can cost {dollars(self.cost.total_usd)} USD, which is above the limit of "
                f"{limit_usd:.2f}: ask for fewer hours, a smaller machine or a higher limit"
            )
        return tuple(reasons)

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain dicts, lists, texts and numbers, for JSON."""
        return dataclasses.asdict(self)

    def __str__(self) -> str:
        cited: list[str] = []

        def cite(address: str) -> str:
            """The number of a source, in the order in which the page names them."""
            if address and address not in cited:
                cited.append(address)
            return f" [{cited.index(address) + 1}]" if address else ""

        actions = [a for statement in self.policy.get("Statement", ()) for a in statement["Action"]]
        page = (
            _environment()
            .get_template("plan.txt")
            .render(
                plan=self,
                cite=cite,
                cited=cited,
                changes=[a for a in dict.fromkeys(actions) if not reads(a)],
                dollars=dollars,
                disk_elsewhere=DISK_ELSEWHERE,
                disk_source=figure("launch.disk.price").source,
            )
        )
        return "\n".join(map(_wrap, page.strip().splitlines()))


def plan(
    where: str = "ec2", instance: str = "", region: str = REGION, hours: float = 2.0, **more: Any
) -> Plan:
    """The plan of an `Order`, whose other fields are `more`.

    Raises:
        ValueError: if there is no such place, machine there, image for it, or region that has it,
            or the hours or the price cannot be; says what there is.

    >>> planned = plan("ec2", "trn1.2xlarge", hours=2)
    >>> planned.quota.needed, planned.quota.unit, round(planned.cost.total_usd, 2)
    (8, 'vCPU', 2.8)
    """
    return plan_order(Order(where, instance, region, hours, **more))


def plan_order(order: Order) -> Plan:
    """The plan of an order; raises as `plan` does."""
    place = known.place(order.where)
    order = dataclasses.replace(
        order,
        instance=order.instance or place.default,
        disk_gb=order.disk_gb or place.disk_gb or int(figure("launch.disk.size").to("GB")),
    )
    _check(place, order)
    image = _image(order)
    marks = tags(order.run, order.owner, None)
    values = dataclasses.asdict(order) | {
        "image": image,
        "name": name(order.run),
        "tags": to_list(marks),
        "named_tags": to_list({"Name": name(order.run), **marks}),
        "minutes": minutes(order.hours),
        "seconds": 60 * minutes(order.hours),
        "idle_minutes": IDLE_MINUTES,
        "user_data": user_data(order.hours, image.python),
        "hub_user_data": user_data(order.hours, image.python, "hub_user_data.sh"),
        "disk_usd_per_month": dollars(
            order.disk_gb * figure("launch.disk.price").to("USD/GB/month")
        ),
    }
    page = _fill(_places()[order.where], values)
    template = page.get("template", "")
    policy = {"Version": "2012-10-17", "Statement": page["policy"]} if "policy" in page else {}
    return Plan(
        where=order.where,
        title=place.title,
        starts=place.starts,
        instance=order.instance,
        region=order.region,
        run=order.run,
        hours=order.hours,
        disk_gb=order.disk_gb,
        image=image,
        cost=cost(order),
        quota=_quota(order),
        tags=marks,
        policy=policy,
        requests=page.get("requests", {}),
        guide=Guide(**{part: tuple(lines) for part, lines in page["guide"].items()}),
        template=template if isinstance(template, str) else json.dumps(template, indent=2),
    )


def _check(place: Place, order: Order) -> None:
    instance, region = order.instance, order.region
    if instance not in place.instances:
        raise ValueError(
            f"{place.title} cannot be {instance}: there are {', '.join(place.instances)}"
        )
    regions = known.regions_of(instance)
    if regions and region not in regions:
        raise ValueError(
            f"no {instance} in {region}, as far as the course knows: "
            f"{known.ec2_type(instance)} is offered in {', '.join(regions)}"
        )
    if not HOURS[0] <= order.hours <= HOURS[1]:
        raise ValueError(f"{order.hours:g} hours: ask for {HOURS[0]:g} to {HOURS[1]:g}")
    if not DISK_GB[0] <= order.disk_gb <= DISK_GB[1]:
        raise ValueError(f"a disk of {order.disk_gb} GB: ask for {DISK_GB[0]} to {DISK_GB[1]}")


def _image(order: Order) -> Image:
    choices = ("xla", "torchneuron") if order.where == "ec2" else ()
    if order.image and order.image not in choices:
        there = f"there are {' and '.join(choices)}" if choices else "it has one image; name none"
        raise ValueError(f"no image {order.image!r} for {order.where}: {there}")
    default = {"ec2": "xla", "studio": "studio", "hub": "ubuntu"}.get(order.where, "container")
    image = known.image(order.image or default, order.region)
    if known.family(order.instance) not in image.families:
        raise ValueError(
            f"{image.title} does not run on {order.instance}, only on the families "
            f"{', '.join(image.families)}: {image.notes[0][0]}"
        )
    return image


def _quota(order: Order) -> Quota | None:
    try:
        return known.quota(order.where, order.instance)
    except Unknown:
        return None


# --- What it costs ---------------------------------------------------------------------------


def cost(order: Order) -> Cost:
    """The cost of one machine: hours times the price of an hour, and a gp3 disk.

    Raises:
        ValueError: if a price is given although the course has one, or if it is below what EC2
            asks for as many Trainium1 chips, which nothing undercuts on demand.

    >>> cost(Order(instance="trn1.2xlarge", hours=2, disk_gb=0)).total_usd
    2.6875
    """
    hours = order.hours + (IDLE_MINUTES / 60 if order.where == "studio" else 0.0)
    price = known.price(order.instance, order.region)
    if order.usd_per_hour is not None:
        price = _given(price, order, order.usd_per_hour)
    elsewhere = order.region != "us-east-1" or order.instance != known.ec2_type(order.instance)
    gb_hours = (DISK_ELSEWHERE if elsewhere else 1) * order.disk_gb * hours
    disk_usd = gb_hours * figure("launch.disk.price").to("USD/GB/hour")
    hourly = price.usd_per_hour
    total = None if hourly is None else hours * hourly + disk_usd
    return Cost(hours, 1, hourly, order.disk_gb, disk_usd, total, price.label, price.source)


def _given(price: Price, order: Order, usd_per_hour: float) -> Price:
    instance, region = order.instance, order.region
    if price.usd_per_hour is not None:
        raise ValueError(
            f"the price of {instance} in {region} is known: {price.usd_per_hour} USD an hour, "
            f"{price.label}. Leave your own price out"
        )
    chips = figure(f"{known.ec2_type(instance)}.accelerators").number
    least = chips * figure("trn1.2xlarge.price.on_demand").to("USD/h")
    if not least <= usd_per_hour < math.inf:
        raise ValueError(
            f"{usd_per_hour:g} USD an hour for {instance} cannot be: as many Trainium1 chips cost "
            f"{least:g} on EC2. Give the price on demand that AWS lists for it in {region}"
        )
    return Price(usd_per_hour, f"as you gave it for {region}; the course cannot check it")


def dollars(amount: float | None) -> str:
    """USD, rounded up to the cent: what is printed is enough as a limit.

    >>> dollars(2.801), dollars(2.80)
    ('2.81', '2.80')
    """
    return "unknown" if amount is None else f"{math.ceil(amount * 100 - 1e-6) / 100:.2f}"


# --- Filling in the templates ----------------------------------------------------------------


def minutes(hours: float) -> int:
    """After how many minutes the clock of AWS or of the machine ends a run.

    >>> minutes(2)
    115
    """
    return int(hours * 60) - EARLY_MINUTES


def user_data(hours: float, python: str, name: str = "user_data.sh") -> str:
    """The script that an instance runs first: a clock that shuts it down, whoever still watches. It
    begins with the clock, and powers off at once if none can be set.

    EC2 runs user data once, at the first start. A shutdown that is only scheduled is forgotten by a
    restart, so the deadline is also written as a systemd timer with a date, which comes back with
    the system and fires at once if its date is past.
    """
    script = _environment().get_template(name)
    return script.render(minutes=minutes(hours), python=python)


def reads(action: str) -> bool:
    """Whether an IAM action such as "ec2:DescribeImages" changes nothing."""
    return action.partition(":")[2].startswith(READS)


@functools.cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE / "templates"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


@functools.cache
def _places() -> dict[str, Any]:
    return read_yaml(HERE / "places.yaml")


@functools.cache
def _compile(text: str) -> Any:
    """A text of places.yaml as a function of its values: one that is a single expression keeps the
    type of its value, such as a number or a list of tags.
    """
    whole = re.fullmatch(r"{{ ([\w.]+) }}", text)
    if whole:
        return _environment().compile_expression(whole[1], undefined_to_none=False)
    return _environment().from_string(text).render


def _fill(node: Any, values: dict[str, Any]) -> Any:
    """Every text below a node of places.yaml, with the values in their places. The YAML is read
    before that, so that no value, whatever is in it, can add anything to the plan.
    """
    if isinstance(node, dict):
        return {key: _fill(value, values) for key, value in node.items()}
    if isinstance(node, list):
        return [_fill(value, values) for value in node]
    return _compile(node)(**values) if isinstance(node, str) else node


def _wrap(line: str) -> str:
    """A command stays one line, so that it can be copied; prose is wrapped."""
    if not line.startswith("- "):
        return line
    text = line[2:]
    if text.lstrip().startswith(("aws ", "eksctl ", "pcluster ", "sudo ")):
        return "    " + text.strip()
    return textwrap.fill(text, 100, initial_indent="  ", subsequent_indent="    ")
