"""What a run costs at most: hours times the price of an hour, and the disk."""

import math
from dataclasses import dataclass

from utils.facts import figure
from utils.launch.known import Price, ec2_type, price


@dataclass(frozen=True)
class Cost:
    """The parts of a bill, in USD.

    hours: that are paid for; more than asked where nothing ends the machine at the minute.
    disk_usd: outside of EC2 in us-east-1 an allowance, see `DISK_ELSEWHERE`.
    usd_per_hour, total_usd: None if no source gives the price.
    said: which price it is; source: its address, empty if the learner gave it.
    """

    hours: float
    instances: int
    usd_per_hour: float | None
    disk_gb: int
    disk_usd: float
    total_usd: float | None
    said: str
    source: str


def dollars(amount: float | None) -> str:
    """USD, rounded up to the cent: what is printed is enough as a limit.

    >>> dollars(2.801), dollars(2.80)
    ('2.81', '2.80')
    """
    return "unknown" if amount is None else f"{math.ceil(amount * 100 - 1e-6) / 100:.2f}"


LEFT_OUT = "not in it: tax, traffic, a public IPv4 address, S3, logs"


DISK_ELSEWHERE = 4
"""The course has the price of a disk on EC2 in us-east-1 alone. In other regions and on SageMaker
so many times that price is counted: an allowance of ours and no price, so that "at most" holds.
"""


def disk_usd(gigabytes: float, hours: float, elsewhere: bool = False) -> float:
    """What is counted for a gp3 disk that lives for some hours.

    elsewhere: than on EC2 in us-east-1.
    """
    times = DISK_ELSEWHERE if elsewhere else 1
    return times * gigabytes * hours * figure("launch.disk.price").to("USD/GB/hour")


def cost(
    instance: str,
    region: str,
    hours: float,
    disk_gb: int,
    instances: int = 1,
    usd_per_hour: float | None = None,
) -> Cost:
    """The cost of a run.

    Args:
        usd_per_hour: what the learner read on the price page, where the course has no price.

    Raises:
        ValueError: if a price is given although the course has one, or if it is below what EC2
            asks for as many Trainium1 chips, which nothing undercuts on demand.

    >>> cost("trn1.2xlarge", "us-east-1", hours=2, disk_gb=0).total_usd
    2.6875
    """
    known = price(instance, region)
    if usd_per_hour is not None:
        known = _given(known, usd_per_hour, instance, region)
    elsewhere = region != "us-east-1" or instance != ec2_type(instance)
    hourly, disk = known.usd_per_hour, instances * disk_usd(disk_gb, hours, elsewhere)
    total = None if hourly is None else instances * hours * hourly + disk
    return Cost(hours, instances, hourly, disk_gb, disk, total, known.said, known.source)


def _given(known: Price, usd_per_hour: float, instance: str, region: str) -> Price:
    if known.usd_per_hour is not None:
        raise ValueError(
            f"the price of {instance} in {region} is known: {known.usd_per_hour} USD an hour, "
            f"{known.said}. Leave your own price out"
        )
    chips = figure(f"{ec2_type(instance)}.accelerators").number
    least = chips * figure("trn1.2xlarge.price.on_demand").to("USD/h")
    if not least <= usd_per_hour < math.inf:
        raise ValueError(
            f"{usd_per_hour:g} USD an hour for {instance} cannot be: as many Trainium1 chips cost "
            f"{least:g} on EC2. Give the price on demand that AWS lists for it in {region}"
        )
    return Price(usd_per_hour, f"as you gave it for {region}; the course cannot check it")
