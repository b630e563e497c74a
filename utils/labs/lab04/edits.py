"""The eight edits of lab 04: how many graphs does each bring to the compiler?

`x` is float32 [16, width], with positive numbers, on the device already. `value` is a Python float,
a multiple of 1/8 above 0 and at most 1.
"""

import torch
import torch_xla
from torch import nn
from torch.nn import functional as F


def a(x, value):
    """Batch size: other data, moved to the device."""
    rows = int(8 * value)
    return torch.ones(rows, x.shape[1]).to(x.device) * 2.5


def b(x, value):
    """A Python branch that chooses the dtype."""
    dtype = torch.bfloat16 if value > 0.5 else torch.float32
    return x.to(dtype) * 2.5


def c(x, value):
    """Where a slice of four rows starts."""
    start = int(8 * value)
    return x[start : start + 4] * 2.5


def d(x, value):
    """A multiplier."""
    return x * value


def e(x, value):
    """An exponent."""
    return x**value


def f(x, value):
    """The rate of dropout."""
    return F.dropout(x, value)


def g(x, value):
    """The learning rate of one training step."""
    weight = nn.Parameter(torch.ones(x.shape[1], device=x.device))
    optimizer = torch.optim.SGD([weight], lr=value)
    (x @ weight).sum().backward()
    optimizer.step()
    return weight


def h(x, value):
    """The multiplier again, as a tensor of one element."""
    return x * torch.tensor([value]).to(x.device)


EDITS = {"A": a, "B": b, "C": c, "D": d, "E": e, "F": f, "G": g, "H": h}


def run(edit, x, values):
    """The step with each of the values in turn; one graph runs per value."""
    for value in values:
        result = edit(x, value)
        torch_xla.sync()
    return result
