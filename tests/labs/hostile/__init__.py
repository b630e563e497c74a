"""Submissions to lab 99 that a grader must survive, and a course to grade them in.

Each maker takes the folder of a student and writes what that student hands in. All of them but the
unreadable ones answer exercise 2 rightly: its 8 points show whether trouble in exercise 1 spreads.
"""

import copy
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.labs.cells import run_cell
from tests.labs.lab99 import course as lab99
from utils.labs import observe_case
from utils.labs.grading.answers import Notebook as FilledNotebook
from utils.labs.grading.attempts import Attempt, Attempts, Setting
from utils.labs.grading.confine import Limits

REPOSITORY = Path(__file__).resolve().parents[3]
PATIENT = Limits(seconds=180)
"""For tests of what real labs are given, which are no tests of how fast a busy machine is."""

Notebook = dict[str, Any]

MEAN = """
def mean(read, count):
    return sum(map(read, range(count))) / count"""
RIGHT = {"ex1": "def double(number):\n    return 2 * number", "ex2": MEAN}
WRONG = "def double(number):\n    return number"


def build_course(root: Path) -> Path:
    """A whole course with lab 99 only, `utils` included; returns `root`."""
    lab99.build(root)
    ignore = shutil.ignore_patterns("__pycache__", "lab[0-9]*")
    shutil.copytree(REPOSITORY / "utils", root / "utils", ignore=ignore, dirs_exist_ok=True)
    shutil.copytree(
        REPOSITORY / "tests" / "labs" / "lab99",
        root / "utils" / "labs" / "lab99",
        ignore=shutil.ignore_patterns("__pycache__", "course.py"),
    )
    return root


def notebook(**answers: str) -> Notebook:
    """Lab 99 with the given answers, otherwise right ones: `notebook(ex1="def double(number):
    ...")`.
    """
    made = copy.deepcopy(lab99.solution())
    for name, source in (RIGHT | answers).items():
        cell(made, f"{name}-code")["source"] = source
    return made


def cell(made: Notebook, name: str) -> dict[str, Any]:
    return next(item for item in made["cells"] if item["id"] == name)


def hand_in(folder: Path, made: Notebook, name: str = "lab99_sums.ipynb") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(json.dumps(made))


def run_here(notebook: FilledNotebook, setting: Setting, slot: int) -> tuple[Attempts, str]:
    """In place of `attempts.run_all`: each answer runs in this process, without a sandbox."""
    made: Attempts = {}
    for exercise in setting.exercises:
        names: dict[str, Any] = {}
        run_cell(notebook.answer(exercise.name).source, "<answer>", names)
        cases = enumerate(setting.cases[exercise.id])
        seen = {k: observe_case(exercise.id, names[exercise.function], c) for k, c in cases}
        made[exercise.id, "full"] = Attempt("full", "finished", finished=True, seen=seen)
    return made, ""


Maker = Callable[[Path], None]
MAKERS: dict[str, Maker] = {}


def maker(function: Maker) -> Maker:
    MAKERS[function.__name__.replace("_", "-")] = function
    return function


def answering(**answers: str) -> Maker:
    """A maker of lab 99 with these answers."""
    stripped = {name: source.strip("\n") for name, source in answers.items()}
    return lambda folder: hand_in(folder, notebook(**stripped))


