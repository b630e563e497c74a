"""What is looked at while the capstone runs: the training's state, losses, graphs, adapters."""

from typing import Any

from utils.labs import Facts
from utils.labs.lab08.killing import digest, parts


def state(run: Any) -> Facts:
    """All that a training depends on, and what adapters add to it."""
    every = list(run.model.parameters())
    trained = [item for item in every if item.requires_grad]
    held = [param for group in run.optimizer.param_groups for param in group["params"]]
    return {
        **parts(run),
        "trained": sum(item.numel() for item in trained),
        "held": {id(item) for item in held} == {id(item) for item in trained},
        "base": digest(*(item for item in every if not item.requires_grad)),
    }


def loss(twin: Any, sentences: list[list[int]]) -> float:
    """The mean loss of the tokens of some sentences, one sentence at a time."""
    import torch

    with torch.no_grad():
        return _mean_loss(twin, sentences).item()


def _mean_loss(twin: Any, sentences: list[list[int]]) -> Any:
    import torch
    from torch.nn import functional

    item = [
        functional.cross_entropy(
            twin(torch.tensor([ids[:-1]]))[0], torch.tensor(ids[1:]), reduction="none"
        )
        for ids in sentences
    ]
    return torch.cat(item).mean()


def adapters(model: Any) -> list[Any]:
    """The values of what trains, on the CPU."""
    return [
        parameter.detach().cpu().clone()
        for parameter in model.parameters()
        if parameter.requires_grad
    ]


def astray(twin: Any, task: Any, drawn: list[list[list[int]]], end: list[Any]) -> float | None:
    """How far adapters ended from where they are led by AdamW, the task's schedule and the batches
    that were drawn, as a share of that way; None if there was no way to go.

    twin: the model on the CPU, as it was before the first of these batches. It is trained here.
    """
    import torch

    trained = [parameter for parameter in twin.parameters() if parameter.requires_grad]
    begin = adapters(twin)
    if not drawn or [item.shape for item in trained] != [item.shape for item in end]:
        return None
    optimizer = torch.optim.AdamW(trained, lr=task.lr)
    scheduler = task.schedule(optimizer)
    for sentences in drawn:
        optimizer.zero_grad()
        _mean_loss(twin, sentences).backward()
        optimizer.step()
        scheduler.step()

    def apart(some: list[Any], others: list[Any]) -> float:
        return sum(float((a - b).square().sum()) for a, b in zip(some, others, strict=True)) ** 0.5

    led = adapters(twin)
    return apart(end, led) / way if (way := apart(led, begin)) else None


def effect(mine: Facts) -> Facts:
    """What adapters of rank 2 with alpha 6 do to a layer: at first, and with all values 0.1.

    With these each output gains alpha · 0.1² times the sum of the inputs, whatever the rank is.
    """
    import torch
    from torch import nn

    torch.manual_seed(0)
    model, x = nn.Sequential(), torch.rand(3, 5)
    model.add_module("head", nn.Linear(5, 4))
    base = model(x).detach()
    try:
        mine["add_lora"](model, {"head"}, 2, 6.0)
    except Exception as error:
        return {"raised": type(error).__name__[:40], "start": 0.0, "gain": 0.0, "trained": 0}
    start = (model(x).detach() - base).abs().max().item()
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    with torch.no_grad():
        for item in trained:
            item.fill_(0.1)
    gain = (model(x).detach() - base) / x.sum(dim=1, keepdim=True) / 0.01
    count = sum(entry.numel() for entry in trained)
    return {"raised": "", "start": start, "gain": gain.mean().item(), "trained": count}
