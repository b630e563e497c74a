"""Plan a run on Trainium: image, cost, permissions, end; start it only with --start and --limit.

Without --start nothing is sent to AWS. With it, the program stays until the hours are over and then
ends what it started; Ctrl-C ends it sooner. --list and --stop find what the course has running.
"""

import argparse
import dataclasses
import json
import os
import sys
from collections.abc import Callable

from utils.launch import Order, known, plan_order
from utils.launch.aws import run_record, running, starting
from utils.launch.aws.aws_session import Refused, Session
from utils.launch.launch_plans import HOURS, REGION

NEEDS = "learner"
EXAMPLES = """\
  python3 course.py launch --hours 2                       the plan; costs nothing, asks nobody
  python3 course.py launch --hours 2 --policy > p.json     the permissions that it needs
  python3 course.py launch --hours 2 --limit 3 --start     starts it, unless it can cost more
  python3 course.py launch --list                          what runs
  python3 course.py launch --stop                          ends it

Exit status: 0; 1 refused, or AWS could not be asked; 2 wrong arguments; 3 something still runs.
"""
INTERRUPTED = "Interrupted. Whether anything runs: python3 course.py launch --list"
OPTIONS = {
    "domain": "of Studio",
    "user": "the user profile of Studio",
    "role": "ARN of the role of a training job",
    "bucket": "S3 bucket of a training job",
}
NEEDED = {"training-job": ("role", "bucket"), "studio": ("domain", "user")}
"""What a start of SageMaker needs beside the plan."""


def main(argv: list[str]) -> int:
    """Run the command; returns its exit status."""
    given = _parse(argv)
    try:
        if given.list or given.stop:
            return _stop(given) if given.stop else _list(given)
        return _start(given) if given.start else _plan(given)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    except (KeyboardInterrupt, starting.Interrupted):
        print(INTERRUPTED, file=sys.stderr)
        return 130


def _parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="course.py launch",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    places = ", ".join(known.places())
    add("--where", choices=known.places(), default="ec2", metavar="PLACE", help=f"one of {places}")
    add("--instance", default="", metavar="TYPE", help="such as trn1.2xlarge, the default")
    add("--region", default="", metavar="NAME", help=f"(default {REGION})")
    add("--hours", type=float, default=2.0, metavar="H", help="%g to %g (default 2)" % HOURS)  # noqa: UP031
    add("--image", default="", metavar="NAME", help="on ec2: xla (default) or torchneuron")
    add("--disk", type=int, default=0, metavar="GB", help="(default: what the Neuron guide asks)")
    add("--price", type=float, metavar="USD", help="per hour, if the course does not know it")
    add("--json", action="store_true", help="print the plan as JSON")
    add("--policy", action="store_true", help="print only its IAM policy")
    add("--limit", type=float, metavar="USD", help="do not start a run that can cost more")
    add("--start", action="store_true", help="start it; costs money")
    add("--list", action="store_true", help="show what the course has running")
    add("--stop", action="store_true", help="end what you have running of the course")
    add("--everyone", action="store_true", help="with --stop: also what others have running")
    for name, of in OPTIONS.items():
        add(f"--{name}", default=name.upper(), metavar="NAME", help=of)
    given = parser.parse_args(argv)
    if given.start + given.list + given.stop > 1:
        parser.error("give one of --start, --list and --stop")
    if given.everyone and not given.stop:
        parser.error("--everyone needs --stop")
    return given


def _order(given: argparse.Namespace) -> Order:
    return Order(
        given.where,
        given.instance,
        given.region or REGION,
        given.hours,
        image=given.image,
        disk_gb=given.disk,
        usd_per_hour=given.price,
        domain=given.domain,
        user=given.user,
        role=given.role,
        bucket=given.bucket,
    )


