"""Starts a dry run: the scratch copy, the bounded process, and what is read out of what it left."""

import json
import os
import re
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from utils import audit
from utils.xla.dryrun import bounds as bounded
from utils.xla.dryrun.bounds import Bounds
from utils.xla.dryrun.report import Report, read_report

_COPIED_BYTES = 20 << 20
_FOLDER_BYTES = 500 << 20
_LEFT_OUT = {".git", ".venv", "venv", "node_modules", "__pycache__", ".tools"}


def dry_run_script(
    script: str | os.PathLike,
    arguments: Sequence[str] = (),
    *,
    steps: int = 8,
    folder: str | os.PathLike | None = None,
    target: str = "neuron-xla",
    twice: bool = False,
    other: Sequence[str] | None = None,
    bounds: Bounds = Bounds(),  # noqa: B008 - frozen
) -> Report:
    """Run a script for some steps, in a copy of its folder, and report.

    Args:
        folder: what is copied; without it the current folder if the script lies below it, else the
            script's own. The script starts in the copy of the current folder, or of this one where
            the current folder does not lie below it. Large files (`_COPIED_BYTES`) are not copied:
            links to them are, read-only under bubblewrap.
        target: what the static findings are about, as in `utils.audit`.
        twice: run it a second time, to see whether it asks for the same graphs.
        other: arguments of a second run: how many of its graphs has the first compiled?

    Raises:
        FileNotFoundError: there is no such script. ValueError: what is asked for cannot be done.
    """
    path = Path(script).resolve()
    if not path.is_file():
        raise FileNotFoundError(f"there is no script {os.fspath(script)!r}")
    _check_steps(steps)
    here = Path.cwd()
    root = Path(folder).resolve() if folder else here if path.is_relative_to(here) else path.parent
    if not path.is_relative_to(root):
        raise ValueError(f"the script {path} does not lie in the folder {root}")
    request = {"script": path.relative_to(root).as_posix(), "arguments": list(arguments)}
    start = here.relative_to(root).as_posix() if here.is_relative_to(root) else "."
    request |= {"name": path.name, "start": start}
    if twice or other is not None:
        request["other"] = list(arguments if other is None else other)

    def findings(loaded: Sequence[str]) -> list[dict[str, Any]]:
        files = {path, *(root / name for name in loaded)}
        report = audit.audit(root, 1, target, is_excluded=lambda file: file not in files)
        return [
            {"rule": f.rule, "severity": f.severity, "path": f.path, "file": Path(f.path).name}
            | {"line": f.line, "text": f.text}
            for f in report.findings
        ]

    return _run(request, root, steps, bounds, findings)


def dry_run(
    function: Callable[..., Any],
    *arguments: Any,
    steps: int = 8,
    twice: bool = False,
    bounds: Bounds = Bounds(),  # noqa: B008 - frozen
) -> Report:
    """Call a function up to `steps` times in a bounded process of its own, and report. A call is a
    step, unless the function makes steps itself.
    """
    import cloudpickle  # late: scripts need it not

    if not callable(function):
        raise TypeError(f"function is {type(function).__name__}, and must be a function")
    _check_steps(steps)
    request = {"pickled": cloudpickle.dumps((function, arguments))}
    request |= {"name": getattr(function, "__name__", "function")}
    request |= {"other": []} if twice else {}
    return _run(request, None, steps, bounds, lambda loaded: [])


def _check_steps(steps: int) -> None:
    if not 1 <= steps <= 64:
        raise ValueError(f"steps is {steps!r}, and must be from 1 to 64")


def _run(
    request: dict[str, Any],
    root: Path | None,
    steps: int,
    bounds: Bounds,
    findings: Callable[[Sequence[str]], list[dict[str, Any]]],
) -> Report:
    other = request.pop("other", None)
    seen = _once(dict(request), root, steps, bounds)
    again = None
    if other is not None:
        second = _once({**request, "arguments": other}, root, steps, bounds)
        again = other, [step["executed"] for step in second["steps"]]
    return read_report(request["name"], seen, findings(list(seen.get("run", {}))), again)


def _once(request: dict[str, Any], root: Path | None, steps: int, bounds: Bounds) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="dryrun-", ignore_cleanup_errors=True) as made:
        scratch = Path(made).resolve()
        work, result, output = scratch / "work", scratch / "seen.json", scratch / "output.txt"
        (scratch / "tmp").mkdir()
        if root:
            _copy(root, work)
            request["script"] = str(work / request["script"])
        else:
            work.mkdir()
            (scratch / "function").write_bytes(request.pop("pickled"))
            request["function"] = str(scratch / "function")
        request |= {"steps": steps, "result": str(result), "bounds": asdict(bounds)}
        request |= {"root": str(work), "pythonpath": _pythonpath(root, work)}
        (scratch / "request.json").write_text(json.dumps(request))
        words, achieved = bounded.confinement(scratch, bounds)
        module = f"{__package__}.child"
        # -P: what lies in the script's folder must not stand for the dry run's own modules.
        command = [*words, sys.executable, "-P", "-m", module, str(scratch / "request.json")]
        environment = _environment(scratch, bounds, request["pythonpath"])
        start = work / request.get("start", ".")
        look = _progress(result) if sys.stderr.isatty() else None
        ended = bounded.run(command, environment, start, output, bounds, scratch, look)
        seen = json.loads(result.read_text()) if result.exists() else {"steps": []}
        if ended.why != "itself":
            at = seen.get("hanging", "") if ended.why == "time" else ""
            seen["ended"] = f"stopped: it had too much {_WORDS[ended.why]}{at}"
        elif not seen.get("ended"):
            seen["ended"] = _without_a_word(ended.status)
        with output.open("rb") as printed:
            printed.seek(max(0, output.stat().st_size - 16000))
            text = printed.read().decode("utf-8", "replace")
        if result.exists():
            text = _OWN_FRAMES.sub("", text)
        if root:  # the user knows the folder that was copied, and not the copy
            text = text.replace(str(work), str(root))
            seen["ended"] = seen["ended"].replace(str(work), str(root))
        seen["printed"] = text[-4000:]
        seen["bounds"] = achieved
        seen["memory"] = _memory(scratch / "dump")
        return seen


