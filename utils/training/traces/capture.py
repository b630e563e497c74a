"""Capture a trace of this process, with names of our own in it."""

import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Any

from utils.training.traces.reading import KINDS, WHOLE, Trace, read


def span(name: str, kind: str = "trace") -> AbstractContextManager[Any]:
    """A stretch of time with a name of ours in the trace.

    Unlike torch_xla's `xp.Trace` it may hold a step marker: that one also names the operations
    recorded in it, and torch_xla refuses to mark a step while such a name is open.
    """
    import torch_xla

    if kind not in KINDS:
        raise ValueError(f"kind {kind!r} is none of {', '.join(KINDS)}")
    return torch_xla._XLAC.profiler.TraceMe(name, kind=kind)


def spans(loader: Iterable[Any], name: str = "next batch") -> Iterator[Any]:
    """The batches of a loader; the time that each is waited for is a span of kind "data"."""
    batches = iter(loader)
    while True:
        with span(name, "data"):
            try:
                batch = next(batches)
            except StopIteration:
                return
        yield batch


class Capture:
    """Traces what this process does inside a with-block; `trace` is what was captured.

    folder: where the files of the profiler are kept; by default they are read and removed.

    A process can capture one trace at a time: a second raises RuntimeError. What is still running
    on the device when the block ends is missing in it: end the block with
    `utils.xla.meter.settle()`.

    >>> import torch, torch_xla
    >>> from utils.training.traces import Capture, span
    >>> from utils.xla.meter import settle
    >>> x = torch.ones(50, 50).to(torch_xla.device())
    >>> with Capture() as captured:
    ...     with span("forward"):
    ...         y = x @ x
    ...     settle()
    >>> captured.trace.count("forward")
    1
    """

    def __init__(self, folder: str | Path | None = None) -> None:
        self._keep = Path(folder) if folder is not None else None
        self._trace: Trace | None = None

    def __enter__(self) -> "Capture":
        import torch_xla.debug.profiler as profiler

        folder = self._keep or Path(tempfile.mkdtemp(prefix="trace-"))
        try:
            folder.mkdir(parents=True, exist_ok=True)  # a folder that cannot be: before it starts
            profiler.start_trace(folder)
        except RuntimeError as error:
            if self._keep is None:
                folder.rmdir()
            raise RuntimeError(
                f"no capture can begin: {error} End the block of the other capture first."
            ) from None
        self._folder, self._trace = folder, None
        self._whole = span(WHOLE)
        self._whole.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        import torch_xla.debug.profiler as profiler

        self._whole.__exit__(kind, error, traceback)
        try:
            profiler.stop_trace()
            self._trace = read(self._folder)
        finally:
            if self._keep is None:
                shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def trace(self) -> "Trace":
        if self._trace is None:
            raise RuntimeError("nothing is captured: read the trace after its with-block has ended")
        return self._trace
