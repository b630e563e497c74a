"""Programs that are waited for: what they have started ends with them."""

import os
import subprocess
import time
from pathlib import Path

import pytest

from utils.xla import children


def is_gone(pid: int) -> bool:
    """Whether a process has ended, or is about to: after a kill nobody knows the moment."""
    for _ in range(100):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.05)
    return False


def test_after_its_time_a_program_is_killed_with_its_children(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    command = ["sh", "-c", f"sleep 600 & echo $! > {note}; wait"]
    with pytest.raises(subprocess.TimeoutExpired):
        children.run(command, seconds=1)
    child = int(note.read_text())
    assert is_gone(child) and child != os.getpid()


def test_what_a_program_gets_says_and_ends_with() -> None:
    done = children.run(["sh", "-c", "cat; echo no >&2; exit 3"], 10, b"given", env={})
    assert (done.stdout, done.stderr, done.returncode) == (b"given", b"no\n", 3)
