"""Starting a plan, and ending what it started, whatever happens in between.

The order is what makes it safe. Everything is checked first; the run is written to the disk; then
comes the one call that costs money, in which the machine already gets the clock that ends it; and
from the record on, every way out of this module goes through the ending.
"""

import datetime
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from utils.launch.aws import ledger, preflight, signals, things
from utils.launch.aws.session import Refused, Say, Session
from utils.launch.aws.stopping import PAUSE_SECONDS, ROUNDS, Sleep, end_all
from utils.launch.aws.things import Thing
from utils.launch.cost import dollars
from utils.launch.names import OWNER_TAG, tags
from utils.launch.plans import Plan
from utils.launch.requests import Request
from utils.launch.review import review

WATCH_SECONDS = 30.0
Now = Callable[[], datetime.datetime]


@dataclass(frozen=True)
class Outcome:
    """What a run came to. left: what still runs after all attempts, normally nothing."""

    run: str
    why: str
    left: tuple[Thing, ...]


def new_run() -> str:
    """A name for a run, new each time."""
    return secrets.token_hex(6)


def utc_now() -> datetime.datetime:
    """The time in UTC."""
    return datetime.datetime.now(datetime.UTC)


def dated(planned: Plan, now: datetime.datetime) -> dict[str, Request]:
    """The plan's requests with the hour of their end in the tags."""
    expires = now + datetime.timedelta(hours=planned.hours)
    marks = tags(planned.run, planned.tags[OWNER_TAG], expires)

    def marked(node: Any) -> Any:
        if isinstance(node, list):
            return [marked(each) for each in node]
        if isinstance(node, dict):
            if set(node) == {"Key", "Value"}:
                return node | {"Value": marks.get(node["Key"], node["Value"])}
            return {key: marked(value) for key, value in node.items()}
        return node

    return {name: marked(request) for name, request in planned.requests.items()}


def check(
    aws: Session, planned: Plan, limit_usd: float | None, requests: dict[str, Request]
) -> dict[str, Request]:
    """Everything that can speak against the start; returns the requests as they will be sent.

    Raises:
        Refused: with every reason that the plan itself gives, or the first that AWS gives.
    """
    reasons = planned.refusals(limit_usd) or review(planned.as_dict(), limit_usd)
    if reasons:
        raise Refused("\n".join(reasons))
    once = "End it first with --stop, so that one limit is the limit"
    for run, event in ledger.unended().items():
        raise Refused(
            f"the end of your run {run} ({event['instance']}, {event['region']}) is not recorded "
            f"in {ledger.path().name}. {once}"
        )
    # What may not be looked at could not be ended either: here, to be denied a look refuses.
    for each in things.FIND[planned.where](aws):
        if each.owner == planned.tags[OWNER_TAG] or each.run in ledger.runs():
            raise Refused(f"a run of yours is still going: {each}. {once}")
    if planned.where == "ec2":
        return {"RunInstances": preflight.ready(aws, planned, requests["RunInstances"])}
    preflight.quota(aws, planned)
    if planned.where == "studio":
        preflight.idle_shutdown(aws, requests["CreateSpace"])
    return requests


def start(
    aws: Session,
    planned: Plan,
    limit_usd: float | None,
    say: Say = print,
    *,
    now: Now = utc_now,
    sleep: Sleep = time.sleep,
) -> Outcome:
    """Start a plan, watch it until its hours are over or a signal comes, and end it.

    Returns:
        When nothing of the run is left, or when what is left could not be ended; then the
        instance's own clock, or SageMaker's, is what ends it.

    Raises:
        Refused: before anything was started.
        OSError: if the run cannot be recorded, or another launcher is at work on this machine;
            nothing was started.
    """
    with ledger.alone():
        requests = check(aws, planned, limit_usd, dated(planned, now()))
        say(
            f"starting {planned.instance} in {aws.region} for {planned.hours:g} h, at most "
            f"{dollars(planned.cost.total_usd)} USD"
        )
        return _run(aws, planned, limit_usd, requests, say, now, sleep)


def _run(
    aws: Session,
    planned: Plan,
    limit_usd: float | None,
    requests: dict[str, Request],
    say: Say,
    now: Now,
    sleep: Sleep,
) -> Outcome:
    until = now() + datetime.timedelta(hours=planned.hours)
    why, begun = "an error", False
    left: list[Thing] = []
    with signals.caught() as once:
        try:
            try:
                ledger.write(
                    "begin",
                    planned.run,
                    where=planned.where,
                    region=aws.region,
                    instance=planned.instance,
                    until=until,
                    limit_usd=limit_usd,
                    at_most_usd=planned.cost.total_usd,
                )
                begun = True
                answers = _send(aws, requests, sleep)
                ledger.note(say, "started", planned.run, what=answers)
                say(f"started {', '.join(answers)}; it ends at {until:%Y-%m-%d %H:%M} UTC.")
                say("Ctrl-C ends it sooner. Keep this program running: it is what ends it in time.")
                why = _watch(aws, planned, until, say, now, sleep)
            except signals.Told as told:
                why = str(told)
            except Refused as refused:
                why = f"refused: {refused}"
            finally:
                once.armed = False
        finally:
            # Every way out of the above leads here; from now on a signal is noted and waits. Even
            # a refusal is no proof that nothing runs: it may answer the repetition of a lost call.
            if begun:
                say(f"ending the run {planned.run} ({why})")
                left = end_all(aws, lambda: _of_run(aws, planned), say, sleep, unseen=True)
            if left:
                say("STILL RUNNING: " + "; ".join(map(str, left)))
            else:
                ledger.note(say, "ended", planned.run, why=why)
    return Outcome(planned.run, why, tuple(left))


def _of_run(aws: Session, planned: Plan) -> list[Thing]:
    return [each for each in things.FIND[planned.where](aws) if each.run == planned.run]


_SEND = {
    "RunInstances": ("ec2", "run_instances"),
    "CreateTrainingJob": ("sagemaker", "create_training_job"),
    "CreateSpace": ("sagemaker", "create_space"),
    "CreateApp": ("sagemaker", "create_app"),
}


def _send(aws: Session, requests: dict[str, Request], sleep: Sleep) -> list[str]:
    """Make the calls; returns the names of what was started."""
    started = []
    for name, request in requests.items():
        if name == "CreateApp":
            _wait_for_space(aws, request, sleep)
        answer = aws.call(*_SEND[name], **request)
        started += [each["InstanceId"] for each in answer.get("Instances", ())]
        started += [arn for key, arn in answer.items() if key.endswith("Arn")]
    return started


def _wait_for_space(aws: Session, request: Request, sleep: Sleep) -> None:
    """An app can be made when its space is in service."""
    named = {key: request[key] for key in ("DomainId", "SpaceName")}
    for _ in range(ROUNDS):
        state = aws.call("sagemaker", "describe_space", **named)["Status"]
        if state == "InService":
            return
        if state not in ("Pending", "Updating"):
            raise Refused(f"the space was not made: it is {state}")
        sleep(PAUSE_SECONDS)
    raise Refused(f"the space is {state} still: try again later")


def _watch(
    aws: Session, planned: Plan, until: datetime.datetime, say: Say, now: Now, sleep: Sleep
) -> str:
    """Wait until the hours are over or the run has ended by itself; returns which."""
    while now() < until:
        sleep(min(WATCH_SECONDS, max(0.0, (until - now()).total_seconds())))
        try:
            if not _of_run(aws, planned):
                return "it ended by itself"
        except Refused as error:
            say(f"cannot look now: {error}")
    return "its hours are over"
