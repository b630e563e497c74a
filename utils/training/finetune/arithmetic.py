"""Bytes that fine-tuning needs: all weights trained, or adapters on frozen ones; and who has room.

Formulas on published sizes, not measured: buffers of the collectives and the compiler's scratch
come on top, which is what `reserve` keeps free.
"""

import math
from collections.abc import Collection
from dataclasses import dataclass

from utils.chip.hardware import Machine, machine
from utils.chip.training_memory import activation_bytes, training_bytes
from utils.cost.planner import Architecture
from utils.cost.planner.settings import inputs
from utils.facts import figures

ATTENTION = ("q_proj", "k_proj", "v_proj", "o_proj")
PERCEPTRON = ("gate_proj", "up_proj", "down_proj")
BF16_BYTES, FP32_BYTES = 2, 4


def shapes(a: Architecture) -> dict[str, tuple[int, int]]:
    """(in, out) of the linear layers in one layer of a gated decoder, by their usual names."""
    keys = a.key_value_heads * a.head_width
    return {
        "q_proj": (a.width, a.width),
        "k_proj": (a.width, keys),
        "v_proj": (a.width, keys),
        "o_proj": (a.width, a.width),
        "gate_proj": (a.width, a.feed_forward),
        "up_proj": (a.width, a.feed_forward),
        "down_proj": (a.feed_forward, a.width),
    }


def adapter_parameters(a: Architecture, rank: int, targets: Collection[str]) -> int:
    """rank x (in + out) for each target of each layer.

    >>> from utils.cost.planner import architecture
    >>> adapter_parameters(architecture("llama-2-7b"), 8, ("q_proj", "v_proj"))
    4194304

    Raises ValueError for a rank below 1 or a target that is not one of `shapes`.
    """
    known = shapes(a)
    if strange := sorted(set(targets) - set(known)):
        raise ValueError(f"no target {strange[0]!r}; there are {', '.join(known)}")
    if rank < 1:
        raise ValueError(f"rank is {rank}, allowed is 1 or more")
    return a.layers * rank * sum(sum(known[name]) for name in set(targets))


@dataclass(frozen=True)
class Need:
    """Bytes of one replica, all devices together. `frozen`: weights that nobody trains; `trained`:
    weights, `gradients` and `optimizer` (master copy and moments) of those that are trained;
    `activations`: of the layers; `logits`: with their gradient.
    """

    frozen: float
    trained: float
    gradients: float
    optimizer: float
    activations: float
    logits: float

    @property
    def parts(self) -> dict[str, float]:
        """Field to bytes."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @property
    def total(self) -> float:
        """Bytes of all parts."""
        return sum(self.parts.values())


def full(
    a: Architecture, length: int, rows: int = 1, recipe: str = "mixed", recompute: str = "full"
) -> Need:
    """Every weight is trained. recipe, recompute: of `utils.chip.training_memory`; `rows`
    sequences of `length` tokens at once."""
    return _need(a, a.parameters, 0, length, rows, recipe, recompute)


def lora(
    a: Architecture,
    length: int,
    rows: int = 1,
    rank: int = 16,
    targets: Collection[str] = ATTENTION + PERCEPTRON,
    recipe: str = "mixed",
    recompute: str = "full",
) -> Need:
    """Adapters are trained, the weights are frozen in BF16."""
    trained = adapter_parameters(a, rank, targets)
    return _need(a, trained, a.parameters, length, rows, recipe, recompute)


def _need(
    a: Architecture, trained: int, frozen: int, length: int, rows: int, recipe: str, recompute: str
) -> Need:
    state = training_bytes(trained, recipe)
    return Need(
        frozen=BF16_BYTES * frozen,
        trained=state.weights,
        gradients=state.gradients,
        optimizer=state.optimizer,
        # Adapters save hardly any: the gradient passes through every layer, and what each layer
        # was given is kept or made again for it.
        activations=activation_bytes(a.layers, rows, length, a.width, a.heads, recompute),
        logits=2.0 * FP32_BYTES * rows * length * a.vocabulary,
    )


def cache_bytes(a: Architecture, rows: int, capacity: int) -> float:
    """Keys and values of `rows` texts of `capacity` tokens in all layers, in BF16.

    >>> from utils.cost.planner import architecture
    >>> cache_bytes(architecture("llama-2-7b"), 1, 4096) / 2**30
    2.0
    """
    if min(rows, capacity) < 1:
        raise ValueError(f"rows and capacity are 1 or more, found {rows} and {capacity}")
    return 2.0 * BF16_BYTES * a.layers * a.key_value_heads * a.head_width * rows * capacity


def usable(place: Machine, reserve: float | None = None) -> float:
    """Bytes of a machine's device memory without the reserve; by default the planner's guess."""
    share = inputs()["reserve"].value if reserve is None else reserve
    if not 0 <= share < 1:
        raise ValueError(f"reserve is a share from 0 to below 1, found {share}")
    return place.hbm_bytes * (1 - share)


def cores(need: Need, chip: str, reserve: float | None = None) -> int:
    """Fewest NeuronCores of a chip, as a power of two, that hold one replica divided exactly.

    By memory alone: whether so many divide the heads is not looked at. What is not divided in
    practice (norms, a part of the activations) is small beside the reserve.
    """
    fewest = need.total / usable(machine(chip, "core"), reserve)
    return 2 ** max(0, math.ceil(math.log2(fewest)))


def smallest_instance(need: Need, chip: str, reserve: float | None = None) -> str | None:
    """The instance with the fewest of these chips whose memory holds one replica, or None."""
    results = []
    for key, item in figures().items():
        name, _, rest = key.partition(".accelerator")
        if not rest and key.endswith(".accelerator") and item.value.lower().split()[0] == chip:
            results.append((figures(f"{name}.")[f"{name}.accelerators"].number, name))
    for _, name in sorted(results):
        if usable(machine(name), reserve) >= need.total:
            return name
    return None
