"""What torch_xla needs before its first import, and how this Python reaches a Neuron device.

Standard library only: it also runs in the Python of AWS's images.
"""

import ctypes
import importlib.metadata
import os
import platform
import re
import sys
from pathlib import Path

from utils.xla import late

ROOT = Path(__file__).resolve().parents[2]
LAST_ON_XLA = (2, 9)  # torch-neuronx up to this version is built on PyTorch/XLA, later is native


def set_defaults() -> None:
    """Choose the device of torch_xla and what its import needs. Must run before the first use of
    the device.

    A value that is set already is kept, so that the same notebook runs on a Trainium instance.
    """
    neuron = Path("/dev/neuron0").exists() and neuron_through() == "xla"
    os.environ.setdefault("PJRT_DEVICE", "NEURON" if neuron else "CPU")
    # The C++ side logs to stderr at level INFO what a learner cannot act on; warnings and errors
    # stay.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
    _preload_libpython()
    late.install()


def machine() -> str:
    """What this machine is, such as "Linux on aarch64" or "macOS on arm64"."""
    system = platform.system()
    return f"{'macOS' if system == 'Darwin' else system} on {platform.machine()}"


def has_xla() -> bool:
    """Whether torch-xla has a build for this machine; all else of the course runs without."""
    return machine() in ("Linux on x86_64", "Linux on AMD64")


def neuron_through() -> str:
    """How this Python reaches a Neuron device: "xla", "native" (TorchNeuron), or "" for not at all.

    Both come in a package called torch-neuronx; its version tells them apart.
    """
    result = installed_version("torch-neuronx")
    if not result:
        return ""
    return "xla" if tuple(map(int, result.split(".")[:2])) <= LAST_ON_XLA else "native"


def installed_version(package: str) -> str:
    """The installed version, without what follows a plus sign; "" if it is not installed."""
    try:
        return importlib.metadata.version(package).partition("+")[0]
    except importlib.metadata.PackageNotFoundError:
        return ""


def _preload_libpython() -> None:
    """Load the libpython that torch_xla asks the dynamic linker for, if it lies in this Python's
    own folder.

    conda's Python carries it where the linker does not look (pytorch/xla issue 6372); once it is
    loaded under its name, the linker is content.
    """
    library = Path(sys.base_prefix, "lib", f"libpython3.{sys.version_info.minor}.so.1.0")
    if library.exists():
        ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)


def cpu_model(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """What the processor calls itself; "an unknown CPU" where the kernel does not tell."""
    try:
        model = re.search(r"^model name\s*:\s*(.+)$", cpuinfo.read_text(), re.MULTILINE)
    except OSError:
        model = None
    return model[1].strip() if model else "an unknown CPU"
