"""Profiler traces: capture one in this process, and read where the time of each thread went.

torch_xla writes a trace as `*.trace.json.gz`, in Chrome's trace event format, next to XLA's own
`*.xplane.pb`. Python's json and pandas read the first; readers of the second (xprof, jaxlib) are
packages of tens of megabytes, for the same events. torch_xla and pandas are imported late: they
take seconds to load.
"""

import gzip
import json
import shutil
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas

KINDS = {
    "trace": "Python records operations, or builds the graph of a step",
    "compile": "the compiler translates a graph",
    "transfer": "data moves between host and device",
    "execute": "the device runs a graph",
    "wait": "the host waits for the device",
    "data": "somebody waits for the loader",
}
"""What a stretch of time is spent on."""

WHOLE = "course.capture"
_READ = "PjRtComputationClient::TransferFromDevice"
_NAMED = {
    "StepMarker": "trace",
    "XLAGraphExecutor::Compile": "compile",
    "TensorCollectionBarrier": "wait",  # a step marker lets the graph before it end first
    "PjRtComputationClient::TransferToDevice": "transfer",
    "cpu_data_to_xla_device": "transfer",
    "H2D Dispatch": "transfer",
    "D2H Dispatch": "transfer",
    "cpu_loader.next": "data",
    "get_batch_from_cpu_queue": "data",
}
_DEVICE = ("tf_XLAPjRtCpuClient/", "tf_XLAEigen/")
_COMPILER = "tf_xla-cpu-codegen/"
_LANES = {
    "cpu_loader.next": "loader",
    "get_batch_from_cpu_queue": "uploader",
    "cpu_data_to_xla_device": "uploader",
}


@dataclass(frozen=True)
class Trace:
    """The events of one capture.

    events: one row for each: `name`, `thread` (an identifier), `lane` ("host" is the thread that
        captured; "loader", "uploader", "device", "compiler" or ""), `kind` (one of KINDS or ""),
        `begin_ms` from the start of the capture, `duration_ms`, `arguments` (a dict).
    """

    events: "pandas.DataFrame"

    def count(self, name: str) -> int:
        """How many events have that name."""
        return int((self.events["name"] == name).sum())

    def milliseconds(self, name: str, lane: str | None = None) -> float:
        """The sum of the durations of the events of that name, of one lane or of all."""
        chosen = self.events["name"] == name
        if lane is not None:
            chosen &= self.events["lane"] == lane
        return float(self.events.loc[chosen, "duration_ms"].sum())

    @cached_property
    def length_ms(self) -> float:
        """From the start to the end of the capture."""
        whole = self.events[self.events["name"] == WHOLE]
        ends = whole if len(whole) else self.events
        return float((ends["begin_ms"] + ends["duration_ms"]).max())

    @cached_property
    def segments(self) -> "pandas.DataFrame":
        """What each lane does when: rows `lane`, `kind`, `begin_ms`, `end_ms`, without overlap.

        Nested events count as the innermost that has a kind. On the device all its threads are one.
        A read blocks the host until the value is there: as long as the device executes, it is a
        wait, and then a transfer.
        """
        import pandas

        rows = []
        busy = union(self._spans("device", "execute"))
        rows += [("device", "execute", *item) for item in busy]
        for lane, kind in (("device", "transfer"), ("compiler", "compile")):
            rows += [(lane, kind, *item) for item in union(self._spans(lane, kind))]
        for lane in ("host", "loader", "uploader"):
            own = self.events[(self.events["lane"] == lane) & (self.events["name"] != WHOLE)]
            columns = (own["begin_ms"], own["duration_ms"], own["kind"])
            outside = "trace" if lane == "host" else ""
            for begin, end, kind in innermost(zip(*columns, strict=True), outside):
                if kind == "read":
                    waits, rest = split(begin, end, busy)
                    rows += [(lane, "wait", *wait) for wait in waits]
                    rows += [(lane, "transfer", *item) for item in rest]
                elif kind:
                    rows.append((lane, kind, begin, end))
        table = pandas.DataFrame(rows, columns=["lane", "kind", "begin_ms", "end_ms"])
        return table.sort_values(["lane", "begin_ms"], ignore_index=True)

    def totals(self, lane: str = "host") -> dict[str, float]:
        """Milliseconds of a lane by kind, largest first; "other" is the time without an event."""
        own = self.segments[self.segments["lane"] == lane]
        result = (own["end_ms"] - own["begin_ms"]).groupby(own["kind"]).sum()
        totals = {str(kind): float(ms) for kind, ms in result.items()}
        totals["other"] = max(0.0, self.length_ms - sum(totals.values()))
        return dict(sorted(totals.items(), key=lambda item: -item[1]))

    def share(self, lane: str, kind: str) -> float:
        """The part of the capture that a lane spends on one kind, 0 to 1."""
        return self.totals(lane).get(kind, 0.0) / self.length_ms if self.length_ms else 0.0

    def _spans(self, lane: str, kind: str) -> list[tuple[float, float]]:
        own = self.events[(self.events["lane"] == lane) & (self.events["kind"] == kind)]
        return list(zip(own["begin_ms"], own["begin_ms"] + own["duration_ms"], strict=True))


