"""One trial of a search, in a process of its own: whatever a kernel does ends with it.

The process reads a job as JSON and writes its outcome as JSON: an estimate, or whether the values
are right. A kernel that prints, loops for ever or ends the process harms nobody else's trial.
"""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from utils.nki.simulator import CHOICE, VERSION
from utils.nki.tool.asked import Asked, existing, function_of, load, made_arrays, place_of, shape_of
from utils.nki.tool.comparing import results_of, to_arrays, unequal
from utils.nki.tool.failures import KernelFailed, Refused, author_errors, time_limit
from utils.nki.tool.profiling import profile

Job = dict[str, Any]
Outcome = dict[str, Any]
ROOT = Path(__file__).parents[3]
GRACE_S = 10.0
"""For the start of a process, and for one that does not hear its own alarm."""
LOST = "the process of the trial ended"


def digest_of(path: Path) -> str:
    """A hash of a file's text."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def run(job: Job) -> Outcome:
    """A trial in a process of its own, on this machine: `error`, or what `run_job` returns."""
    with tempfile.TemporaryDirectory() as folder:
        sent = job | {"kernel": _here(job["kernel"], job["texts"], folder)}
        if job.get("reference"):
            sent["reference"] = _here(job["reference"], job["texts"], folder)
        path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH", ""))))
        try:
            done = subprocess.run(
                [sys.executable, "-m", __name__],
                input=json.dumps(sent | {"texts": {}}), capture_output=True, text=True,
                timeout=job["limit_s"] + GRACE_S,
                env=os.environ | {"PYTHONPATH": path, CHOICE: "course"},
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return {"error": f"had not ended after {job['limit_s']:g} s"}
    try:
        return json.loads(done.stdout)
    except ValueError:
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        return {"error": f"{LOST} with status {done.returncode}: {last}"}


def _here(place: str, texts: dict[str, str], folder: str) -> str:
    """FILE::NAME with a file that is here: on another machine one that is made of its text."""
    file, _, name = place.rpartition("::")
    path, text = Path(file), texts[file]
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        path = Path(folder, path.name)
        path.write_text(text, encoding="utf-8")
    return f"{path}::{name}"


def run_job(job: Job) -> Outcome:
    """The outcome of a job, in this process.

    "estimate": seconds as written, None if it does not fit, and as compiled, and bytes of HBM.
    "values": `wrong` says what differs from the reference, or from the first choice; "" if nothing.
    """
    if job["version"] != VERSION:
        return {"error": f"this worker has nki {VERSION}, the search {job['version']}"}
    path, name = place_of(job["kernel"])
    shapes = tuple(map(shape_of, job["shapes"]))
    asked = Asked(path, name, shapes, job["arguments"], job["cores"])
    try:
        if job["kind"] == "estimate":
            made = profile(asked, job["target"], job["limit_s"], job["choice"])
            return {
                "written": made.written.seconds if made.written else None,
                "compiled": made.compiled.seconds,
                "hbm_bytes": int(made.shown.hbm_read + made.shown.hbm_written),
                "busiest": made.shown.busiest,
            }
        actual = results_of(asked, made_arrays(shapes), job["limit_s"], job["choice"])
        return {"wrong": unequal(actual, _expectation(job, asked), job["terms"])}
    except (KernelFailed, Refused) as error:
        return {"error": str(error)}


def _expectation(job: Job, asked: Asked) -> Any:
    """Results of the reference, a function of NumPy, or else of the first choice."""
    arrays = made_arrays(asked.shapes)
    if not job["reference"]:
        return results_of(asked, arrays, job["limit_s"], job["first"])
    path, name = place_of(job["reference"])
    function: Callable[..., Any] = function_of(load(existing(path)), path, name)
    with time_limit(job["limit_s"]), author_errors():
        return to_arrays(function(*arrays, **asked.arguments))


def main() -> None:
    """Read a job from stdin; write its outcome to stdout, which the kernel does not get."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    warnings.simplefilter("ignore")
    json.dump(run_job(json.load(sys.stdin)), out)
    out.close()


if __name__ == "__main__":
    main()
