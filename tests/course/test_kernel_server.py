"""Kernels that a server forks behave as ordinary ones: started, interrupted, killed, ended."""

import contextlib
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.manager import start_new_kernel

from utils.course import kernel_server
from utils.course.catalog import ROOT
from utils.course.runner import kernel_environment

SECONDS = 60


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("server") / "kernels"
    with kernel_server.serve(path, dict(os.environ), ("ipykernel.kernelapp", "utils.chip.mx")):
        yield path


@contextlib.contextmanager
def kernel(server: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    with kernel_environment(server=server) as environment:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        manager, client = start_new_kernel(
            kernel_name="python3", cwd=str(folder), startup_timeout=SECONDS
        )
        try:
            yield manager, client
        finally:
            client.stop_channels()
            manager.shutdown_kernel(now=True)


def run(client: Any, code: str) -> str:
    """What `code` prints in the kernel, or the name of the exception that it raises."""
    written: list[str] = []

    def note(message: dict[str, Any]) -> None:
        content = message["content"]
        written.append(content.get("text", "") or content.get("ename", ""))

    client.execute_interactive(code, timeout=SECONDS, output_hook=note)
    return "".join(written).strip()


def wait_for(holds: Any) -> bool:
    deadline = time.monotonic() + SECONDS
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.05)
    return bool(holds())


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_kernel_has_its_launchers_environment_and_folder_and_no_course(
    server: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ONLY_HERE", "yes")
    with kernel(server, tmp_path, monkeypatch) as (_, client):
        code = "import os, sys; print(os.environ['ONLY_HERE'], os.getcwd(), 'utils' in sys.modules)"
        assert run(client, code).split() == ["yes", str(tmp_path), "False"]
        monkeypatch.delenv("ONLY_HERE")
        with kernel(server, tmp_path, monkeypatch) as (_, other):
            assert run(other, "import os; print(os.environ.get('ONLY_HERE'))") == "None"
            numbers = [run(c, "import numpy; print(numpy.random.rand())") for c in (client, other)]
            assert numbers[0] != numbers[1]


def test_an_interrupt_reaches_the_cell_and_what_it_started(
    server: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, interruptible: None
) -> None:
    with kernel(server, tmp_path, monkeypatch) as (manager, client):
        begun = tmp_path / "begun"
        code = "import subprocess, sys, time\n"
        code += "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(999)'])\n"
        code += f"open({str(begun)!r}, 'w').close()\ntime.sleep(999)"
        threading.Thread(
            target=lambda: wait_for(begun.exists) and manager.interrupt_kernel()
        ).start()
        assert run(client, code) == "KeyboardInterrupt"
        assert run(client, "print(child.wait() != 0)") == "True"
        assert run(client, "print(6 * 7)") == "42"


def test_a_killed_kernel_takes_what_it_started_with_it(
    server: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with kernel(server, tmp_path, monkeypatch) as (_, client):
        code = "import os, subprocess; child = subprocess.Popen(['sleep', '999'])\n"
        pids = [int(word) for word in run(client, code + "print(os.getpid(), child.pid)").split()]
        assert all(map(is_running, pids))
    assert wait_for(lambda: not any(map(is_running, pids)))


@pytest.mark.parametrize(("ending", "code"), [("os._exit(7)", 7), ("os.abort()", -6)])
def test_a_death_is_noticed_with_its_cause(
    ending: str, code: int, server: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with kernel(server, tmp_path, monkeypatch) as (manager, client):
        process = manager.provisioner.process
        client.execute(f"import os; {ending}")
        assert wait_for(lambda: process.poll() is not None)
        assert process.returncode == code


def test_a_kernel_has_a_fork_server_that_has_imported_already(
    server: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = f"""
import multiprocessing, os, sys
sys.path.insert(0, {str(ROOT)!r})
from utils.xla import fresh
def look():
    print("from there", flush=True)
    return "ipykernel.kernelapp" in sys.modules, os.environ["SET_IN_A_CELL"], os.getppid()
os.environ["SET_IN_A_CELL"] = "yes"
os.dup2(os.open("output", os.O_CREAT | os.O_WRONLY), 1)
fresh.PRELOAD = "json"
imported, variable, parent = fresh.run(look)
print(imported, variable, parent == multiprocessing.forkserver._forkserver._forkserver_pid)
os.kill(parent, 9), os.waitpid(parent, 0)
"""
    with kernel(server, tmp_path, monkeypatch) as (_, client):
        assert run(client, ask) == "True yes True"
    assert (tmp_path / "output").read_text() == "from there\n"


def test_without_a_server_the_launcher_becomes_an_ordinary_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with kernel(tmp_path / "nobody", tmp_path, monkeypatch) as (manager, client):
        assert run(client, "import os; print(os.getpid())") == str(manager.provisioner.pid)


def test_a_server_that_cannot_import_leaves_ordinary_kernels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "kernels"
    with (
        kernel_server.serve(path, dict(os.environ), ("utils.no_such_module",)),
        kernel(path, tmp_path, monkeypatch) as (_, client),
    ):
        assert run(client, "print(6 * 7)") == "42"


def test_kernels_end_with_their_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "kernels"
    with contextlib.ExitStack() as stack:
        serving = contextlib.ExitStack()
        serving.enter_context(kernel_server.serve(path, dict(os.environ), ("ipykernel.kernelapp",)))
        stack.callback(serving.close)
        _, client = stack.enter_context(kernel(path, tmp_path, monkeypatch))
        pid = int(run(client, "import os; print(os.getpid())"))
        serving.close()
        assert wait_for(lambda: not is_running(pid))
