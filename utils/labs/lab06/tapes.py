"""Profiles as torch_xla's profiler writes them, drawn at random: events of steps that record while
the device works.
"""

import random
from typing import Any

HOST, FIRST, SECOND, COMPILER = 3740382827, 1352031316, 3507247094, 679823820
LANES = {
    HOST: "python",
    FIRST: "tf_XLAPjRtCpuClient/259099439696075860",
    SECOND: "tf_XLAPjRtCpuClient/-3682926232245348362",
    COMPILER: "tf_xla-cpu-codegen/-9027407487505708596",
}

Events = list[dict[str, Any]]


class _Tape:
    """Events with begin and end in nanoseconds."""

    def __init__(self) -> None:
        self.events: Events = []

    def add(self, thread: int, begin: int, end: int, name: str, **args: str) -> int:
        times = {"ts": begin / 1e3, "dur": (end - begin) / 1e3}
        event = {"ph": "X", "pid": 701, "tid": thread, **times, "name": name}
        self.events.append(event | ({"args": args} if args else {}))
        return end


def draw(rng: random.Random, bottleneck: str) -> Events:
    """The events of four or five steps, in no order.

    bottleneck: of which kind there is much, "execute", "compile", "transfer", "data" or "trace".
    """
    tape, number = _Tape(), 0

    def some(kind: str, usual: int, much: int) -> int:
        mean = much if kind == bottleneck else usual
        return rng.randint(mean * 500, mean * 1500)

    at = rng.randint(10**6, 10**7)
    device = tape.add(FIRST, at, at + rng.randint(300_000, 900_000), "ThunkExecutor::Execute")
    tape.add(HOST, at, device - 20_000, "XLAGraphExecutor::Compile")
    at = device + rng.randint(0, 50_000)
    for number in range(rng.randint(4, 5)):
        begin = at
        at = tape.add(HOST, at, at + some("data", 150, 1500), "next batch")
        upload = at + some("transfer", 80, 1400)
        tape.add(HOST, at + 1000, upload, "PjRtComputationClient::TransferToDevice")
        at = tape.add(HOST, upload - 700, upload + 9000, "CommonPjRtBuffer::ToLiteral")
        recorded = tape.add(HOST, at, at + some("trace", 200, 1500), "record")
        tape.add(HOST, at + 900, recorded - 900, "LazyTracing")
        marked = recorded + rng.randint(30_000, 90_000)
        if number < 2 or bottleneck == "compile":
            end = marked + some("compile", 120, 1600)
            tape.add(HOST, marked, end, "XLAGraphExecutor::Compile")
            tape.add(HOST, marked + 2000, end - 2000, "PjRtComputationClient::Compile")
            tape.add(COMPILER, marked + 3000, end - 9000, "TaskDispatcher::dispatch")
            marked = end
        at = tape.add(HOST, recorded, marked + rng.randint(5000, 20_000), "StepMarker")
        start = max(at + rng.randint(1000, 4000), device)
        work = some("execute", 250, 1900)
        tape.add(FIRST, start, start + work, "ThunkExecutor::Execute")
        tape.add(FIRST, start + 500, start + work - 500, rng.choice(("dot.9", "fusion.3")))
        later = start + work // 3
        device = start + work + rng.randint(0, work // 4)
        tape.add(SECOND, later, device, "ThunkExecutor::Execute")
        if number % 2:
            # The loop reads the loss: it waits for the device, and then the value is carried over.
            end = max(at, device) + some("transfer", 60, 500)
            at = tape.add(HOST, at, end, "PjRtComputationClient::TransferFromDevice")
        tape.add(HOST, begin, at, "step", step_num=str(number))
        at += rng.randint(5000, 60_000)
    tape.add(HOST, at, at + rng.randint(200_000, 900_000), "next batch")
    names = [
        {"ph": "M", "pid": 701, "tid": thread, "name": "thread_name", "args": {"name": name}}
        for thread, name in LANES.items()
    ]
    rng.shuffle(tape.events)
    return names + tape.events
