"""Weights in fewer bits: what is saved, and how far the answers move. Needs torch.

Each row of a weight matrix has a scale of its own, so that its largest value just fits. Only the
matrices of the layers and the head are rounded; tables of tokens and norms stay as they are.
"""

import copy
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from utils.chip.formats import FORMATS, round_to

LEVELS = {"int8": 127, "int4": 7}
"""The largest whole number of a format of integers; -128 and -8 are left out, for symmetry."""
SCALE_BYTES = 4


def bits(fmt: str) -> int:
    """Of one value, in "int8", "int4" or a floating format such as "e4m3"."""
    return int(fmt.removeprefix("int")) if fmt in LEVELS else FORMATS[fmt].bits


def round_trip(x: Tensor, fmt: str) -> Tensor:
    """Float [..., n]: what is left of it in a format, with one scale for each last row.

    >>> round_trip(torch.tensor([[1.0, 0.3, -127.0]]), "int8").tolist()
    [[1.0, 0.0, -127.0]]
    """
    if fmt not in LEVELS and fmt not in FORMATS:
        raise ValueError(f"no format {fmt!r}: there are {', '.join([*LEVELS, *FORMATS])}")
    most = LEVELS[fmt] if fmt in LEVELS else FORMATS[fmt].max
    scale = x.abs().amax(-1, keepdim=True).clamp(min=torch.finfo(x.dtype).tiny) / most
    codes = x / scale
    if fmt in LEVELS:
        return codes.round() * scale
    return torch.from_numpy(round_to(codes.detach().cpu().numpy(), fmt)).to(x) * scale


def matrices(model: nn.Module) -> Iterator[nn.Linear]:
    """What `with_weights` rounds: every linear layer."""
    return (module for module in model.modules() if isinstance(module, nn.Linear))


def with_weights(model: nn.Module, fmt: str) -> nn.Module:
    """A copy of a model whose matrices hold what is left of them in a format.

    The copy computes in its own dtype, as a device does that reads few bits and widens them.
    """
    result = copy.deepcopy(model)
    for matrix in matrices(result):
        matrix.weight.data = round_trip(matrix.weight.data, fmt)
    return result


def weight_bytes(model: nn.Module, fmt: str = "") -> int:
    """Bytes of the matrices of a model: as they are, or in a format, with their scales."""
    if not fmt:
        return sum(matrix.weight.nbytes for matrix in matrices(model))
    return sum(
        matrix.weight.numel() * bits(fmt) // 8 + matrix.weight.shape[0] * SCALE_BYTES
        for matrix in matrices(model)
    )
