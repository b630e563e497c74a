"""Ways to divide the course's GPT over a mesh, as data: name of a parameter -> axis of the mesh for
each of its dimensions, None for a dimension that is not divided.

The mesh has the axes "data" and "model". What is not named is a copy on every device.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from torch_xla.distributed.spmd import Mesh

Spec = tuple[str | None, ...]


def mesh(data: int, model: int = 1) -> "Mesh":
    """The devices of this process as a grid of data x model, numbered along the rows."""
    import torch_xla.distributed.spmd as xs

    return xs.Mesh(np.arange(data * model), (data, model), ("data", "model"))


def tensor_parallel(model: nn.Module) -> dict[str, Spec]:
    """The perceptron of each block: the first matrix by columns, with its bias, the second by rows.

    torch keeps a weight as [out, in], so that the columns of the formula x @ W are axis 0 here.
    """
    by_end: dict[str, Spec] = {
        "up.weight": ("model", None),
        "up.bias": ("model",),
        "down.weight": (None, "model"),
    }
    return {
        name: spec
        for name, _ in model.named_parameters()
        for end, spec in by_end.items()
        if name.endswith(f".{end}")
    }


def fully_sharded(model: nn.Module) -> dict[str, Spec]:
    """Every parameter in equal parts along its first axis, one for each share of the batch."""
    return {
        name: ("data", *[None] * (parameter.dim() - 1))
        for name, parameter in model.named_parameters()
    }


def annotate(model: nn.Module, where: "Mesh", specs: Mapping[str, Spec]) -> None:
    """Tell torch_xla the specs of the parameters of a model on the XLA device.

    Raises: KeyError for a name that the model does not have.
    """
    import torch_xla.distributed.spmd as xs

    parameters = dict(model.named_parameters())
    for name, spec in specs.items():
        xs.mark_sharding(parameters[name], where, spec)


def split_batch(where: "Mesh", *tensors: Tensor) -> None:
    """Divide the first axis of each tensor over "data"."""
    import torch_xla.distributed.spmd as xs

    for tensor in tensors:
        xs.mark_sharding(tensor, where, ("data", *[None] * (tensor.dim() - 1)))


def keep_batch_split(model: nn.Module, where: "Mesh") -> None:
    """Annotate what leaves each layer, and its gradient: [batch, length, features] divided by
    batch.

    Parameters and activations that are both divided over "data" leave the partitioner the choice
    which of them to gather. This makes it gather parameters.
    """
    import torch_xla.distributed.spmd as xs

    def annotated(_: nn.Module, __: tuple[Tensor, ...], output: Tensor) -> Tensor | None:
        if output.dim() != 3:  # the positions have no batch
            return None
        return xs.mark_sharding_with_gradients(output, where, ("data", None, None))

    for layer in model.modules():
        if isinstance(layer, nn.Linear | nn.LayerNorm | nn.Embedding):
            layer.register_forward_hook(annotated)


class WrittenOutNorm(nn.LayerNorm):
    """The same formula as nn.LayerNorm over the last axis, in operators that XLA can divide.

    torch_xla hands nn.LayerNorm to XLA's batch-norm operators, see test_spmd_layouts.
    """

    def forward(self, x: Tensor) -> Tensor:
        """[..., features] to the same shape."""
        centred = x - x.mean(-1, keepdim=True)
        scaled = centred * torch.rsqrt(centred.square().mean(-1, keepdim=True) + self.eps)
        return scaled * self.weight + self.bias


def write_out_norms(model: nn.Module) -> nn.Module:
    """Replace nn.LayerNorm by `WrittenOutNorm` in place; weights and names stay."""
    for layer in model.modules():
        if type(layer) is nn.LayerNorm:
            layer.__class__ = WrittenOutNorm
    return model
