"""A two-layer MLP on four virtual devices, and what the compiler makes of its annotations.

What uses a device here runs in a process that `utils.xla.spmd.run` starts, because devices have to
be virtual before their first use.
"""

from collections.abc import Callable, Iterable
from typing import Any

from utils.xla import spmd

DEVICES = 4

Sizes = dict[str, int]
"""rows, inputs, hidden and outputs, and the seed of all values."""
Shape = tuple[int, int]
"""Devices along the axes "data" and "model" of a mesh."""
Layout = Callable[[Any, Any, Any], Any]
"""Called with (mesh, model, x): marks them, and returns what is to be computed."""
Counts = dict[str, list[float]]
"""Collectives of a program: kind to number and bytes."""


def build(sizes: Sizes, shape: Shape) -> tuple[Any, Any, Any]:
    """The mesh with axes "data" and "model", the model, and its input x [rows, inputs], both on the
    device.
    """
    import numpy as np
    import torch
    import torch_xla
    import torch_xla.distributed.spmd as xs

    mesh = xs.Mesh(np.arange(DEVICES), tuple(shape), ("data", "model"))
    torch.manual_seed(sizes.get("seed", 0))
    model = torch.nn.Sequential(
        torch.nn.Linear(sizes["inputs"], sizes["hidden"]),
        torch.nn.ReLU(),
        torch.nn.Linear(sizes["hidden"], sizes["outputs"]),
    )
    x = torch.randn(sizes["rows"], sizes["inputs"])
    device = torch_xla.device()
    return mesh, model.to(device), x.to(device)


def reference(model: Any, x: Any) -> Any:
    """What the model makes of x, in float64 on the host; no device takes part."""
    weights = {name: item.detach().cpu().double() for name, item in model.named_parameters()}
    hidden = (x.cpu().double() @ weights["0.weight"].T + weights["0.bias"]).clamp(min=0)
    return hidden @ weights["2.weight"].T + weights["2.bias"]


def shard_shape(tensor: Any) -> list[int]:
    """The shape of the part of a tensor that one device holds."""
    import torch_xla.distributed.spmd as xs

    wrapped = xs.wrap_if_sharded(tensor)
    shards = getattr(wrapped, "local_shards", None)
    return list(shards[0].data.shape) if shards else list(tensor.shape)


def compile_all(layouts: Iterable[tuple[Layout, Shape]], sizes: Sizes) -> list[Counts]:
    """The collectives of each layout, as its compiled program has them."""
    return spmd.run(_count, list(layouts), sizes, devices=DEVICES)


def _count(layouts: list[tuple[Layout, Shape]], sizes: Sizes) -> list[Counts]:
    import torch_xla

    prepared = [(layout, build(sizes, shape)) for layout, shape in layouts]
    kept = []
    with spmd.Compiled() as program:
        for layout, inputs in prepared:
            kept.append(layout(*inputs))
            torch_xla.sync()
    if len(program.modules) != len(layouts):
        raise RuntimeError(
            f"{len(program.modules)} programs were compiled for {len(layouts)} layouts: a layout"
            " marks tensors and computes one result, without a sync or a read of its own"
        )
    return [counts(module.collectives) for module in program.modules]


def counts(result: Iterable[spmd.Collective]) -> Counts:
    """The totals of each kind of collective as a list, which JSON can hold."""
    return {kind: list(item) for kind, item in spmd.totals(result).items()}
