"""The training problems of lab 04, exercise 2: batches of uneven sizes and a warm-up.

The observation moves a problem to the device; the judgement computes its true losses. Both start
here.
"""

from typing import Any

from utils.labs import training

Case = dict[str, Any]


def draw(case: Case, spare_features: int = 0) -> tuple[Any, list[tuple[Any, Any]], Any]:
    """The model, the batches and the warm-up of a case, on the CPU.

    Returns (model, batches, warmup): a classifier of two layers; for each step a pair (x, y) with
    x float32 [rows, features] and y int64 [rows], rows as case["sizes"] says; float32 [steps].
    `spare_features` columns of zeros are appended to x: they make the graphs new, and leave the
    losses as they are.
    """
    import torch

    model, full = training.draw(case, spare_features)
    batches = [(x[:size], y[:size]) for (x, y), size in zip(full, case["sizes"], strict=True)]
    return model, batches, torch.tensor(case["warmup"], dtype=torch.float32, device="cpu")
