"""A small model, and copies of it in which at most one module is wrong.

The first module adds a large offset, as the residual streams of real models have one, and the norm
after it takes it away again. That leaves rounding behind, many times as much as elsewhere: what is
noise in one module would be a fault in another.
"""

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

ROWS, FEATURES, WIDTH, CLASSES = 16, 24, 32, 12
"""Always the same, so that each module is compiled once."""

NAMES = ("embed", "norm", "mix", "up", "act", "down", "norm_out", "head")


class Norm(nn.Module):
    """Layer norm, [rows, width] to the same."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(1 + 0.1 * torch.randn(width))
        self.less, self.epsilon = 0, 1e-5

    def forward(self, x: Tensor) -> Tensor:
        centred = x - x.mean(-1, keepdim=True)
        variance = (centred * centred).sum(-1, keepdim=True) / (x.shape[-1] - self.less)
        return centred * torch.rsqrt(variance + self.epsilon) * self.scale


class Mix(nn.Module):
    """Attention over the rows, added to its input: [rows, width] to the same."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.short = False

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).chunk(3, -1)
        shares = torch.softmax(q @ k.T / x.shape[-1] ** 0.5, -1)
        if self.short:
            shares = shares.to(torch.bfloat16).to(x.dtype)
        return x + self.out(shares @ v)


@contextmanager
def one_thread() -> Iterator[None]:
    """PyTorch on one thread in the block: to hand out sums this small takes longer than to do
    them, on a busy machine a hundred times as long.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def reference(seed: int, offset: float) -> tuple[nn.Sequential, Tensor]:
    """The model and its inputs [rows, features], float32 on the CPU; logits are [rows, classes]."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = nn.Sequential()
        for name, module in zip(NAMES, _modules(), strict=True):
            model.add_module(name, module)
        x = torch.randn(ROWS, FEATURES)
    with torch.no_grad():
        model.embed.bias += offset
    return model.requires_grad_(False), x


def _modules() -> Iterator[nn.Module]:
    yield nn.Linear(FEATURES, WIDTH)
    yield Norm(WIDTH)
    yield Mix(WIDTH)
    yield nn.Linear(WIDTH, 2 * WIDTH)
    yield nn.GELU()
    yield nn.Linear(2 * WIDTH, WIDTH)
    yield Norm(WIDTH)
    yield nn.Linear(WIDTH, CLASSES)


def _round_weights(bits: int) -> Callable[[Any], None]:
    """Weights with so many bits behind the first: 7 are BF16."""

    def change(module: Any) -> None:
        for parameter in module.parameters():
            if parameter.dim() == 2:
                mantissa, exponent = torch.frexp(parameter)
                parameter.copy_(
                    torch.ldexp((mantissa * 2.0 ** (bits + 1)).round(), exponent - bits - 1)
                )

    return change


def _set(**values: Any) -> Callable[[Any], None]:
    def change(module: Any) -> None:
        for name, value in values.items():
            setattr(module, name, value)

    return change


def _swap_rows(module: Any) -> None:
    module.weight.copy_(module.weight[[1, 0, *range(2, len(module.weight))]])


LINEAR = ("up", "down", "head")
FAULTS: dict[str, tuple[tuple[str, ...], Callable[[Any], None]]] = {
    "bfloat16 weights": (("mix", *LINEAR), _round_weights(7)),
    "two rows swapped": (LINEAR, _swap_rows),
    "variance over one less": (("norm", "norm_out"), _set(less=1)),
    "another epsilon": (("norm_out",), _set(epsilon=1e-3)),
    "bfloat16 softmax": (("mix",), _set(short=True)),
    "tanh for erf": (("act",), _set(approximate="tanh")),
    "12 bits of weights": (("mix", *LINEAR), _round_weights(12)),
}
"""What may be wrong: in which modules it can be, and how it is done."""


def with_fault(model: nn.Sequential, module: str | None, fault: str) -> nn.Sequential:
    """A copy in which one module computes something else."""
    changed = copy.deepcopy(model)
    if module is not None:
        with torch.no_grad():
            FAULTS[fault][1](getattr(changed, module))
    return changed
