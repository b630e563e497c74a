"""Watches a program step by step: which graphs each step compiles and runs, and why."""

import re
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import FrameType
from typing import Any
from unittest import mock

import torch
import torch_xla
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.utils.data.dataloader import _BaseDataLoaderIter

from utils.xla.doctor import interruptions, reasons, turns
from utils.xla.doctor.advice import read
from utils.xla.doctor.compare import Finding
from utils.xla.doctor.report import Step
from utils.xla.doctor.trace import Call, Recorder, Trace, Where
from utils.xla.dryrun.operators import computed, is_read, refusals, trained

_EVENT = re.compile(r"^(Compilation|Execution) Analysis:   Graph Hash: (\w+)$", flags=re.MULTILINE)


class Watch:
    """Open it around the program.

    steps: after so many, `enough` is called with words that say so. Once there is an optimizer,
    only steps that train count, and those of an evaluation have a bound of their own. log: the file
    named by PT_XLA_DEBUG_FILE. own_markers: whether the program has step markers of its own; else a
    step ends after `optimizer.step()`. seen: is called after each step, with everything seen so far
    as plain data.
    """

    def __init__(
        self,
        runner: Any,
        steps: int,
        log: Path,
        own_markers: bool,
        seen: Callable[[dict[str, Any]], None],
        enough: Callable[[str], None],
    ) -> None:
        self.recorder = Recorder(runner)
        self.most, self.log, self.own_markers = steps, log, own_markers
        self.seen, self.enough = seen, enough
        self.steps: list[dict[str, Any]] = []
        self.lines: set[str] = set()
        self.asked: dict[str, str] = {}
        self.setup: list[str] = []
        self.rest: list[str] = []
        self._earlier: dict[str, list[Trace]] = {}
        self.reads: Counter[tuple[str, str]] = Counter()
        self.fallbacks: Counter[tuple[str, str]] = Counter()
        self.unsupported: Counter[tuple[str, str, str, str]] = Counter()
        self.redirects: Counter[tuple[str, str]] = Counter()
        self._at = 0
        self._inserting = False
        self._has_optimizer = False
        self._by_library = False  # a library marks the steps where the script does not
        self._thread = threading.get_ident()
        self._stack = ExitStack()

    def __enter__(self) -> "Watch":
        self._stack.enter_context(self.recorder)
        marker, fetch = torch_xla._XLAC._xla_step_marker, _BaseDataLoaderIter.__next__
        start = torch.optim.Optimizer.__init__

        def marked(*args: Any, **kwargs: Any) -> Any:
            result = marker(*args, **kwargs)
            if not self._inserting:
                self._by_library |= not self.own_markers
                self.own_markers = True
                if self._by_library and not self.steps and not computed(self.recorder.calls):
                    self._forget()  # processes that wait for each other before they train
                    return result
                self._boundary("its own step marker", _caller(sys._getframe(1)))
            return result

        def fetched(loader: Any) -> Any:
            calls = self.recorder.calls
            trains = any(call.backward for call in calls)
            # What only follows a training step, such as a loss that is printed, is no step. A
            # thread that fetches ahead, as the loader of PyTorch/XLA does, ends none.
            ahead = threading.get_ident() != self._thread
            if not (self.own_markers or trains or ahead) and (computed(calls) or not self.steps):
                self._cut("the next batch")
            return fetch(loader)

        def started(optimizer: Any, params: Any, defaults: dict[str, Any]) -> None:
            if defaults.get("fused"):
                self.note("an optimizer with fused=True is the ordinary one: XLA has no fused one")
                defaults["fused"] = None
            start(optimizer, params, defaults)
            self._has_optimizer = True
            if not self.steps:
                self._set_up()

        zero = torch.nn.Module.zero_grad

        def zeroed(module: Any, *args: Any, **kwargs: Any) -> None:
            # Where the script updates its weights by hand, this is what tells steps apart.
            if not self.own_markers and any(call.backward for call in self.recorder.calls):
                self._cut("model.zero_grad()")
            zero(module, *args, **kwargs)

        patches: tuple[tuple[Any, str, Any], ...]
        patches = ((torch_xla._XLAC, "_xla_step_marker", marked),)
        patches += ((torch.nn.Module, "zero_grad", zeroed),)
        patches += ((_BaseDataLoaderIter, "__next__", fetched),)
        patches += ((torch.optim.Optimizer, "__init__", started),)
        for owner, name, value in patches:
            self._stack.enter_context(mock.patch.object(owner, name, value))
        handle = register_optimizer_step_post_hook(self._after_optimizer)
        self._stack.callback(handle.remove)
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.close()

    def note(self, what: str) -> None:
        """A request that was sent elsewhere, with the line of the user's that made it."""
        where = self.recorder._lines(sys._getframe(1))[0]
        if where:
            self.redirects[(what, str(where))] += 1

    def end(self, has_failed: bool) -> None:
        """The program has ended. What it has left and nobody reads is never run, and a step that
        an error has cut short is none.
        """
        calls = self.recorder.calls
        if not has_failed and computed(calls) and any(call.executions for call in calls):
            self._record("the end of the program")
        else:
            for call in calls:
                self._note_call(call)
            self._forget()
        self.seen(self.data())

    def hanging(self, thread: int) -> str:
        """What a thread is doing where its time has come to an end, within a step."""
        where = self.recorder._lines(sys._current_frames().get(thread))[0]
        calls = list(self.recorder.calls)
        for call in calls:
            self._note_call(call)
        text = f", at {where or 'an unknown line'}"
        if calls:
            text += f", with {len(calls)} operators recorded since the last step"
        launches = Counter(str(call.where) for call in calls for _ in range(call.compiles))
        for line, count in launches.most_common(1):
            text += f" and {count} graphs compiled at {line}"
        return text

    def next_call(self) -> None:
        """A function that makes steps ends one."""
        if self.recorder.calls:
            self._cut("the end of the call")

    def _after_optimizer(self, *_: Any) -> None:
        # After backward, too: an optimizer of the script's own runs outside of `torch.optim`.
        if not self.own_markers and trained(self.recorder.calls):
            self._cut("optimizer.step()")

    def _cut(self, ended_by: str) -> None:
        self._inserting = True
        try:
            torch_xla.sync()
        finally:
            self._inserting = False
        if ended_by == "the next batch" and not self.steps and not computed(self.recorder.calls):
            self._forget()
        else:
            self._boundary(ended_by)

    def _set_up(self) -> None:
        """Before the first step: weights that move and the like are no step."""
        self._inserting = True
        try:
            torch_xla.sync()
        finally:
            self._inserting = False
        self._forget()

    def _forget(self) -> None:
        compiled = [graph for kind, graph in self._events() if kind == "Compilation"]
        (self.rest if self.steps else self.setup).extend(compiled)
        for record in (self.recorder.calls, self.recorder.kept, self.recorder.markers):
            record.clear()
        self.recorder._results.clear()

    def _boundary(self, ended_by: str, place: str = "") -> None:
        """A step has ended. `place` tells apart the markers of a library that has several."""
        if not self.recorder.calls:
            return
        self._record(ended_by, place)
        self.seen(self.data())
        trains = sum(step["trains"] for step in self.steps)
        evaluates = len(self.steps) - trains
        if (trains if trains or self._has_optimizer else evaluates) >= self.most:
            self.enough(f"after {self.most} steps, as asked")
        elif evaluates >= (_EVALUATIONS if trains else _BEFORE_TRAINING * self.most):
            self.enough(
                f"after {trains} steps of training and {evaluates}, the limit, of evaluation"
            )

    def _record(self, ended_by: str, place: str = "") -> None:
        calls = tuple(self.recorder.calls)
        trace = Trace((), calls, tuple(self.recorder.kept), tuple(self.recorder.markers))
        events = self._events()
        compiled = [graph for kind, graph in events if kind == "Compilation"]
        executed = [graph for kind, graph in events if kind == "Execution"]
        number = len(self.steps) + 1
        reads = sum(map(is_read, calls))
        counts = Step(number, len(compiled), len(executed), reads, (), ())
        results = [("", finding) for finding in interruptions(trace) if finding.kind == "fallback"]
        fresh = set(compiled)
        asked_before: set[str] = set()
        for graph, end, asked in ends(calls, executed):
            earlier = self._earlier.setdefault(asked or ended_by + place, [])
            again, asked_before = asked in asked_before, asked_before | ({asked} - {""})
            is_new = graph in fresh
            if again and not is_new:
                continue
            part = _part(trace, end)
            if is_new:
                fresh.remove(graph)
                self.asked[graph] = asked or ended_by
                if again:
                    tip = read(part.calls[-1], again=True)
                    more = [Finding("reads", _READS, _last(part), tip)]
                    results += [(graph, finding) for finding in turns(calls, end or 0) or more]
                elif earlier:
                    results += [(graph, finding) for finding in reasons(earlier, part, counts)]
                elif self.steps:
                    results.append((graph, Finding("new", _NEW, _last(part), _NEW_ADVICE)))
            if not again:
                # The first, in which state may have come into being, and the latest.
                earlier[1:] = [*earlier[1:], part][-_COMPARED:]
        for call in calls:
            self._note_call(call)
        self.steps.append(
            {
                "number": number,
                "trains": trained(calls),
                "ended_by": ended_by,
                "compiled": compiled,
                "executed": executed,
                "reads": reads,
                "causes": [
                    {"graph": graph, "kind": f.kind, "what": f.what}
                    | {"where": str(f.where or ""), "write": f.advice}
                    for graph, f in results
                ],
            }
        )
        self.lines |= {f"{call.where.file}:{call.where.line}" for call in calls if call.where}
        # The doctor has tried operators out; they are no part of the program.
        self._forget()

    def _note_call(self, call: Call) -> None:
        where = str(call.where or call.library or "")
        if is_read(call):
            self.reads[(where, call.name)] += 1
        for name in call.fallbacks:
            self.fallbacks[(where, name)] += 1
        for what, code, source in refusals(call):
            self.unsupported[(where, what, code, source)] += 1

    def _events(self, peek: bool = False) -> list[tuple[str, str]]:
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        result = _EVENT.findall(text[self._at :])
        self._at = self._at if peek else len(text)
        return result

    def data(self) -> dict[str, Any]:
        """All that was seen, as plain data for JSON."""

        def rows(counter: Counter, *names: str) -> list[dict[str, Any]]:
            return [
                {**dict(zip(names, key, strict=True)), "count": n} for key, n in counter.items()
            ]

        # What a step has compiled that has not ended yet, where the program is stopped within it.
        begun = [graph for kind, graph in self._events(peek=True) if kind == "Compilation"]
        return {
            "steps": self.steps,
            "asked": self.asked,
            "setup": self.setup + ([] if self.steps else begun),
            "rest": self.rest + (begun if self.steps else []),
            "reads": rows(self.reads, "where", "operator"),
            "fallbacks": rows(self.fallbacks, "where", "operator"),
            "unsupported": rows(self.unsupported, "where", "what", "code", "source"),
            "redirects": rows(self.redirects, "what", "where"),
            "lines": sorted(self.lines),
        }


