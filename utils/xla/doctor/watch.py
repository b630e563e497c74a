"""Runs the step under a meter and a recorder, and turns what they saw into a diagnosis."""

from collections import Counter
from collections.abc import Callable
from typing import Any

from torch.utils._pytree import keystr, tree_flatten_with_path

from utils.xla.doctor import Cause, Diagnosis, Step, advice, arguments
from utils.xla.doctor.compare import Finding, differences
from utils.xla.doctor.operators import data_dependent
from utils.xla.doctor.trace import Recorder, Trace, pending, spec
from utils.xla.doctor.wording import inside
from utils.xla.meter import Meter


def run(step: Callable[..., Any], batches: list[Any], warmup: int) -> Diagnosis:
    traces: list[Trace] = []
    steps: list[Step] = []
    causes: list[Cause] = []
    for number, batch in enumerate([*batches[:1] * warmup, *batches], start=1 - warmup):
        trace, reading = _observed(step, batch, max(number, 1))
        if number > 0:
            counts = Step(
                number,
                reading.compiles,
                reading.executions,
                reading.reads,
                reading.fallbacks,
                reading.graph_nodes,
            )
            steps.append(counts)
            found = _interruptions(trace)
            if reading.compiles and traces:
                found += _reasons(traces, trace, counts)
            causes += [
                Cause(number, f.kind, f.what, str(f.where or ""), f.advice)
                for f in found
                if f.kind not in _ONCE or not _said(causes, f)
            ]
        traces.append(trace)
    if not any(each.executions for each in steps):
        causes.append(Cause(1, "nothing ran", _nothing(traces[-1]), "", advice.NOTHING_RAN))
    return Diagnosis(tuple(steps), tuple(causes))


_ONCE = ("read", "fallback")


def _said(causes: list[Cause], finding: Finding) -> bool:
    return any((c.kind, c.where) == (finding.kind, str(finding.where or "")) for c in causes)


def _observed(step: Callable[..., Any], batch: Any, number: int) -> tuple[Trace, Any]:
    import torch_xla

    names, values = arguments(step, batch)
    inputs = tuple(
        (name + keystr(path), spec(leaf))
        for name, value in zip(names, values, strict=True)
        for path, leaf in tree_flatten_with_path(value)[0]
    )
    # Every step marker moves the seed of the device on, also those that are the doctor's own.
    seed = torch_xla._XLAC._xla_get_rng_seed()
    with Meter() as meter:
        torch_xla._XLAC._xla_set_rng_seed(seed)
        with Recorder(_called.__code__) as recorder:
            try:
                kept = _called(step, values)
            except Exception as error:
                error.add_note(f"diagnose: the step raised this for batch {number}")
                raise
        recorder.mark()
        if pending() or not meter.so_far().step_markers:
            torch_xla.sync()
    del kept
    return Trace(
        inputs, tuple(recorder.calls), tuple(recorder.kept), tuple(recorder.markers)
    ), meter.reading


def _called(step: Callable[..., Any], values: tuple[Any, ...]) -> Any:
    return step(*values)


def _interruptions(trace: Trace) -> list[Finding]:
    """What runs the graph before its end: values read, and operators on the host."""
    found: list[Finding] = []
    for call in trace.calls:
        if call.fallbacks:
            what = f"{', '.join(call.fallbacks)} runs on the host{inside(call)}"
            tip = advice.data_dependent(call.name) if data_dependent(call) else advice.FALLBACK
            found.append(Finding("fallback", what, call.where, tip))
        elif call.executions:  # a value that is computed already can be read without running
            name = _READS.get(call.name, call.name)
            what = f"{name} runs what is recorded so far, to read a value{inside(call)}"
            found.append(Finding("read", what, call.where, advice.READ))
    return list(dict.fromkeys(found))


_READS = {"local_scalar_dense": "`.item()`, `if` or `int()`", "to": "`.cpu()` or `.tolist()`"}


def _reasons(traces: list[Trace], new: Trace, counts: Step) -> list[Finding]:
    """What differs from the earlier run that is most alike."""
    best: list[Finding] | None = None
    for place in reversed(range(len(traces))):
        found = differences(traces[place], new, from_first=place == 0)
        if found and (best is None or len(found) < len(best)):
            best = found
    return best or [Finding("unknown", _unlike(traces[-1], new, counts), None, advice.UNKNOWN)]


def _unlike(old: Trace, new: Trace, counts: Step) -> str:
    before, after = (Counter(call.name for call in trace.calls) for trace in (old, new))
    more = ", ".join(f"{name} x{n}" for name, n in (after - before).items()) or "none"
    fewer = ", ".join(f"{name} x{n}" for name, n in (before - after).items()) or "none"
    nodes = ", ".join(map(str, counts.graph_nodes)) or "no"
    return f"no difference is seen: {nodes} nodes; operators more: {more}; fewer: {fewer}"


def _nothing(trace: Trace) -> str:
    if trace.calls:
        return "the step recorded operators, and nothing keeps their results"
    if any(getattr(leaf, "device", "") == "cpu" for _, leaf in trace.inputs):
        return "the batch is on the CPU, and the step uses nothing on the XLA device"
    return "the step uses nothing on the XLA device"
