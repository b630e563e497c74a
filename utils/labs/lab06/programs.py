"""Six training programs that run on XLA, one of them healthy, and the records that they leave: what
exercise 5 of lab 06 diagnoses.
"""

import itertools
import time
from collections.abc import Callable, Iterator
from typing import Any

Record = dict[str, Any]
_widths = itertools.count(41)
"""A width that no program had before in this process: its graphs are compiled anew."""

LOAD_S = 0.02
KEPT = ("UncachedCompile", "CachedCompile", "MarkStep")


class _Program:
    """A model with its batches: [rows, width] each, and rows may differ from step to step."""

    def __init__(self, rows: list[int], load_s: float = 0.0) -> None:
        import torch
        import torch_xla
        from torch import nn

        self.device = torch_xla.device()
        self.width = next(_widths)
        torch.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(self.width, 8), nn.Tanh(), nn.Linear(8, 3))
        self.model.to(self.device)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.rows, self.load_s = rows, load_s

    def batches(self) -> Iterator[Any]:
        import torch

        for rows in self.rows:
            if self.load_s:
                time.sleep(self.load_s)
            x, y = torch.randn(rows, self.width), torch.randint(0, 3, (rows,))
            yield x.to(self.device), y.to(self.device)

    def step(self, x: Any, y: Any, loss_of: Callable[..., Any] | None = None) -> Any:
        from torch.nn import functional as F

        self.optimizer.zero_grad()
        loss = (loss_of or F.cross_entropy)(self.model(x), y)
        loss.backward()
        self.optimizer.step()
        return loss.detach()


def _snapshot() -> dict[str, int]:
    """The counters of the process that a record keeps; one that has never counted is not there."""
    import torch_xla.debug.metrics as metrics

    return {
        name: metrics.counter_value(name)
        for name in metrics.counter_names()
        if name in KEPT or name.startswith("aten::")
    }


def _graphs() -> tuple[int, list[int]]:
    """How many graphs have been run, and the nodes of the latest."""
    import torch_xla.debug.metrics as metrics

    count, _, samples = metrics.metric_data("TensorsGraphSize") or (0, 0, [])
    return count, [int(nodes) for _, nodes in samples]


def record(program: _Program, after: Callable[[Any, int], None], loss_of: Any = None) -> Record:
    """Run a program. after: what it does at the end of a step, with the loss and its number."""
    from utils.training.loading import Watched
    from utils.xla.meter import settle

    settle()
    watched = Watched(program.batches())
    counters, nodes = [_snapshot()], []
    for number, (x, y) in enumerate(watched):
        before, _ = _graphs()
        after(program.step(x, y, loss_of), number)
        counters.append(_snapshot())
        count, latest = _graphs()
        nodes.append(latest[len(latest) - (count - before) :] if count > before else [])
    settle()
    return {
        "steps": len(program.rows),
        "counters": counters,
        "graph_nodes": nodes,
        "wait_ms": [item * 1e3 for item in watched.waits.waits_s],
        "work_ms": [item * 1e3 for item in watched.waits.works_s],
    }


def _sync(loss: Any, number: int) -> None:
    import torch_xla

    torch_xla.sync()
    if number % 8 == 7:
        loss.item()


def healthy(steps: int) -> Record:
    """A marker in each step, one read in eight."""
    return record(_Program([16] * steps), _sync)


def recompiles(steps: int) -> Record:
    """Each batch is a row shorter than the one before."""
    return record(_Program([16 + steps - number for number in range(steps)]), _sync)


def fallback(steps: int) -> Record:
    """The loss takes only the rows of one class, by a mask: how many they are, the host has to
    find out."""
    from torch.nn import functional as F

    def loss_of(output: Any, y: Any) -> Any:
        kept = y != 1
        return F.cross_entropy(output[kept], y[kept])

    return record(_Program([16] * steps), _sync, loss_of)


def reads(steps: int) -> Record:
    """The loss of each step is printed."""

    def after(loss: Any, number: int) -> None:
        import torch_xla

        torch_xla.sync()
        loss.item()

    return record(_Program([16] * steps), after)


def starved(steps: int) -> Record:
    """Each batch takes longer to load than to train on."""
    return record(_Program([16] * steps, LOAD_S), _sync)


def no_marker(steps: int) -> Record:
    """The loss of each step is read, and no step ends."""
    return record(_Program([16] * steps), lambda loss, number: loss.item())


PROGRAMS: dict[str, Callable[[int], Record]] = {
    "healthy": healthy,
    "recompiles": recompiles,
    "fallback": fallback,
    "reads": reads,
    "starved": starved,
    "no marker": no_marker,
}
