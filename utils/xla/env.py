"""The first cell of every notebook: the defaults of XLA on a CPU, and a report of what is
installed.

`report()` prints one line per component, `[OK]` or `[FAIL]` with the way to fix it. Importing this
module does nothing.
"""

import importlib.util
import os
import sys
from dataclasses import dataclass

from utils.course.cells import cells
from utils.xla.defaults import ROOT, installed_version, neuron_through, set_defaults

__all__ = ["NO_DEVICE", "PAIR", "ROOT", "Component", "NotReady", "check", "report", "set_defaults"]

# torch-xla does not pin torch, and any other pair fails at import. A test holds these to
# pyproject.toml, which a notebook that was copied elsewhere does not have.
PAIR = {"torch": "2.9.1", "torch-xla": "2.9.0"}

NO_DEVICE = "COURSE_NO_DEVICE"
"""Variable: `report` reports nothing and asks for no device."""


@dataclass(frozen=True)
class Component:
    """One line of the report: what it is, whether it works, and what was found or what to do."""

    name: str
    ok: bool
    text: str

    def __str__(self) -> str:
        """
        >>> print(Component("torch", False, "not installed"))
        [FAIL] torch        not installed
        """
        return f"{'[OK]' if self.ok else '[FAIL]':6} {self.name:12} {self.text}"


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
    if not all(component.ok for component in components):
        raise NotReady("fix the lines marked [FAIL], restart the kernel, and run this cell again")


def check(devices: int | None = None) -> list[Component]:
    """The state of every component, in the order in which they depend on each other."""
    if neuron_through() == "native" and not importlib.util.find_spec("torch_xla"):
        return [_torchneuron(), _progress()]
    return [_python(), *map(_package, PAIR), _device(devices), _progress()]


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
