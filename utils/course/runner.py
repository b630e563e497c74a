"""Execute notebooks with papermill, each in a process of its own, and measure seconds and memory.

As a program (`python -m utils.course.runner SOURCE TARGET`) it executes one notebook and prints
its Run as JSON in the last line; `execute_all` starts those programs.
"""

import contextlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path

from utils.course import kernel_server
from utils.course.catalog import ROOT
from utils.course.notebooks import KERNELSPEC, without_grammars

CELL_TIMEOUT_S = 600


@dataclass(frozen=True)
class Run:
    """One execution: seconds of wall clock, the kernel's peak memory, and where it failed."""

    source: str
    target: str
    seconds: float
    memory_mb: float
    cell: str = ""
    error: str = ""

    @property
    def ok(self) -> bool:
        """Whether the notebook ran to its end without an error."""
        return not self.error


@contextlib.contextmanager
def kernel_environment(
    base: dict[str, str] | None = None, server: Path | None = None
) -> Iterator[dict[str, str]]:
    """Environment variables under which the kernel "python3" is this very Python.

    Whatever kernels and settings a user has are out of reach, and so is the learner's progress:
    a fresh progress file serves, unless `base` names one.

    server: the socket of a `kernel_server` that forks the kernels; without it each is started.
    """
    with tempfile.TemporaryDirectory(prefix="course-kernel-") as name:
        folder = Path(name)
        kernel = folder / "jupyter" / "kernels" / "python3"
        kernel.mkdir(parents=True)
        command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        if server:
            command = kernel_server.launcher(server)
        (kernel / "kernel.json").write_text(json.dumps({"argv": command, **KERNELSPEC}))
        environment = dict(os.environ if base is None else base)
        environment.setdefault("COURSE_PROGRESS", str(folder / "progress.json"))
        environment |= {
            "JUPYTER_PATH": str(folder / "jupyter"),
            "JUPYTER_CONFIG_DIR": str(folder / "config"),
            "IPYTHONDIR": str(folder / "ipython"),
            "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        }
        # Without compiled files every kernel compiles torch again: import takes twice as long.
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        yield environment


def side_by_side(programs: int) -> dict[str, str]:
    """Environment variables for programs that run at the same time, so that they share the cores.

    NumPy and torch take a thread for each core. With more threads than cores each waits for one
    that does not run: a matrix product of two programs on two cores then takes five times as long.
    """
    linux = hasattr(os, "sched_getaffinity")
    cores = len(os.sched_getaffinity(0)) if linux else os.cpu_count() or 1
    threads = str(max(1, cores // programs))
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    return {name: os.environ.get(name, threads) for name in names}


def execute(source: Path, target: Path) -> Run:
    """Execute one notebook here, in a kernel that is a child of this process."""
    without_grammars()
    import papermill
    from papermill.exceptions import PapermillExecutionError

    cell = error = ""
    started = time.monotonic()
    try:
        papermill.execute_notebook(
            source,
            target,
            kernel_name="python3",
            cwd=source.parent,
            progress_bar=False,
            execution_timeout=CELL_TIMEOUT_S,
        )
    except PapermillExecutionError as failure:
        cells = json.loads(source.read_text(encoding="utf-8"))["cells"]
        cell = cells[failure.cell_index]["id"]
        error = f"{failure.ename}: {failure.evalue}"
    except Exception as failure:
        error = f"{type(failure).__name__}: {failure}"
    seconds = time.monotonic() - started
    memory_mb = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024 / 1e6
    return Run(str(source), str(target), round(seconds, 1), round(memory_mb), cell, error)


def _execute_apart(source: Path, target: Path, environment: dict[str, str]) -> Run:
    """Run this module as a program; a death without a word is a result too."""
    target.parent.mkdir(parents=True, exist_ok=True)
    # A lesson must measure what its text says and a solution must pass its own checks; an
    # untouched lab cannot.
    strict = "0" if "labs" in source.parts else "1"
    with kernel_environment({**environment, "COURSE_STRICT": strict}) as inner:
        # The working directory makes `utils` importable here, but not in the kernel: a notebook has
        # to find it by its own set-up cell.
        done = subprocess.run(
            [sys.executable, "-m", "utils.course.runner", str(source), str(target)],
            cwd=ROOT,
            env=inner,
            capture_output=True,
            text=True,
        )
    try:
        return Run(**json.loads(done.stdout.splitlines()[-1]))
    except (IndexError, ValueError, TypeError):
        text = done.stderr.strip().splitlines()[-1:] or ["it said nothing"]
        error = f"the process ended with {done.returncode}: {text[0]}"
        return Run(str(source), str(target), 0.0, 0.0, "", error)


def execute_all(
    jobs: list[tuple[Path, Path]],
    workers: int,
    environment: dict[str, str] | None = None,
    done: Callable[[Run], None] = lambda run: None,
) -> list[Run]:
    """Execute (source, target) pairs, `workers` at a time; `done` is told as each ends.

    Returns the runs in the order of `jobs`. Without `environment` the present one is used, but the
    learner's progress file never is.
    """
    base = dict(os.environ if environment is None else environment) | side_by_side(workers)
    with ThreadPoolExecutor(workers) as pool:
        running = [pool.submit(_execute_apart, *job, base) for job in jobs]
        for finished in as_completed(running):
            done(finished.result())
    return [item.result() for item in running]


if __name__ == "__main__":
    result = execute(Path(sys.argv[1]).absolute(), Path(sys.argv[2]).absolute())
    print("\n" + json.dumps(asdict(result)))
