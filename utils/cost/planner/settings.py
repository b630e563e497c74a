"""What no architecture or data sheet says: how well kernels run, what is hidden, what is kept free.

Each is an input with a range and a reason, in `utils/facts/data/plan_cases.yaml`.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any

from utils.chip.training_memory import RECIPES
from utils.cost.planner.architecture import case_file


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
    that may run while computing. recipe: of `utils.chip.training_memory.RECIPES`. fused_attention:
    the scores never go to memory. See `settings`.
    """

    kernel_efficiency: float
    reserve: float
    tensor_overlap: float
    data_overlap: float
    recipe: str = "mixed"
    fused_attention: bool = True

    def __post_init__(self) -> None:
        for name in ("kernel_efficiency", "reserve", "tensor_overlap", "data_overlap"):
            result = getattr(self, name)
            above = name == "kernel_efficiency"
            if not (0 < result <= 1 if above else 0 <= result <= 1):
                low = "above 0" if above else "from 0"
                raise ValueError(f"{name} is a share, {low} to 1; found {result}")
        if self.recipe not in RECIPES:
            raise ValueError(f"no recipe {self.recipe!r}; there are {', '.join(RECIPES)}")


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
