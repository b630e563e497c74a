"""The first cell of every notebook: the defaults of XLA on a CPU, and a report of what is
installed.

`report()` prints one line per component, `[OK]` or `[FAIL]` with the way to fix it. Where torch-xla
has no build, it says which notebooks run, and stops those that do not. Importing this module does
nothing.
"""

import importlib.util
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from utils.course import catalog
from utils.course.cells import cells
from utils.xla import defaults
from utils.xla.defaults import ROOT, installed_version, neuron_through, set_defaults

__all__ = ["NO_DEVICE", "PAIR", "ROOT", "Component", "NotReady", "check", "report", "set_defaults"]

# torch-xla does not pin torch, and any other pair fails at import. A test holds these to
# pyproject.toml, which a notebook that was copied elsewhere does not have.
PAIR = {"torch": "2.9.1", "torch-xla": "2.9.0"}

NO_DEVICE = "COURSE_NO_DEVICE"
"""Variable: `report` reports nothing and asks for no device."""


@dataclass(frozen=True)
class Component:
    """One line of the report: what it is, whether it works (None: it does not, and this notebook
    does without), and what was found or what to do.
    """

    name: str
    ok: bool | None
    text: str

    def __str__(self) -> str:
        """
        >>> print(Component("torch", False, "not installed"))
        [FAIL] torch        not installed
        """
        state = {True: "[OK]", False: "[FAIL]", None: "[--]"}[self.ok]
        return f"{state:6} {self.name:12} {self.text}"


class NotReady(RuntimeError):
    """The environment lacks something; the report above says what. Shown in a notebook without a
    traceback.
    """

    def _render_traceback_(self) -> list[str]:
        return [f"NotReady: {self}"]


def report(devices: int | None = None) -> None:
    """Set the defaults, begin to note which cell defines what, print the report, and stop the
    notebook with `NotReady` if a component does not work.

    devices: a number of virtual CPU devices for this kernel, see `utils.xla.spmd.start`; XLA reads
        it once, before it first uses a device.

    Where the variable COURSE_NO_DEVICE is set, as by the grader for labs that need none, it only
    sets the defaults.
    """
    set_defaults()
    if os.environ.get(NO_DEVICE):
        return
    cells.watch()
    components = check(devices)
    print(*components, sep="\n")
    if any(component.ok is False for component in components):
        fix = "fix the lines marked [FAIL], restart the kernel, and run this cell again"
        raise NotReady(fix if defaults.has_xla() else "the line marked [FAIL] says where this runs")


def check(devices: int | None = None) -> list[Component]:
    """The state of every component, in the order in which they depend on each other."""
    if neuron_through() == "native" and not importlib.util.find_spec("torch_xla"):
        return [_torchneuron(), _progress()]
    if not defaults.has_xla():
        return [_python(), _package("torch"), _no_xla(_needs()), _progress()]
    return [_python(), *map(_package, PAIR), _device(devices), _progress()]


def without_xla() -> str:
    """What of the course runs where torch-xla has no build, and where the rest does."""
    plain = [
        lesson for lesson in (*catalog.lessons(), *catalog.pages()) if "XLA" not in lesson.needs
    ]
    numbers = ", ".join(lesson.number for lesson in plain if lesson.number.isdigit())
    pages = ", ".join(lesson.path.name for lesson in plain if not lesson.number.isdigit())
    return (
        f"no build for {defaults.machine()}. Here run the lessons and labs {numbers}, the pages"
        f" {pages}, the audit, the NKI simulator and the cost model. For the other lessons use"
        " GitHub Codespaces, SageMaker Studio or any x86-64 Linux; `python3 course.py export` and"
        " `import` take your work there"
    )


def _no_xla(needs: str) -> Component:
    """The line in place of torch-xla's. Lesson 00 goes on: it shows the learner's way."""
    stops = "XLA" in needs and not needs.startswith("00")
    return Component("torch-xla", False if stops else None, without_xla())


def _needs() -> str:
    """Number and needs of the notebook of this kernel, as Jupyter's server names it; "" if it does
    not."""
    try:
        notebook = json.loads(Path(os.environ["JPY_SESSION_NAME"]).read_text("utf-8"))
        course = notebook["metadata"]["course"]
        return f"{course['number']} {course['needs']}"
    except (KeyError, OSError, ValueError):
        return ""


def _torchneuron() -> Component:
    """A kernel with TorchNeuron is sound, and cannot run the notebooks: say which one can."""
    versions = (
        f"torch {installed_version('torch')} and torch-neuronx {installed_version('torch-neuronx')}"
    )
    return Component(
        "TorchNeuron",
        False,
        f"this Python has {versions}, and the notebooks need torch {PAIR['torch']} with torch-xla"
        f" {PAIR['torch-xla']}, which no Python can hold besides: {_ADVICE}. Device cells run from"
        f" there in this Python; if they do not find it, set COURSE_NEURON_PYTHON={sys.executable}",
    )


def _python() -> Component:
    result = ".".join(map(str, sys.version_info[:3]))
    if (3, 11) <= sys.version_info[:2] <= (3, 13):
        return Component("Python", True, result)
    return Component(
        "Python", False, f"{result}, but torch-xla has builds for 3.11 to 3.13 only: {_ADVICE}"
    )


_ADVICE = (
    "choose the kernel that `python3 course.py start` opens (or `python3 course.py kernel` adds)"
)


def _package(name: str) -> Component:
    result, needed = installed_version(name), PAIR[name]
    if not result:
        return Component(name, False, f"not installed in {sys.executable}: {_ADVICE}")
    # AWS's last environment on PyTorch/XLA pairs torch and torch-xla itself, as torch 2.9.0.
    if neuron_through() == "xla" and result.split(".")[:2] == needed.split(".")[:2]:
        return Component(name, True, f"{result}, of AWS's environment with PyTorch/XLA")
    if result != needed:
        return Component(name, False, f"{result}, but the course needs {needed}: {_ADVICE}")
    return Component(name, True, result)


_DEVICES = {
    "CPU": "XLA's CPU backend: its counts are real, its seconds are not Trainium's",
    "NEURON": "an AWS Neuron device",
}


def _device(devices: int | None) -> Component:
    try:
        # Late, because the report has to work where a package is missing or does not load.
        import torch_xla

        if devices is not None:
            from utils.xla import spmd

            try:
                spmd.start(devices)
            except (RuntimeError, ValueError) as error:  # it says itself what to do
                return Component("device", False, str(error))
        device = torch_xla.device()
    except Exception as error:  # whatever an import of a compiled package can raise
        return Component("device", False, f"torch_xla does not start: {error}. {_ADVICE}")
    kind = os.environ["PJRT_DEVICE"]
    name = str(device) if devices is None else f"{devices} virtual ones behind {device}"
    return Component("device", True, f"{name}, {_DEVICES.get(kind, f'PJRT device {kind}')}")


def _progress() -> Component:
    if os.access(ROOT, os.W_OK):
        return Component("progress", True, "kept in .progress.json in the course folder")
    return Component(
        "progress", True, "not kept: the course folder is read-only; copy it to keep your progress"
    )
