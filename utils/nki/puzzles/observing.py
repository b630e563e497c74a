"""A kernel run on cases, in a process of its own: what it returned and which instructions it gave.

The process knows the arguments and nothing of what is expected; that is computed and compared in
the process that asks.
"""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from utils.nki.puzzles.catalog import TARGET, puzzle
from utils.nki.simulator import CHOICE
from utils.nki.simulator.launch import jit, run
from utils.nki.simulator.profile import profile_of
from utils.nki.simulator.program import Program
from utils.nki.simulator.tensor import Tensor
from utils.nki.simulator.uses import storages_of, tensors_of
from utils.nki.tool.asked import function_of, load
from utils.nki.tool.failures import KernelFailed, Refused, author_errors, time_limit

LIMIT_S = 60.0
GRACE_S = 15.0
HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
PACKAGE = __package__ or "utils.nki.puzzles"
Job = dict[str, Any]
Outcome = dict[str, Any]
UNWRITTEN = "memory starts with arbitrary bits"
"""In the simulator's warning of a result that holds what nothing wrote."""
_watched = False
"""Whether a kernel runs now, which may not read what lies beside this module."""


def observe(job: Job) -> list[Outcome]:
    """What each case of a job came to, in this process.

    A job: puzzle, path of the file, cases (sizes and seed), limit_s. An outcome has `error`, or
    `results` (arrays), `written` (an instruction wrote each result), `fed` (it depends on an
    argument), `program` (a digest of the instructions), `doubt` where the result holds what
    nothing wrote, and `seconds` for a timed case.
    """
    task = puzzle(job["puzzle"])
    try:
        with time_limit(job["limit_s"]):
            kernel = jit(function_of(load(Path(job["path"])), Path(job["path"]), task.id))
    except (KernelFailed, Refused) as error:
        return [{"error": str(error)}]
    outcomes = []
    for case in job["cases"]:
        try:
            arrays = task.arrays(case["sizes"], case["seed"])
            with (
                warnings.catch_warnings(record=True) as caught,
                time_limit(job["limit_s"]),
                author_errors(),
            ):
                warnings.simplefilter("always")
                program = _run(kernel, arrays)
            doubts = [str(w.message) for w in caught if UNWRITTEN in str(w.message)]
            outcomes.append(_outcome(program, case.get("timed", False)))
            outcomes[-1] |= {"doubt": doubts[0]} if doubts else {}
        except KernelFailed as error:
            outcomes.append({"error": str(error)})
            if "had not ended after" in str(error):
                break
    return outcomes


def _run(kernel: Any, arrays: list[np.ndarray]) -> Program:
    global _watched
    _watched = True
    try:
        return run(kernel, tuple(arrays), {}, target=TARGET)
    finally:
        _watched = False


def _outcome(program: Program, timed: bool) -> Outcome:
    made = program.returned if isinstance(program.returned, (tuple, list)) else [program.returned]
    if program.returned is None:
        return {"host": "it returns nothing: a kernel ends with `return` and the tensor of HBM"}
    if not made or not all(isinstance(item, Tensor) for item in made):
        kinds = ", ".join(type(item).__name__ for item in made)
        return {"host": f"it returns {kinds or 'nothing'}, and no tensor of HBM"}
    written, fed = set(), set(program.inputs)
    text = hashlib.sha256()
    for _, element in program.in_order():
        reads = {s for tensor in tensors_of(element, True) for s in storages_of(tensor)}
        writes = {tensor.storage for tensor in tensors_of(element, False)}
        written |= writes
        if reads & fed:
            fed |= writes
        text.update(_words(element.checked.spec.name, element.args).encode())
    results = program.results if isinstance(program.results, (tuple, list)) else [program.results]
    outcome: Outcome = {
        "results": [np.asarray(item) for item in results],
        "written": all(item.storage in written for item in made),
        "fed": all(item.storage in fed for item in made),
        "program": text.hexdigest(),
    }
    if timed:
        outcome["seconds"] = profile_of(program).seconds
    return outcome


def _words(name: str, arguments: dict[str, Any]) -> str:
    shown = [
        f"{key}={value.shape}" if isinstance(value, Tensor) else f"{key}={value!r}"
        for key, value in arguments.items()
        if isinstance(value, (Tensor, int, float, str))
    ]
    return f"{name} {' '.join(shown)}\n"


def apart(job: Job) -> list[Outcome]:
    """The same in a process of its own, which a kernel may end, hang or change."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH", ""))))
        try:
            done = subprocess.run(
                [sys.executable, "-m", __name__], cwd=folder, capture_output=True, text=True,
                input=json.dumps(job | {"folder": folder}),
                timeout=job["limit_s"] * len(job["cases"]) + GRACE_S,
                env=os.environ | {"PYTHONPATH": path, CHOICE: "course"},
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return [{"error": f"the kernel had not ended after {job['limit_s']:g} s"}]
        try:
            outcomes: list[Outcome] = json.loads(done.stdout)
        except ValueError:
            last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
            return [{"error": f"the process of the kernel ended: {last}"}]
        for outcome in outcomes:
            if "results" in outcome:
                kinds, file = outcome["results"], outcome.pop("file")
                with np.load(Path(folder, file)) as arrays:
                    outcome["results"] = [
                        arrays[f"arr_{i}"].astype(_dtype(kind)) for i, kind in enumerate(kinds)
                    ]
        return outcomes


def _dtype(name: str) -> Any:
    import ml_dtypes

    return getattr(ml_dtypes, name, None) or np.dtype(name)


def _guard(event: str, arguments: tuple[Any, ...]) -> None:
    """While a kernel runs: no import of the puzzles, no file beside them or of the tests."""
    if not _watched:
        return
    name = str(arguments[0]) if arguments else ""
    if event == "import" and name.startswith((PACKAGE, "tests")):
        raise PermissionError(f"reads-expected: imports {name}")
    if event == "open" and name.startswith((str(HERE), str(ROOT / "tests"))):
        raise PermissionError(f"reads-expected: opens {Path(name).name}")


def main() -> None:
    """Read a job from stdin; write its outcomes to stdout, which the kernel does not get."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    job = json.load(sys.stdin)
    sys.addaudithook(_guard)
    outcomes = observe(job)
    for index, outcome in enumerate(outcomes):
        if "results" in outcome:
            results = outcome["results"]
            outcome["file"] = f"{index}.npz"
            with open(Path(job["folder"], outcome["file"]), "wb") as file:
                np.savez(file, *(_plain(item) for item in results))
            outcome["results"] = [item.dtype.name for item in results]
    json.dump(outcomes, out)
    out.close()


def _plain(array: np.ndarray) -> np.ndarray:
    """A type that a file of NumPy can hold, and that loses nothing."""
    return array if array.dtype.kind in "iub" else array.astype(np.float32)


if __name__ == "__main__":
    main()
