"""A pretended AWS for the launcher: moto with an account made ready, in this process or behind a
port of this machine, and what moto lacks of SageMaker. Nothing here reaches a network.
"""

import contextlib
import datetime
import functools
import http.server
import os
import re
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import boto3
import botocore.client
import botocore.session
import requests
from botocore.exceptions import ClientError, ParamValidationError
from botocore.validate import ParamValidator
from moto import mock_aws
from moto.core import DEFAULT_ACCOUNT_ID
from moto.servicequotas.models import ServiceQuotasBackend

from utils.launch import known
from utils.launch.names import OWN, TAG

REGION = "us-east-1"
KEYS = {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_CONFIG_FILE": "/dev/null",
    "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
    "MOTO_EC2_LOAD_DEFAULT_AMIS": "false",  # 500 images, of which to tell takes two seconds
}
# One reader for all clients: each would read the description of its service anew, half a second.
botocore.session.create_loader = functools.cache(botocore.session.create_loader)
CALL = botocore.client.BaseClient._make_api_call


@contextlib.contextmanager
def account(vcpus: float = 64, region: str = REGION) -> Iterator[Any]:
    """moto with all that a start needs: quota, image, profile, group. Gives an EC2 client."""
    from moto.ssm.models import Parameter, ssm_backends  # late: moto's EC2 takes a second to load

    def quota(self: Any, service_code: str, quota_code: str) -> dict[str, Any]:
        return {"QuotaCode": quota_code, "ServiceCode": service_code, "Value": vcpus}

    with (
        mock.patch.dict(os.environ, KEYS),
        mock_aws(),
        mock.patch.object(ServiceQuotasBackend, "get_service_quota", quota),
        sagemaker(SageMaker()),
    ):
        os.environ.update(KEYS)  # moto sets keys of its own
        ec2, iam = boto3.client("ec2", region), boto3.client("iam", region)
        made = ec2.create_security_group(GroupName=OWN, Description="no inbound port")
        ec2.create_tags(Resources=[made["GroupId"]], Tags=[{"Key": TAG, "Value": OWN}])
        iam.create_role(RoleName=OWN, AssumeRolePolicyDocument="{}")
        iam.create_instance_profile(InstanceProfileName=OWN)
        iam.add_role_to_instance_profile(InstanceProfileName=OWN, RoleName=OWN)
        image = ec2.register_image(Name="a Neuron image", RootDeviceName="/dev/sda1")["ImageId"]
        name = known.image("xla", region).key
        parameter = Parameter(
            DEFAULT_ACCOUNT_ID, name, image, "String", None, None, None,
            datetime.datetime.now(datetime.UTC), 1, "text",
        )  # fmt: skip
        ssm_backends[DEFAULT_ACCOUNT_ID][region]._parameters[name].append(parameter)
        yield ec2


def living(ec2: Any) -> list[dict[str, Any]]:
    """Instances that are not ended."""
    results = [i for r in ec2.describe_instances()["Reservations"] for i in r["Instances"]]
    return [i for i in results if i["State"]["Name"] not in ("shutting-down", "terminated")]


def attribute(ec2: Any, instance: str, name: str) -> Any:
    """An attribute of an instance, as EC2 tells it."""
    answer = ec2.describe_instance_attribute(InstanceId=instance, Attribute=name)
    return next(iter(answer[name[0].upper() + name[1:]].values()))


@dataclass
class Clock:
    """A time that passes only when someone sleeps, never less than `step_s`."""

    step_s: float = 900.0
    time: datetime.datetime = datetime.datetime(2026, 11, 22, 12, tzinfo=datetime.UTC)
    slept: list[float] = field(default_factory=list)

    def now(self) -> datetime.datetime:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += datetime.timedelta(seconds=max(seconds, self.step_s))