def _plan(given: argparse.Namespace) -> int:
    """Print the plan and what would keep it from starting. Asks nobody."""
    planned = plan_order(_order(given))
    if given.json:
        print(json.dumps(planned.as_dict(), indent=1))
        return 0
    if given.policy:
        if not planned.policy:
            raise ValueError(f"{planned.title} needs the permissions of its tool")
        print(json.dumps(planned.policy, indent=1))
        return 0
    print(planned)
    reasons = planned.refusals(given.limit)
    print("\nNothing was started.", end=" ")
    if reasons:
        print("It would not start, because:\n  " + "\n  ".join(reasons))
    else:
        print("The same command with --start starts it.")
    _remind()
    return 0


def _start(given: argparse.Namespace) -> int:
    """Start the plan, stay with it, end it."""
    order = _order(given)
    aws = Session(order.region)
    try:
        reasons = plan_order(order).refusals(given.limit) or _missing(given)
        if reasons:
            raise Refused("\n".join(reasons))
        run = starting.new_run()
        planned = plan_order(dataclasses.replace(order, run=run, owner=aws.me()))
        outcome = starting.start(aws, planned, given.limit, _say)
    except (Refused, OSError) as error:
        print(f"Nothing was started.\n{error}", file=sys.stderr)
        return 1
    if outcome.left:
        print(
            "STILL RUNNING, because it could not be ended from here:\n  "
            + "\n  ".join(map(str, outcome.left))
            + f"\nRun: python3 course.py launch --stop --region {aws.region}\n"
            + "; ".join(planned.guide.ends[:1]),
            file=sys.stderr,
        )
        return 3
    print(f"Nothing of the run {outcome.run} is left ({outcome.why}).")
    return 0 if "refused" not in outcome.why else 1


def _missing(given: argparse.Namespace) -> tuple[str, ...]:
    """Names of the account that only the learner knows."""
    return tuple(
        f"it needs --{name}"
        for name in NEEDED.get(given.where, ())
        if getattr(given, name) in ("", name.upper())
    )


def _list(given: argparse.Namespace) -> int:
    """Show what runs, in the region asked for and in those of recorded runs."""

    def show(aws: Session) -> int:
        things = running.running(aws, say=_say)
        _say(f"{aws.region}: {len(things)} running")
        for thing in things:
            _say(f"  {thing}")
        return 0

    return _each_region(given, show)


def _stop(given: argparse.Namespace) -> int:
    """End what runs. Own is what carries your name, or was begun on this machine."""

    def end(aws: Session) -> int:
        me, runs = aws.me(), run_record.runs()

        def mine(thing: running.Thing) -> bool:
            return given.everyone or thing.owner == me or thing.run in runs

        left = running.stop(aws, mine, _say)
        if left:
            _say(f"{aws.region}: STILL RUNNING: " + "; ".join(map(str, left)))
            return 3
        _say(f"{aws.region}: nothing of yours is running")
        others = [thing for thing in running.running(aws) if not mine(thing)]
        if others:
            _say(f"  of others: {'; '.join(map(str, others))} (--everyone ends these too)")
        return 0

    return _each_region(given, end)


def _each_region(given: argparse.Namespace, act: Callable[[Session], int]) -> int:
    regions = {event["region"] for event in run_record.open_runs().values()}
    worst = 0
    for region in sorted({given.region} if given.region else regions | {REGION}):
        try:
            worst = max(worst, act(Session(region)))
        except Refused as error:
            print(f"{region}: {error}", file=sys.stderr)
            worst = max(worst, 1)
    return worst


def _remind() -> None:
    """A word on runs whose end was never recorded, such as after a kill."""
    for run, event in run_record.open_runs().items():
        print(
            f"\nThe end of run {run} ({event['instance']}, {event['region']}, until "
            f"{event['until']}) was never recorded. To end it: python3 course.py launch --stop"
        )


def _say(text: str) -> None:
    """A line that is seen at once; a terminal that is gone is no reason to stop ending things."""
    try:
        print(text, flush=True)
    except OSError:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
