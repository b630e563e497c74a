"""Loops that a device runs: their bodies see registers, and here they are executed turn by turn."""

from collections.abc import Callable, Iterator
from typing import Any

from utils.simulator.errors import doubt, refuse
from utils.simulator.language.grid import refuse_loop_in_order
from utils.simulator.registers import VirtualRegister

BODY_FIX = "def body(i): ..., then nl.fori_loop(start, stop, body)."


def fori_loop(lower: Any, upper: Any, body_fun: Callable[[Any], None], step: int = 1) -> None:
    """Call `body_fun(i)` with a register i that counts from `lower` to before `upper`.

    Bounds are Python integers or registers. What the body computes stays in SBUF or HBM.
    """
    for register in _counted("nl.fori_loop", lower, upper, step):
        returned = body_fun(register)
        if returned is not None:
            raise refuse(
                f"nl.fori_loop: the body returns {returned!r}.",
                "a device loop carries nothing from one turn to the next but memory.",
                "write results to tensors made before the loop, and return nothing.",
            )


def while_loop(init: Any, body_fun: Callable[[Any], Any]) -> None:
    """While the register is not 0, call `body_fun(register)`, which returns the next register."""
    refuse_loop_in_order("nl.while_loop")
    register = _register("nl.while_loop: init", init)
    while register.read("nl.while_loop") != 0:
        now = VirtualRegister(register.read("nl.while_loop"))
        register = _register("nl.while_loop: what the body returns", body_fun(now))


def dynamic_range(start: Any, stop: Any = None, step: int = 1) -> Iterator[VirtualRegister]:
    """A device loop in the old form: `for i in nl.dynamic_range(...)`, i being a register."""
    doubt(
        "nl.dynamic_range: deprecated since NKI 0.6.",
        "it will be removed; nl.fori_loop takes its place.",
        BODY_FIX,
    )
    lower, upper = (0, start) if stop is None else (start, stop)
    return _counted("nl.dynamic_range", lower, upper, step)


def _counted(loop: str, lower: Any, upper: Any, step: Any) -> Iterator[VirtualRegister]:
    refuse_loop_in_order(loop)
    if not isinstance(step, int) or step < 1:
        raise refuse(
            f"{loop}: the step is {step!r}.",
            "the device counts up by a number that is in the instruction.",
            "write a Python integer of 1 or more.",
        )
    first, last = _bound(loop, lower), _bound(loop, upper)
    return (VirtualRegister(value, loop=True) for value in range(first, last, step))


def _bound(loop: str, value: Any) -> int:
    return value.read(loop) if isinstance(value, VirtualRegister) else int(value)


def _register(what: str, value: Any) -> VirtualRegister:
    if isinstance(value, VirtualRegister):
        return value
    raise refuse(
        f"{what} is {value!r}, it is a register.",
        "the device looks at a register to decide whether to go on.",
        "reg = nisa.register_alloc(1), or nisa.register_load(reg, tensor) and return reg.",
    )
