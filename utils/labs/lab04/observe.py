"""What the answers of lab 04 do, as counts and plain values. Judges nothing."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from utils.labs import Answer, Facts, Observer, limit
from utils.labs.plain import describe, number, numbers
from utils.labs.watch import Steps, counts, launches, numbers_of, unused


def measure_edits(values: list[float]) -> dict[str, int]:
    """Compiles of each edit, as in a fresh process."""
    import torch
    import torch_xla

    from utils.labs.lab04 import edits
    from utils.xla.meter import Meter

    measured = {}
    for name, edit in edits.EDITS.items():
        x = torch.ones(16, 1000 + next(unused)).to(torch_xla.device())
        with Meter() as meter:
            edits.run(edit, x, values)
        measured[name] = meter.reading.compiles
    return measured


def observe_new_graphs(answer: Answer, case: Facts) -> Facts:
    """The predicted and the measured compiles of each edit."""
    from utils.xla.meter import settle

    settle()
    before = launches()
    response = answer(list(case["values"]))
    settle()
    ran = launches() - before
    # Measured afterwards: what a prediction is compared with must not be there to be read.
    measured = measure_edits(case["values"])
    given = response if isinstance(response, dict) else {}
    return {
        "kind": describe(response),
        "predicted": {name: number(given[name]) for name in measured if name in given},
        "measured": measured,
        "launches": ran,
    }


class _Inputs:
    """Watches what enters a model: the shape at each call, and in how many calls all was on the
    device.
    """

    def __init__(self, model: Any, begin: Callable[[], None]) -> None:
        self.on_device = 0
        self.shapes: list[list[int]] = []
        self.tensors: list[Any] = []
        self._begin = begin
        model.register_forward_pre_hook(self._look, with_kwargs=True)

    def _look(self, module: Any, inputs: tuple[Any, ...], named: dict[str, Any]) -> None:
        self._begin()
        first = (*inputs, *named.values())[0]
        places = {item.device.type for item in (first, *module.parameters())}
        self.on_device += places == {"xla"}
        self.shapes.append(list(first.shape))
        self.tensors.append(first)


def _run(answer: Answer, model: Any, *inputs: Any) -> tuple[Facts, list[Any]]:
    """What happens while an answer works with a model and further inputs, and what entered."""
    from utils.xla.meter import Meter

    with Meter() as meter:
        seen = Steps()
        entered = _Inputs(model, seen.begin)
        returned = numbers_of(answer, model, *inputs)
        facts = seen.facts()
    facts = {
        **facts,
        **counts(meter.reading),
        "on_device": entered.on_device,
        "shapes": entered.shapes[:_MOST_SHAPES],
        "returned": returned,
    }
    return facts, entered.tensors[:_MOST_SHAPES]


_MOST_SHAPES = 200


def _bring_together(count: int) -> None:
    """Compile what brings that many losses together. Otherwise the first check of a process would
    count it, and a later one would not.
    """
    import torch
    import torch_xla

    from utils.xla.meter import settle

    losses = [torch.full((1,), 0.5).to(torch_xla.device()).sum() for _ in range(count)]
    settle()
    torch.stack(losses).tolist()


def observe_steady_loop(answer: Answer, case: Facts) -> Facts:
    """The losses of a loop, what it cost, and the loss of the weights that it left."""
    import torch
    import torch_xla

    from utils.labs.lab04 import training

    device = torch_xla.device()
    spare = next(unused)
    model, batches, warmup = training.draw(case, spare)
    model.to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=case["lr"])
    _bring_together(len(batches))
    facts, _ = _run(answer, model, optimizer, batches, warmup.to(device))
    again, (batch, *_), _ = training.draw(case, spare)
    again.load_state_dict({name: item.cpu() for name, item in model.state_dict().items()})
    with torch.no_grad():
        loss = torch.nn.functional.cross_entropy(again(batch[0]), batch[1])
    return {**facts, "loss_after": number(loss.item())}


def observe_bucketed_losses(answer: Answer, case: Facts) -> Facts:
    """The losses, what they cost, and how many sentences entered the model."""
    import torch_xla

    from utils.labs.lab04 import texts

    model, sequences = texts.draw(case, spare_ids=next(unused))
    model.to(torch_xla.device())
    facts, tensors = _run(answer, model, [list(ids) for ids in sequences])
    rows = [row for tensor in tensors if tensor.dim() == 2 for row in tensor.tolist()]
    return {**facts, "sentences_in": sum(_in_some(rows, ids[:-1]) for ids in sequences)}


def _in_some(rows: list[list[int]], ids: list[int]) -> bool:
    """Whether these ids stand next to each other in a row."""
    size = len(ids)
    return any(row[k : k + size] == ids for row in rows for k in range(len(row) - size + 1))


@contextmanager
def _own_search_only() -> Iterator[None]:
    """The course has the search that exercise 4 asks for. An answer that calls it, however it was
    imported, is told so.
    """
    from utils.xla.buckets import best_buckets

    def refuse(*_: Any, **__: Any) -> None:
        raise RuntimeError("best_buckets is the course's search: write one of your own")

    before = best_buckets.__code__
    best_buckets.__code__ = refuse.__code__
    try:
        yield
    finally:
        best_buckets.__code__ = before


def observe_choose_buckets(answer: Answer, case: Facts) -> Facts:
    """The buckets that were chosen, or that the answer had to be stopped."""
    histogram = {length: count for length, count in case["histogram"]}
    with _own_search_only():
        response, stopped = limit.within(lambda: answer(histogram, case["most"]))
    return {"stopped": stopped, "returned": numbers(response)}


_MOST_GRAPHS = 200


def _graph(value: Any) -> list[Any] | str:
    """A graph that was returned, as [kind, rows, length]; of anything else what it is."""
    if isinstance(value, list | tuple) and len(value) == 3:
        kind = value[0] if isinstance(value[0], str) else describe(value[0])
        return [kind[:20], number(value[1]), number(value[2])]
    return describe(value)


def observe_plan(answer: Answer, case: Facts) -> Facts:
    """The queue of graphs that the answer gives to every worker."""
    job = [[tuple(step) for step in worker] for worker in case["job"]]
    seconds = {tuple(graph): cost for graph, cost in case["seconds"]}
    response, stopped = limit.within(lambda: answer(job, seconds))
    queues = None
    if isinstance(response, list | tuple):
        queues = [
            [_graph(item) for item in queue[:_MOST_GRAPHS]]
            if isinstance(queue, list | tuple)
            else describe(queue)
            for queue in response[:_MOST_GRAPHS]
        ]
    return {"stopped": stopped, "kind": describe(response), "queues": queues}


OBSERVERS = {
    "ex1": Observer("new_graphs", observe_new_graphs),
    "ex2": Observer("steady_loop", observe_steady_loop),
    "ex3": Observer("bucketed_losses", observe_bucketed_losses),
    "ex4": Observer("choose_buckets", observe_choose_buckets),
    "ex5": Observer("plan", observe_plan),
}
