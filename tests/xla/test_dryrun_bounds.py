"""What the dry run starts ends, and neither writes nor reaches anything else."""

import os
import sys
import time
import uuid
from pathlib import Path

import pytest

from utils.xla.dryrun import Bounds, bounds


def run(tmp_path: Path, program: str, **limits: float) -> bounds.Ended:
    limited = Bounds(**{"seconds": 20, **limits})  # type: ignore[arg-type]
    words, _ = bounds.confinement(tmp_path, limited)
    words += [sys.executable, "-c", program]
    return bounds.run(words, os.environ, tmp_path, tmp_path / "out.txt", limited, tmp_path)


FOREVER = "import time\nwhile True: time.sleep(1)"
MANY = "import os, time\nfor _ in range(30): os.fork() or time.sleep(60)\ntime.sleep(60)"
LARGE = "import time\nx = bytearray(400 << 20)\nfor i in range(0, len(x), 4096): x[i] = 1\n"
LARGE += "time.sleep(60)"
DEAF = "import signal, time\nfor s in range(1, 32):\n  s in (9, 19) or signal.signal(s, 1)\n"
DEAF += "time.sleep(60)"
APART = "import os, time\nos.fork() or (os.setsid(), time.sleep(77))\ntime.sleep(60)"


FULL = "import time\nfor n in range(9): open(str(n), 'wb').write(bytes(3 << 20))\ntime.sleep(60)"


@pytest.mark.parametrize(
    "program, limits, why",
    [
        (FULL, {"disk_bytes": 10 << 20}, "disk"),
        (FOREVER, {"seconds": 1}, "time"),
        (DEAF, {"seconds": 1}, "time"),
        (APART, {"seconds": 1}, "time"),
        (MANY, {"processes": 10}, "processes"),
        (LARGE, {"memory_bytes": 200 << 20}, "memory"),
        ("pass", {}, "itself"),
    ],
    ids=["disk", "forever", "deaf", "session of its own", "many", "large", "quiet"],
)
def test_it_ends(tmp_path, program, limits, why):
    mark = f"# {uuid.uuid4()}"  # in its command line, and in nobody else's
    assert run(tmp_path, f"{program}\n{mark}", **limits).why == why
    nobody_bears(mark)


def nobody_bears(mark: str) -> None:
    """No process has the mark in its command line, or has it for long: an end takes a moment."""
    deadline = time.monotonic() + 20
    while any(mark.encode() in line for line in _command_lines()):
        assert time.monotonic() < deadline, "a process lives on"
        time.sleep(0.1)


def test_a_daemon_ends_without_a_namespace_too(tmp_path, monkeypatch):
    mark = f"# {uuid.uuid4()}"
    monkeypatch.setattr(bounds, "_works", lambda words: False)
    daemon = "import os, time\nos.fork() and os._exit(0)\nos.setsid()\nos.fork() and os._exit(0)\n"
    assert run(tmp_path, f"{daemon}time.sleep(60)\n{mark}").why == "itself"
    nobody_bears(mark)


def _command_lines():
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                yield Path("/proc", entry, "cmdline").read_bytes()
            except OSError:
                continue


def test_nothing_else_can_be_written_or_reached(tmp_path):
    if not bounds.confinement(tmp_path, Bounds())[1].startswith("bubblewrap"):
        pytest.skip("needs bubblewrap")
    scratch, beside = tmp_path / "scratch", tmp_path / "beside.txt"
    scratch.mkdir()
    beside.write_text("kept")
    program = f"import socket\ntry:\n  open({str(beside)!r}, 'w')\nexcept OSError: print('no file')"
    program += "\ntry:\n  socket.create_connection(('192.0.2.1', 80), 1)\n"
    program += "except OSError as error: print(error.strerror)"
    assert run(scratch, program).status == 0
    assert (scratch / "out.txt").read_text().split("\n")[:2] == [
        "no file",
        "Network is unreachable",
    ]
    assert beside.read_text() == "kept"


def test_new_files_in_tmp_and_at_home_end_with_it(tmp_path, monkeypatch):
    scratch, home = tmp_path / "scratch", tmp_path / "home"
    for folder in (scratch, home / ".cache" / "model"):
        folder.mkdir(parents=True)
    (home / ".cache" / "model" / "weights").write_text("kept")
    monkeypatch.setenv("HOME", str(home))
    if not bounds.confinement(tmp_path / "other", Bounds())[1].startswith("bubblewrap"):
        pytest.skip("needs bubblewrap")
    new = f"/tmp/dryrun-test-{uuid.uuid4()}"
    program = f"import pathlib\nhome = pathlib.Path({str(home)!r})\n"
    program += f"for path in (pathlib.Path({new!r}), home / '.new', home / '.cache' / 'new'):\n"
    program += "  path.write_text('new')\n  assert path.read_text() == 'new'\n"
    program += "weights = home / '.cache' / 'model' / 'weights'\n"
    program += "assert weights.read_text() == 'kept'\n"
    program += "try:\n  weights.write_text('other')\nexcept OSError as error: print(error.strerror)"
    assert run(scratch, program).status == 0, (scratch / "out.txt").read_text()
    assert (scratch / "out.txt").read_text() == "Read-only file system\n"
    assert sorted(os.listdir(home)) == [".cache"] and not Path(new).exists()
    assert os.listdir(home / ".cache") == ["model"]
