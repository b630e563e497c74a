"""What lab 06 shows of its inputs: the kinds of events in a profile, and small examples."""

from typing import Any

KINDS = {
    "ThunkExecutor::Execute": "execute",
    "XLAGraphExecutor::Compile": "compile",
    "PjRtComputationClient::Compile": "compile",
    "PjRtComputationClient::TransferToDevice": "transfer",
    "PjRtComputationClient::TransferFromDevice": "transfer",
    "next batch": "data",
    "record": "trace",
    "StepMarker": "trace",
}
"""Names of events in a trace of torch_xla on the CPU, and what they are spent on. "step", "next
batch" and "record" are names that the training loop gives; all others lie inside of these. (A graph
of a few operations runs without an event of its own; `utils.training.traces` goes by the device's
threads.)
"""

ORDER = ("execute", "compile", "transfer", "data", "trace")
"""What a moment counts as, if several kinds of events cover it: the first of these."""


def _event(thread: int, begin_us: int, end_us: int, name: str, **args: str) -> dict[str, Any]:
    times = {"ts": float(begin_us), "dur": float(end_us - begin_us)}
    return {"ph": "X", "pid": 7, "tid": thread, **times, "name": name, "args": args}


def _name(thread: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "pid": 7, "tid": thread, "name": "thread_name", "args": {"name": name}}


PROFILE = [
    _name(1, "python"),
    _name(2, "tf_XLAPjRtCpuClient/1"),
    _name(3, "tf_XLAPjRtCpuClient/2"),
    _event(2, 500, 900, "ThunkExecutor::Execute"),
    _event(1, 1000, 2000, "step", step_num="0"),
    _event(1, 1000, 1300, "next batch"),
    _event(1, 1300, 1400, "record"),
    _event(1, 1400, 1900, "StepMarker"),
    _event(1, 1450, 1800, "XLAGraphExecutor::Compile"),
    _event(1, 1460, 1790, "PjRtComputationClient::Compile"),
    _event(2, 1850, 2250, "ThunkExecutor::Execute"),
    _event(3, 1900, 2200, "ThunkExecutor::Execute"),
    _event(1, 2000, 3000, "step", step_num="1"),
    _event(1, 2000, 2500, "next batch"),
    _event(1, 2500, 2600, "record"),
    _event(1, 2600, 2650, "StepMarker"),
    _event(2, 2650, 3050, "ThunkExecutor::Execute"),
]
"""Two steps of 1000 microseconds each."""

DEVICE = {
    "pending_ticks": 500,
    "record_ticks": 20,
    "compile_ticks": [9000, 0, 0],
    "work_ticks": [1000, 1000, 1000],
}
"""A small `LazyDevice` of three steps; work of somebody else is in its queue."""
