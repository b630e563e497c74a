"""Can this machine run the course, and if not, what is the way that works for it?

Read by whatever Python starts course.py, so nothing here may need more than Python 3.6.
"""

import importlib.machinery
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
from typing import NamedTuple

OLDEST, NEWEST = (3, 11), (3, 13)
OLDEST_GLIBC = (2, 28)

# torch-xla has wheels for Linux on x86-64 only; elsewhere the course runs without it.
PROCESSORS = {"Linux": ("x86_64", "AMD64", "aarch64"), "Darwin": ("arm64",)}

ELSEWHERE = (
    "Use a Linux x86-64 machine or container, or one in the browser: SageMaker Studio or GitHub\n"
    "Codespaces. There, in the course's folder: python3 course.py start"
)
WSL = (
    "Use WSL2: in PowerShell type `wsl --install`, restart, open Ubuntu, copy the course's folder\n"
    "into it, and there: python3 course.py start"
)
NEWER_LINUX = (
    "Use a distribution from 2020 or later (Debian 12, Ubuntu 24.04, Amazon Linux 2023, Fedora),\n"
    "or a container of one."
)
OTHER_PYTHON = (
    "Install one of them beside yours, and the course finds it by itself: on Debian and Ubuntu\n"
    "`apt-get install python3.12 python3-pip` (or whichever of 3.11 to 3.13 there is), on Fedora\n"
    "and Amazon Linux `dnf install python3.12 python3.12-pip`, with conda\n"
    "`conda create -n course python=3.12 pip` and then `conda activate course`.\n"
    "Then type the same command again."
)
INSTALL_PIP = (
    "Debian and Ubuntu: `apt-get install python3-pip` (with sudo if you are not root); Fedora and\n"
    "Amazon Linux: `dnf install python3-pip`. Then type the same command again."
)


class Machine(NamedTuple):
    """What decides: `python` and `glibc` are (major, minor), `glibc` is (0, 0) where there is
    none."""

    system: str
    processor: str
    glibc: tuple
    implementation: str
    python: tuple
    free_threaded: bool
    has_pip: bool


def this_machine():
    """The machine and the Python that this runs on."""
    bits = "" if sys.maxsize > 2**32 else " with a 32-bit Python"
    return Machine(
        system=platform.system(),
        processor=platform.machine() + bits,
        glibc=_glibc(),
        implementation=platform.python_implementation(),
        python=sys.version_info[:2],
        free_threaded=bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
        # The plain finder: that of setuptools changes distutils when it is asked for pip.
        has_pip=importlib.machinery.PathFinder.find_spec("pip") is not None,
    )


def problem(machine):
    """Why the course cannot run here and what to do instead; an empty string where it can run."""
    if machine.system == "Windows" or machine.system.startswith(("CYGWIN", "MSYS", "MINGW")):
        return _message("Windows", "Linux", WSL)
    name = {"Darwin": "macOS"}.get(machine.system, machine.system or "an unknown system")
    if machine.system not in PROCESSORS:
        return _message(name, "Linux, and in part for macOS", ELSEWHERE)
    if machine.processor not in PROCESSORS[machine.system]:
        allowed = "x86-64 processors, and in part for Linux on ARM and macOS on Apple silicon"
        return _message(name + " on " + machine.processor, allowed, ELSEWHERE)
    if machine.system == "Linux" and machine.glibc == (0, 0):
        return _message("a Linux without glibc (Alpine?)", "Linux with glibc", NEWER_LINUX)
    if machine.system == "Linux" and machine.glibc < OLDEST_GLIBC:
        result = "a Linux with glibc " + _dotted(machine.glibc)
        return _message(result, "glibc 2.28 or newer", NEWER_LINUX)
    if not python_fits(machine):
        result = machine.implementation + " " + _dotted(machine.python)
        result += ", free-threaded" if machine.free_threaded else ""
        allowed = "CPython {} to {}".format(_dotted(OLDEST), _dotted(NEWEST))
        return _message(result, allowed, OTHER_PYTHON)
    if not machine.has_pip:
        return "The course installs itself with pip, and this Python has none.\n" + INSTALL_PIP
    return ""


def python_fits(machine):
    """Is this a Python for which torch and torch-xla have wheels?"""
    ordinary = machine.implementation == "CPython" and not machine.free_threaded
    return ordinary and OLDEST <= machine.python <= NEWEST


def other_python():
    """The path of another Python on this machine that fits and has pip, or an empty string."""
    versions = range(NEWEST[1], OLDEST[1] - 1, -1)
    below_this = os.path.join(sys.base_prefix, "bin", "python3")
    names = ["python3.%d" % minor for minor in versions] + [below_this, "/usr/bin/python3"]
    test = "import sys, utils.cli.platforms as p; sys.exit(p.problem(p.this_machine()) != '')"
    for path in filter(None, map(shutil.which, names)):
        if not os.path.samefile(path, sys.executable) and _succeeds([path, "-c", test]):
            return path
    return ""


def _message(result, allowed, way):
    return "This is {}. The course exists for {} only.\n{}".format(result, allowed, way)


def _dotted(version):
    return ".".join(map(str, version))


def _glibc():
    try:
        name, version = os.confstr("CS_GNU_LIBC_VERSION").split()
        return tuple(map(int, version.split(".")[:2]))
    except (AttributeError, ValueError, OSError):
        return (0, 0)


def _succeeds(command):
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return subprocess.call(command, cwd=root, **quiet) == 0
