"""The compile doctor: says why a step was compiled again, and where.

It runs the step once for each batch, notes every operator with its arguments and its line, and
explains each compile by what differs from an earlier run. The counts are those of
`utils.xla.meter`.
"""

import inspect
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import islice, pairwise
from typing import Any

from torch.utils._pytree import keystr, tree_flatten_with_path

from utils.xla.doctor import advice
from utils.xla.doctor.compare import Finding, differences
from utils.xla.doctor.report import Cause, Diagnosis, Step
from utils.xla.doctor.trace import Call, Recorder, Trace, data_dependent, pending, spec
from utils.xla.meter import Meter

_MOST = 64
"""Batches that are looked at, at most."""


def diagnose(step: Callable[..., Any], batches: Iterable[Any], *, warmup: int = 0) -> Diagnosis:
    """Run `step` once for each batch, and say why it was compiled again.

    Args:
        step: called as `step(*batch)` for a tuple or a list if it takes that many arguments, else
            as `step(batch)`. It records one step on the XLA device and may pass step markers
            itself; what it leaves pending is run after it.
        batches: a few batches, at most 64. Whatever the step does to a model, it does.
        warmup: how often the first batch is run before, uncounted: with 2, what only the first
            steps of an optimizer do is out of the way.

    Raises:
        TypeError: `step` cannot be called, or the batches are one tensor.
        ValueError: there are no batches, or more than 64, or warmup is negative.

    An error of the step itself is passed on, with a note that names the batch.

    >>> import torch, torch_xla
    >>> x = torch.ones(6, 50).to(torch_xla.device())
    >>> diagnose(lambda x, n: x[:, :n] * 2.5, [(x, 10), (x, 10), (x, 20)]).causes[0].what
    'stop of a slice: 10 became 20'
    """
    return _diagnosis(step, _check(step, batches, warmup), warmup)


def _check(step: Any, batches: Any, warmup: int) -> list[Any]:
    if not callable(step):
        raise TypeError(
            f"step is {type(step).__name__}, and must be a function that records one step"
        )
    if not isinstance(batches, Iterable) or isinstance(batches, str | dict) or _is_tensor(batches):
        raise TypeError(
            f"batches is one {type(batches).__name__}: give a list of batches, such as"
            " [(x1, y1), (x2, y2)]"
        )
    if not isinstance(warmup, int) or warmup < 0:
        raise ValueError(f"warmup is {warmup!r}, and must be a number of runs, 0 or more")
    given = list(islice(batches, _MOST + 1))
    if not given:
        raise ValueError("there are no batches: give at least two, so that there is a second step")
    if len(given) > _MOST:
        raise ValueError(f"there are more than {_MOST} batches: give the few that you wonder about")
    return given


def _is_tensor(value: Any) -> bool:
    return hasattr(value, "dtype") and hasattr(value, "shape")


def _arguments(step: Callable[..., Any], batch: Any) -> tuple[tuple[str, ...], tuple[Any, ...]]:
    """The names and the values that the step is called with."""
    whole = (batch,)
    values = tuple(batch) if isinstance(batch, tuple | list) else whole
    bound = _bound(step, values)
    if bound is None and (bound := _bound(step, whole)):
        values = whole
    if bound is None:
        return tuple(str(place + 1) for place in range(len(values))), values
    names: list[str] = []
    for name, value in bound.arguments.items():
        many = bound.signature.parameters[name].kind is inspect.Parameter.VAR_POSITIONAL
        names += [f"{name}[{place}]" for place in range(len(value))] if many else [name]
    return tuple(names), values


def _bound(step: Callable[..., Any], values: tuple[Any, ...]) -> inspect.BoundArguments | None:
    try:
        # A module's own call takes anything: its forward names the arguments.
        return inspect.signature(getattr(step, "forward", step)).bind(*values)
    except (TypeError, ValueError):  # other arguments, or a callable without a signature
        return None


