"""What the answers of lab 03 do, as counts and plain values. Judges nothing."""

import itertools
from collections.abc import Callable
from typing import Any

from utils.exercises import Facts, Observer
from utils.exercises.lab03 import training
from utils.exercises.lab03.fake import FakeDevice
from utils.exercises.plain import describe, number, numbers

Answer = Callable[..., Any]

# The compiler remembers every graph of this process, and a shape is part of a graph. A shape that
# no earlier check used makes compiles count as they do in a fresh process.
_unused = itertools.count(1)


def _launches() -> int:
    """Graphs launched so far in this process; exact at any moment, without waiting."""
    from torch_xla.debug import metrics

    names = ("UncachedCompile", "CachedCompile")
    return sum(metrics.counter_value(name) or 0 for name in names)


def _graph_sizes() -> tuple[int, list[float]]:
    """The number of graphs that ran so far, and the nodes of the latest of them."""
    from torch_xla.debug import metrics

    count, _, latest = metrics.metric_data("TensorsGraphSize") or (0, 0, [])
    return count, [nodes for _, nodes in latest]


class _Grown(Exception):
    """Ends an answer whose graphs grow: each takes the compiler longer, and all is seen."""


class _Steps:
    """Watches training steps: how many began, how many were recorded but not run at worst, and how
    many graphs ran within the first two."""

    def __init__(self) -> None:
        self.started = 0
        self._waiting = 0
        self._launches = _launches()
        self._graphs = _graph_sizes()[0]
        self._early: int | None = None

    def begin(self) -> None:
        """To be called when a step begins. Raises _Grown if the last graph is far too large."""
        self._look()
        count, latest = _graph_sizes()
        own = latest[len(latest) - (count - self._graphs) :]
        if self.started == 2:
            self._early = len(own)
        if self._early and own[-1] > 4 * max(own[: self._early]):
            raise _Grown
        self.started += 1

    def facts(self) -> Facts:
        self._look()
        return {"steps": self.started, "waiting": self._waiting, "early_graphs": self._early or 0}

    def _look(self) -> None:
        self._waiting = max(self._waiting, self.started - (_launches() - self._launches))


def _counts(reading: Any) -> Facts:
    return {
        "executions": reading.executions,
        "compiles": reading.compiles,
        "reads": reading.reads,
        "graph_nodes": list(reading.graph_nodes),
    }


def _returned(answer: Answer, *inputs: Any) -> Facts:
    """What `numbers` says of the answer's result, and whether it was stopped."""
    try:
        return {"stopped": False, **numbers(answer(*inputs))}
    except _Grown:
        return {"stopped": True, **numbers(None)}


def measure_snippets(steps: int) -> dict[str, list[int]]:
    """Executions and compiles of each snippet, as in a fresh process."""
    import torch
    import torch_xla

    from utils.exercises.lab03.snippets import SNIPPETS
    from utils.meter import Meter

    measured = {}
    for name, snippet in SNIPPETS.items():
        x = torch.ones(1000 + next(_unused)).to(torch_xla.device())
        with Meter() as meter:
            snippet(x, steps)
        measured[name] = [meter.executions, meter.compiles]
    return measured


def _pair(value: Any) -> list[Any] | str:
    if isinstance(value, list | tuple) and len(value) == 2:
        return [number(value[0]), number(value[1])]
    return describe(value)


def observe_predict(answer: Answer, case: Facts) -> Facts:
    from utils.meter import settle

    settle()
    before = _launches()
    said = answer(case["steps"])
    settle()
    launches = _launches() - before
    # Measured afterwards: what a prediction is compared with must not be there to be read.
    measured = measure_snippets(case["steps"])
    given = said if isinstance(said, dict) else {}
    return {
        "kind": describe(said),
        "predicted": {name: _pair(given[name]) for name in measured if name in given},
        "measured": measured,
        "launches": launches,
    }


def _on_device(case: Facts) -> tuple[Any, Any, list[Any]]:
    """The model, its optimizer and the batches of a case, on the XLA device."""
    import torch_xla

    device = torch_xla.device()
    model, batches = training.draw(case)
    model.to(device)
    optimizer = training.optimizer_of(model, case["lr"])
    return model, optimizer, [(x.to(device), y.to(device)) for x, y in batches]


def observe_mean_losses(answer: Answer, case: Facts) -> Facts:
    from utils.meter import Meter

    model, optimizer, on_device = _on_device(case)
    with Meter() as meter:
        seen = _Steps()

        def step() -> Any:
            batch = on_device[seen.started % len(on_device)]
            seen.begin()
            return training.train_step(model, optimizer, batch)

        returned = _returned(answer, step, case["steps"], case["every"])
        facts = seen.facts()
    return {**facts, **_counts(meter.reading), "returned": returned}


def observe_bench(answer: Answer, case: Facts) -> Facts:
    device = FakeDevice(case)
    returned = answer(device.fn, device.sync, device.clock, case["warmup"], case["repeats"])
    return {"log": device.log, "returned": numbers(returned)}


def observe_fixed_loop(answer: Answer, case: Facts) -> Facts:
    from utils.meter import Meter

    model, optimizer, on_device = _on_device(case)
    with Meter() as meter:
        seen = _Steps()
        model.register_forward_pre_hook(lambda *_: seen.begin())
        returned = _returned(answer, model, optimizer, on_device)
        facts = seen.facts()
    return {**facts, **_counts(meter.reading), "returned": returned}


def observe_train(answer: Answer, case: Facts) -> Facts:
    from utils.meter import Meter

    model, batches = training.draw(case, spare_features=next(_unused))
    on_device = 0
    with Meter() as meter:
        seen = _Steps()

        def look(module: Any, inputs: tuple[Any, ...]) -> None:
            nonlocal on_device
            seen.begin()
            places = {each.device.type for each in (*inputs, *module.parameters())}
            on_device += places == {"xla"}

        model.register_forward_pre_hook(look)
        returned = _returned(answer, model, batches, case["lr"])
        facts = seen.facts()
    return {
        **facts,
        **_counts(meter.reading),
        "on_device": on_device,
        "returned": returned,
    }


OBSERVERS = {
    "ex1": Observer("predict", observe_predict),
    "ex2": Observer("mean_losses", observe_mean_losses),
    "ex3": Observer("bench", observe_bench),
    "ex4": Observer("fixed_loop", observe_fixed_loop),
    "ex5": Observer("train", observe_train),
}