@contextlib.contextmanager
def at_call(number: int, moment: str, act: Callable[[], None]) -> Iterator[list[str]]:
    """Runs `act` "before" or "after" the call of that number, counted from 0; gives the calls.

    After the call means: AWS did it, and its answer is lost if `act` raises.
    """
    names: list[str] = []
    inner = botocore.client.BaseClient._make_api_call

    def call(self: Any, operation: str, request: dict[str, Any]) -> Any:
        place = len(names)
        names.append(operation + (" (dry)" if request.get("DryRun") else ""))
        if (place, moment) == (number, "before"):
            act()
        try:
            return inner(self, operation, request)
        finally:
            if (place, moment) == (number, "after"):
                act()

    with mock.patch.object(botocore.client.BaseClient, "_make_api_call", call):
        yield names


@contextlib.contextmanager
def signals_raise() -> Iterator[None]:
    """Outside the launcher's own handlers a signal ends the test's code and not the tests."""

    def leave(number: int, frame: Any) -> None:
        raise SystemExit(128 + number)

    kinds = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    former = {kind: signal.signal(kind, leave) for kind in kinds}
    try:
        yield
    finally:
        for kind, handler in former.items():
            signal.signal(kind, handler)


class Port:
    """moto behind a port of this machine, so that another process can talk to it and be killed.

    on_call: called with (the action, "before" or "after" moto acts) for every request.
    """

    def __init__(self) -> None:
        self.on_call: Callable[[str, str], None] = lambda action, moment: None
        self.actions: list[str] = []
        self.answering = threading.Lock()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                with outer.answering:  # held until moto has acted, even if nobody waits for it
                    outer._answer(self, body)

            def log_message(self, *what: Any) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self) -> "Port":
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *what: object) -> None:
        self.server.shutdown()
        self.server.server_close()

    def _answer(self, handler: Any, body: bytes) -> None:
        scope = re.search(
            r"Credential=[^/]+/\d+/([^/]+)/([^/]+)/", handler.headers["Authorization"]
        )
        assert scope
        region, service = scope.groups()
        host = "iam.amazonaws.com" if service == "iam" else f"{service}.{region}.amazonaws.com"
        target = handler.headers.get("X-Amz-Target", "").rpartition(".")[2]
        result = re.search(rb"Action=(\w+)", body)
        action = target or (result[1].decode() if result else "?")
        action += " (dry)" if b"DryRun=true" in body else ""
        self.actions.append(action)
        self.on_call(action, "before")
        headers = {k: v for k, v in handler.headers.items() if k.lower() != "host"}
        answer = requests.request(
            "POST", f"https://{host}{handler.path}", data=body, headers=headers, timeout=10
        )
        self.on_call(action, "after")
        with contextlib.suppress(OSError):  # whoever asked may be gone
            handler.send_response(answer.status_code)
            handler.send_header("Content-Type", answer.headers.get("Content-Type", "text/xml"))
            handler.send_header("Content-Length", str(len(answer.content)))
            handler.end_headers()
            handler.wfile.write(answer.content)