def _diagnosis(step: Callable[..., Any], batches: list[Any], warmup: int) -> Diagnosis:
    traces: list[Trace] = []
    steps: list[Step] = []
    causes: list[Cause] = []
    for number, batch in enumerate([*batches[:1] * warmup, *batches], start=1 - warmup):
        trace, reading = _observe(step, batch, max(number, 1))
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
            result = interruptions(trace)
            if reading.compiles and traces:
                result += reasons(traces, trace, counts)
            causes += [
                Cause(number, f.kind, f.what, str(f.where or ""), f.advice)
                for f in result
                if f.kind not in _ONCE or not _is_reported(causes, f)
            ]
        traces.append(trace)
    if not any(item.executions for item in steps):
        causes.append(Cause(1, "nothing ran", _nothing(traces[-1]), "", advice.NOTHING_RAN))
    return Diagnosis(tuple(steps), tuple(causes))


_ONCE = ("read", "fallback")


def _is_reported(causes: list[Cause], finding: Finding) -> bool:
    return any((c.kind, c.where) == (finding.kind, str(finding.where or "")) for c in causes)


def _observe(step: Callable[..., Any], batch: Any, number: int) -> tuple[Trace, Any]:
    import torch_xla

    names, values = _arguments(step, batch)
    inputs = tuple(
        (name + keystr(path), spec(leaf))
        for name, value in zip(names, values, strict=True)
        for path, leaf in tree_flatten_with_path(value)[0]
    )
    # Every step marker moves the seed of the device on, also those that are the doctor's own.
    seed = torch_xla._XLAC._xla_get_rng_seed()
    with Meter() as meter:
        torch_xla._XLAC._xla_set_rng_seed(seed)
        with Recorder(_call_step.__code__) as recorder:
            try:
                kept = _call_step(step, values)
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


def _call_step(step: Callable[..., Any], values: tuple[Any, ...]) -> Any:
    return step(*values)


def interruptions(trace: Trace) -> list[Finding]:
    """What runs the graph before its end: values read, and operators on the host."""
    results: list[Finding] = []
    for call in trace.calls:
        if call.fallbacks:
            what = f"{', '.join(call.fallbacks)} runs on the host{advice.inside(call)}"
            tip = advice.data_dependent(call.name) if data_dependent(call) else advice.FALLBACK
            results.append(Finding("fallback", what, call.where, tip))
        elif call.executions:  # a value that is computed already can be read without running
            name = _READS.get(call.name, call.name)
            what = f"{name} runs what is recorded so far, to read a value{advice.inside(call)}"
            results.append(Finding("read", what, call.where, advice.read(call)))
    return list(dict.fromkeys(results))


_READS = {"local_scalar_dense": "`.item()`, `if` or `int()`", "to": "`.cpu()` or `.tolist()`"}


def reasons(traces: list[Trace], new: Trace, counts: Step) -> list[Finding]:
    """What differs from the earlier run that is most alike."""
    first = traces[0].since_the_start(new)
    results = [differences(trace, new, from_first=False, history=traces) for trace in traces[:0:-1]]
    results.append(differences(first, new.without_the_tail(first), from_first=True, history=traces))
    nearest = min(distance for _, distance in results)
    found = [findings for findings, distance in results if findings and distance == nearest]
    if not found:  # what differs from a run that is less alike is not why
        return [Finding("unknown", _unlike(traces[-1], new, counts), None, advice.UNKNOWN)]
    return min(found, key=len)


def turns(calls: Sequence[Call], end: int) -> list[Finding]:
    """Why a line that reads once more in a step asks for another graph, if a loop came back to it:
    what differs from the turn before. calls[end] is the read.
    """
    line = calls[end].where
    ends = [-1, *(k for k in range(end + 1) if calls[k].executions and calls[k].where == line)]
    *before, new = (Trace((), tuple(calls[a + 1 : b + 1]), (), ()) for a, b in pairwise(ends))
    # On one line, several reads may stand one beside the other.
    lines = {call.where for trace in before[-1:] for call in trace.calls} - {line}
    if not any(call.where in lines for call in new.calls):
        return []
    return differences(before[-1], new, from_first=False, history=before)[0]


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
