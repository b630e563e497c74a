"""Ten places that an audit finds in code for CUDA, A to J: the subject of exercise 1 of lab 02.

Read it, then say of each place what happens when the code around it trains on an XLA device.
"""

import torch
from torch import Tensor
from torch.nn import functional as F


def a(model, x):
    return model.cuda()(x)


def b(model, x):
    place = "cuda" if torch.cuda.is_available() else "cpu"
    return model.to(place)(x.to(place))


def c(model, x):
    with torch.autocast("cuda", dtype=torch.float16):
        return model(x)


def d(model, batches):
    losses = []
    for x, y in batches:
        loss = F.cross_entropy(model(x), y)
        losses.append(loss.item())
    return losses


def e(model, table: Tensor, device):
    """table: rows as a loader gives them."""
    kept = table[table[:, 0] > 0]
    return model(kept.to(device))


def f(model, x, y):
    loss = F.cross_entropy(model(x), y, reduction="none")
    return loss[loss > 1.0].sum()


def g(model, x):
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    model(x).sum().backward()
    optimizer.step()


def h(model, x):
    torch.backends.cudnn.benchmark = True
    return model(x)


def i(device):
    torch.cuda.manual_seed_all(7)
    return torch.rand(4, device=device)


def j(model, x):
    output = torch.tanh(model(x))
    if output.abs().max() > 0.5:
        return output * 0.5
    return output
