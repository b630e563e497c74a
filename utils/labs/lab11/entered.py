"""Watches what enters a model, and what an answer that works with it makes the device do."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from utils.labs import Answer, Facts
from utils.labs.forbidden import forbid
from utils.labs.plain import numbers
from utils.labs.watch import Grown, Steps, compiles, counts
from utils.xla.meter import Meter

SHUT = (
    "utils.training.finetune.lora",
    "utils.training.finetune.decoding",
    "utils.training.finetune.outside",
    "utils.training.finetune.weekly",
)
"""What the course has of its own for this lab: closed to every answer."""


MOST_SHAPES = 200
MOST_COMPILES = 14
"""An answer that has compiled more is stopped: all is seen, and each takes some time."""
MOST_WAITING = 2
"""So is one with more steps that wait: a graph of many steps takes the compiler very long."""


class Storm(Exception):
    """Ends an answer that compiles on and on, or lets step after step wait."""


class Entered:
    """The shape at each call of a module, and in how many calls all was on the device."""

    def __init__(self, module: Any, begin: Callable[[], None]) -> None:
        self.on_device = self.elsewhere = 0
        self.shapes: list[list[int]] = []
        self.tensors: list[Any] = []
        self._begin, self._module = begin, module
        module.register_forward_pre_hook(self._look, with_kwargs=True)

    def _look(self, module: Any, inputs: tuple[Any, ...], named: dict[str, Any]) -> None:
        if module is not self._module:  # a copy, with a copy of the hook
            return
        first = (*inputs, *named.values())[0]
        places = {item.device.type for item in (first, *module.parameters())}
        self.on_device += places == {"xla"}
        self._begin()  # the last, because it may end the answer
        self.shapes.append(list(first.shape))
        self.tensors.append(first.detach())

    @contextlib.contextmanager
    def everywhere(self) -> Iterator[None]:
        """Count the layers that are called on the host: of a copy of the model."""
        from torch.nn.modules.module import register_module_forward_pre_hook

        def look(module: Any, _: object) -> None:
            own = module.parameters(recurse=False)
            self.elsewhere += any(item.device.type != "xla" for item in own)

        handle = register_module_forward_pre_hook(look)
        try:
            yield
        finally:
            handle.remove()


def measure(
    exercise_id: str, answer: Answer, model: Any, watched: Any, *inputs: Any, waits: bool = False
) -> tuple[Facts, Any, list[Any]]:
    """What happens while an answer works with a model and further inputs, what it returned, and
    what entered the module `watched` of that model.

    waits: whether steps may wait for each other.
    """
    import torch

    torch.set_num_threads(1)  # the process is the answer's own
    with Meter() as meter:
        seen, before = Steps(), compiles()

        def begin() -> None:
            seen.begin()
            waiting = 0 if waits else seen.facts()["waiting"]
            if compiles() - before > MOST_COMPILES or waiting > MOST_WAITING:
                raise Storm

        entered = Entered(watched, begin)
        response, stopped = None, False
        with forbid(exercise_id, *SHUT), entered.everywhere():
            try:
                response = answer(model, *inputs)
            except (Grown, Storm):
                stopped = True
        facts = seen.facts()
    facts = {
        **facts,
        **counts(meter.reading),
        "graph_nodes": list(meter.reading.graph_nodes)[:MOST_SHAPES],
        "on_device": 0 if entered.elsewhere else entered.on_device,
        "shapes": entered.shapes[:MOST_SHAPES],
        "returned": {"stopped": stopped, **numbers(response)},
    }
    return facts, response, entered.tensors


def compile_the_rest(count: int) -> None:
    """Compile what is not to be counted: what brings that many losses together, and the look that
    an optimizer takes at a learning rate that is a tensor.
    """
    import torch
    import torch_xla

    from utils.xla.meter import settle

    device = torch_xla.device()
    losses = [torch.full((1,), 0.5).to(device).sum() for _ in range(count)]
    settle()
    torch.stack(losses).tolist()
    torch.optim.AdamW([torch.zeros(1).to(device)], lr=torch.tensor([0.5]).to(device))
    torch.optim.AdamW([torch.zeros(1).to(device)], lr=torch.tensor(0.5).to(device))
