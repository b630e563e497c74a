"""A training with BF16 weights, for exercise 4 of lab 05; it stalls or not, as `update` has it."""

import torch
import torch_xla

from utils.labs.lab05 import inputs


def train(update, case, watch=lambda weights: None):
    """Train a linear model on the XLA device; returns its weights, BF16, and the losses.

    update: called once a step with (weights, gradients, state, lr); changes the weights in place.
    case: seed, steps, rows per batch and lr.
    """
    device = torch_xla.device()
    start, batches = inputs.training(case)
    weights = [torch.tensor(w.astype("float32")).bfloat16().to(device) for w in start]
    losses, state = [], {}
    for x, y in batches:
        watch(weights)
        leaves = [w.detach().requires_grad_() for w in weights]
        w, b = (leaf.float() for leaf in leaves)  # BF16 values, products and sums in FP32
        loss = ((torch.tensor(x).to(device) @ w + b - torch.tensor(y).to(device)) ** 2).mean()
        gradients = list(torch.autograd.grad(loss, leaves))  # BF16, as the leaves are
        with torch.no_grad():
            update(weights, gradients, state, case["lr"])
        torch_xla.sync()
        losses.append(loss.detach())
    return weights, torch.stack(losses).tolist()
