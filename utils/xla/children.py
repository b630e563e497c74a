"""Programs that are waited for, and end with all that they have started."""

import os
import signal
import subprocess
from collections.abc import Sequence
from typing import Any


def run(
    command: Sequence[str], seconds: float, input: Any = None, **options: Any
) -> subprocess.CompletedProcess:
    """As `subprocess.run` with captured output, in a session of its own.

    After `seconds`, and at Ctrl-C, the program is killed with its children: a compiler that it has
    started would else go on beside the next measurement.

    Raises: subprocess.TimeoutExpired.

    >>> run(["echo", "here"], seconds=10, text=True).stdout
    'here\\n'
    """
    options |= dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(command, start_new_session=True, **options) as process:
        try:
            text, failed = process.communicate(input, timeout=seconds)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return subprocess.CompletedProcess(command, process.returncode, text, failed)