def _caller(frame: FrameType | None) -> str:
    """Where a step marker was called, outside PyTorch/XLA and this program's own wrappers."""
    own = (str(Path(torch_xla.__file__).parent), str(Path(__file__).parents[1]))
    while frame is not None and frame.f_code.co_filename.startswith(own):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame else ""


_COMPARED = 3
_EVALUATIONS, _BEFORE_TRAINING = 256, 8
"""Steps of evaluation after which a program is stopped: in all, since some evaluate a hundred
batches after their first step; and before any training, as a multiple of the steps asked for."""
_NEW = "the program comes here for the first time"
_NEW_ADVICE = "nothing, if it happens once; else let the warm-up come here, too"
_READS = "the line reads once more in the same step, from a graph of its own"


def ends(calls: Sequence[Call], executed: list[str]) -> Iterator[tuple[str, int | None, str]]:
    """The graphs of a step in the order in which they ran: (identity, the place of the operator
    that read a value of it or None for the end of the step, the line of that or "").
    """
    left = list(executed)
    for place, call in enumerate(calls):
        for _ in range(min(call.executions, len(left))):
            yield left.pop(0), place, str(call.where or call.library or "an unknown line")
    yield from ((graph, None, "") for graph in left)


def _part(trace: Trace, end: int | None) -> Trace:
    """What was recorded before a graph ran.

    A value that is read computes only what it needs, and what else is recorded stays: so all
    operators of the step may belong to each later graph, but for the reads.
    """
    calls = trace.calls if end is None else trace.calls[:end]
    recorded = tuple(call for call in calls if not is_read(call))
    read = tuple(call for call in calls if is_read(call))
    if end is None:
        cuts, before = [], 0
        for call in calls:
            if not is_read(call):
                before += 1
            elif call.executions:
                cuts.append((before, call.where))
        return Trace((), recorded, trace.kept, trace.markers, read, tuple(cuts))
    return Trace((), (*recorded, trace.calls[end]), (), (), read)


def _last(trace: Trace) -> Where | None:
    return next((call.where for call in reversed(trace.calls) if call.where), None)
