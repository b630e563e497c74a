"""LoRA: a frozen linear layer and, beside it, the trainable product of two thin matrices.

Hu et al., "LoRA: low-rank adaptation of large language models", ICLR 2022, section 4.
"""

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn


class LoRALinear(nn.Module):
    """base(x) + alpha / rank * x A^T B^T: float32 [..., in] to [..., out].

    a: [rank, in], random; b: [out, rank], zeros, so that a new adapter changes nothing. The base
    is frozen. Raises ValueError for a rank below 1.
    """

    def __init__(self, base: nn.Linear, rank: int, alpha: float) -> None:
        if rank < 1:
            raise ValueError(f"rank is {rank}, allowed is 1 or more")
        super().__init__()
        self.base = base.requires_grad_(False)
        self.scale = alpha / rank
        self.a = nn.Parameter(base.weight.new_empty(rank, base.in_features))
        self.b = nn.Parameter(base.weight.new_zeros(base.out_features, rank))
        nn.init.kaiming_uniform_(self.a, a=math.sqrt(5))

    def forward(self, x: Tensor) -> Tensor:
        """What the base and the adapter compute together."""
        return self.base(x) + self.scale * (x @ self.a.T @ self.b.T)

    def merged(self) -> nn.Linear:
        """A plain layer with the weight W + scale B A, [out, in], and the bias of the base."""
        plain = nn.Linear(
            self.base.in_features, self.base.out_features, self.base.bias is not None,
            self.base.weight.device, self.base.weight.dtype,
        )  # fmt: skip
        with torch.no_grad():
            plain.weight.copy_(self.base.weight + self.scale * (self.b @ self.a))
            if plain.bias is not None:
                plain.bias.copy_(self.base.bias)
        return plain


def add(model: nn.Module, targets: Collection[str], rank: int, alpha: float) -> tuple[str, ...]:
    """Freeze the model and give an adapter to each linear layer whose last name is in `targets`.

    Returns the full names of these layers. Do it on the CPU, before `.to(device)`.
    Raises ValueError if no layer has such a name; it says which names there are.

    >>> model = nn.ModuleDict({"up": nn.Linear(3, 5), "down": nn.Linear(5, 3)})
    >>> add(model, ["up"], rank=2, alpha=4)
    ('up',)
    >>> parameters(model)
    Parameters(trainable=16, total=54)
    """
    results = [
        (name, parent, last, layer)
        for name, parent, last, layer in _children(model)
        if isinstance(layer, nn.Linear) and last in targets
    ]
    if missing := sorted(set(targets) - {last for _, _, last, _ in results}):
        linear = {last for _, _, last, item in _children(model) if isinstance(item, nn.Linear)}
        raise ValueError(
            f"no linear layer is called {missing[0]!r}; there are {', '.join(sorted(linear))}"
        )
    model.requires_grad_(False)
    for _, parent, last, layer in results:
        setattr(parent, last, LoRALinear(layer, rank, alpha))
    return tuple(name for name, *_ in results)


def merge(model: nn.Module) -> int:
    """Put plain linear layers with the merged weights in place of the adapted ones; how many."""
    results = [child for child in _children(model) if isinstance(child[3], LoRALinear)]
    for _, parent, last, layer in results:
        setattr(parent, last, layer.merged())
    return len(results)


def _children(model: nn.Module) -> Iterator[tuple[str, nn.Module, str, nn.Module]]:
    """(full name, parent, last name, module) of each module inside; a list, as it is changed."""
    for name, parent in list(model.named_modules()):
        for last, child in list(parent.named_children()):
            yield f"{name}.{last}".lstrip("."), parent, last, child


@dataclass(frozen=True)
class Parameters:
    """Numbers in the parameters of a model: those that are trained, and all."""

    trainable: int
    total: int

    @property
    def share(self) -> float:
        """The part that is trained."""
        return self.trainable / self.total


def parameters(model: nn.Module) -> Parameters:
    """Count them."""
    return Parameters(
        sum(parameter.numel() for parameter in trainable(model)),
        sum(parameter.numel() for parameter in model.parameters()),
    )


def trainable(model: nn.Module) -> list[nn.Parameter]:
    """What an optimizer is given."""
    return [parameter for parameter in model.parameters() if parameter.requires_grad]


def optimizer_bytes(optimizer: torch.optim.Optimizer) -> int:
    """Bytes of the tensors in an optimizer's state, such as the moments of Adam."""
    return sum(
        value.numel() * value.element_size()
        for state in optimizer.state.values()
        for value in state.values()
        if isinstance(value, Tensor)
    )


def adapter(model: nn.Module) -> dict[str, Tensor]:
    """The adapter alone, full name to a copy on the CPU: what a week of fine-tuning stores."""
    return {
        name: parameter.detach().cpu().clone()
        for name, parameter in model.named_parameters()
        if parameter.requires_grad
    }


def load(model: nn.Module, stored: Mapping[str, Tensor]) -> None:
    """Put another adapter of the same shapes in place, on the device where the model is.

    Raises ValueError if names or shapes differ: the graphs would differ as well.
    """
    here = {name: item for name, item in model.named_parameters() if item.requires_grad}
    shapes = {name: tuple(item.shape) for name, item in here.items()}
    given = {name: tuple(item.shape) for name, item in stored.items()}
    if shapes != given:
        different = sorted(set(shapes.items()) ^ set(given.items()))[0][0]
        raise ValueError(
            f"{different} is {given.get(different, 'missing')} in the adapter and"
            f" {shapes.get(different, 'missing')} in the model: give the model the same rank and"
            " targets first"
        )
    with torch.no_grad():
        for name, parameter in here.items():
            # A copy on the device: the tensor keeps its place and its shape, the graphs stay.
            parameter.copy_(stored[name].to(parameter.device))
