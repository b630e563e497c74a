"""A model of eight modules as the XLA compiler makes it, to look at from outside."""

import copy
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from utils.labs.lab12.models import NAMES


@dataclass(frozen=True)
class Compiled:
    """A model on the XLA device. Inputs and outputs are float32 on the CPU.

    alone(name, x): what one module makes of x, its input.
    outputs(x): what every module makes of what the one before it gives, by name.
    Called with x, the model gives its logits, as the last of `outputs`.
    """

    alone: Callable[[str, Tensor], Tensor]
    outputs: Callable[[Tensor], dict[str, Tensor]]

    def __call__(self, x: Tensor) -> Tensor:
        return self.outputs(x)[NAMES[-1]]


def compiled(model: nn.Sequential) -> Compiled:
    """The model as the XLA compiler makes it; the model itself is not changed."""
    import torch_xla

    device = torch_xla.device()
    there = copy.deepcopy(model).to(device)

    def moved(x: Tensor) -> Tensor:
        if type(x) is not Tensor:  # what is like a tensor gets to see the weights
            raise TypeError(f"the input is a {type(x).__name__}: give a tensor")
        return x.to(device)

    def alone(name: str, x: Tensor) -> Tensor:
        if name not in NAMES:
            raise ValueError(f"there is no module {name!r}: the names are {', '.join(NAMES)}")
        with torch.no_grad():
            return getattr(there, NAMES[NAMES.index(name)])(moved(x)).cpu()

    def outputs(x: Tensor) -> dict[str, Tensor]:
        result, x = {}, moved(x)
        with torch.no_grad():
            for name, module in there.named_children():
                result[name] = x = module(x)
        torch_xla.sync()  # one graph for all
        return {name: item.cpu() for name, item in result.items()}

    return Compiled(alone, outputs)
