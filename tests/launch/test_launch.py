"""The launcher's plans, and what keeps it from starting one."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import boto3
import pytest
from botocore import session as botocore_session
from botocore.validate import ParamValidator
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.launch.launch_cloud import KEYS, REGION, Clock, account, at_call, living
from utils.cli.commands import launch as command
from utils.facts import figure
from utils.launch import known, plan, review
from utils.launch.aws import aws_session, preflight, run_record, starting
from utils.launch.aws.aws_session import Refused, Session
from utils.launch.names import OWN
from utils.launch.review import too_wide

ROOT = Path(__file__).resolve().parents[2]
WRITES = ("Run", "Create", "Start", "Put", "Terminate", "Stop", "Delete", "Modify")


@pytest.fixture(autouse=True)
def records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(run_record.VARIABLE, str(tmp_path / "launches.jsonl"))
    return tmp_path / "launches.jsonl"


@pytest.mark.parametrize("where", known.places())
def test_every_place_has_a_plan_that_is_complete(where: str) -> None:
    planned = plan(where)
    text = str(planned)
    for word in ("Nothing is started", "Image", "Cost", "Quota", "What ends it", "Tear-down"):
        assert word in text
    assert planned.image.sdk in ("2.30", "2.31", "") and "https://" in text
    assert bool(planned.requests) == planned.starts == bool(planned.policy)
    assert bool(planned.template) != planned.starts
    json.dumps(planned.as_dict())


@pytest.mark.parametrize("where", [w for w in known.places() if known.place(w).starts])
def test_the_requests_fit_the_api(where: str) -> None:
    services = {"ec2": "ec2"}
    model = botocore_session.get_session().get_service_model(services.get(where, "sagemaker"))
    role = f"arn:aws:iam::123456789012:role/{OWN}"
    for name, request in plan(where, role=role).requests.items():
        report = ParamValidator().validate(request, model.operation_model(name).input_shape)
        assert not report.has_errors(), report.generate_report()
        instance = json.dumps(request).split('InstanceType": "')
        assert len(instance) == 1 or instance[1].partition('"')[0] == plan(where).instance


def test_a_job_runs_a_script_of_the_course() -> None:
    job = plan("training-job").requests["CreateTrainingJob"]
    entry = job["AlgorithmSpecification"]["ContainerEntrypoint"][1]
    assert (ROOT / entry.removeprefix("/opt/ml/input/data/code/")).is_file()
    assert entry.partition("code/")[2] in str(plan("training-job"))


def test_the_hyperpod_request_fits_the_api() -> None:
    model = botocore_session.get_session().get_service_model("sagemaker")
    shape = model.operation_model("CreateCluster").input_shape
    assert not ParamValidator().validate(json.loads(plan("hyperpod").template), shape).has_errors()


def test_a_hub_stops_itself_and_its_cost_is_of_one_start() -> None:
    planned = plan("hub", hours=4)
    script = planned.template
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)
    clock, hub = script.index("OnBootSec=235min"), script.index("course.py hub --port 443")
    assert clock < script.index("git clone") < hub
    disk = 60 * 4 * figure("launch.disk.price").to("USD/GB/hour")
    assert planned.cost.total_usd == pytest.approx(4 * 0.5292 + disk)
    assert planned.quota and (planned.quota.needed, planned.quota.code) == (8, "L-1216C47A")
    assert "about 4.80 USD a month" in " ".join(str(planned).split())
    start = next(step for step in planned.guide.steps if "run-instances" in step)
    assert "--instance-initiated-shutdown-behavior stop" in start
    assert plan("hub", region="eu-west-1").cost.total_usd is None


def test_templates_are_yaml() -> None:
    import yaml

    for where in ("eks", "parallelcluster"):
        assert plan(where).instance in json.dumps(yaml.safe_load(plan(where).template))


def test_the_cost_is_the_hours_and_the_disk() -> None:
    bill = plan("ec2", hours=3, disk_gb=100).cost
    disk = 100 * 3 * figure("launch.disk.price").to("USD/GB/hour")
    assert bill.disk_usd == pytest.approx(disk)
    assert bill.total_usd == pytest.approx(3 * figure("trn1.2xlarge.price.on_demand").number + disk)
    studio = plan("studio", hours=3, usd_per_hour=2.0).cost
    assert studio.hours == 4  # Studio's app lives for an idle hour after its last work


@settings(max_examples=200)
@given(st.floats(0.5, 24), st.integers(30, 2000), st.floats(0.01, 1000))
def test_it_starts_exactly_when_the_cost_is_within_the_limit(
    hours: float, disk_gb: int, limit: float
) -> None:
    planned = plan("ec2", hours=hours, disk_gb=disk_gb)
    total = planned.cost.total_usd
    assert total is not None and total > hours
    assert (planned.refusals(limit) == ()) == (total <= limit)


@pytest.mark.parametrize("limit", [0, -1, float("nan"), float("inf"), None])
def test_a_limit_that_is_none_refuses(limit: float | None) -> None:
    assert "limit" in plan("ec2").refusals(limit)[0]


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"where": "moon"}, "no place 'moon'"),
    ({"instance": "p5.48xlarge"}, "cannot be p5.48xlarge: there are trn1.2xlarge"),
    ({"region": "eu-central-1"}, "offered in us-east-1, us-east-2, us-west-2"),
    ({"hours": 0.1}, "0.1 hours: ask for 0.5 to 24"),
    ({"hours": float("nan")}, "nan hours"),
    ({"hours": 48}, "48 hours"),
    ({"disk_gb": 5}, "a disk of 5 GB"),
    ({"image": "jax"}, "no image 'jax' for ec2: there are xla and torchneuron"),
    ({"image": "torchneuron"}, "only on the families trn2: TorchNeuron runs on Trainium2"),
    ({"where": "studio", "image": "xla"}, "it has one image"),
    ({"usd_per_hour": 0.1}, "is known"),
    ({"where": "studio", "usd_per_hour": 0.1}, "as many Trainium1 chips cost 1.34375 on EC2"),
    (
        {"instance": "trn2.48xlarge", "region": "us-east-2", "usd_per_hour": 1e-9},
        "as many Trainium1 chips cost 21.5",
    ),
    ({"where": "studio", "usd_per_hour": float("nan")}, "cannot be"),
    ({"run": "A run"}, "no name of a run"),
]


@pytest.mark.parametrize(("what", "text"), WRONG)
def test_what_cannot_be_is_said(what: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError) as error:
        plan(**what)
    assert text in str(error.value)


@pytest.mark.parametrize("where", ["training-job", "studio"])
def test_an_unknown_price_refuses_until_it_is_given(where: str) -> None:
    assert any("price is unknown" in why for why in plan(where).refusals(100))
    assert plan(where, usd_per_hour=1.6).refusals(100) == ()


def test_trainium2_has_no_known_price_on_demand() -> None:
    planned = plan("ec2", "trn2.3xlarge", "sa-east-1", image="torchneuron")
    assert planned.quota and planned.quota.needed == 12
    assert any("price is unknown" in why for why in planned.refusals(100))


@pytest.mark.parametrize("where", ["ec2", "training-job", "studio"])
def test_permissions_are_narrow(where: str) -> None:
    document = plan(where).policy
    assert too_wide(document) == ()
    ids = [statement["Sid"] for statement in document["Statement"]]
    assert len(set(ids)) == len(ids)
    for statement in document["Statement"]:
        for action in statement["Action"]:
            verb = action.partition(":")[2]
            if verb.startswith(WRITES) and verb not in ("StartSession", "TerminateSession"):
                words = json.dumps(statement)
                assert "us-east-1" in words or "arn:aws:s3:::" in words or verb == "PassRole"
                kept = ("Condition" in statement and OWN in words) or statement["Sid"] in (
                    "InAnySubnet",
                    "FromAnImageOfAws",
                    "TagOnlyWhatIsStarted",
                    "BringTheScript",
                )
                assert kept, statement


def spoil(plan_dict: dict[str, Any], path: str, value: Any) -> None:
    *way, last = [int(p) if p.isdigit() else p for p in path.split("/")]
    node: Any = plan_dict
    for step in way:
        node = node[step]
    if value is None:
        del node[last]
    else:
        node[last] = value


RUN = "requests/RunInstances/"
MISTAKES = [
    (RUN + "InstanceInitiatedShutdownBehavior", "stop", "would only stop"),
    (RUN + "UserData", "#!/bin/bash\necho hello\n", "does not set the clock"),
    (RUN + "UserData", "#!/bin/bash\nshutdown -P +600\n", "rings after 600 minutes"),
    (RUN + "UserData", "shutdown -P", "does not set the clock"),
    (RUN + "UserData", "shutdown -P +100\nshutdown -c\n", "may take it back"),
    (RUN + "BlockDeviceMappings", None, "a disk would stay"),
    ("requests/RunTask", {}, "RunTask: no call of the course"),
    (RUN + "BlockDeviceMappings/0/Ebs/DeleteOnTermination", False, "a disk would stay"),
    (RUN + "ClientToken", None, "no client token"),
    (RUN + "TagSpecifications", None, "--stop cannot find it"),
    (RUN + "MaxCount", 4, "another number of instances"),
    (RUN + "KeyName", "mine", "a key pair"),
    (RUN + "MetadataOptions/HttpTokens", "optional", "without a token"),
    (RUN + "InstanceType", "trn1.32xlarge", "another machine"),
    ("image/families", ["trn2"], "its software runs on trn2"),
    ("quota/unit", "instances", "counts vCPU"),
    ("quota/needed", 1, "do not hold 8"),
    ("cost/total_usd", 1.0, "hours, price and disk make"),
    ("cost/hours", 1.0, "fewer hours"),
    ("policy/Statement/3/Action", ["ec2:*"], "allows ec2:*"),
    ("policy/Statement/3/Resource", "*", "on everything"),
]


@pytest.mark.parametrize(("path", "value", "text"), MISTAKES)
def test_the_review_finds_a_mistake(path: str, value: Any, text: str) -> None:
    plan_dict = json.loads(json.dumps(plan("ec2").as_dict()))
    assert review(plan_dict, 5) == ()
    spoil(plan_dict, path, value)
    result = review(plan_dict, 5)
    assert any(text in item for item in result), result


def test_the_review_holds_the_limit_and_the_length_of_a_job() -> None:
    assert "above the limit" in review(plan("ec2").as_dict(), 1)[0]
    job = plan("training-job", usd_per_hour=2.0).as_dict()
    spoil(job, "requests/CreateTrainingJob/StoppingCondition/MaxRuntimeInSeconds", 86400)
    spoil(job, "requests/CreateTrainingJob/ResourceConfig/KeepAlivePeriodInSeconds", 600)
    assert len(review(job)) == 2


# --- The command -----------------------------------------------------------------------------


@pytest.fixture
def ec2() -> Iterator[Any]:
    with account() as client:
        yield client


def test_without_start_no_call_is_made_and_boto3_is_not_even_imported() -> None:
    code = (
        "import sys\nfrom utils.cli.commands import launch\n"
        "launch.main(['--limit', '100'])\nlaunch.main(['--where', 'studio', '--json'])\n"
        "sys.exit(any(name in sys.modules for name in ('boto3', 'botocore', 'socket_made')))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--limit", "100"],
        ["--start"],
        ["--start", "--limit", "2"],
        ["--start", "--limit", "100", "--where", "eks"],
        ["--start", "--limit", "100", "--where", "training-job"],
        ["--start", "--limit", "100", "--where", "studio", "--price", "1.6"],
        ["--start", "--limit", "100", "--hours", "99"],
        ["--list"],
    ],
)
def test_nothing_is_started_without_the_flag_and_enough_limit(ec2: Any, words: list[str]) -> None:
    with at_call(-1, "", lambda: None) as calls:
        command.main(words)
    assert [name for name in calls if name.startswith(WRITES)] == []
    assert living(ec2) == [] and run_record.runs() == set()


def test_the_flags_cannot_be_shortened(capsys: pytest.CaptureFixture) -> None:
    for word in ("--sta", "--lim"):
        with pytest.raises(SystemExit):
            command.main([word, "5"])
    assert "unrecognized arguments" in capsys.readouterr().err


def refusal(ec2: Any, **what: Any) -> str:
    """Why a start is refused; nothing may have been written anywhere."""
    clock = Clock()
    planned = plan("ec2", hours=0.5, run="testrun", owner="ada", **what)
    with at_call(-1, "", lambda: None) as calls, pytest.raises(Refused) as error:
        starting.start(
            Session(REGION), planned, 5.0, lambda t: None, now=clock.now, sleep=clock.sleep
        )
    assert [name for name in calls if name.startswith(WRITES) and "dry" not in name] == []
    assert run_record.runs() == set() and living(ec2) == []
    return str(error.value)


def test_a_small_quota_refuses() -> None:
    with account(vcpus=4) as ec2:
        assert "is 4 vCPU, of which 0 are in use; this needs 8 more" in refusal(ec2)


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"InstanceType": "trn1.2xlarge"}, "of which 8 are in use"),
        ({"InstanceType": "trn1.2xlarge", "InstanceMarketOptions": {"MarketType": "spot"}}, ""),
        ({"InstanceType": "trn3.48xlarge"}, "the course does not know all vCPUs"),
    ],
)
def test_what_others_run_counts_where_it_is_on_demand(more: dict, text: str) -> None:
    with account(vcpus=8) as ec2:
        image = ec2.describe_images()["Images"][0]["ImageId"]
        ec2.run_instances(ImageId=image, MinCount=1, MaxCount=1, **more)
        aws, planned = Session(REGION), plan("ec2", hours=0.5)
        if text:
            with pytest.raises(Refused, match=text):
                preflight.quota(aws, planned)
        else:
            preflight.quota(aws, planned)


def test_what_is_missing_in_the_account_is_named() -> None:
    with account() as ec2:
        iam = boto3.client("iam", REGION)
        group = ec2.describe_security_groups(Filters=[{"Name": "group-name", "Values": [OWN]}])
        named = group["SecurityGroups"][0]["GroupId"]
        door = {"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22}
        ec2.authorize_security_group_ingress(
            GroupId=named, IpPermissions=[door | {"IpRanges": [{"CidrIp": "0.0.0.0/0"}]}]
        )
        assert "lets something in" in refusal(ec2)
        ec2.delete_security_group(GroupId=named)
        assert f"no security group {OWN}" in refusal(ec2)
        iam.remove_role_from_instance_profile(InstanceProfileName=OWN, RoleName=OWN)
        iam.delete_instance_profile(InstanceProfileName=OWN)
        assert f"no instance profile {OWN}" in refusal(ec2)


def test_a_run_that_goes_on_refuses_a_second_one(ec2: Any) -> None:
    request = starting.date_tags(plan("ec2", run="first", owner="ada"), Clock().now())[
        "RunInstances"
    ]
    request["ImageId"] = ec2.describe_images()["Images"][0]["ImageId"]
    ec2.run_instances(**request)
    try:
        clock, planned = Clock(), plan("ec2", hours=0.5, run="second", owner="ada")
        with pytest.raises(Refused, match="still going"):
            starting.start(Session(REGION), planned, 5, print, now=clock.now, sleep=clock.sleep)
    finally:
        assert [i["State"]["Name"] for i in living(ec2)] == ["running"]
        ec2.terminate_instances(InstanceIds=[living(ec2)[0]["InstanceId"]])


def test_a_record_that_cannot_be_written_refuses(
    ec2: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(run_record.VARIABLE, str(tmp_path / "missing" / "launches.jsonl"))
    clock, planned = Clock(), plan("ec2", hours=0.5, run="testrun", owner="ada")
    with at_call(-1, "", lambda: None) as calls, pytest.raises(OSError):
        starting.start(Session(REGION), planned, 5, print, now=clock.now, sleep=clock.sleep)
    assert "RunInstances" not in calls


def test_without_credentials_the_words_say_what_to_do(capsys: pytest.CaptureFixture) -> None:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("AWS_")}
    none = {k: v for k, v in KEYS.items() if "KEY" not in k}
    with mock.patch.dict(os.environ, kept | none, clear=True):
        for words in (["--start", "--limit", "9"], ["--stop"], ["--list"]):
            assert command.main(words) == 1
            assert "aws configure" in capsys.readouterr().err


def test_without_a_network_it_gives_up_soon(capsys: pytest.CaptureFixture) -> None:
    gone = {"AWS_ENDPOINT_URL": "http://127.0.0.1:9"}  # nobody listens there
    with mock.patch.dict(os.environ, KEYS | gone):
        assert command.main(["--start", "--limit", "9"]) == 1
    assert "AWS could not be reached for sts" in capsys.readouterr().err
    assert aws_session.ATTEMPTS * aws_session.CONNECT_SECONDS <= 20


def test_an_interrupted_check_says_where_to_look(ec2: Any, capsys: pytest.CaptureFixture) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    for number in range(3):
        with at_call(number, "before", interrupt):
            assert command.main(["--start", "--limit", "9"]) == 130
        assert "--list" in capsys.readouterr().err
    assert living(ec2) == [] and run_record.runs() == set()


def test_the_policy_is_printed_alone(capsys: pytest.CaptureFixture) -> None:
    assert command.main(["--policy"]) == 0
    assert json.loads(capsys.readouterr().out) == plan("ec2").policy
    assert command.main(["--policy", "--where", "eks"]) == 2


def test_what_is_printed_as_cost_is_enough_as_limit() -> None:
    for hours in (0.5, 0.6, 1.7, 2.0, 3.3):
        planned = plan("ec2", hours=hours)
        text = str(planned).partition("at most ")[2].partition("at most ")[2].partition(" USD")[0]
        assert planned.refusals(float(text)) == ()


def test_a_torn_record_hides_no_run() -> None:
    """A cut line must not swallow the next one; what is no event is passed over."""
    what = {"where": "ec2", "region": "us-west-2", "instance": "trn1.2xlarge", "until": "noon"}
    run_record.path().write_bytes(b'3\n{"event": "begin"}\n\xff\xfe\n{"event": "beg')
    run_record.write("begin", "lost", **what)
    assert set(run_record.open_runs()) == {"lost"} == run_record.runs()
    run_record.write("ended", "lost")
    assert run_record.open_runs() == {}


def test_two_launchers_do_not_start_at_once(ec2: Any) -> None:
    with run_record.alone(), pytest.raises(OSError, match="another launcher"):
        starting.start(Session(REGION), plan("ec2", hours=0.5), 5, print)
    assert living(ec2) == []


def test_a_run_whose_end_is_not_recorded_refuses_another(ec2: Any) -> None:
    what = {"where": "studio", "region": "us-west-2", "instance": "ml.trn1.2xlarge", "until": "?"}
    run_record.write("begin", "lost", **what)
    with pytest.raises(Refused, match="the end of your run lost"):
        starting.start(Session(REGION), plan("ec2", hours=0.5), 5, print)
    assert living(ec2) == []


def test_stop_ends_your_own_and_names_what_others_have(
    capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    with account() as ec2:
        image = ec2.describe_images()["Images"][0]["ImageId"]
        me = Session(REGION).me()
        for owner in (me, "grace"):
            run = starting.date_tags(
                plan("ec2", run=starting.new_run(), owner=owner), Clock().now()
            )
            ec2.run_instances(**run["RunInstances"], ImageId=image)
        tag = {"ResourceType": "instance", "Tags": [{"Key": "course", "Value": OWN}]}
        for tags in ([], [tag]):  # of somebody else, and a node that a cluster's template tagged
            ec2.run_instances(ImageId=image, MinCount=1, MaxCount=1, TagSpecifications=tags)
        assert command.main(["--list"]) == 0
        assert "2 running" in capsys.readouterr().out
        assert command.main(["--stop"]) == 0
        text = capsys.readouterr().out
        assert "nothing of yours is running" in text and "of others: i-" in text
        assert len(living(ec2)) == 3
        assert command.main(["--stop", "--everyone"]) == 0
        assert [len(item.get("Tags", [])) for item in living(ec2)] == [0, 1]


def test_an_unended_run_is_brought_up_by_the_next_plan(capsys: pytest.CaptureFixture) -> None:
    run_record.write(
        "begin", "lost", where="ec2", region=REGION, instance="trn1.2xlarge", until="noon"
    )
    command.main([])
    assert "The end of run lost" in capsys.readouterr().out
