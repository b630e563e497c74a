"""The networks of exercise 1 of lab 11: linear layers of several names, one of them shared."""

from typing import Any

import torch
from torch import Tensor, nn

IN_BLOCKS = ("query", "query_gate", "value", "out")
"""The linear layers of each block."""


class Block(nn.Module):
    """float32 [rows, width] to the same shape. out: may be shared with other blocks."""

    def __init__(self, width: int, inner: int, out: nn.Linear) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.query = nn.Linear(width, inner)
        self.query_gate = nn.Linear(width, inner)
        self.value = nn.Linear(width, inner, bias=False)
        self.out = out

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm(x)
        return x + self.out(self.query(y).tanh() * self.query_gate(y).sigmoid() + self.value(y))


class Nested(nn.Module):
    """Two blocks with the same `out`, and a head: float32 [rows, width] to [rows, classes]."""

    def __init__(self, width: int, inner: int, classes: int) -> None:
        super().__init__()
        out = nn.Linear(inner, width)
        self.blocks = nn.ModuleList(Block(width, inner, out) for _ in range(2))
        self.head = nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def draw(case: dict[str, Any]) -> tuple[Nested, Tensor]:
    """The network of a case and an input, float32 [5, width], on the CPU."""
    with torch.random.fork_rng(devices=[]):  # a check must not disturb the learner's random state
        torch.manual_seed(case["seed"])
        with torch.device("cpu"):
            model = Nested(case["width"], case["inner"], case["classes"]).to(torch.float32)
            return model, torch.randn(5, case["width"], dtype=torch.float32)


def places(case: dict[str, Any]) -> list[list[str]]:
    """The full names of the named layers; those that share a layer stand together.

    A case may name what no layer is called, and an adapter has to leave alone.

    >>> places({"names": ["head", "out", "gate"]})
    [['head'], ['blocks.0.out', 'blocks.1.out']]
    """
    results = []
    for name in case["names"]:
        if name == "head":
            results.append([name])
        elif name in IN_BLOCKS:
            where = [f"blocks.{k}.{name}" for k in range(2)]
            results += [where] if name == "out" else [[item] for item in where]
    return results
