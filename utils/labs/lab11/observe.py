"""What the answers of lab 11 do, as counts and plain values. Judges nothing."""

from collections.abc import Callable
from typing import Any

from utils.labs import Answer, Facts, Observer, apart
from utils.labs.lab11 import adapting, training
from utils.xla import fresh

SECONDS = 60.0
"""For one case, which takes one or two, or twenty on a machine with a lot else to do."""


def _apart(work: Callable[..., Any], answer: Answer, *arguments: Any) -> Facts:
    """Each case in a process of its own, whose compiler remembers nothing."""
    return apart.run_apart(
        fresh.run, work, answer, *arguments, seconds=SECONDS, environment=fresh.FAST
    )


def observe_lora(add_lora: Answer, case: Facts) -> Facts:
    """The model of exercise 1 with adapters, and after the merge.

    Raises: NameError if the cell lacks `LoRALinear` or `merge`.
    """
    cell = getattr(add_lora, "__globals__", {})
    for name in ("LoRALinear", "merge"):
        if not callable(cell.get(name)):
            raise NameError(f"`{name}` is not defined: the cell has to define all three")
    return _apart(adapting.adapt, add_lora, cell["merge"], cell["LoRALinear"], case)


def _alone(name: str, work: Callable[..., Any]) -> Observer:
    return Observer(name, lambda answer, case: _apart(work, answer, case), apart=True)


OBSERVERS = {
    "ex1": Observer("add_lora", observe_lora, apart=True),
    "ex2": _alone("fine_tune", training.tuning),
    "ex3": _alone("accumulate", training.accumulating),
    "ex4": _alone("generate", training.generating),
    "ex5": _alone("serve", training.serving),
}
