"""The true losses of lab 04 in float64, with which answers are compared: for the judge, not the
sandbox.
"""

from typing import Any

from utils.labs.lab04 import texts, training
from utils.labs.lab04.training import Case
from utils.labs.truth import loss_and_gradients


def batch_losses(case: Case, kept: float = 0.0) -> list[float]:
    """The loss of every batch of an uneven training, exercise 2; the warm-up scales the updates.

    kept: the share of the gradients that stays for the next step, 1 if they are never zeroed.
    """
    return _training(case, kept)[0]


def loss_after(case: Case) -> float:
    """The loss of the first batch when that training is over."""
    weights = _training(case, 0.0)[1]
    _, ((x, y), *_), _ = training.draw(case)
    return loss_and_gradients(weights, x.double(), y)[0]


def _training(case: Case, kept: float) -> tuple[list[float], list[Any]]:
    """The losses, and the weights at the end."""
    model, batches, warmup = training.draw(case)
    weights = [parameter.detach().double() for parameter in model.parameters()]
    sums, losses = [0.0] * len(weights), []
    for (x, y), factor in zip(batches, warmup.double(), strict=True):
        loss, gradients = loss_and_gradients(weights, x.double(), y)
        losses.append(loss)
        sums = [kept * s + factor * item for s, item in zip(sums, gradients, strict=True)]
        weights = [w - case["lr"] * s for w, s in zip(weights, sums, strict=True)]
    return losses, weights


def sentence_losses(case: Case) -> list[float]:
    """The mean loss of every sentence by itself, exercise 3."""
    import torch

    model, sequences = texts.draw(case)
    model.double()
    losses = []
    with torch.no_grad():
        for ids in map(torch.tensor, sequences):
            log_p = model(ids[None, :-1])[0].log_softmax(dim=1)
            losses.append(-log_p[torch.arange(len(ids) - 1), ids[1:]].mean().item())
    return losses
