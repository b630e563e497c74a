"""What the course has running in an account, found by its tags alone, and the calls that end it.

EC2 first, then the two of SageMaker. "Running" is everything that still costs: a stopped instance
has its disk, a Studio space too.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from utils.launch.aws.session import Session
from utils.launch.names import EXPIRES_TAG, OWN, OWNER_TAG, RUN_TAG, TAG, ours, unlisted
from utils.launch.requests import APP

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


def _thing(where: str, tags: dict[str, str], **what: str) -> Thing:
    return Thing(
        where=where,
        run=tags.get(RUN_TAG, ""),
        owner=tags.get(OWNER_TAG, ""),
        expires=tags.get(EXPIRES_TAG, ""),
        **what,
    )


def instances(aws: Session) -> Iterator[Thing]:
    """EC2 instances with the course's tag."""
    wanted = [
        {"Name": f"tag:{TAG}", "Values": [OWN]},
        {"Name": "instance-state-name", "Values": list(ON_EC2)},
    ]
    for page in aws.pages("ec2", "describe_instances", Filters=wanted):
        for reservation in page["Reservations"]:
            for each in reservation["Instances"]:
                tags = unlisted(each.get("Tags", []))
                if not ours(tags):
                    continue
                yield _thing(
                    "ec2",
                    tags,
                    id=each["InstanceId"],
                    kind=each["InstanceType"],
                    state=each["State"]["Name"],
                    region=aws.region,
                )


def jobs(aws: Session) -> Iterator[Thing]:
    """Training jobs with the course's name and tag."""
    for state in JOB_RUNS:
        listing = aws.pages(
            "sagemaker", "list_training_jobs", NameContains=f"{OWN}-", StatusEquals=state
        )
        for page in listing:
            for each in page["TrainingJobSummaries"]:
                tags = _tags(aws, each["TrainingJobArn"])
                if ours(tags):
                    yield _thing(
                        "training-job",
                        tags,
                        id=each["TrainingJobName"],
                        kind="training job",
                        state=each["TrainingJobStatus"],
                        region=aws.region,
                    )


def spaces(aws: Session) -> Iterator[Thing]:
    """Studio spaces with the course's name and tag; the state is that of the app in it."""
    for page in aws.pages("sagemaker", "list_spaces", SpaceNameContains=f"{OWN}-"):
        for each in page["Spaces"]:
            named = {"DomainId": each["DomainId"], "SpaceName": each["SpaceName"]}
            arn = aws.call("sagemaker", "describe_space", **named)["SpaceArn"]
            tags = _tags(aws, arn)
            if ours(tags) and each["Status"] != "Deleting":
                yield _thing(
                    "studio",
                    tags,
                    id=each["SpaceName"],
                    kind="Studio space",
                    state=_app_state(aws, each["DomainId"], each["SpaceName"]),
                    region=aws.region,
                    domain=each["DomainId"],
                )


def _app_state(aws: Session, domain: str, space: str) -> str:
    listing = aws.pages("sagemaker", "list_apps", DomainIdEquals=domain, SpaceNameEquals=space)
    states = [app["Status"] for page in listing for app in page["Apps"]]
    living = [state for state in states if state not in ("Deleted", "Failed")]
    return f"app {living[0]}" if living else "no app"


def _tags(aws: Session, arn: str) -> dict[str, str]:
    pages = aws.pages("sagemaker", "list_tags", ResourceArn=arn)
    return {key: value for page in pages for key, value in unlisted(page["Tags"]).items()}


FIND = {"ec2": instances, "training-job": jobs, "studio": spaces}


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
                aws.call("sagemaker", "delete_app", **named, AppType="JupyterLab", AppName=APP)
