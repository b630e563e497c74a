"""Bytes that training needs on each device: weights, gradients, optimizer, activations.

An estimate from formulas: buffers of the collectives, fragments and the compiler's scratch come on
top. Shards are taken as exact shares.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Recipe:
    """Bytes per parameter: weights as computed with, gradients, master copy, Adam's two moments."""

    weights: int
    gradients: int
    master: int
    moments: int
    note: str

    @property
    def total(self) -> int:
        """Bytes per parameter in all."""
        return self.weights + self.gradients + self.master + self.moments


RECIPES = {
    "fp32": Recipe(4, 4, 0, 8, "everything in FP32"),
    "mixed": Recipe(2, 2, 4, 8, "16-bit weights and gradients, FP32 master weights and moments"),
    "mixed-fp32-gradients": Recipe(2, 4, 4, 8, "as mixed, gradients summed in FP32"),
    "bf16-sr": Recipe(2, 2, 0, 8, "BF16 weights rounded stochastically, FP32 moments, no master"),
    "bf16": Recipe(2, 2, 0, 4, "everything in BF16"),
}
"""For Adam. "mixed" is the 16 bytes of the ZeRO paper, section 3.1; "mixed-fp32-gradients" and
"fp32" are in the table of Megatron Core's distributed optimizer,
https://docs.nvidia.com/megatron-core/developer-guide/latest/distrib_optimizer.html.
"""


@dataclass(frozen=True)
class Memory:
    """Bytes on one device. `optimizer` includes the master copy of the weights."""

    weights: float
    gradients: float
    optimizer: float

    @property
    def total(self) -> float:
        """Bytes of all three."""
        return self.weights + self.gradients + self.optimizer


def training_bytes(
    parameters: float,
    recipe: str = "mixed",
    data_parallel: int = 1,
    zero: int = 0,
    tensor_parallel: int = 1,
) -> Memory:
    """What the state of a model needs on each of data_parallel x tensor_parallel devices.

    zero: 0 keeps all on every data-parallel device; 1 shards the optimizer, 2 the gradients too, 3
    also the weights (fully sharded). Tensor parallelism shards everything.
    Rajbhandari et al., "ZeRO: memory optimizations toward training trillion parameter models",
    SC 2020, figure 1 and section 5.

    >>> round(training_bytes(7.5e9, "mixed", data_parallel=64, zero=1).total / 1e9, 1)
    31.4
    """
    if recipe not in RECIPES:
        raise ValueError(f"recipe {recipe!r} is not known; there are {', '.join(RECIPES)}")
    if zero not in (0, 1, 2, 3):
        raise ValueError(f"zero is a stage of 0 to 3, found {zero!r}")
    if parameters < 0 or data_parallel < 1 or tensor_parallel < 1:
        raise ValueError(
            "parameters is 0 or more, the two parallel degrees are 1 or more; found"
            f" {parameters}, {data_parallel}, {tensor_parallel}"
        )
    item = RECIPES[recipe]
    here = parameters / tensor_parallel

    def kept(bytes_per_parameter: int, sharded_from: int) -> float:
        return bytes_per_parameter * here / (data_parallel if zero >= sharded_from else 1)

    return Memory(
        weights=kept(item.weights, 3),
        gradients=kept(item.gradients, 2),
        optimizer=kept(item.master + item.moments, 1),
    )


def activation_bytes(
    layers: int,
    batch: int,
    length: int,
    width: int,
    heads: int,
    recompute: str = "none",
    tensor_parallel: int = 1,
    sequence_parallel: bool = False,
) -> float:
    """What a transformer's layers keep for the backward pass on one device, 16-bit activations.

    batch: sequences on this device at once. recompute: "none" keeps everything, "selective" makes
    the attention scores again, "full" keeps only the input of each layer.
    Per layer, in units of length x batch x width: 34 + 5 heads length / width, of which tensor
    parallelism shards all but 10, and sequence parallelism those too; the input that "full" keeps
    is on every device. Embeddings and the loss are left out, and so are kernels that never write
    the scores: with those, "none" is as good as "selective". Korthikanti et al., "Reducing
    activation recomputation in large transformer models", MLSys 2023, table 2.
    """
    sizes = (layers, batch, length, width, heads, tensor_parallel)
    if min(sizes) < 1:
        raise ValueError(f"sizes are 1 or more, found {min(sizes)}")
    if recompute not in ("none", "selective", "full"):
        raise ValueError(f"recompute is 'none', 'selective' or 'full', found {recompute!r}")
    unit = float(length * batch * width)
    if recompute == "full":
        return layers * unit * 2
    scores = 5 * heads * length / width if recompute == "none" else 0.0
    whole = 10 / tensor_parallel if sequence_parallel else 10
    return layers * unit * (whole + (24 + scores) / tensor_parallel)
