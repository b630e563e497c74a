"""Grading on a Dask scheduler: workers in processes of their own, killed at random; a worker that
is not fit, and a scheduler that is not there.
"""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.labs import hostile
from utils.labs.grading import batch, cluster, records
from utils.labs.grading.sandbox import SandboxError

pytestmark = pytest.mark.usefixtures("root")
SLOW = "import time\ntime.sleep(0.5)\ndef double(number):\n    return 2 * number"


@contextmanager
def process(*words: str, paths: Path | None = None) -> Iterator[subprocess.Popen[str]]:
    environment = {**os.environ, "PYTHONPATH": str(paths or "")}
    command = [sys.executable, "-m", "distributed.cli.dask_" + words[0], *words[1:]]
    command += ["--no-dashboard"]
    started = subprocess.Popen(
        command, env=environment, stderr=subprocess.PIPE, text=True, cwd=paths or "/"
    )
    try:
        yield started
    finally:
        started.kill()
        started.wait()
        assert started.stderr is not None
        started.stderr.close()


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    """The address of a scheduler that has no course."""
    with process("scheduler", "--host", "127.0.0.1", "--port", "0") as started:
        assert started.stderr is not None
        for line in started.stderr:
            if "Scheduler at:" in line:
                threading.Thread(target=started.stderr.read, daemon=True).start()
                yield line.split()[-1]
                return
        pytest.fail("the scheduler did not start")


@contextmanager
def worker(address: str, paths: Path | None = None) -> Iterator[subprocess.Popen[str]]:
    options = ["--nthreads", "1", "--no-nanny", "--host", "127.0.0.1", "--death-timeout", "60"]
    with process("worker", address, *options, paths=paths) as started:
        assert started.stderr is not None
        threading.Thread(target=started.stderr.read, daemon=True).start()
        yield started


def hand_in(inbox: Path, count: int, draw: random.Random) -> dict[str, float]:
    """Submissions of which each has the points that are returned."""
    points = {}
    for number in range(count):
        name, wrong = f"s{number:03}", draw.random() < 0.4
        hostile.hand_in(inbox / name, hostile.notebook(ex1=hostile.WRONG if wrong else SLOW))
        points[name] = 8.0 if wrong else 12.0
    return points


def killed_at_random(address: str, root: Path, until: Callable[[], bool], seed: int) -> int:
    """Two workers, of which one is killed and replaced again and again; returns how often."""
    draw, killed = random.Random(seed), 0
    with worker(address, root):
        while not until():
            with worker(address, root) as second:
                end = time.monotonic() + draw.uniform(2, 8)
                while time.monotonic() < end and not until():
                    time.sleep(0.1)
                if not until():
                    second.send_signal(signal.SIGKILL)
                    killed += 1
    return killed


@pytest.mark.parametrize("count", [8, pytest.param(200, marks=pytest.mark.exhaustive)])
def test_workers_are_killed_and_nothing_is_lost_or_doubled(
    count: int, scheduler: str, root: Path, tmp_path: Path
) -> None:
    expected = hand_in(tmp_path / "inbox", count, random.Random(7))
    texts: list[str] = []
    over = threading.Event()
    killed: list[int] = []
    chaos = threading.Thread(
        target=lambda: killed.append(killed_at_random(scheduler, root, over.is_set, 11))
    )
    chaos.start()
    try:
        rows = batch.grade(
            tmp_path / "inbox", tmp_path / "out", root, seed="s", scheduler=scheduler,
            say=texts.append,
        )  # fmt: skip
    finally:
        over.set()
        chaos.join()
    assert {row.record.student: row.total for row in rows} == expected
    assert killed[0] >= 1, "no worker was killed: the test has shown nothing"
    lines = [line.split("/")[0] for line in texts if f"/{count} " in line]
    assert lines == [str(k + 1) for k in range(count)]
    kept = [record.student for record in records.read(tmp_path / "out")]
    assert sorted(kept) == sorted(expected)


def test_a_worker_without_the_course_is_refused_by_name(
    scheduler: str, root: Path, tmp_path: Path
) -> None:
    hand_in(tmp_path / "inbox", 1, random.Random(1))
    texts: list[str] = []
    with worker(scheduler), pytest.raises(SandboxError, match="no worker of tcp://.* can grade"):
        batch.grade(
            tmp_path / "inbox", tmp_path / "out", root, scheduler=scheduler, say=texts.append
        )
    assert any("is not used: the course cannot be imported there" in line for line in texts)
    assert "another version of the course" in cluster.unfit("of somebody else")


def test_a_scheduler_that_does_not_answer_is_said(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "ANSWER_S", 0.5)
    hand_in(tmp_path / "inbox", 1, random.Random(1))
    with pytest.raises(ValueError, match="no Dask scheduler answers at tcp://127.0.0.1:9.*start"):
        batch.grade(tmp_path / "inbox", tmp_path / "out", root, scheduler="tcp://127.0.0.1:9")
    assert not (tmp_path / "out").exists()
