"""Which notebooks run, and how much memory they hold, as the Jupyter server of this kernel says."""

import contextlib
import datetime
import json
import os
import re
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

KEPT, IDLE_S = 3, 20 * 60
HEAD = ("notebook", "state", "memory")
RULE = (
    f"A kernel that is idle for {IDLE_S // 60} minutes is stopped, except in the {KEPT} notebooks"
    " that you used last. Text and outputs stay; such a notebook shows No Kernel at its top right."
    " To get its variables back, run its cells again from the first one on."
)


@dataclass(frozen=True)
class Kernel:
    """A notebook that runs. busy: whether a cell is running. memory_bytes: 0 if not known."""

    notebook: str
    busy: bool
    idle_s: float
    memory_bytes: int

    @property
    def row(self) -> tuple[str, ...]:
        """Under `HEAD`."""
        state = "busy" if self.busy else f"idle for {self.idle_s / 60:.0f} min"
        memory = f"{self.memory_bytes / 1e9:.1f} GB" if self.memory_bytes else ""
        return self.notebook, state, memory


def kernels() -> list[Kernel]:
    """The running notebooks, those idle longest last; none where no server tells."""
    now, memory = datetime.datetime.now(datetime.UTC), _memory()
    results = []
    for session in _sessions():
        kernel = session["kernel"]
        since = datetime.datetime.fromisoformat(kernel["last_activity"])
        idle_s = (now - since).total_seconds()
        busy = kernel["execution_state"] == "busy"
        results.append(Kernel(session["path"], busy, idle_s, memory.get(kernel["id"], 0)))
    return sorted(results, key=lambda kernel: kernel.idle_s)


def _sessions() -> list[dict[str, Any]]:
    """What the server that started this kernel lists; nothing if it cannot be asked."""
    from jupyter_core.paths import jupyter_runtime_dir  # late: elsewhere there is no server

    server = os.environ.get("JPY_PARENT_PID") or str(os.getppid())
    try:
        message = json.loads(Path(jupyter_runtime_dir(), f"jpserver-{server}.json").read_text())
        request = urllib.request.Request(
            f"{message['url']}api/sessions", headers={"Authorization": f"token {message['token']}"}
        )
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with direct.open(request, timeout=2) as reply:
            return list(json.load(reply))
    except (OSError, ValueError, KeyError):
        return []


def _memory() -> dict[str, int]:
    """Bytes held, by the id of the kernel, of all that were started by what started this one."""
    import psutil  # late: it comes with ipykernel, and only a kernel needs it

    results = {}
    for process in psutil.Process(os.getppid()).children():
        with contextlib.suppress(psutil.Error):
            if match := re.search(r"kernel-([\w-]+)\.json", " ".join(process.cmdline())):
                results[match[1]] = process.memory_info().rss
    return results
