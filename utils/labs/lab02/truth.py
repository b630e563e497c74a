"""What is right in lab 02, computed in float64 on the CPU: for the judge, not the sandbox."""

from typing import Any

from utils.labs.lab02.problems import Case, histogram_inputs, masked_inputs, shared_training
from utils.labs.training import MOMENTUM, draw
from utils.labs.truth import loss_and_gradients

MAX_NORM = 0.5
"""The largest norm of all gradients together, as the scripts of the lab clip them."""


def clipped_losses(
    case: Case,
    max_norm: float = MAX_NORM,
    weights_of: Case | None = None,
    momentum: float = MOMENTUM,
    zero_grad: bool = True,
) -> list[float]:
    """The loss of every step of the training with clipped gradients.

    weights_of: the case whose model gives the first weights, if not this one.
    zero_grad: whether a step forgets the gradients of the step before, clipped as they were.
    Without autograd, for the reason given in lab 03's `true_losses`.
    """
    import torch

    (model, _), (_, batches) = draw(weights_of or case), draw(case)
    weights = [parameter.detach().double() for parameter in model.parameters()]
    velocities = [torch.zeros_like(weight) for weight in weights]
    old = velocities
    losses = []
    for x, y in batches:
        loss, gradients = loss_and_gradients(weights, x.double(), y)
        losses.append(loss)
        gradients = [item + left for item, left in zip(gradients, old, strict=True)]
        norm = torch.sqrt(sum(gradient.square().sum() for gradient in gradients))
        gradients = [min(1.0, max_norm / norm.item()) * gradient for gradient in gradients]
        old = old if zero_grad else gradients
        velocities = [momentum * v + g for v, g in zip(velocities, gradients, strict=True)]
        weights = [w - case["lr"] * v for w, v in zip(weights, velocities, strict=True)]
    return losses


def shared_losses(
    case: Case,
    share: str = "mean",
    max_norm: float = MAX_NORM,
    momentum: float = MOMENTUM,
    zero_grad: bool = True,
    clip_first: bool = False,
) -> list[list[float]]:
    """The losses of each process in a training that processes share, in float64.

    share: what each updates its weights with: the "mean" or the "sum" of all gradients, or its
    "own". clip_first: whether each clips its own gradients, before they are shared.
    """
    import torch

    model, parts = shared_training(case)
    first = [parameter.detach().double() for parameter in model.parameters()]
    zeros = [torch.zeros_like(weight) for weight in first]
    weights, velocities, old = ([element] * len(parts) for element in (first, zeros, zeros))
    losses: list[list[float]] = [[] for _ in parts]

    def clipped(gradients: list[Any], now: bool) -> list[Any]:
        norm = torch.sqrt(sum(gradient.square().sum() for gradient in gradients)).item()
        return [min(1.0, max_norm / norm) * g if now else g for g in gradients]

    for batches in zip(*parts, strict=True):
        gradients = []
        for rank, (x, y) in enumerate(batches):
            loss, own = loss_and_gradients(weights[rank], x.double(), y)
            losses[rank].append(loss)
            own = [new + left for new, left in zip(own, old[rank], strict=True)]
            gradients.append(clipped(own, clip_first))
        if share != "own":
            divisor = len(parts) if share == "mean" else 1
            together = [sum(element) / divisor for element in zip(*gradients, strict=True)]
            gradients = [together] * len(parts)
        gradients = [clipped(element, not clip_first) for element in gradients]
        old = old if zero_grad else gradients
        velocities = [
            [momentum * v + g for v, g in zip(*element, strict=True)]
            for element in zip(velocities, gradients, strict=True)
        ]
        weights = [
            [w - case["lr"] * v for w, v in zip(*element, strict=True)]
            for element in zip(weights, velocities, strict=True)
        ]
    return losses


def histograms(case: Case, right: bool = False) -> list[tuple[list[int], list[int]]]:
    """For each call the bin of every value, and the number of values in every bin.

    right: whether a value on an edge goes into the bin above it; the task says below.
    """
    import torch

    calls, edges = histogram_inputs(case)
    results = []
    for values in calls:
        bins = torch.bucketize(values, edges, right=right)
        counts = torch.bincount(bins, minlength=len(edges) + 1)
        results.append((bins.tolist(), counts.tolist()))
    return results


def masked_losses(case: Case) -> list[tuple[float, list[float]]]:
    """For each mask the loss, and its gradient for the logits, row after row."""
    import torch

    results = []
    for logits, targets, mask in masked_inputs(case):
        log_p = logits.double().log_softmax(dim=1)
        kept = max(int(mask.sum()), 1)
        rows: Any = torch.arange(len(targets), device=targets.device)
        loss = -(log_p[rows, targets] * mask).sum() / kept
        d_logits = log_p.exp() - torch.nn.functional.one_hot(targets, logits.shape[1])
        results.append((loss.item(), (d_logits * mask[:, None] / kept).flatten().tolist()))
    return results
