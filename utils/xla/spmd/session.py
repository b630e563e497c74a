"""Several virtual devices in one process, and the programs that are compiled for them."""

import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from multiprocessing.util import Finalize
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar

from utils.xla import fresh
from utils.xla.defaults import set_defaults
from utils.xla.meter import settle
from utils.xla.spmd.collectives import Collective, collectives
from utils.xla.spmd.memory import Memory, memory

DEVICES = 4
MOST_DEVICES = 64
PREFIX = "course-spmd-"

# torch_xla keeps this many compiled programs. A short list can be emptied by compiling as many
# others, which is the only way to have a program compiled, and so dumped, a second time.
KEPT_PROGRAMS = 16

ENVIRONMENT: Mapping[str, str] = {
    "CPU_NUM_DEVICES": str(DEVICES),
    "XLA_COMPILATION_CACHE_SIZE": str(KEPT_PROGRAMS),
    # The C++ side warns at every start that GSPMD is to be replaced; nobody here can act on it.
    "TF_CPP_MIN_LOG_LEVEL": "2",
}

# The partitioner's work is looked at here, not the machine code: without its optimisation a step of
# training compiles in a quarter of the time, with the same collectives and, but for some hundred
# bytes, the same memory.
QUICK = fresh.FAST["XLA_FLAGS"]

_folder: Path | None = None


def environment(devices: int = DEVICES) -> dict[str, str]:
    """What a process needs in its environment to have that many virtual devices.

    For `utils.xla.fresh.run`; whoever wants `Compiled` there calls `run` of this module instead.

    >>> environment(2)["CPU_NUM_DEVICES"]
    '2'

    Raises: ValueError if that is no whole number from 1 to MOST_DEVICES.
    """
    if type(devices) is not int or not 1 <= devices <= MOST_DEVICES:
        raise ValueError(
            f"found {devices!r} for the number of devices: give a whole number from 1 to"
            f" {MOST_DEVICES}"
        )
    return {**ENVIRONMENT, "CPU_NUM_DEVICES": str(devices)}


def start(devices: int = DEVICES) -> int:
    """Make this process see `devices` virtual CPU devices as one SPMD machine, and keep what the
    compiler writes for `Compiled`. Returns the number of devices.

    Must be called before anything uses a device; calling it again changes nothing. For a notebook:
    a function that runs in a process of its own is sent by `run`, which tidies up after it.

    Raises: RuntimeError if a device was used before, or another number of devices was started;
    ValueError for a number that `environment` does not take.
    """
    variables = environment(devices)
    set_defaults()
    import torch_xla

    # There is no public question for this.
    if _folder is None and not torch_xla._XLAC._xla_runtime_is_initialized():
        _sweep(Path(tempfile.gettempdir()))
        folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-"))
        # Unlike atexit, this also runs at the end of a process of multiprocessing, and not at that
        # of a fork of this one.
        Finalize(None, shutil.rmtree, args=(folder, True), exitpriority=0)
        _start(variables, folder)
    _check(devices)
    return devices


def _sweep(where: Path) -> None:
    """Remove the folders of processes that were killed and could not do it themselves."""
    for left in where.glob(f"{PREFIX}*-*"):
        owner = left.name.removeprefix(PREFIX).partition("-")[0]
        try:
            os.kill(int(owner), 0)
        except (ValueError, PermissionError):  # no number of ours, or of somebody who is alive
            continue
        except ProcessLookupError:
            shutil.rmtree(left, ignore_errors=True)


def _start(variables: Mapping[str, str], folder: Path, flags: str = QUICK) -> None:
    global _folder
    set_defaults()
    import torch_xla.runtime as xr

    if os.environ["PJRT_DEVICE"] != "CPU":
        raise RuntimeError(
            f"virtual devices exist on the CPU only, and PJRT_DEVICE is"
            f" {os.environ['PJRT_DEVICE']}: set it to CPU before the first cell"
        )
    os.environ.update(variables)
    # torch_xla has put flags of its own there when it was imported.
    given = os.environ.get("XLA_FLAGS", "")
    dump = f"--xla_dump_to={folder} --xla_dump_hlo_as_text"
    os.environ["XLA_FLAGS"] = f"{given} {flags} {dump}".strip()
    xr.use_spmd()
    _folder = folder


def _check(devices: int) -> None:
    import torch_xla.runtime as xr

    if _folder is None or not xr.is_spmd():
        raise RuntimeError(
            "a device was used before, and XLA reads the number of its devices only once: restart"
            " the kernel and run this cell before any that uses a device"
        )
    if (result := xr.global_runtime_device_count()) != devices:
        raise RuntimeError(
            f"this process has {result} devices and {devices} are asked for: restart the kernel, or"
            f" ask for {result}"
        )


