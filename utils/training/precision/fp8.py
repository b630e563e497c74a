"""Linear layers whose products take FP8 values, scaled by present or by past largest values."""

import torch
from torch import Tensor, nn

from utils.training.precision.rounding import fp8_scale, quantise_fp8, too_large

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
