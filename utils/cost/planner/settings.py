"""What no architecture or data sheet says: how well kernels run, what is hidden, what is kept free.

Each is an input with a range and a reason, in `utils/facts/data/plan_cases.yaml`.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from utils.chip.training_memory import RECIPES
from utils.cost.planner.architecture import Architecture, case_file


@dataclass(frozen=True)
class Input:
    """value: the guess. low, high: what it may well be. why: where that comes from."""

    value: float
    low: float
    high: float
    why: str


@cache
def inputs() -> dict[str, Input]:
    """The guesses of the planner by name, all of them assumptions."""
    return {name: Input(**entry) for name, entry in case_file()["inputs"].items()}


@dataclass(frozen=True)
class Settings:
    """kernel_efficiency: of the peak rate that matrix products reach. reserve: share of the memory
    that the runtime and fragments take. tensor_overlap, data_overlap: share of those collectives
    that may run while computing (all-to-alls of experts are as those between tensor ranks).
    context_overlap: share of the keys and values that travel while scores are computed. imbalance:
    rows of the busiest expert rank by the mean of all. recipe: of
    `utils.chip.training_memory.RECIPES`. fused_attention: the scores never go to memory. capacity:
    rows that each expert computes by the mean, the rest is dropped or padded; 0 drops none. See
    `settings`.
    """

    kernel_efficiency: float
    reserve: float
    tensor_overlap: float
    data_overlap: float
    context_overlap: float
    imbalance: float
    recipe: str = "mixed"
    fused_attention: bool = True
    capacity: float = 0.0

    def __post_init__(self) -> None:
        for name in SHARES:
            result = getattr(self, name)
            above = name == "kernel_efficiency"
            if not (0 < result <= 1 if above else 0 <= result <= 1):
                low = "above 0" if above else "from 0"
                raise ValueError(f"{name} is a share, {low} to 1; found {result}")
        if self.recipe not in RECIPES:
            raise ValueError(f"no recipe {self.recipe!r}; there are {', '.join(RECIPES)}")
        if not self.imbalance >= 1 or not self.capacity >= 0:
            raise ValueError(
                f"imbalance {self.imbalance}, capacity {self.capacity}: imbalance is the busiest"
                " rank's rows by the mean, 1 or more; capacity is above 0, or 0 to drop no token"
            )

    def load(self, architecture: Architecture, expert: Any) -> Any:
        """Rows that the busiest of `expert` ranks computes, by the mean of all ranks; 1 without
        experts. A capacity fixes the shape of every expert's rows, however they are routed.
        """
        if architecture.experts == 1:
            return 1
        return self.capacity or np.minimum(self.imbalance, expert)


SHARES = ("kernel_efficiency", "reserve", "tensor_overlap", "data_overlap", "context_overlap")


def settings(**changes: Any) -> Settings:
    """The guesses of `inputs()`, with changes.

    >>> settings(recipe="bf16-sr").fused_attention
    True
    """
    unknown = set(changes) - set(Settings.__dataclass_fields__)
    if unknown:
        raise ValueError(
            f"no setting {', '.join(sorted(unknown))}; there are"
            f" {', '.join(Settings.__dataclass_fields__)}"
        )
    usual = {k: v.value for k, v in inputs().items() if k in Settings.__dataclass_fields__}
    return Settings(**(usual | changes))