def run(
    function: Callable[..., Any],
    *arguments: Any,
    devices: int = DEVICES,
    flags: str = QUICK,
    seconds: float = fresh.SECONDS,
) -> Any:
    """What function(*arguments) returns in a fresh process with `devices` virtual devices, where
    `Compiled` works. See `utils.xla.fresh.run` for what may be sent and what it raises.

    flags: added to XLA_FLAGS. An unknown one kills the process (fresh.Died).
    """
    with tempfile.TemporaryDirectory(prefix=PREFIX) as folder:
        return fresh.run(
            _child,
            function,
            arguments,
            devices,
            folder,
            flags,
            environment=environment(devices),
            seconds=seconds,
        )


def _child(
    function: Callable[..., Any], arguments: tuple[Any, ...], devices: int, folder: str, flags: str
) -> Any:
    _start(environment(devices), Path(folder), flags)
    _check(devices)
    return function(*arguments)


@dataclass(frozen=True)
class Program:
    """One compiled program.

    name: such as "SyncTensorsGraph.12"; the number counts its instructions before optimisation.
    text: its HLO after optimisation and partitioning, which each device runs.
    report: the compiler's buffer assignment.
    """

    name: str
    text: str
    report: str

    @cached_property
    def collectives(self) -> tuple[Collective, ...]:
        """Those of its text, in order."""
        return collectives(self.text)

    @cached_property
    def memory(self) -> Memory:
        """What one device holds for it."""
        return memory(self.report)


class Compiled:
    """Collects the programs that are compiled inside a with-block, for one device of them all.

    What is pending on entry is run first. A graph that was compiled before is compiled again in
    the block, so that it is seen; what the block does not `torch_xla.sync()` is not. Blocks do not
    nest.

        with Compiled() as program:
            loss = step(model, batch)
            torch_xla.sync()
        program.collectives, program.memory, program.text

    modules: every program of the block, in order of compilation.
    collectives: those of all modules.
    text, memory: of the largest module, which is the training step if one is in the block.
    """

    _modules: tuple[Program, ...] | None = None
    _open: ClassVar["Compiled | None"] = None

    def __enter__(self) -> "Compiled":
        if _folder is None:
            raise RuntimeError("no devices yet: call spmd.start() first, in a fresh kernel")
        if Compiled._open is not None:
            raise RuntimeError("a spmd.Compiled() block is open already: end it before the next")
        self._modules = None
        settle()
        _forget_programs()
        _empty(_folder)
        Compiled._open = self
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        import torch_xla.core.xla_model as xm

        Compiled._open = None
        xm.wait_device_ops()
        assert _folder is not None
        self._modules = tuple(_programs(_folder))
        _empty(_folder)

    @property
    def modules(self) -> tuple[Program, ...]:
        """Every program of the block. Raises RuntimeError before its end, or if there is none."""
        if self._modules is None:
            raise RuntimeError("nothing is collected yet: read it after the with-block has ended")
        if not self._modules:
            raise RuntimeError(
                "nothing was compiled in the block: end it with torch_xla.sync(), and keep the"
                " results that you want computed"
            )
        return self._modules

    @property
    def largest(self) -> Program:
        """The program with the longest text: a training step, if one is in the block."""
        return max(self.modules, key=lambda item: len(item.text))

    @property
    def collectives(self) -> tuple[Collective, ...]:
        """Those of all programs, in order."""
        return tuple(one for module in self.modules for one in module.collectives)

    @property
    def text(self) -> str:
        """Of the largest program."""
        return self.largest.text

    @property
    def memory(self) -> Memory:
        """Of the largest program."""
        return self.largest.memory


def _forget_programs() -> None:
    """Fill torch_xla's list of compiled programs with others, so that it holds none of ours."""
    import torch
    import torch_xla

    device = torch_xla.device()
    for size in range(1, KEPT_PROGRAMS + 1):
        filler = torch.full((size,), 0.5, device=device)
        torch_xla.sync()
        del filler
    settle()


def _programs(folder: Path) -> list[Program]:
    ending = ".cpu_after_optimizations.txt"
    return [
        Program(
            name=path.name.removesuffix(ending).partition(".")[2],
            text=path.read_text(encoding="utf-8"),
            report=path.with_name(
                path.name.removesuffix(".txt") + "-buffer-assignment.txt"
            ).read_text(encoding="utf-8"),
        )
        for path in sorted(folder.glob(f"module_*{ending}"))
    ]


def _empty(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.mkdir()
