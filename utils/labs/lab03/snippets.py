"""The six snippets of lab 03: how many executions and compiles does each cost?

`x` is a small float32 vector that lies on the device already.
"""

import torch
import torch_xla


def a(x, steps):
    """A sync in each step."""
    for _ in range(steps):
        x = x * 1.5 + 0.5
        torch_xla.sync()


def b(x, steps):
    """One sync at the end."""
    for _ in range(steps):
        x = x * 1.5 + 0.5
    torch_xla.sync()


def c(x, steps):
    """`.item()` before the sync."""
    for _ in range(steps):
        x = x * 1.5 + 0.5
        total = x.sum()
        total.item()
        torch_xla.sync()


def d(x, steps):
    """`.item()` after the sync."""
    for _ in range(steps):
        x = x * 1.5 + 0.5
        total = x.sum()
        torch_xla.sync()
        total.item()


def e(x, steps):
    """The results are never kept."""
    for _ in range(steps):
        torch.tanh(x * 1.5)
        torch_xla.sync()


def f(x, steps):
    """Several reads of one pending value."""
    total = (x * 1.5 + 0.5).sum()
    for _ in range(steps):
        total.item()


SNIPPETS = {"A": a, "B": b, "C": c, "D": d, "E": e, "F": f}