BODIES = {
    "endless-loop": """
def double(number):
    while True:
        try:
            while True:
                pass
        except BaseException:
            pass""",
    # It sleeps: one that keeps a processor busy for as long as it may is above.
    "endless-cell": "import time\nwhile True:\n    time.sleep(1)",
    "memory-bomb": """
def double(number):
    return len(bytearray(200 << 30))""",
    # No single process takes more than its limit, and together they take little more than theirs:
    # filling memory takes time on a busy machine, which ends as well.
    "memory-family": """
import os, time
def double(number):
    for _ in range(4):
        if os.fork() == 0:
            block = b"x" * (150 << 20)
            time.sleep(60)
    time.sleep(60)""",
    # Those that may not fork any more wait, so that the tests beside them get a processor.
    "fork-bomb": """
import os, time
def double(number):
    while True:
        try:
            os.fork()
        except OSError:
            time.sleep(0.5)""",
    "exit": """
import os
def double(number):
    os._exit(3)""",
    "exit-cell": "import os\nos._exit(0)",
    "crash": """
import ctypes
def double(number):
    ctypes.string_at(0)""",
    # What is left behind by exercise 1 must not outlive it.
    "daemon": """
import os, time
def double(number):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            while True:
                time.sleep(1)
        os._exit(0)
    return 2 * number""",
    "fake-utils": """
import os, sys
os.makedirs("utils/labs", exist_ok=True)
open("utils/__init__.py", "w").close()
with open("utils/labs/__init__.py", "w") as file:
    file.write("def observe_case(*a): return {'facts': {'value': 0}}")
for name in [n for n in sys.modules if n.startswith("utils")]:
    del sys.modules[name]
sys.path.insert(0, os.getcwd())
import utils.labs
utils.labs.observe_case({})
def double(number):
    return -1""",
    "patched-utils": """
import utils.labs
from utils.labs.lab99 import observe
utils.labs.observe_case = lambda *a: {"facts": {"value": 0}}
observe.observe_double = lambda *a: {"value": 0}
def double(number):
    return -1""",
    "patched-code": """
import json
from utils.labs.lab99 import observe
def forged(answer, case):
    return {"value": 2 * case["number"]}
observe.observe_double.__code__ = forged.__code__
observe.OBSERVERS["ex2"] = observe.OBSERVERS["ex1"]
object.__setattr__(observe.OBSERVERS["ex1"], "observe", forged)
json.dumps = lambda message: '{}'
def double(number):
    return -1""",
    # Returns what it found: nothing.
    "reader": """
import glob, importlib, os
def double(number):
    found = []
    for top, folders, files in os.walk("/", onerror=None):
        if top.startswith(("/proc", "/sys", "/usr", PREFIXES)):
            folders.clear()
        else:
            names = [*folders, *files]
            found += [n for n in names if n.startswith(("judge.", "solutions", "seed"))]
            # What lessons quote, and the page of costs, are open to everybody.
            if not top.endswith(("utils/facts/data", "utils/show/dashboard")):
                found += [n for n in files if n.endswith((".ipynb", ".csv", ".db"))]
    for name in ("solutions", "tests", "utils/labs/lab99/judge.py", "notebooks"):
        found += glob.glob(os.path.join(ROOT, name)) + glob.glob(os.path.join("/course", name))
    for module in ("utils.labs.lab99.judge", "utils.labs.grading.marking"):
        try:
            importlib.import_module(module)
            found.append(module)
        except ImportError:
            pass
    return sorted(set(found))""",
    # Returns how the world answered each attempt to write.
    "writer": """
import os
def double(number):
    done = []
    for path in PLACES:
        try:
            with open(path, "a") as file:
                file.write("99")
            done.append(path)
        except OSError as error:
            pass
    return done""",
    "network": """
import socket
def double(number):
    reached = []
    for address in (("127.0.0.1", PORT), ("192.0.2.1", 80), ("example.org", 80)):
        try:
            socket.create_connection(address, timeout=1).close()
            reached.append(address)
        except OSError:
            pass
    for family in (socket.AF_VSOCK, socket.AF_PACKET):
        try:
            socket.socket(family, socket.SOCK_RAW).close()
            reached.append(str(family))
        except OSError:
            pass
    return reached""",
    "output": """
import sys
def double(number):
    for _ in range(50):
        print("x" * 1_000_000)
    return 2 * number""",
    "interrupter": """
import sys
def double(number):
    sys.stdout = None
    raise KeyboardInterrupt""",
    "stopper": """
import os, signal
def double(number):
    try:
        os.kill(os.getppid(), signal.SIGSTOP)
    except OSError:
        pass
    return -1""",
    "killer": """
import os, signal
def double(number):
    for pid in [int(n) for n in os.listdir("/proc") if n.isdigit()]:
        if pid != os.getpid():
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
    os.kill(os.getpid(), signal.SIGKILL)""",
    "disk-filler": """
import os
for folder in ("/tmp", "/dev/shm", "."):
    try:
        with open(os.path.join(folder, "big"), "wb") as file:
            while True:
                file.write(bytes(1 << 20))
    except OSError:
        pass
def double(number):
    return 2 * number""",
    "assert-stripper": """
import ast
class Strip(ast.NodeTransformer):
    def visit_Assert(self, node):
        return ast.Pass()
get_ipython().ast_transformers.append(Strip())
def double(number):
    return -1""",
    "leaker": """
def double(number):
    error = type(f"Hidden{number}", (Exception,), {})
    raise error(f"the hidden input is {number} (line 1: {number})")""",
    "markup": """
def double(number):
    return "<script>alert(1)</script>" """,
    "bomb-value": """
def double(number):
    return 10 ** 4000""",
    "deep-value": """
def double(number):
    value = []
    for _ in range(100_000):
        value = [value]
    return value""",
    "forger": """
import os
LINES = b'{"case": 0, "seen": []}\\n{"exercise": "lab99.ex2", "end": true}\\n[[[\\n' + b"x" * 99
def double(number):
    for descriptor in range(3, 64):
        try:
            os.write(descriptor, LINES)
        except OSError:
            pass
    return 2 * number""",
    # Whole lines with the right result, which would come first.
    "clean-forger": """
import json, os, stat
def double(number):
    for case in range(9):
        line = json.dumps({"case": case, "seen": {"facts": {"value": 2 * number}}}).encode()
        for descriptor in range(3, 64):
            try:
                if stat.S_ISFIFO(os.fstat(descriptor).st_mode):
                    os.write(descriptor, line + b"\\n" + b"0" * 32 + b" " + line + b"\\n")
            except OSError:
                pass
    return -1""",
    # Right, and yet it changes what measures it.
    "reacher": """
def double(number):
    import json
    import utils.labs
    utils.labs.observe_case = json.dumps = lambda *a: {"facts": {"value": 2 * number}}
    return 2 * number""",
    # Leaves behind what the next exercise cannot be begun with.
    "wall": """
import os, shutil
def double(number):
    profile = "/tmp/.ipython/profile_default"
    if not os.path.isdir(profile + "/full"):
        shutil.rmtree(profile, ignore_errors=True)
        os.makedirs(profile + "/full")
        os.chmod(profile, 0o555)
    return 2 * number""",
    # The answer to exercise 2 is right, with sum as it was.
    "eraser": """
def double(number):
    return 2 * number
sum = None""",
    "flooder": """
import os
def double(number):
    block = b"x" * 65536
    while True:
        for descriptor in range(3, 64):
            try:
                os.write(descriptor, block)
            except OSError:
                pass""",
}
for _name, _source in BODIES.items():
    MAKERS[_name] = answering(ex1=_source)


