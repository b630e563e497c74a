"""Start the training process, wait for it, and say what came of it, even if it was killed.

Standard library only.
"""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from utils.xla import manifest

ROOT = Path(__file__).resolve().parents[3]
CONTEXT, HEADS = 64, 4  # The longest window and the attention heads of every model.
OPTIMIZERS = ("sgd", "adamw")
DTYPES = ("float32", "bfloat16", "float16")

# Variables of the caller that would change the graphs, the device or the speed of the child.
FOREIGN = re.compile(
    "XLA_.*|PT_XLA_.*|CPU_NUM_DEVICES|PJRT_.*|TF_CPP_.*|PYTHON(DONTWRITEBYTECODE|PATH|HOME)"
)


@dataclass(frozen=True)
class Start:
    """What one training process did.

    died: the name of the signal that ended it, such as "SIGSEGV"; empty if it ended by itself.
        Of a process that died nothing else is known: counts are None, sequences empty.
    compiles: graphs that the compiler translated.
    reuses: graphs found in the in-memory cache, by the hash of the graph.
    hits: graphs loaded from the persistent cache, so not compiled.
    misses: graphs that the persistent cache did not have.
    failures: entries that were found but could not be loaded (PersistentCacheDeserializeFailure).
    graph_seconds: time in the compiler, one for each compiled graph.
    load_seconds: time spent loading entries, successful or not.
    step_seconds: one for each step, with its tracing, compiling or loading, and running.
    losses: one for each step, in nats per character.
    reason: what torch_xla gave as the reason of the first failure; empty if there was none.
    entries, size_bytes: files in the cache folder afterwards, and what they hold.
    torch, torch_xla, python: versions in the process.
    wall_seconds: from the start of the process to its end, imports included.

    Seconds are those of this CPU, never of a Trainium chip.
    """

    died: str = ""
    compiles: int | None = None
    reuses: int | None = None
    hits: int | None = None
    misses: int | None = None
    failures: int | None = None
    graph_seconds: tuple[float, ...] = ()
    load_seconds: float = 0.0
    step_seconds: tuple[float, ...] = ()
    losses: tuple[float, ...] = ()
    reason: str = ""
    entries: int = 0
    size_bytes: int = 0
    torch: str = ""
    torch_xla: str = ""
    python: str = ""
    wall_seconds: float = 0.0

    @property
    def compile_seconds(self) -> float:
        """Time in the compiler, all graphs together."""
        return sum(self.graph_seconds)

    @property
    def first_step_seconds(self) -> float | None:
        """Of the step that compiles or loads; None of a process that died."""
        return self.step_seconds[0] if self.step_seconds else None

    def __str__(self) -> str:
        if self.died:
            return f"killed by {self.died}"
        counts = ("compiles", "hits", "misses", "failures")
        counted = ", ".join(f"{getattr(self, name)} {name}" for name in counts)
        return f"{counted}; first step {self.first_step_seconds:.2f} s"


class Running:
    """A training process in the background; `result()` waits for it. It ends with this object, so
    at the latest with the caller."""

    def __init__(
        self,
        command: Sequence[str],
        env: dict[str, str],
        cache: Path | None,
        timeout_seconds: float,
    ) -> None:
        self._begin = time.perf_counter()
        self._cache, self._timeout = cache, timeout_seconds
        # Files, not pipes: nobody reads while the process runs.
        self._out, self._err = (tempfile.TemporaryFile("w+", errors="replace") for _ in "oe")
        self._process = subprocess.Popen(
            command, env=env, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=self._out, stderr=self._err
        )
        # Else it would write into a cache folder that the caller has removed.
        weakref.finalize(self, _end, self._process)
        self._start: Start | None = None
        self._error: Exception | None = None

    def done(self) -> bool:
        """Has the process ended? Does not wait."""
        return self._process.poll() is not None

    def stop(self) -> None:
        """End the process at once, if it still runs."""
        _end(self._process)

    def result(self) -> Start:
        """Wait for the end and return what the process did; the second call returns the same, or
        raises the same. A wait that was interrupted can be taken up again.

        TimeoutError if it takes longer than `start` was told; it is killed then. RuntimeError if
        it ended with a Python error, which says what the process said. Death by a signal is no
        error: see `Start.died`.
        """
        if self._error is not None:
            raise self._error
        if self._start is None:
            try:
                self._start = self._wait()
            except (RuntimeError, TimeoutError) as error:
                self._error = error
                raise
        return self._start

    def _wait(self) -> Start:
        left = self._timeout - (time.perf_counter() - self._begin)
        try:
            code = self._process.wait(max(left, 0.0))
        except subprocess.TimeoutExpired:
            self.stop()
            raise TimeoutError(
                f"the training process was not done after {self._timeout:g} s and was ended: "
                "use fewer steps or a smaller model, or give it a larger timeout_seconds"
            ) from None
        return self._read(code, time.perf_counter() - self._begin)

    def _read(self, code: int, wall_seconds: float) -> Start:
        out, err = (self._text(file) for file in (self._out, self._err))
        if code > 0:
            last = (err.strip().splitlines() or [f"it said nothing, exit status {code}"])[-1]
            raise RuntimeError(f"the training process ended with an error: {last}")
        known = json.loads(out.splitlines()[-1]) if code == 0 else {}
        held = manifest.usage(self._cache) if self._cache else None
        measured: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in known.items()
        }
        return Start(
            **measured,
            died=signal.Signals(-code).name if code else "",
            reason=_reason(err),
            entries=held.entries if held else 0,
            size_bytes=held.size_bytes if held else 0,
            wall_seconds=wall_seconds,
        )

    @staticmethod
    def _text(file) -> str:
        with file:
            file.seek(0)
            return file.read()


