"""Small training problems, drawn from a seed, that several labs share.

The observation moves a problem to the device; the judgement computes its true losses. Both start
here.
"""

import random
from typing import Any

Case = dict[str, Any]
Batch = tuple[Any, Any]

MOMENTUM = 0.9


def training_case(rng: random.Random, steps: int) -> Case:
    """Shapes, learning rate and seed of one problem, as plain JSON values."""
    return {
        "steps": steps,
        "rows": rng.randint(4, 8),
        "features": rng.randint(3, 9),
        "hidden": rng.randint(5, 11),
        "classes": rng.randint(3, 6),
        "lr": rng.choice([0.1, 0.2, 0.3]),
        "seed": rng.randrange(10**6),
    }


def draw(case: Case, spare_features: int = 0) -> tuple[Any, list[Batch]]:
    """The model and the batches of a case, on the CPU.

    Returns (model, batches): a classifier of two layers, and for each step a pair (x, y) with
    x float32 [rows, features] and y int64 [rows]. `spare_features` columns of zeros are appended
    to x: they change the shape, and so the graph, but not the losses.
    """
    import torch
    from torch.nn import functional

    features, classes, pad = case["features"], case["classes"], (0, spare_features)
    with torch.random.fork_rng(devices=[]):  # a check must not disturb the learner's random state
        torch.manual_seed(case["seed"])
        # Said outright, because a learner's cells may have changed what torch takes by default.
        kind = {"dtype": torch.float32, "device": "cpu"}
        narrow = torch.nn.Linear(features, case["hidden"], **kind)
        last = torch.nn.Linear(case["hidden"], classes, **kind)
        teacher = torch.randn(features, classes, **kind)
        inputs = torch.randn(case["steps"], case["rows"], features, **kind).unbind()
        first = torch.nn.Linear(features + spare_features, case["hidden"], **kind)
    first.load_state_dict({"weight": functional.pad(narrow.weight, pad), "bias": narrow.bias})
    batches = [(functional.pad(x, pad), (x @ teacher).argmax(dim=1)) for x in inputs]
    return torch.nn.Sequential(first, torch.nn.Tanh(), last), batches


def optimizer_of(model: Any, lr: float) -> Any:
    """The optimizer of every problem: SGD with momentum."""
    import torch

    return torch.optim.SGD(model.parameters(), lr=lr, momentum=MOMENTUM)


def train_step(model: Any, optimizer: Any, batch: Batch) -> Any:
    """One training step; returns its loss, a scalar tensor without a gradient."""
    import torch

    x, y = batch
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    return loss.detach()