def _progress(result: Path) -> Callable[[bool], None]:
    """Keeps one line on the terminal, from two seconds on."""
    began = time.monotonic()

    def look(at_the_end: bool) -> None:
        seconds = time.monotonic() - began
        if seconds < 2:
            return
        line = ""
        if not at_the_end:
            steps = len(json.loads(result.read_text())["steps"]) if result.exists() else 0
            line = f"dry run: {seconds:.0f} s, {steps} steps"
        print(f"\r\033[K{line}", end="", file=sys.stderr, flush=True)

    return look


_OWN = re.escape(str(Path(__file__).parents[1]))
_OWN_FRAMES = re.compile(
    rf'^  File "(?:{_OWN}/|<frozen runpy>)[^\n]*\n(?:    [^\n]*\n)*', flags=re.MULTILINE
)
"""In a traceback, with the source lines below them."""
_WORDS = {"time": "time", "memory": "memory", "processes": "of processes", "disk": "on the disk"}


def _without_a_word(status: int) -> str:
    """How a process ended that Python has not seen to its end."""
    number = -status if status < 0 else status - 128  # as a shell, bubblewrap gives it with 128
    if number in set(signal.Signals):
        return f"it died of {signal.Signals(number).name}"
    return f"it ended its process with os._exit or the like, with status {status}"


def _pythonpath(root: Path | None, work: Path) -> str:
    """The user's own, within the copy; `course.py` starts without it, and keeps it apart."""
    given = os.environ.get("COURSE_USER_PYTHONPATH") or os.environ.get("PYTHONPATH") or ""
    folders = [Path(one).resolve() for one in given.split(os.pathsep) if one]
    return os.pathsep.join(
        str(work / one.relative_to(root) if root and one.is_relative_to(root) else one)
        for one in folders
    )


def _environment(scratch: Path, bounds: Bounds, pythonpath: str) -> dict[str, str]:
    root = str(Path(__file__).parents[3])
    # Graphs and buffers are the same, and compile in a fraction of the time.
    fast = "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false"
    fast += " --xla_cpu_parallel_codegen_split_count=1"
    flags = f"{fast} --xla_dump_to={scratch / 'dump'} --xla_dump_hlo_as_text"
    variables = {
        "PJRT_DEVICE": "CPU",
        "PT_XLA_DEBUG_LEVEL": "2",
        "PT_XLA_DEBUG_FILE": str(scratch / "graphs.txt"),
        "XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} {flags}".strip(),
        "PYTHONPATH": os.pathsep.join(filter(None, (root, pythonpath))),
        "PYTHONDONTWRITEBYTECODE": "1",
        "TMPDIR": str(scratch / "tmp"),
        "MPLCONFIGDIR": str(scratch / "tmp"),
        "MPLBACKEND": "agg",
        "TF_CPP_MIN_LOG_LEVEL": "1",
    }
    if not bounds.network:
        variables |= {"HF_HUB_OFFLINE": "1", "WANDB_MODE": "offline"}
    # Libraries of Hugging Face write what they prepare beside what they have downloaded.
    caches = {name: str(scratch / "tmp") for name in ("HF_DATASETS_CACHE", "HF_MODULES_CACHE")}
    return {**caches, **os.environ, **variables}


def _copy(root: Path, work: Path) -> None:
    total = 0

    def copy(source: str, target: str) -> str:
        nonlocal total
        if not os.path.isfile(source):  # a pipe or a socket
            return target
        size = os.path.getsize(source)
        if size > _COPIED_BYTES:
            os.symlink(source, target)
            return target
        total += size
        if total > _FOLDER_BYTES:
            raise ValueError(
                f"{root} holds more than {_FOLDER_BYTES >> 20} MB of small files: name a smaller"
                " folder with the script and what it imports"
            )
        return shutil.copy(source, target)

    def left_out(folder: str, names: list[str]) -> set[str]:
        # The scratch folder itself may lie in the folder that is copied, such as /tmp.
        return {n for n in names if n in _LEFT_OUT or Path(folder, n) == work.parent}

    # A broken link, or a link out of the folder, stays a link.
    shutil.copytree(root, work, symlinks=True, ignore=left_out, copy_function=copy)


def _memory(dump: Path) -> dict[str, Any] | None:
    """Of the compiled graph that needs most, in bytes."""
    from utils.xla.spmd.memory import memory  # late: its package loads torch

    results = []
    for path in dump.glob("*-buffer-assignment.txt"):
        try:
            report = memory(path.read_text())
        except ValueError:  # a dump that was cut short
            continue
        results.append({"peak_bytes": report.peak_bytes, **asdict(report)})
    return max(results, key=lambda entry: entry["peak_bytes"], default=None)