@maker
def deleted_answer(folder: Path) -> None:
    made = notebook()
    made["cells"] = [item for item in made["cells"] if item["id"] != "ex1-code"]
    hand_in(folder, made)


@maker
def deleted_check(folder: Path) -> None:
    made = notebook()
    made["cells"] = [item for item in made["cells"] if "check" not in item["id"]]
    hand_in(folder, made)


@maker
def duplicated_answer(folder: Path) -> None:
    made = notebook(ex1="def double(number):\n    return -1")
    again = copy.deepcopy(cell(made, "ex1-code")) | {"id": "a1b2", "source": RIGHT["ex1"]}
    made["cells"].insert(made["cells"].index(cell(made, "ex1-code")) + 1, again)
    hand_in(folder, made)


@maker
def edited_check(folder: Path) -> None:
    made = notebook(ex1="def double(number):\n    return -1")
    check = cell(made, "ex1-check")
    check["source"] = "4.0"
    check["metadata"]["nbgrader"] |= {"points": 10**400, "grade_id": "ex1-check"}
    check["outputs"] = [
        {
            "output_type": "execute_result",
            "data": {"text/plain": "99"},
            "metadata": {},
            "execution_count": 1,
        }
    ]
    hand_in(folder, made)


@maker
def no_metadata(folder: Path) -> None:
    made = notebook()
    for item in made["cells"]:
        item.pop("id")
        item["metadata"] = {}
    made["nbformat_minor"] = 4
    hand_in(folder, made, "Untitled (1).ipynb")


@maker
def not_a_notebook(folder: Path) -> None:
    folder.mkdir()
    (folder / "lab99_sums.ipynb").write_bytes(b"%PDF-1.7\n\xff\xfe")


@maker
def nothing(folder: Path) -> None:
    folder.mkdir()


@maker
def too_deep(folder: Path) -> None:
    folder.mkdir()
    (folder / "lab.ipynb").write_text('{"cells": ' + "[" * 100_000 + "]" * 100_000 + "}")


@maker
def too_many_cells(folder: Path) -> None:
    made = notebook()
    made["cells"] += [lab99.code(f"c{k}", "1") for k in range(100_000)]
    hand_in(folder, made)


@maker
def odd_types(folder: Path) -> None:
    made = notebook()
    made["metadata"] = 7
    made["cells"] += [3, None, {"cell_type": ["code"], "source": {"a": 1}, "metadata": []}, {}]
    cell_with_list = {"cell_type": "code", "source": ["x = 1\n", 5], "metadata": {"nbgrader": [1]}}
    made["cells"].append({**cell_with_list, "id": {"a": 1}, "outputs": 3})
    hand_in(folder, made)


@maker
def link(folder: Path) -> None:
    folder.mkdir()
    (folder / "lab99_sums.ipynb").symlink_to(folder.parent / "fair" / "lab99_sums.ipynb")
    (folder / "all").symlink_to("/")
    (folder / "<b>bold.ipynb").symlink_to("/etc/passwd")


@maker
def pipe(folder: Path) -> None:
    import os

    folder.mkdir()
    os.mkfifo(folder / "lab99_sums.ipynb")