@dataclass
class SageMaker:
    """Training jobs, spaces and apps in memory. Requests are held to botocore's model of them."""

    jobs: dict[str, dict[str, Any]] = field(default_factory=dict)
    spaces: dict[str, dict[str, Any]] = field(default_factory=dict)
    apps: dict[str, dict[str, Any]] = field(default_factory=dict)
    quota: float = 1.0
    idle_of_user: dict[str, Any] = field(default_factory=dict)
    idle_of_domain: dict[str, Any] = field(
        default_factory=lambda: {"LifecycleManagement": "ENABLED"}
    )
    calls: list[str] = field(default_factory=list)

    def __call__(self, client: Any, operation: str, request: dict[str, Any]) -> Any:
        service = client.meta.service_model.service_name
        if operation == "ListServiceQuotas":
            names = [known.quota(w, "ml.trn1.2xlarge").name for w in ("training-job", "studio")]
            return {"Quotas": [{"QuotaName": name, "Value": self.quota} for name in names]}
        if service != "sagemaker":
            return CALL(client, operation, request)
        self.calls.append(operation)
        shape = client.meta.service_model.operation_model(operation).input_shape
        report = ParamValidator().validate(request, shape)
        if report.has_errors():
            raise ParamValidationError(report=report.generate_report())
        return getattr(self, operation)(**request)

    def CreateTrainingJob(self, **job: Any) -> dict[str, Any]:
        self.jobs[job["TrainingJobName"]] = job | {"Status": "InProgress"}
        return {"TrainingJobArn": f"arn:job/{job['TrainingJobName']}"}

    def ListTrainingJobs(self, NameContains: str, StatusEquals: str, **_: Any) -> dict[str, Any]:
        summaries = [
            {
                "TrainingJobName": name,
                "TrainingJobArn": f"arn:job/{name}",
                "TrainingJobStatus": job["Status"],
            }
            for name, job in self.jobs.items()
            if NameContains in name and job["Status"] == StatusEquals
        ]
        for summary in summaries:  # one that is stopping has stopped when it is looked at again
            if summary["TrainingJobStatus"] == "Stopping":
                self.jobs[summary["TrainingJobName"]]["Status"] = "Stopped"
        return {"TrainingJobSummaries": summaries}

    def StopTrainingJob(self, TrainingJobName: str) -> dict[str, Any]:
        self.jobs[TrainingJobName]["Status"] = "Stopping"
        return {}

    def CreateSpace(self, **space: Any) -> dict[str, Any]:
        self.spaces[space["SpaceName"]] = space
        return {"SpaceArn": f"arn:space/{space['SpaceName']}"}

    def CreateApp(self, **app: Any) -> dict[str, Any]:
        if self.spaces[app["SpaceName"]].get("Status") != "InService":
            error = {"Error": {"Code": "ValidationException", "Message": "the space is not ready"}}
            raise ClientError(error, "CreateApp")
        self.apps[app["SpaceName"]] = app | {"Status": "InService"}
        return {"AppArn": f"arn:app/{app['SpaceName']}"}

    def ListSpaces(self, SpaceNameContains: str, **_: Any) -> dict[str, Any]:
        return {
            "Spaces": [
                {"DomainId": s["DomainId"], "SpaceName": name, "Status": "InService"}
                for name, s in self.spaces.items()
                if SpaceNameContains in name
            ]
        }

    def DescribeSpace(self, DomainId: str, SpaceName: str) -> dict[str, Any]:
        state = self.spaces[SpaceName].get("Status", "Pending")
        self.spaces[SpaceName]["Status"] = "InService"  # when it is looked at again
        return {"SpaceArn": f"arn:space/{SpaceName}", "Status": state}

    def DescribeDomain(self, DomainId: str) -> dict[str, Any]:
        return {"DefaultUserSettings": _idle(self.idle_of_domain)}

    def DescribeUserProfile(self, DomainId: str, UserProfileName: str) -> dict[str, Any]:
        return {"UserSettings": _idle(self.idle_of_user)}

    def ListApps(self, SpaceNameEquals: str, **_: Any) -> dict[str, Any]:
        app = self.apps.get(SpaceNameEquals)
        state = app["Status"] if app else "Deleted"
        if state == "Deleting":
            del self.apps[SpaceNameEquals]
        return {"Apps": [{"Status": state}]}

    def DeleteApp(self, SpaceName: str, **_: Any) -> dict[str, Any]:
        self.apps[SpaceName]["Status"] = "Deleting"
        return {}

    def DeleteSpace(self, DomainId: str, SpaceName: str) -> dict[str, Any]:
        if SpaceName in self.apps:
            error = {"Error": {"Code": "ResourceInUse", "Message": "the app is there"}}
            raise ClientError(error, "DeleteSpace")
        del self.spaces[SpaceName]
        return {}

    def ListTags(self, ResourceArn: str, **_: Any) -> dict[str, Any]:
        kind, name = ResourceArn.removeprefix("arn:").split("/")
        return {"Tags": {"job": self.jobs, "space": self.spaces}[kind][name]["Tags"]}


def _idle(settings: dict[str, Any]) -> dict[str, Any]:
    return {"JupyterLabAppSettings": {"AppLifecycleManagement": {"IdleSettings": settings}}}


@contextlib.contextmanager
def sagemaker(fake: SageMaker) -> Iterator[SageMaker]:
    """Calls to SageMaker go to the fake, all others to moto."""

    def call(self: Any, operation: str, request: dict[str, Any]) -> Any:
        return fake(self, operation, request)

    with mock.patch.object(botocore.client.BaseClient, "_make_api_call", call):
        yield fake
