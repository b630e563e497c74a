"""The launcher leaves nothing running: signals, faults and errors at every call, and real kills.

What moto can show: that instances end, that an instance which outlives its launcher ends at its own
shut-down, and that the script which does so comes with the call that starts it. What it cannot: the
clock itself; the script is run here with commands that only take note.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError

from tests.launch.launch_cloud import (
    KEYS,
    REGION,
    Clock,
    Port,
    SageMaker,
    account,
    at_call,
    attribute,
    living,
    sagemaker,
    signals_raise,
)
from utils.launch import plan
from utils.launch.aws import run_record, running, starting
from utils.launch.aws.aws_session import Refused, Session
from utils.launch.names import to_dict

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 5.0
AWS = Session(REGION)  # one for all tests: boto3 takes half a second to make its clients

CHECKS = [
    "DescribeInstances",  # does a run of ours go on?
    "GetServiceQuota",
    "DescribeInstances",  # what uses the quota?
    "GetParameter",
    "DescribeImages",
    "GetInstanceProfile",
    "DescribeSecurityGroups",
    "RunInstances (dry)",
]
RUN = [*CHECKS, "RunInstances", *["DescribeInstances"] * 3, "TerminateInstances"]
"""The calls of half an hour, up to the one that ends it; then one more look."""
SENT = RUN.index("RunInstances")


@pytest.fixture(scope="module")
def ec2() -> Iterator[Any]:
    """The account, for all tests of this file: each leaves nothing in it."""
    with account() as client:
        yield client


@pytest.fixture(autouse=True)
def records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run_record of this test's own."""
    monkeypatch.setenv(run_record.VARIABLE, str(tmp_path / "launches.jsonl"))
    return tmp_path / "launches.jsonl"


def launched(clock: Clock, lines: list[str] | None = None, hours: float = 0.5) -> starting.Outcome:
    """One whole run of an instance."""
    planned = plan("ec2", hours=hours, run="testrun", owner="ada")
    say = (lines if lines is not None else []).append
    return starting.start(AWS, planned, LIMIT, say, now=clock.now, sleep=clock.sleep)


def test_a_run_makes_these_calls_and_ends_what_it_started(ec2: Any) -> None:
    with at_call(-1, "", lambda: None) as calls:
        outcome = launched(Clock())
        assert calls[:-1] == RUN and calls[-1] == "DescribeInstances"
        assert outcome.left == () and outcome.why == "its hours are over"
        assert living(ec2) == []
    assert [event["event"] for event in run_record.events()] == ["begin", "started", "ended"]


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("number", range(len(RUN) + 1))
def test_a_signal_at_any_call_leaves_nothing(ec2: Any, number: int, moment: str) -> None:
    """Also while the run is being ended: a second Ctrl-C does not cut that short."""
    kind = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)[number % 3]
    with signals_raise():
        with at_call(number, moment, lambda: os.kill(os.getpid(), kind)) as calls:
            with contextlib.suppress(SystemExit):
                launched(Clock())
        assert living(ec2) == []
        assert ("RunInstances" in calls) == (number >= SENT)
    assert run_record.open_runs() == {}
    assert bool(run_record.runs()) == (number >= SENT)


def raiser(error: BaseException) -> Callable[[], None]:
    def act() -> None:
        raise error

    return act


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(1)])
@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("number", range(SENT, SENT + 3))
def test_an_error_between_start_and_end_leaves_nothing(
    ec2: Any, number: int, moment: str, error: BaseException
) -> None:
    with at_call(number, moment, raiser(error)):
        with pytest.raises(type(error)):
            launched(Clock())
        assert living(ec2) == []
    assert run_record.open_runs() == {}


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("number", range(len(RUN) + 1))
def test_a_lost_answer_leaves_nothing(ec2: Any, number: int, moment: str) -> None:
    """AWS did it, or did not, and nobody told us: then it is looked for before it is believed."""
    lost = ReadTimeoutError(endpoint_url="https://ec2")
    with at_call(number, moment, raiser(lost)):
        with contextlib.suppress(Refused):
            launched(Clock())
        assert living(ec2) == []
    assert run_record.open_runs() == {}