def _end(process: subprocess.Popen) -> None:
    process.kill()
    process.wait()


def _reason(err: str) -> str:
    """
    >>> _reason("2026: W a.cc:1] Failed to deserialize executable: UNIMPLEMENTED: not here\\n")
    'UNIMPLEMENTED: not here'
    """
    result = re.search(r"Failed to deserialize executable: (.*)", err)
    return result[1].strip() if result else ""


def start(
    cache: Path | None,
    *,
    python: str | os.PathLike = sys.executable,
    steps: int = 3,
    batch: int = 4,
    length: int | Sequence[int] = 32,
    width: int = 32,
    layers: int = 1,
    dtype: str = "float32",
    lr: float = 1e-3,
    optimizer: str = "adamw",
    readonly: bool = False,
    xla_flags: str = "",
    timeout_seconds: float = 300.0,
) -> Running:
    """Start a process that trains a tiny GPT; it runs while the caller goes on.

    cache: the folder of its persistent cache, made if it is not there; None for no such cache.
    python: the interpreter, by default the present one.
    steps, batch, length: as many steps, each on `batch` windows of `length` characters, at most
        64; several lengths take turns, and each is a graph of its own.
    width, layers, dtype, lr, optimizer: of the model and its training; see `DTYPES`, `OPTIMIZERS`.
    readonly: use what the cache has and add nothing.
    xla_flags: XLA_FLAGS of the process; an unknown flag makes XLA abort it.
    timeout_seconds: for `result()`; a child takes 4 to 12 s on two cores, far longer on busy ones.

    ValueError for a setting that cannot be. A relative `cache` is taken from the caller's folder.
    """
    lengths = [length] if isinstance(length, int) else list(length)
    numbers = {"steps": steps, "batch": batch, "width": width, "layers": layers}
    for name, value in [*numbers.items(), *(("length", item) for item in lengths)]:
        if value < 1:
            raise ValueError(f"{name} is {value}, but it must be at least 1")
    if not lengths:
        raise ValueError("length is empty: give at least one")
    if max(lengths) > CONTEXT:
        raise ValueError(f"length is {max(lengths)}, beyond the context of {CONTEXT} characters")
    if width % HEADS:
        raise ValueError(f"width is {width}, but it must be a multiple of {HEADS}")
    for name, choice, allowed in (("dtype", dtype, DTYPES), ("optimizer", optimizer, OPTIMIZERS)):
        if choice not in allowed:
            raise ValueError(f"{name} is {choice!r}, but only {', '.join(allowed)} are there")
    folder = Path(cache).absolute() if cache is not None else None
    settings = numbers | {
        "cache": str(folder) if folder else "",
        "lengths": lengths,
        "context": CONTEXT,
        "heads": HEADS,
        "dtype": dtype,
        "lr": lr,
        "optimizer": optimizer,
        "readonly": readonly,
    }
    env = {name: value for name, value in os.environ.items() if not FOREIGN.fullmatch(name)}
    # At level 0 torch_xla says why an entry could not be loaded.
    env |= {"PJRT_DEVICE": "CPU", "TF_CPP_MIN_LOG_LEVEL": "0", "PYTHONPATH": str(ROOT)}
    if xla_flags:
        env["XLA_FLAGS"] = xla_flags
    command = [os.fspath(python), "-m", "utils.training.coldstart", json.dumps(settings)]
    return Running(command, env, folder, timeout_seconds)


def run(cache: Path | None, **settings) -> Start:
    """Start a training process, wait for it, and return what it did: `start(...).result()`."""
    return start(cache, **settings).result()
