"""Which build of torch the environment gets, and which packages of the lock that leaves out.

The torch of the package index needs 3 GB of GPU libraries to load, though a CPU course calls none
of them. "slim" leaves them out and writes stand-ins, "full" installs everything, "cpu" takes the
official CPU wheel. Why not uv alone: it would have to know of drivers, and can take torch for the
CPU only from PyTorch's own server; the locks hold one torch, and this leaves entries of them out.
Standard library only.
"""

import ctypes
import re
from collections.abc import Iterable
from pathlib import Path

BUILDS = {
    "slim": "without its GPU libraries, which small stand-ins replace (the default without a GPU)",
    "full": "torch as the package index has it, with all GPU libraries",
    "cpu": "the official CPU wheel of torch, from PyTorch's own server",
}

PLAIN = "plain"
"""The build where torch-xla has none, which nobody chooses: the torch of the package index, which
has no GPU libraries for these machines, and all packages whose markers hold there."""

# torch's own library for the CPU really calls these three.
KEPT = ("nvidia-cuda-cupti-cu12", "nvidia-cuda-runtime-cu12", "nvidia-cufile-cu12")

DRIVER_FILES = (
    "/proc/driver/nvidia",
    "/dev/nvidia*",
    "/dev/neuron*",
    # WSL2 has /dev/dxg for any graphics card; only with NVIDIA's driver is this beside it.
    "/usr/lib/wsl/lib/libcuda.so.1",
    "/usr/lib/wsl/drivers/*/libcuda.so*",
)


def driver(root: Path = Path("/")) -> str:
    """The trace of a GPU or Neuron driver on this machine, or an empty string if there is none."""
    for pattern in DRIVER_FILES:
        for path in root.glob(pattern.lstrip("/")):
            return str(path)
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return ""
    return "libcuda.so.1"


def choose(wanted: str, driver: str, xla: bool = True) -> str:
    """The build to install: stand-ins never go where a driver could make torch call them.

    xla: whether torch-xla has a build for this machine.

    >>> choose("slim", "/dev/nvidiactl"), choose("slim", ""), choose("cpu", "/dev/neuron0")
    ('full', 'slim', 'cpu')
    """
    if not xla:
        return PLAIN
    return "full" if wanted == "slim" and driver else wanted


def omitted_by(build: str, names: Iterable[str]) -> set[str]:
    """The packages among `names` that `build` does without.

    >>> sorted(omitted_by("slim", ["torch", "triton", "nvidia-nccl-cu12", "nvidia-cufile-cu12"]))
    ['nvidia-nccl-cu12', 'triton']
    >>> sorted(omitted_by("cpu", ["torch", "triton", "numpy"]))
    ['torch', 'triton']
    """
    if build in ("full", PLAIN):
        return set()
    gpu = {name for name in names if name.startswith("nvidia-") or name == "triton"}
    return gpu - set(KEPT) if build == "slim" else gpu | {"torch"}


REQUIREMENT = re.compile(r"^([a-z0-9][a-z0-9.-]*)==\S+.*(?:\n[ \t].*)*\n?", re.MULTILINE)


def packages(lock: str) -> dict[str, list[str]]:
    """{package: its entries} of a lock's text; several entries where the version depends on the
    Python.

    >>> packages("a==1 \\\\\\n    --hash=sha256:0\\n    # via b\\nb==2\\n")
    {'a': ['a==1 \\\\\\n    --hash=sha256:0\\n    # via b\\n'], 'b': ['b==2\\n']}
    """
    entries: dict[str, list[str]] = {}
    for entry in REQUIREMENT.finditer(lock):
        entries.setdefault(entry[1], []).append(entry[0])
    return entries


def selection(lock: str, build: str) -> str:
    """The lock's text without the packages that `build` leaves out."""
    entries = packages(lock)
    without = omitted_by(build, entries)
    return "".join(e for name, several in entries.items() if name not in without for e in several)
