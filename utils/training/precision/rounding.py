"""Stochastic rounding to BF16 and quantising to FP8, in operators that run on the XLA device.

`utils.chip.formats` rounds to any format on the host; what stands here becomes part of the graph
of a training step. `Fp8Linear` is a layer whose products take FP8 values, scaled by present or by
past largest values.
"""

import torch
from torch import Tensor, nn

from utils.chip.formats import FORMATS

_LOWEST = -110  # the spacing there is still a normal number, which XLA does not take for zero
_POWERS = tuple(2.0**power for power in range(_LOWEST, 128))

FP8 = {
    "e4m3": (torch.float8_e4m3fn, FORMATS["e4m3"].max),
    "e5m2": (torch.float8_e5m2, FORMATS["e5m2"].max),
}
"""Format name to its dtype and the largest value used. PyTorch has the E4M3 that goes to 448, the
hardware's goes to 240; up to there both have the same values, so 240 serves for both.
"""


def stochastic_bf16(wide: Tensor, noise: Tensor) -> Tensor:
    """float32 [...] to bfloat16 [...]: one of the two neighbours, the nearer one more often.

    A value a quarter of the way up from its lower neighbour goes up in one of four cases, so the
    mean of many roundings is the value. `noise`, of the same shape and uniform in [0, 1), decides:
    up if it is less than what the value is above its lower neighbour, counted in spacings. For
    finite values; those below 2**-110 are rounded to multiples of the spacing there.
    """
    size = wide.abs().clamp_min(_POWERS[0])
    powers = torch.tensor(_POWERS, device=wide.device)
    # XLA's log2 may miss a whole number by one unit in the last place and its 2**x is not exact:
    # the logarithm is a first guess, the table and two comparisons make it right.
    place = (torch.log2(size).floor().long() - _LOWEST).clamp(0, len(_POWERS) - 2)
    place = place - (powers[place] > size).long()
    place = place + (powers[place + 1] <= size).long()
    spacing = powers[place] * FORMATS["bf16"].epsilon
    steps = wide / spacing
    below = steps.floor()
    return ((below + (noise < steps - below)) * spacing).to(torch.bfloat16)


def fp8_scale(largest: Tensor, kind: str) -> Tensor:
    """What to divide by so that `largest`, a scalar, becomes the largest value of the format.

    kind: "e4m3" for weights and activations, "e5m2" for gradients, which need more range.
    """
    return largest.clamp_min(2.0**-60) / FP8[kind][1]


def quantise_fp8(x: Tensor, scale: Tensor, kind: str) -> Tensor:
    """What is left of x, float32 [...], after x / scale has been cast to FP8 and back.

    The values are those that FP8 can hold; arithmetic with them is not FP8. What is beyond the
    largest value after the division saturates.
    """
    dtype, largest = FP8[kind]
    return (x / scale).clamp(-largest, largest).to(dtype).float() * scale


def too_large(x: Tensor, scale: Tensor, kind: str) -> Tensor:
    """How many values of x saturate at this scale: those that no rounding brings back."""
    return ((x / scale).abs() > FP8[kind][1] * (1 + 2.0**-10)).sum()


KINDS = ("e4m3", "e4m3", "e5m2")
"""What the three tensors of a layer are quantised to: input, weight, gradient of the output."""


class Scaling(nn.Module):
    """The scales of the three tensors of one layer, one for each whole tensor.

    delayed: False takes the largest value of the tensor at hand, which has to be read for it before
        it can be quantised. True takes the largest of the last `window` steps, which is known
        beforehand; values that outgrow it saturate.

    `saturated` [3] counts these.
    """

    def __init__(self, delayed: bool, window: int = 8) -> None:
        super().__init__()
        # In the graph a flag is data, so that one graph serves both ways.
        self.register_buffer("delayed", torch.tensor(delayed))
        self.register_buffer("history", torch.zeros(3, window))
        self.register_buffer("saturated", torch.zeros(3))

    def quantise(self, x: Tensor, place: int) -> Tensor:
        """FP8 values of x [...], in float32. place: in KINDS."""
        kind, largest, past = KINDS[place], x.abs().max(), self.history[place].max()
        # Without a past, in the first step, the present has to do.
        largest_known = torch.where(self.delayed & (past > 0), past, largest)
        scale = fp8_scale(largest_known, kind)
        self.saturated[place] += too_large(x, scale, kind)
        self.history[place] = torch.cat([self.history[place, 1:], largest[None]])
        return quantise_fp8(x, scale, kind)


class _Product(torch.autograd.Function):
    """x [..., inputs] times weight [outputs, inputs]; in a step three products, all of FP8."""

    @staticmethod
    def forward(ctx, x: Tensor, weight: Tensor, scaling: Scaling) -> Tensor:
        x, weight = scaling.quantise(x, 0), scaling.quantise(weight, 1)
        ctx.save_for_backward(x, weight)
        ctx.scaling = scaling
        return x @ weight.t()

    @staticmethod
    def backward(ctx, gradient: Tensor) -> tuple[Tensor, Tensor, None]:
        x, weight = ctx.saved_tensors
        gradient = ctx.scaling.quantise(gradient, 2)
        return gradient @ weight, gradient.flatten(0, -2).t() @ x.flatten(0, -2), None


class Fp8Linear(nn.Linear):
    """A linear layer with FP8 values in its products; the weight itself stays as wide as it is."""

    def __init__(self, linear: nn.Linear, delayed: bool) -> None:
        super().__init__(linear.in_features, linear.out_features, linear.bias is not None)
        self.load_state_dict(linear.state_dict())
        self.scaling = Scaling(delayed)

    def forward(self, x: Tensor) -> Tensor:
        """As a linear layer; the bias is added as it is."""
        y = _Product.apply(x, self.weight, self.scaling)
        return y if self.bias is None else y + self.bias


def with_fp8(model: nn.Module, delayed: bool) -> nn.Module:
    """The model with the linear layers of its blocks replaced, in place. Embeddings, norms and the
    last layer keep their precision, as is usual.
    """
    for block in model.blocks:
        for name, child in list(block.named_children()):
            if isinstance(child, nn.Linear):
                setattr(block, name, Fp8Linear(child, delayed))
    return model
