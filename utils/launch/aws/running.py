"""What the course has running in an account, found by its tags alone, and ending it until AWS says
that it is ended.

EC2 first, then the two of SageMaker. "Running" is everything that still costs: a stopped instance
has its disk, a Studio space too.
"""

import time
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass

from utils.launch.aws import run_record
from utils.launch.aws.aws_session import Denied, Refused, Say, Session
from utils.launch.names import EXPIRES_TAG, OWN, OWNER_TAG, RUN_TAG, TAG, ours, to_dict

ROUNDS = 60
PAUSE_SECONDS = 5.0
"""Studio takes some minutes to delete an app, a training job up to two to stop."""
UNSEEN_ROUNDS = 5
"""EC2 may not list a new instance for a moment: so often it is looked for before it is believed
that there is none."""

Sleep = Callable[[float], None]
ON_EC2 = ("pending", "running", "stopping", "stopped")
"""States of an instance that is not on its way out: "shutting-down" costs nothing any more."""
JOB_RUNS = ("InProgress", "Stopping")


@dataclass(frozen=True)
class Thing:
    """Something that the course started and that still costs."""

    where: str
    id: str
    kind: str
    state: str
    region: str
    run: str
    owner: str
    expires: str
    domain: str = ""

    def __str__(self) -> str:
        return (
            f"{self.id} ({self.kind}, {self.state}) in {self.region}, run {self.run} of "
            f"{self.owner}, until {self.expires}"
        )


UNKNOWN = Thing("", "something that could not be looked for", *["unknown"] * 6)


def _thing(aws: Session, where: str, tags: dict[str, str], **what: str) -> Thing:
    marks = {"run": tags[RUN_TAG], "owner": tags[OWNER_TAG], "expires": tags[EXPIRES_TAG]}
    return Thing(where, region=aws.region, **marks, **what)


def instances(aws: Session) -> Iterator[Thing]:
    """EC2 instances with the course's tag."""
    wanted = [
        {"Name": f"tag:{TAG}", "Values": [OWN]},
        {"Name": "instance-state-name", "Values": list(ON_EC2)},
    ]
    for page in aws.pages("ec2", "describe_instances", Filters=wanted):
        for instance in (i for group in page["Reservations"] for i in group["Instances"]):
            tags = to_dict(instance.get("Tags", []))
            if ours(tags):
                kind, state = instance["InstanceType"], instance["State"]["Name"]
                yield _thing(aws, "ec2", tags, id=instance["InstanceId"], kind=kind, state=state)


def jobs(aws: Session) -> Iterator[Thing]:
    """Training jobs with the course's name and tag."""
    for state in JOB_RUNS:
        named = {"NameContains": f"{OWN}-", "StatusEquals": state}
        for page in aws.pages("sagemaker", "list_training_jobs", **named):
            for job in page["TrainingJobSummaries"]:
                tags = _tags(aws, job["TrainingJobArn"])
                if ours(tags):
                    name, state_now = job["TrainingJobName"], job["TrainingJobStatus"]
                    yield _thing(
                        aws, "training-job", tags, id=name, kind="training job", state=state_now
                    )


def spaces(aws: Session) -> Iterator[Thing]:
    """Studio spaces with the course's name and tag; the state is that of the app in it."""
    for page in aws.pages("sagemaker", "list_spaces", SpaceNameContains=f"{OWN}-"):
        for space in page["Spaces"]:
            domain, name = space["DomainId"], space["SpaceName"]
            described = aws.call("sagemaker", "describe_space", DomainId=domain, SpaceName=name)
            tags = _tags(aws, described["SpaceArn"])
            if ours(tags) and space["Status"] != "Deleting":
                state = _app_state(aws, domain, name)
                what = {"id": name, "kind": "Studio space", "state": state, "domain": domain}
                yield _thing(aws, "studio", tags, **what)


def _app_state(aws: Session, domain: str, space: str) -> str:
    listing = aws.pages("sagemaker", "list_apps", DomainIdEquals=domain, SpaceNameEquals=space)
    states = [app["Status"] for page in listing for app in page["Apps"]]
    living = [state for state in states if state not in ("Deleted", "Failed")]
    return f"app {living[0]}" if living else "no app"


