"""A function in a process of its own: its result, its error, its death, its devices."""

import contextlib
import os
import signal
import subprocess
import sys
import time

import cloudpickle
import psutil
import pytest

from utils.course.catalog import ROOT
from utils.xla import fresh


def devices() -> int:
    import torch_xla.runtime as xr

    return xr.global_runtime_device_count()


def test_each_process_has_the_devices_that_were_asked_for() -> None:
    asked = (4, 2, 4)
    results = [fresh.run(devices, environment={"CPU_NUM_DEVICES": str(n)}) for n in asked]
    assert tuple(results) == asked
    assert "CPU_NUM_DEVICES" not in os.environ


def test_a_function_of_a_notebook_takes_what_it_refers_to_along() -> None:
    scale = 7

    def helper(x: int) -> int:
        return scale * x

    assert fresh.run(lambda: [helper(n) for n in range(3)]) == [0, 7, 14]


def test_a_large_result_arrives() -> None:
    assert len(fresh.run(lambda: bytes(10_000_000))) == 10_000_000


def test_an_error_keeps_its_kind_and_message() -> None:
    with pytest.raises(fresh.Raised, match="^ZeroDivisionError: division by zero$") as caught:
        fresh.run(lambda: 1 / 0)
    assert (caught.value.kind, caught.value.message) == ("ZeroDivisionError", "division by zero")
    assert "1 / 0" in caught.value.report


def test_what_cannot_be_sent_is_an_error_of_the_function() -> None:
    with pytest.raises(fresh.Raised, match="pickle"):
        fresh.run(lambda: (item for item in ()))


@pytest.mark.parametrize(
    ("end", "cause"),
    [
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "SIGKILL"),
        (os.abort, "SIGABRT"),
        (lambda: os._exit(3), "exit 3"),
    ],
)
def test_a_death_says_its_cause(end, cause) -> None:
    with pytest.raises(fresh.Died) as caught:
        fresh.run(end)
    assert caught.value.cause == cause


def test_what_it_has_started_neither_keeps_the_caller_waiting_nor_stays(tmp_path) -> None:
    text = tmp_path / "pid"

    def leave_another() -> None:
        if other := os.fork():
            text.write_text(str(other))
            os._exit(3)
        time.sleep(600)

    with pytest.raises(fresh.Died, match="exit 3"):
        fresh.run(leave_another, seconds=60)
    with contextlib.suppress(psutil.NoSuchProcess):
        psutil.Process(int(text.read_text())).wait(10)


def test_what_the_function_writes_to_the_pipe_is_no_result() -> None:
    def forge() -> None:
        message = cloudpickle.dumps(("returned", "forged"))
        results = sys._getframe(1).f_locals["results"]
        os.write(results.fileno(), bytes(16) + len(message).to_bytes(8) + message)
        os._exit(0)

    with pytest.raises(fresh.Died, match="exit 0"):
        fresh.run(forge)


def test_a_process_that_does_not_end_is_killed() -> None:
    with pytest.raises(TimeoutError, match="1 s and was killed"):
        fresh.run(time.sleep, 60, seconds=1)
    assert fresh.run(os.getpid) != os.getpid()


def test_a_server_is_started_once_and_from_the_folder_of_a_notebook_too_it_has_torch_xla() -> None:
    program = (
        "import sys; sys.path[:0] = ['..']\n"
        "from multiprocessing import forkserver as f; from utils.xla import fresh\n"
        "fresh.start(); first = f._forkserver._forkserver_pid; fresh.start()\n"
        "assert first and f._forkserver._forkserver_pid == first\n"
        "print(fresh.run(lambda: 'torch_xla' in __import__('sys').modules))"
    )
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    ran = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT / "notebooks", env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.stdout.strip() == "True", ran.stderr