def test_an_instance_that_ec2_lists_late_is_still_found(
    ec2: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The list of instances may be some seconds behind the start."""
    find, looks = running.FIND["ec2"], []

    def late(aws: Session) -> Iterator:
        looks.append(1)
        return find(aws) if len(looks) > 3 else iter(())

    monkeypatch.setitem(running.FIND, "ec2", late)
    lost = ReadTimeoutError(endpoint_url="https://ec2")
    with at_call(SENT - 1, "after", raiser(lost)):
        assert launched(Clock()).left == ()
        assert living(ec2) == []


def test_a_refusal_is_no_proof_that_nothing_runs(ec2: Any) -> None:
    """The first answer was lost, the repetition of the call is refused, and the instance runs."""
    refusal = ClientError({"Error": {"Code": "RequestExpired"}}, "RunInstances")
    with at_call(SENT, "after", raiser(refusal)):
        assert launched(Clock()).why.startswith("refused")
    assert living(ec2) == [] and run_record.open_runs() == {}


def test_a_full_disk_after_the_start_leaves_nothing(
    ec2: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, text = run_record.write, []

    def full(event: str, run: str, **what: object) -> None:
        if event != "begin":
            raise OSError(28, "No space left on device")
        write(event, run, **what)

    monkeypatch.setattr(run_record, "write", full)
    assert launched(Clock(), text).left == ()
    assert living(ec2) == [] and sum("could not record" in line for line in text) == 2


def test_one_that_cannot_be_ended_keeps_no_other_from_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    there = [running.Thing("ec2", name, *["?"] * 6) for name in ("i-bad", "i-good")]

    def end(aws: Session, thing: running.Thing) -> None:
        if thing.id == "i-bad":
            raise TypeError("an answer that nobody expected")
        there.remove(thing)

    monkeypatch.setattr(running, "end", end)
    left = running.end_all(AWS, lambda: list(there), lambda t: None, lambda s: None, rounds=3)
    assert [thing.id for thing in left] == ["i-bad"]


def test_what_cannot_be_ended_is_said_and_stays_on_record(ec2: Any) -> None:
    lines: list[str] = []

    def denied(aws: Session, thing: object) -> None:
        raise Refused("the credentials have expired")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(running, "end", denied)
        outcome = launched(Clock(), lines)
    assert len(outcome.left) == 1 and "STILL RUNNING" in lines[-1]
    assert set(run_record.open_runs()) == {"testrun"}
    (instance,) = living(ec2)
    behaviour = attribute(ec2, instance["InstanceId"], "instanceInitiatedShutdownBehavior")
    assert behaviour == "terminate"
    assert running.stop(AWS, lambda thing: True, lines.append, lambda s: None) == []
    assert living(ec2) == [] and run_record.open_runs() == {}


def course(port: Port, folder: Path, *words: str) -> subprocess.Popen:
    """The command in a process of its own, with the port for AWS."""
    environment = (
        os.environ
        | KEYS
        | {
            "AWS_ENDPOINT_URL": port.address,
            run_record.VARIABLE: str(folder / "launches.jsonl"),
            "PYTHONUNBUFFERED": "1",
        }
    )
    command = [sys.executable, str(ROOT / "course.py"), "--inside", "launch", *words]
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


STARTED = ["--start", "--limit", "5", "--hours", "1"]
KILLS = [
    ("GetCallerIdentity", "before", 0),
    ("RunInstances (dry)", "after", 0),
    ("RunInstances", "before", 1),
    ("RunInstances", "after", 1),
]


@pytest.mark.parametrize(("action", "moment", "alive"), KILLS)
def test_a_killed_launcher_leaves_at_most_what_ends_by_itself(
    ec2: Any, action: str, moment: str, alive: int, tmp_path: Path
) -> None:
    """SIGKILL lets no program clean up. What is left has its own clock, and --stop finds it."""
    with Port() as port:
        process = course(port, tmp_path, *STARTED)

        def kill(seen: str, when: str) -> None:
            if (seen, when) == (action, moment):
                process.kill()
                process.wait()

        port.on_call = kill
        out, _ = process.communicate(timeout=60)
        assert process.returncode == -signal.SIGKILL, out
        with port.answering:
            left = living(ec2)
        assert len(left) == alive
        for instance in left:
            named = instance["InstanceId"]
            behaviour = attribute(ec2, named, "instanceInitiatedShutdownBehavior")
            assert behaviour == "terminate"
            assert set(to_dict(instance["Tags"])) >= {"course", "course-run", "course-expires-at"}
        # The record was on the disk before AWS heard of the run.
        assert len(run_record.open_runs()) == alive
        text: list[str] = []
        assert running.stop(AWS, mine, text.append, lambda seconds: None) == []
        assert living(ec2) == [] and run_record.open_runs() == {}


def mine(thing: object) -> bool:
    return thing.run in run_record.runs()  # type: ignore[attr-defined]


def test_a_launcher_that_is_told_to_end_ends_its_instance(ec2: Any, tmp_path: Path) -> None:
    with Port() as port:
        process = course(port, tmp_path, *STARTED)
        assert process.stdout
        lines = iter(process.stdout.readline, "")
        assert any(line.startswith("started i-") for line in lines)
        assert len(living(ec2)) == 1
        process.send_signal(signal.SIGTERM)
        rest = "".join(lines)
        assert process.wait(timeout=60) == 0, rest
        assert living(ec2) == [] and "Nothing of the run" in rest
        assert port.actions.count("RunInstances") == 1


COMMANDS = ("shutdown", "poweroff", "systemctl")


def run_script(folder: Path, fails: tuple[str, ...] = (), hours: float = 2.0) -> tuple[list, Path]:
    """Runs the user data with commands that only take note: (what was called in order, units)."""
    commands, units = folder / "bin", folder / "units"
    commands.mkdir()
    units.mkdir()
    for name in COMMANDS:
        body = f'#!/bin/bash\necho "{name} $*" >> {folder}/log\nexit {int(name in fails)}\n'
        (commands / name).write_text(body)
        (commands / name).chmod(0o755)
    request = plan("ec2", hours=hours).requests["RunInstances"]
    script = request["UserData"].replace("/etc/systemd/system", str(units))
    script = script.replace("/etc/motd", str(folder / "motd"))
    subprocess.run(
        ["bash", "-c", script], env={"PATH": f"{commands}:/usr/bin:/bin"}, check=True, timeout=20
    )
    return (folder / "log").read_text().splitlines(), units


def test_the_first_thing_an_instance_does_is_to_set_its_end(tmp_path: Path) -> None:
    called, units = run_script(tmp_path)
    assert called[0].startswith("shutdown -P +115 ")
    assert called[1:] == [
        "systemctl daemon-reload",
        "systemctl enable --now trainium-course-end.timer",
    ]
    timer = (units / "trainium-course-end.timer").read_text()
    assert "Persistent=true" in timer and "WantedBy=timers.target" in timer
    (when,) = [line for line in timer.splitlines() if line.startswith("OnCalendar=")]
    ends = time.mktime(time.strptime(when, "OnCalendar=%Y-%m-%d %H:%M:%S UTC")) - time.timezone
    assert abs(ends - time.time() - 115 * 60) < 120
    assert "poweroff" in (units / "trainium-course-end.service").read_text()


@pytest.mark.parametrize(("broken", "off"), [("shutdown", 1), ("systemctl", -1)])
def test_an_instance_that_cannot_set_its_end_ends_at_once(
    broken: str, off: int, tmp_path: Path
) -> None:
    called, _ = run_script(tmp_path, fails=(broken,))
    assert called[off].split() == ["poweroff"]


@pytest.mark.parametrize("where", ["training-job", "studio"])
@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("operation", ["CreateTrainingJob", "CreateSpace", "CreateApp"])
def test_a_signal_at_a_start_on_sagemaker_leaves_nothing(
    ec2: Any, operation: str, moment: str, where: str
) -> None:
    fake = SageMaker()
    act = getattr(fake, operation)

    def answer(**request: object) -> dict:
        if moment == "before":
            os.kill(os.getpid(), signal.SIGTERM)
        answer = act(**request)
        if moment == "after":
            os.kill(os.getpid(), signal.SIGTERM)
        return answer

    setattr(fake, operation, answer)
    outcome = on_sagemaker(fake, where)
    touched = operation.startswith("CreateTrainingJob") == (where == "training-job")
    assert outcome.why == ("signal SIGTERM" if touched else "its hours are over")
    nothing_is_left(fake)


@pytest.mark.parametrize("where", ["training-job", "studio"])
def test_the_hours_on_sagemaker_end(ec2: Any, where: str) -> None:
    fake = SageMaker()
    assert on_sagemaker(fake, where).why == "its hours are over"
    nothing_is_left(fake)
    assert run_record.open_runs() == {}


ON, OFF = {"LifecycleManagement": "ENABLED"}, {"LifecycleManagement": "DISABLED"}


@pytest.mark.parametrize(
    "user, domain", [({}, {}), ({}, OFF), (OFF, ON), ({}, {"IdleTimeoutInMinutes": 60})]
)
def test_studio_starts_nothing_where_idle_apps_are_not_shut_down(
    ec2: Any, user: dict, domain: dict
) -> None:
    fake = SageMaker(idle_of_user=user, idle_of_domain=domain)
    with pytest.raises(Refused, match="idle shut-down of JupyterLab is not switched on"):
        on_sagemaker(fake, "studio")
    assert "CreateSpace" not in fake.calls
    assert run_record.open_runs() == {}


def test_the_user_profile_can_switch_idle_shut_down_on(ec2: Any) -> None:
    fake = SageMaker(idle_of_user=ON, idle_of_domain=OFF)
    assert on_sagemaker(fake, "studio").why == "its hours are over"
    nothing_is_left(fake)


def test_a_space_that_fails_is_deleted_and_has_no_app(ec2: Any) -> None:
    fake = SageMaker()
    make = fake.CreateSpace
    fake.CreateSpace = lambda **space: make(**space, Status="Failed")
    assert "it is Failed" in on_sagemaker(fake, "studio").why
    assert "CreateApp" not in fake.calls
    nothing_is_left(fake)


@pytest.mark.parametrize("where", ["training-job", "studio"])
def test_a_disk_that_fills_up_while_it_is_watched_ends_no_run_early(ec2: Any, where: str) -> None:
    fake = SageMaker()
    look = "ListTrainingJobs" if where == "training-job" else "ListSpaces"
    act, looks = getattr(fake, look), []

    def full(**request: object) -> dict:
        looks.append(request)
        if 3 < len(looks) < 9:  # as where credentials are refreshed into a file
            raise OSError(28, "No space left on device")
        return act(**request)

    setattr(fake, look, full)
    assert on_sagemaker(fake, where).why == "its hours are over"
    nothing_is_left(fake)


def on_sagemaker(fake: SageMaker, where: str) -> starting.Outcome:
    planned = plan(
        where, hours=0.5, usd_per_hour=1.6, run="testrun", owner="ada", domain="d-abc",
        user="ada", role="arn:aws:iam::123456789012:role/trainium-course", bucket="a-bucket",
    )  # fmt: skip
    clock = Clock(step_s=60.0)
    with sagemaker(fake), signals_raise():
        return starting.start(
            AWS, planned, LIMIT, lambda text: None, now=clock.now, sleep=clock.sleep
        )


def nothing_is_left(fake: SageMaker) -> None:
    assert fake.spaces == {} and fake.apps == {}
    assert {job["Status"] for job in fake.jobs.values()} <= {"Stopped"}
