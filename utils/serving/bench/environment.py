"""Where a measurement was made: what somebody must know to repeat it, or to refuse a comparison.

torch is imported late: it takes seconds to load.
"""

import contextlib
import datetime
import importlib.metadata
import os
import platform
import subprocess
from dataclasses import dataclass
from pathlib import Path

from utils.course.catalog import ROOT
from utils.xla.defaults import cpu_model

VARIABLES = ("XLA_", "NEURON_", "PJRT_", "TORCH", "PYTORCH_", "OMP_", "MKL_", "CUDA_VISIBLE")
"""Beginnings of the names of variables that can change what is compiled, or how fast it runs."""

PACKAGES = ("torch", "torch-xla", "torch-neuronx", "neuronx-cc", "numpy")


@dataclass(frozen=True)
class Environment:
    """The machine, its device and the software.

    date: UTC, to the second. kind: "cpu", "xla", "cuda" or "neuron". device: its name.
    machine: what the maker calls it, on EC2 the instance type; None where it is not to be read.
    cpu, cores, threads: model, cores that this process may use, threads of torch.
    versions: of Python and of the packages that are installed.
    variables: those of the process that begin as `VARIABLES`, such as XLA_FLAGS.
    load: processes that ran or waited for a core in the minute before, as the system counts them.
    revision: of the course's repository, with "-dirty" for changes; None outside git.
    """

    date: str
    kind: str
    device: str
    machine: str | None
    cpu: str
    cores: int
    threads: int
    system: str
    versions: dict[str, str]
    variables: dict[str, str]
    load: float
    revision: str | None

    @property
    def caution(self) -> str:
        """A warning if other programs were at work, else empty. The load before is theirs; at most
        one of it is of an earlier run.
        """
        if self.load <= self.cores:
            return ""
        return (
            f"CAUTION: other programs were at work (load {self.load:.1f} before, on {self.cores}"
            " cores): these times are theirs, too; measure again when they rest"
        )

    def __str__(self) -> str:
        versions = ", ".join(f"{name} {version}" for name, version in self.versions.items())
        return (
            f"{self.kind}: {self.device}; {self.cpu}, {self.cores} cores, {self.threads} threads;"
            f" {versions}; {self.date}"
        )


def here(kind: str, now: datetime.datetime | None = None) -> Environment:
    """The environment of this process. kind: of the device that is measured.

    now: for tests; by default the present moment.
    """
    import torch

    moment = now or datetime.datetime.now(datetime.UTC)
    return Environment(
        date=moment.astimezone(datetime.UTC).isoformat(timespec="seconds"),
        kind=kind,
        device=_device(kind),
        machine=_read(Path("/sys/devices/virtual/dmi/id/product_name")),
        cpu=cpu_model(),
        cores=len(os.sched_getaffinity(0)),
        threads=torch.get_num_threads(),
        system=f"{platform.system()} {platform.release()}",
        versions=_versions(),
        variables={
            name: value for name, value in sorted(os.environ.items()) if name.startswith(VARIABLES)
        },
        load=os.getloadavg()[0],
        revision=_revision(),
    )


def _device(kind: str) -> str:
    if kind == "cuda":
        import torch

        return torch.cuda.get_device_name()
    if kind == "xla":
        return f"PJRT {os.environ.get('PJRT_DEVICE', 'default')}"
    return kind


def _versions() -> dict[str, str]:
    results = {"python": platform.python_version()}
    for name in PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            results[name] = importlib.metadata.version(name)
    return results


def _revision() -> str | None:
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None


def _read(path: Path) -> str | None:
    with contextlib.suppress(OSError):
        return path.read_text(encoding="utf-8", errors="replace").strip() or None
    return None