def read(path: str | Path) -> Trace:
    """The trace in a `*.trace.json.gz`, or the newest such file in a folder.

    Raises:
        FileNotFoundError: there is none.
        ValueError: the file is no trace, or has no event that took time.
    """
    import pandas

    path = Path(path)
    if path.is_dir():
        results = sorted(path.rglob("*.trace.json.gz"), key=lambda item: item.stat().st_mtime)
        if not results:
            raise FileNotFoundError(f"no *.trace.json.gz in {path}: was the capture ended?")
        path = results[-1]
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            listed = json.load(file)["traceEvents"]
        rows = _rows(listed)
    except FileNotFoundError:
        raise FileNotFoundError(
            f"there is no {path}: give a *.trace.json.gz, or its folder"
        ) from None
    except _BROKEN as error:
        raise ValueError(
            f"{path.name} is no trace of the profiler, or a damaged one: {error!r}. Capture or copy"
            " it again."
        ) from None
    if not rows:
        raise ValueError(f"{path.name} has no event that took time")
    events = pandas.DataFrame(rows).sort_values(["begin_ms", "duration_ms"], ignore_index=True)
    events.insert(2, "lane", _lanes(events))
    seen = events[["name", "lane", "arguments"]].itertuples(index=False)
    events.insert(3, "kind", [_kind(*item) for item in seen])
    whole = events[events["name"] == WHOLE]
    events["begin_ms"] -= (whole if len(whole) else events)["begin_ms"].min()
    return Trace(events)


_BROKEN = (
    gzip.BadGzipFile, zlib.error, EOFError, UnicodeDecodeError, json.JSONDecodeError,
    KeyError, TypeError, AttributeError,
)  # fmt: skip
"""What a file raises that is cut off, damaged, or of another kind."""


def _rows(listed: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The events that took time, as rows; other entries of the file name the threads."""
    names = {
        (item["pid"], item["tid"]): item["args"]["name"]
        for item in listed
        if item.get("ph") == "M" and item.get("name") == "thread_name"
    }
    return [
        {
            "name": item["name"],
            "thread": f"{names.get((item['pid'], item['tid']), 'thread')} {item['tid']}",
            "begin_ms": item["ts"] / 1e3,
            "duration_ms": item.get("dur", 0.0) / 1e3,
            "arguments": item.get("args", {}),
        }
        for item in listed
        if item.get("ph") == "X"
    ]


def _lanes(events: "pandas.DataFrame") -> "pandas.Series":
    """The lane of each event."""
    lanes = {}
    for thread, own in events.groupby("thread"):
        known = (
            (str(thread).startswith(_DEVICE), "device"),
            (str(thread).startswith(_COMPILER), "compiler"),
            (bool((own["name"] == WHOLE).any()), "host"),
        )
        lanes[thread] = next((lane for holds, lane in known if holds), "")
    if "host" not in lanes.values():  # captured by other means: the thread that marks the steps
        marking = events[events["name"] == "StepMarker"]["thread"]
        if len(marking):
            lanes[marking.mode()[0]] = "host"
    # A loader's thread may end early, and a later one of another kind then bears its number.
    named = events["name"].map(_LANES)
    return named.fillna(events["thread"].map(lanes))


def _kind(name: str, lane: str, arguments: dict[str, str]) -> str:
    if name == _READ:
        return "read"
    known = arguments.get("kind") or _NAMED.get(name, "")
    if known:
        return known
    # A buffer that the device still uses cannot be freed: where Python drops it, Python waits.
    if name.startswith("Wait for "):
        return "wait" if lane == "host" else ""
    return {"device": "execute", "compiler": "compile"}.get(lane, "")


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
    def trace(self) -> Trace:
        """What was captured. Raises RuntimeError before the block has ended."""
        if self._trace is None:
            raise RuntimeError("nothing is captured: read the trace after its with-block has ended")
        return self._trace


def innermost(
    events: Iterable[tuple[float, float, str]], outside: str = "trace"
) -> list[tuple[float, float, str]]:
    """Begin, end and kind of what one thread does when, from its nested events.

    events: begin, duration and kind of each; one without a kind is of the kind of that around it.
    outside: the kind of what has none at all.

    >>> innermost([(0, 10, "trace"), (2, 3, "compile"), (3, 1, "")])
    [(0.0, 2, 'trace'), (2, 5, 'compile'), (5, 10, 'trace')]
    """
    stack: list[tuple[float, str]] = []
    at = 0.0
    pieces: list[tuple[float, float, str]] = []

    def until(moment: float) -> None:
        nonlocal at
        while stack:
            end, kind = stack[-1]
            if pieces and pieces[-1][1:] == (at, kind):
                pieces[-1] = pieces[-1][0], min(end, moment), kind
            elif min(end, moment) > at:
                pieces.append((at, min(end, moment), kind))
            at = max(at, min(end, moment))
            if end > moment:
                return
            stack.pop()

    for begin, duration, kind in sorted(events, key=lambda item: (item[0], -item[1])):
        until(begin)
        outer = stack[-1] if stack else (float("inf"), outside)
        stack.append((min(begin + duration, outer[0]), kind or outer[1]))
        at = max(at, begin)
    until(float("inf"))
    return pieces


def union(spans: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """
    >>> union([(4, 5), (0, 2), (1, 3)])
    [(0, 3), (4, 5)]
    """
    merged: list[tuple[float, float]] = []
    for begin, end in sorted(spans):
        if merged and begin <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((begin, end))
    return merged


def split(
    begin: float, end: float, busy: list[tuple[float, float]]
) -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
    """What of begin..end lies in the busy stretches, and what does not.

    >>> split(0, 10, [(2, 3), (9, 12)])
    ([(2, 3), (9, 10)], [(0, 2), (3, 9)])
    """
    inside = [(max(begin, b), min(end, e)) for b, e in busy if b < end and e > begin]
    edges = [begin, *(edge for item in inside for edge in item), end]
    outside = list(zip(edges[::2], edges[1::2], strict=True))
    return inside, [item for item in outside if item[1] > item[0]]
