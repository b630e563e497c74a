"""Starts a dry run: the scratch copy, the bounded process, and what is read out of what it left."""

import json
import os
import shutil
import sys
import tempfile
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
    bounds: Bounds = Bounds(),  # noqa: B008 - frozen
) -> Report:
    """Run a script for some steps, in a copy of its folder, and report.

    Args:
        folder: what is copied and where the script starts; without it the current folder if the
            script lies below it, else the script's own. Large files (`_COPIED_BYTES`) are not
            copied: links to them are, read-only under bubblewrap.
        target: what the static findings are about, as in `utils.audit`.
        twice: run it a second time, to see whether it asks for the same graphs.

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
    request |= {"name": path.name}
    report = audit.audit(str(path), 1, target)
    findings = [
        {"rule": f.rule, "severity": f.severity, "line": f.line, "text": f.text}
        for f in report.findings
    ]
    return _run(request, root, steps, bounds, findings, twice)


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
    return _run(request, None, steps, bounds, [], twice)


def _check_steps(steps: int) -> None:
    if not 1 <= steps <= 64:
        raise ValueError(f"steps is {steps!r}, and must be from 1 to 64")


def _run(
    request: dict[str, Any],
    root: Path | None,
    steps: int,
    bounds: Bounds,
    findings: list[dict[str, Any]],
    twice: bool,
) -> Report:
    seen = [_once(dict(request), root, steps, bounds) for _ in range(1 + twice)]
    again = [step["executed"] for step in seen[1]["steps"]] if twice else None
    return read_report(request["name"], seen[0], findings, again)


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
        (scratch / "request.json").write_text(json.dumps(request))
        words, achieved = bounded.confinement(scratch, bounds)
        module = f"{__package__}.child"
        command = [*words, sys.executable, "-m", module, str(scratch / "request.json")]
        environment = _environment(scratch, bounds)
        ended = bounded.run(command, environment, work, output, bounds)
        seen = json.loads(result.read_text()) if result.exists() else {"steps": []}
        if ended.why != "itself":
            seen["ended"] = f"stopped: it had too much {_WORDS[ended.why]}"
        elif not seen.get("ended"):
            seen["ended"] = f"it died with status {ended.status}"
        with output.open("rb") as printed:
            printed.seek(max(0, output.stat().st_size - 4000))
            seen["printed"] = printed.read().decode("utf-8", "replace")
        seen["bounds"] = achieved
        seen["memory"] = _memory(scratch / "dump")
        return seen


_WORDS = {"time": "time", "memory": "memory", "processes": "of processes"}


def _environment(scratch: Path, bounds: Bounds) -> dict[str, str]:
    root = str(Path(__file__).parents[3])
    flags = f"--xla_dump_to={scratch / 'dump'} --xla_dump_hlo_as_text"
    variables = {
        "PJRT_DEVICE": "CPU",
        "PT_XLA_DEBUG_LEVEL": "2",
        "PT_XLA_DEBUG_FILE": str(scratch / "graphs.txt"),
        "XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} {flags}".strip(),
        "PYTHONPATH": os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH")))),
        "PYTHONDONTWRITEBYTECODE": "1",
        "TMPDIR": str(scratch / "tmp"),
        "MPLCONFIGDIR": str(scratch / "tmp"),
        "MPLBACKEND": "agg",
        "TF_CPP_MIN_LOG_LEVEL": "1",
    }
    if not bounds.network:
        variables |= {"HF_HUB_OFFLINE": "1", "WANDB_MODE": "offline"}
    return {**os.environ, **variables}


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

    found = []
    for path in dump.glob("*-buffer-assignment.txt"):
        try:
            report = memory(path.read_text())
        except ValueError:  # a dump that was cut short
            continue
        found.append({"peak_bytes": report.peak_bytes, **asdict(report)})
    return max(found, key=lambda entry: entry["peak_bytes"], default=None)
