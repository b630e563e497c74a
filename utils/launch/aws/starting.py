"""Starting a plan, and ending what it started, whatever happens in between.

The order is what makes it safe. Everything is checked first; the run is written to the disk; then
comes the one call that costs money, in which the machine already gets the clock that ends it; and
from the record on, every way out of this module goes through the ending. The first signal ends the
run, and none cuts the ending short.
"""

import datetime
import secrets
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

from utils.launch.aws import preflight, run_record, running
from utils.launch.aws.aws_session import Refused, Say, Session
from utils.launch.aws.running import PAUSE_SECONDS, ROUNDS, Sleep, Thing, end_all
from utils.launch.launch_plans import Plan, Request, dollars
from utils.launch.names import OWNER_TAG, tags
from utils.launch.review import review

WATCH_SECONDS = 30.0
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
CALLS = {
    "RunInstances": ("ec2", "run_instances"),
    "CreateTrainingJob": ("sagemaker", "create_training_job"),
    "CreateSpace": ("sagemaker", "create_space"),
    "CreateApp": ("sagemaker", "create_app"),
}
"""The calls of a plan, as boto3 names them."""


def utc_now() -> datetime.datetime:
    """The time in UTC."""
    return datetime.datetime.now(datetime.UTC)


@dataclass(frozen=True)
class Outcome:
    """What a run came to. left: what still runs after all attempts, normally nothing."""

    run: str
    why: str
    left: tuple[Thing, ...]


class Interrupted(BaseException):
    """A signal asked the program to end. No `except Exception` stops it."""


class OneSignal:
    """A handler that raises `Interrupted` at the first signal and passes over later ones."""

    def __init__(self) -> None:
        self.armed = True

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self.armed:
            self.armed = False
            raise Interrupted(f"signal {signal.Signals(number).name}")


@contextmanager
def catch_signals() -> Iterator[OneSignal]:
    """Within, signals go to one `OneSignal`; afterwards the former handlers are back."""
    handler = OneSignal()
    former = {number: signal.signal(number, handler) for number in SIGNALS}
    try:
        yield handler
    finally:
        handler.armed = False
        for number, before in former.items():
            signal.signal(number, before)


def new_run() -> str:
    """A name for a run, new each time."""
    return secrets.token_hex(6)


def date_tags(planned: Plan, now: datetime.datetime) -> dict[str, Request]:
    """The plan's requests with the hour of their end in the tags."""
    expires = now + datetime.timedelta(hours=planned.hours)
    marks = tags(planned.run, planned.tags[OWNER_TAG], expires)

    def mark(node: Any) -> Any:
        if isinstance(node, list):
            return [mark(item) for item in node]
        if isinstance(node, dict):
            if set(node) == {"Key", "Value"}:
                return node | {"Value": marks.get(node["Key"], node["Value"])}
            return {key: mark(value) for key, value in node.items()}
        return node

    return {name: mark(request) for name, request in planned.requests.items()}


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
    for run, event in run_record.open_runs().items():
        raise Refused(
            f"the end of your run {run} ({event['instance']}, {event['region']}) is not recorded "
            f"in {run_record.path().name}. {once}"
        )
    # What may not be looked at could not be ended either: here, to be denied a look refuses.
    for thing in running.FIND[planned.where](aws):
        if thing.owner == planned.tags[OWNER_TAG] or thing.run in run_record.runs():
            raise Refused(f"a run of yours is still going: {thing}. {once}")
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
    now: Callable[[], datetime.datetime] = utc_now,
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
    with run_record.alone():
        requests = check(aws, planned, limit_usd, date_tags(planned, now()))
        say(
            f"starting {planned.instance} in {aws.region} for {planned.hours:g} h, at most "
            f"{dollars(planned.cost.total_usd)} USD"
        )
        until = now() + datetime.timedelta(hours=planned.hours)
        return _Run(aws, planned, until, say, now, sleep).begin(limit_usd, requests)


@dataclass
class _Run:
    """One run, from the record of its beginning to the record of its end."""

    aws: Session
    planned: Plan
    until: datetime.datetime
    say: Say
    now: Callable[[], datetime.datetime]
    sleep: Sleep

    def begin(self, limit_usd: float | None, requests: dict[str, Request]) -> Outcome:
        run, why, begun = self.planned.run, "an error", False
        left: list[Thing] = []
        with catch_signals() as handler:
            try:
                try:
                    run_record.write(
                        "begin",
                        run,
                        where=self.planned.where,
                        region=self.aws.region,
                        instance=self.planned.instance,
                        until=self.until,
                        limit_usd=limit_usd,
                        at_most_usd=self.planned.cost.total_usd,
                    )
                    begun = True
                    started = self._send(requests)
                    run_record.note(self.say, "started", run, what=started)
                    self.say(
                        f"started {', '.join(started)}; it ends at {self.until:%Y-%m-%d %H:%M} "
                        "UTC.\nCtrl-C ends it sooner. Keep this program running: it is what ends "
                        "it in time."
                    )
                    why = self._watch()
                except Interrupted as interrupted:
                    why = str(interrupted)
                except Refused as refused:
                    why = f"refused: {refused}"
                finally:
                    handler.armed = False
            finally:
                # Every way out of the above leads here; from now on a signal is passed over. Even
                # a refusal is no proof that nothing runs: it may answer the repetition of a lost
                # call.
                if begun:
                    self.say(f"ending the run {run} ({why})")
                    left = end_all(self.aws, self._look, self.say, self.sleep, unseen=True)
                if left:
                    self.say("STILL RUNNING: " + "; ".join(map(str, left)))
                else:
                    run_record.note(self.say, "ended", run, why=why)
        return Outcome(run, why, tuple(left))

    def _look(self) -> list[Thing]:
        things = running.FIND[self.planned.where](self.aws)
        return [thing for thing in things if thing.run == self.planned.run]

    def _send(self, requests: dict[str, Request]) -> list[str]:
        """Make the calls; returns the names of what was started."""
        started = []
        for name, request in requests.items():
            if name == "CreateApp":
                self._wait_for_space(request)
            response = self.aws.call(*CALLS[name], **request)
            started += [instance["InstanceId"] for instance in response.get("Instances", ())]
            started += [arn for key, arn in response.items() if key.endswith("Arn")]
        return started

    def _wait_for_space(self, request: Request) -> None:
        """An app can be made when its space is in service."""
        named = {key: request[key] for key in ("DomainId", "SpaceName")}
        for _ in range(ROUNDS):
            state = self.aws.call("sagemaker", "describe_space", **named)["Status"]
            if state == "InService":
                return
            if state not in ("Pending", "Updating"):
                raise Refused(f"the space was not made: it is {state}")
            self.sleep(PAUSE_SECONDS)
        raise Refused(f"the space is {state} still: try again later")

    def _watch(self) -> str:
        """Wait until the hours are over or the run has ended by itself; returns which."""
        while self.now() < self.until:
            seconds_left = (self.until - self.now()).total_seconds()
            self.sleep(min(WATCH_SECONDS, max(0.0, seconds_left)))
            try:
                if not self._look():
                    return "it ended by itself"
            except Refused as error:
                self.say(f"cannot look now: {error}")
        return "its hours are over"
