"""What `utils/facts/data/launch.yaml` and the prices of the facts say: places, images, quotas,
prices."""

from dataclasses import dataclass
from functools import cache
from typing import Any

from utils.facts import figure, figures
from utils.facts.records import content


@dataclass(frozen=True)
class Place:
    """A way to run on Trainium, or to give a class the course. starts: whether the launcher starts
    it, or only prints a plan. disk_gb: of its disk, 0 for what the Neuron guide asks for."""

    name: str
    title: str
    starts: bool
    default: str
    instances: tuple[str, ...]
    source: str
    disk_gb: int = 0


@dataclass(frozen=True)
class Image:
    """What the machine boots or runs.

    find: "parameter" (a public parameter of Systems Manager), "search" (the newest image of AWS
        with that name), "container" (an address) or "domain" (whatever the Studio domain gives).
    key: the parameter, name or address.
    python: the interpreter that has the framework.
    families: instance families on which its framework runs.
    notes: (statement, address of its source).
    """

    name: str
    title: str
    find: str
    key: str
    sdk: str
    python: str
    families: tuple[str, ...]
    source: str
    notes: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Quota:
    """What the account must be allowed. unit: "vCPU" on EC2, "instances" on SageMaker."""

    service: str
    code: str
    name: str
    needed: int
    unit: str
    source: str


@dataclass(frozen=True)
class Price:
    """USD for an hour; None if no source of the course gives it. label: which price it is."""

    usd_per_hour: float | None
    label: str
    source: str = ""


@cache
def _all() -> dict[str, Any]:
    return content("launch.yaml")


def _address(key: str) -> str:
    return _all()["sources"][key]["url"]


def places() -> tuple[str, ...]:
    """The names of all places."""
    return tuple(_all()["places"])


def place(name: str) -> Place:
    """Raises ValueError for a name that is not in `places()`."""
    if name not in places():
        raise ValueError(f"no place {name!r} to launch at; there are {', '.join(places())}")
    entry = _all()["places"][name]
    sure = {"instances": tuple(entry["instances"]), "source": _address(entry["source"])}
    return Place(name, **entry | sure)


def image(name: str, region: str) -> Image:
    """The image of that name in a region."""
    entry = dict(_all()["images"][name])
    key = entry.pop("name").format(region=region)
    sure = {"families": tuple(entry["families"]), "source": _address(entry["source"])}
    sure["notes"] = tuple((note["text"], _address(note["source"])) for note in entry["notes"])
    return Image(name, key=key, **entry | sure)


def ec2_type(instance: str) -> str:
    """The EC2 type behind a SageMaker type.

    >>> ec2_type("ml.trn1.2xlarge")
    'trn1.2xlarge'
    """
    return instance.removeprefix("ml.")


def family(instance: str) -> str:
    """The family of an instance type.

    >>> family("ml.trn1.2xlarge")
    'trn1'
    """
    return ec2_type(instance).partition(".")[0]


def regions_of(instance: str) -> tuple[str, ...]:
    """Regions in which EC2 lists the type; empty if the course does not know."""
    return tuple(_all()["offered"].get(ec2_type(instance), ()))


def price(instance: str, region: str) -> Price:
    """What an hour on demand costs there. SageMaker has prices of its own, which the course does
    not have: its hours cost more than those of EC2.
    """
    if instance.startswith("ml."):
        return Price(None, "no source of the course gives a price of SageMaker for it")
    key = f"launch.price.{region}.{instance}"
    if region == _all()["prices_in"] and key not in figures():
        key = f"{instance}.price.on_demand"
    if key not in figures() or figure(key).value is None:
        return Price(None, f"no source of the course gives an hour on demand in {region}")
    listed = figure(key)
    text = f"on demand in {region}, as of {listed.date} ({listed.status})"
    return Price(listed.to("USD/h"), text, listed.source)


def vcpus(instance: str) -> int:
    """vCPUs of an EC2 type. Raises Unknown if no source gives them."""
    key = f"launch.vcpu.{instance}"
    return int(figure(key if key in figures() else f"{instance}.vcpu").number)


def quota(where: str, instance: str, count: int = 1) -> Quota:
    """What to ask for: EC2 counts vCPUs of all running instances of a family, SageMaker counts
    instances of one type for one use. Raises Unknown if no source gives the vCPUs.

    >>> quota("ec2", "trn1.2xlarge").needed, quota("training-job", "ml.trn1.2xlarge").needed
    (8, 1)
    """
    on_ec2 = not instance.startswith("ml.")
    kind = "trn" if instance.startswith("trn") else "standard"
    entry = dict(_all()["quotas"][kind if on_ec2 else where])
    entry["name"] = entry["name"].format(instance=instance)
    needed = count * (vcpus(instance) if on_ec2 else 1)
    return Quota(needed=needed, **entry | {"source": _address(entry["source"])})
