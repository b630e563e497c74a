"""What is right for lab 11, in float64 on the CPU: for the judge, not the sandbox.

Gradients are written out: `backward` is left alone on purpose, because a process that runs its
first one before XLA's device is there can run none on that device later.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.nn import functional

from utils.labs import Facts
from utils.labs.lab11 import decoder, tuned

Weighted = tuple[Any, Any, float]
"""Inputs and targets of a micro-batch, and the factor of the sum of its losses."""

Optimizer = Callable[[list[Any]], Any]


def _alone(work: Callable[..., Any]) -> Callable[..., Any]:
    """In one thread: on a busy machine, many small products wait for others ten times as long."""

    @functools.wraps(work)
    def run(*arguments: Any, **named: Any) -> Any:
        before = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            return work(*arguments, **named)
        finally:
            torch.set_num_threads(before)

    return run


@_alone
def train(
    seed: int, steps: Sequence[list[Weighted]], make: Optimizer, rates: Sequence[float], kept: float
) -> tuple[list[float], Any]:
    """The loss of every step, and the model after the last.

    kept: the share of the gradients that stays for the next step, 1 if they are never zeroed.
    """
    model = tuned.draw(seed).double()
    values = {n: p.detach() for n, p in model.named_parameters() if p.requires_grad}
    optimizer, losses = make(list(values.values())), []
    for step, rate in zip(steps, rates, strict=True):
        loss, gradients = 0.0, {name: torch.zeros_like(entry) for name, entry in values.items()}
        for micro in step:
            more, own = _loss_and_gradients(model, *micro)
            loss += more
            for name, gradient in gradients.items():
                gradient += own[name]
        losses.append(loss)
        for name, item in values.items():
            before = item.grad if item.grad is not None else 0.0
            item.grad = kept * before + gradients[name]
        optimizer.param_groups[0]["lr"] = rate
        optimizer.step()
    return losses, model


@torch.no_grad()
def _loss_and_gradients(
    model: Any, inputs: Any, targets: Any, factor: float
) -> tuple[float, dict[str, Any]]:
    """`factor` times the sum of the losses of all real targets, and the adapters' gradients."""
    here = targets.flatten() >= 0
    tokens = model.tokens(inputs)
    before = functional.pad(tokens, (0, 0, 1, 0))[:, :-1]
    x, y = torch.cat([tokens, before], dim=-1).flatten(0, 1)[here], targets.flatten()[here]
    hidden = model.mix(x).tanh()
    log_p = model.head(hidden).log_softmax(dim=1)
    loss = -factor * log_p[torch.arange(len(y)), y].sum()
    d_logits = factor * (log_p.exp() - functional.one_hot(y, log_p.shape[1]))
    head, mix = model.head, model.mix
    d_hidden = d_logits @ (head.base.weight + head.up @ head.down)
    d_mixed = d_hidden * (1 - hidden**2)
    gradients: dict[str, Any] = {}
    for name, layer, whole in (("head", head, d_logits.T @ hidden), ("mix", mix, d_mixed.T @ x)):
        gradients |= {f"{name}.up": whole @ layer.down.T, f"{name}.down": layer.up.T @ whole}
    return float(loss), gradients


def _sum(logits: Any, targets: Any) -> Any:
    """Of the losses of all places with a target."""
    return functional.cross_entropy(logits.transpose(1, 2), targets, reduction="sum")


def real(targets: Any) -> int:
    """Targets that count."""
    return int((targets >= 0).sum())


def mean_loss(model: Any, rows: list[list[int]]) -> float:
    """The mean loss of all tokens of some sentences that a model is to predict."""
    inputs, targets = tuned.pad(rows, max(map(len, rows)) - 1)
    with torch.no_grad():
        return float(_sum(model(inputs), targets)) / real(targets)


def tuning(case: Facts, rates: list[float] | None = None) -> tuple[list[float], Any]:
    """Exercise 2, with the rates of the case or others."""
    steps = []
    for rows in tuned.batches(case):
        inputs, targets = tuned.pad(rows, max(map(len, rows)) - 1)
        steps.append([(inputs, targets, 1 / real(targets))])
    make = functools.partial(torch.optim.AdamW, weight_decay=0.0)
    return train(case["seed"], steps, make, rates or case["rates"], 0.0)


def accumulating(case: Facts, way: str = "tokens", kept: float = 0.0) -> tuple[list[float], Any]:
    """Exercise 3: the mean over all tokens of a step, or another way to bring them together."""
    steps = []
    for step in tuned.micro_batches(case):
        counts = [real(targets) for _, targets in step]
        factors = {
            "tokens": [1 / sum(counts)] * len(step),
            "means": [1 / (len(step) * max(count, 1)) for count in counts],
            "sum of means": [1 / max(count, 1) for count in counts],
            "sum": [1.0] * len(step),
            "padded": [1 / sum(targets.numel() for _, targets in step)] * len(step),
        }[way]
        steps.append([(*item, factor) for item, factor in zip(step, factors, strict=True)])
    make = functools.partial(torch.optim.SGD, lr=case["lr"])
    return train(case["seed"], steps, make, [case["lr"]] * len(steps), kept)


@_alone
def serve(case: Facts, scaled: bool = True, left_over: bool = False) -> list[float]:
    """Exercise 5: the loss of each request; without alpha / rank; or with the rows of a slot that
    an adapter does not fill still those of the one before.
    """
    model, losses = tuned.draw(case["seed"], case["slots"]).double(), []
    state = model.state_dict()
    for name, ids in tuned.requests(case):
        item = tuned.adapter(*case["adapters"][name])
        scale = item["alpha"] / item["rank"] if scaled else 1.0
        for part, tensor in item["weights"].items():
            slot, rank = state[part], item["rank"]
            if not left_over:
                slot.zero_()
            if part.endswith("down"):
                slot[:rank] = tensor
            else:
                slot[:, :rank] = scale * tensor
        losses.append(mean_loss(model, ids.tolist()))
    return losses


@_alone
def base_alone(case: Facts) -> list[float]:
    """The losses of the requests without any adapter."""
    model = tuned.draw(case["seed"], case["slots"]).double()
    for name, item in model.state_dict().items():
        if name.endswith(("up", "down")):
            item.zero_()
    return [mean_loss(model, ids.tolist()) for _, ids in tuned.requests(case)]


@functools.lru_cache(maxsize=64)
@_alone
def write(seed: int, prompt: tuple[int, ...], count: int) -> tuple[list[int], float]:
    """What the model of exercise 4 writes after a prompt, and by how much the least certain token
    was ahead of the next best.
    """
    model, ids, ahead = decoder.draw(seed).double(), list(prompt), float("inf")
    with torch.no_grad():
        for _ in range(count):
            best = model(torch.tensor([ids]))[0, -1].topk(2)
            ahead = min(ahead, float(best.values[0] - best.values[1]))
            ids.append(int(best.indices[0]))
    return ids[len(prompt) :], ahead
