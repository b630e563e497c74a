"""A plan as it is printed."""

import textwrap
from collections.abc import Iterable
from typing import TYPE_CHECKING

from utils.facts import figure
from utils.launch.cost import DISK_ELSEWHERE, LEFT_OUT, dollars
from utils.launch.policy import READS

if TYPE_CHECKING:
    from utils.launch.plans import Plan

WIDTH = 100


def _part(head: str, lines: Iterable[str]) -> str:
    return "\n".join([head, *(_line(line) for line in lines)])


def _line(line: str) -> str:
    """A command stays one line, so that it can be copied; prose is wrapped."""
    if line.lstrip().startswith(("aws ", "eksctl ", "pcluster ")):
        return "    " + line.strip()
    return textwrap.fill(line, WIDTH, initial_indent="  ", subsequent_indent="    ")


def money(plan: "Plan", source: "_Sources") -> list[str]:
    """The lines on cost."""
    bill = plan.cost
    hours = f"{bill.hours:g} h"
    if bill.hours != plan.hours:
        hours += f" ({plan.hours:g} asked for and {bill.hours - plan.hours:g} until idle ends it)"
    there = "gp3 in us-east-1"
    if plan.region != "us-east-1" or plan.where != "ec2":
        there = f"{DISK_ELSEWHERE} times {there}, an allowance: the course has no other price"
    disk = f"disk: {bill.disk_gb} GB for {hours}: {bill.disk_usd:.2f} USD ({there})"
    disk += source(figure("launch.disk.price").source)
    if bill.usd_per_hour is None or bill.total_usd is None:
        return [f"not known: {bill.said}", disk]
    return [
        f"{plan.instance}: {bill.usd_per_hour:.4f} USD/h, {bill.said}" + source(bill.source),
        disk,
        f"at most {dollars(bill.total_usd)} USD for {hours}; {LEFT_OUT}",
    ]


def quota(plan: "Plan", source: "_Sources") -> list[str]:
    """The lines on quota."""
    if plan.quota is None:
        return ["not known: no source of the course gives the vCPUs of this machine"]
    each = plan.quota
    code = f", code {each.code}" if each.code else ", found by its name"
    return [
        f"{each.needed} {each.unit}: {each.name} ({each.service}{code}) in {plan.region}. New"
        f" accounts often have 0; ask in Service Quotas before the day you need it"
        + source(each.source)
    ]


def permissions(plan: "Plan") -> list[str]:
    """The lines on permissions: what may be changed; the document itself has a page of its own."""
    actions = [action for each in plan.policy["Statement"] for action in each["Action"]]
    changes = [a for a in dict.fromkeys(actions) if not a.partition(":")[2].startswith(READS)]
    return [
        f"{', '.join(changes)}: only {plan.instance}, only in {plan.region}, only with the course's"
        " tag or name; and reading",
        "the same command with --policy prints the IAM policy. A policy cannot say how many"
        " machines: the quota does",
    ]


class _Sources:
    """Addresses, numbered as they are named, for the foot of the page."""

    def __init__(self) -> None:
        self.found: list[str] = []

    def __call__(self, address: str) -> str:
        if not address:
            return ""
        if address not in self.found:
            self.found.append(address)
        return f" [{self.found.index(address) + 1}]"

    def lines(self) -> str:
        return "\n".join(f"  [{place}] {each}" for place, each in enumerate(self.found, 1))


def text(plan: "Plan") -> str:
    """The whole plan."""
    source = _Sources()
    how = {
        "parameter": "by the public parameter",
        "search": "the newest of AWS named",
        "container": "from",
        "domain": "as the domain gives it",
    }[plan.image.find]
    parts = [
        f"PLAN. Nothing is started. {plan.title}: {plan.instance} in {plan.region}, at most "
        f"{plan.hours:g} h",
        _part(
            "Image",
            [
                f"{plan.image.title}, {how} {plan.image.key}".rstrip() + source(plan.image.source),
                *(said + source(address) for said, address in plan.image.notes),
            ],
        ),
        _part("Cost", money(plan, source)),
        _part("Quota", quota(plan, source)),
        _part("Steps", plan.guide.steps),
        _part("What ends it", plan.guide.ends),
        _part("What nobody can promise", plan.guide.not_promised),
        _part("Tear-down by hand", plan.guide.tear_down),
        _part("Tags", [", ".join(f"{key}={value}" for key, value in plan.tags.items())]),
    ]
    if plan.template:
        parts.append("File for the tool\n" + textwrap.indent(plan.template.rstrip(), "    "))
    if plan.policy:
        parts.append(_part("Permissions", permissions(plan)))
    return "\n\n".join([*parts, "Sources\n" + source.lines()])