def _tags(aws: Session, arn: str) -> dict[str, str]:
    pages = aws.pages("sagemaker", "list_tags", ResourceArn=arn)
    return {key: value for page in pages for key, value in to_dict(page["Tags"]).items()}


FIND: dict[str, Callable[[Session], Iterable[Thing]]] = {
    "ec2": instances,
    "training-job": jobs,
    "studio": spaces,
}
"""Of each place that the launcher starts, how to find what runs there."""


def running(aws: Session, say: Say = lambda text: None) -> list[Thing]:
    """Everything of the course in the region. A place that the credentials may not look at is said
    and left out.
    """
    things: list[Thing] = []
    for place, find in FIND.items():
        try:
            things += find(aws)
        except Denied as error:
            say(f"{place}: not looked at, {error}")
    return things


def end(aws: Session, thing: Thing) -> None:
    """Ask AWS to end it. For a space it takes two rounds: the app has to be gone first."""
    match thing.where, thing.state:
        case "ec2", _:
            aws.call("ec2", "terminate_instances", InstanceIds=[thing.id])
        case "training-job", "InProgress":
            aws.call("sagemaker", "stop_training_job", TrainingJobName=thing.id)
        case "studio", state:
            named = {"DomainId": thing.domain, "SpaceName": thing.id}
            if state == "no app":
                aws.call("sagemaker", "delete_space", **named)
            elif state != "app Deleting":
                app = {"AppType": "JupyterLab", "AppName": "default"}
                aws.call("sagemaker", "delete_app", **named, **app)


def end_all(
    aws: Session,
    look: Callable[[], Collection[Thing]],
    say: Say,
    sleep: Sleep = time.sleep,
    *,
    unseen: bool = False,
    rounds: int = ROUNDS,
) -> list[Thing]:
    """End everything that `look` finds, and look again until it finds nothing.

    Args:
        unseen: whether a start may have reached AWS without its answer reaching us: then an empty
            list is believed only after `UNSEEN_ROUNDS` looks.

    Returns:
        What still runs after all rounds, or cannot be ended; empty if all is over. Raises nothing:
        a fault is said and tried again, and that of one thing keeps no other from its end.
    """
    seen: set[str] = set()
    empty = 0
    left: list[Thing] = [UNKNOWN]
    for turn in range(rounds):
        if turn:
            sleep(PAUSE_SECONDS)
        try:
            left = list(look())
        except Exception as error:  # whatever it is, the next look may succeed
            say(f"cannot look now: {error}")
            empty, left = 0, left or [UNKNOWN]
            continue
        for thing in left:
            if thing.id not in seen:
                say(f"ending {thing}")
                seen.add(thing.id)
            try:
                end(aws, thing)
            except Exception as error:
                say(f"not ended yet: {thing.id}: {error}")
        empty = 0 if left else empty + 1
        if empty >= (UNSEEN_ROUNDS if unseen and not seen else 1):
            return []
    return left


def stop(
    aws: Session, mine: Callable[[Thing], bool], say: Say, sleep: Sleep = time.sleep
) -> list[Thing]:
    """End everything in the region that is mine, place by place, so that trouble with one leaves
    the others ended. What is recorded as begun there is looked for with patience.

    Returns:
        What still runs, or may run where the credentials may not look.
    """
    begun = {run: it for run, it in run_record.open_runs().items() if it["region"] == aws.region}
    left: list[Thing] = []
    for place, find in FIND.items():
        waited_for = any(it["where"] == place for it in begun.values())

        def look(find: Callable[[Session], Iterable[Thing]] = find) -> list[Thing]:
            return [thing for thing in find(aws) if mine(thing)]

        try:
            look()
        except Denied as error:
            say(f"{place}: not looked at, {error}")
            left += [UNKNOWN] if waited_for else []
            continue
        except Refused as error:
            say(f"{place}: {error}")
        left += end_all(aws, look, say, sleep, unseen=waited_for)
    if not left:
        for run in begun:
            run_record.note(say, "ended", run, why="--stop finds nothing more of it")
    return left
