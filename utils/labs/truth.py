"""The true losses of a case, with which answers are compared: for the judge, not the sandbox."""

from typing import Any

from utils.labs.training import MOMENTUM, Case, draw


def true_losses(case: Case) -> list[float]:
    """The loss of every step in float64 on the CPU, with the gradients written out.

    Autograd is left alone on purpose: if a process runs its first `backward` before XLA's device
    is there, no later `backward` on that device works.
    """
    import torch

    model, batches = draw(case)
    weights = [parameter.detach().double() for parameter in model.parameters()]
    velocities = [torch.zeros_like(weight) for weight in weights]
    losses = []
    for x, y in batches:
        loss, gradients = loss_and_gradients(weights, x.double(), y)
        losses.append(loss)
        velocities = [MOMENTUM * v + g for v, g in zip(velocities, gradients, strict=True)]
        weights = [w - case["lr"] * v for w, v in zip(weights, velocities, strict=True)]
    return losses


def loss_and_gradients(weights: list[Any], x: Any, y: Any) -> tuple[float, list[Any]]:
    """Cross entropy of linear, tanh, linear, and its gradient for each weight."""
    import torch

    w1, b1, w2, b2 = weights
    hidden = (x @ w1.T + b1).tanh()
    log_p = (hidden @ w2.T + b2).log_softmax(dim=1)
    d_logits = (log_p.exp() - torch.nn.functional.one_hot(y, len(b2))) / len(y)
    d_hidden = (d_logits @ w2) * (1 - hidden**2)
    loss = -log_p[torch.arange(len(y), device=y.device), y].mean()
    gradients = [d_hidden.T @ x, d_hidden.sum(0), d_logits.T @ hidden, d_logits.sum(0)]
    return loss.item(), gradients
