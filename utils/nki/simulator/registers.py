"""Registers of the engines' sequencers: numbers that are only known while the kernel runs."""

from typing import Any

import numpy as np

from utils.nki.simulator.errors import doubt, refuse, refuse_operators

LOWEST, HIGHEST = -(2**31), 2**32 - 1
USES = (
    "read it as t.ap(pattern, scalar_offset=register), t.select(dim, register), or as a bound of "
    "nl.fori_loop; other arithmetic is done on (1, 1) tiles, then nisa.register_load."
)


class VirtualRegister:
    """One register of 32 bits, made by `nisa.register_alloc` or by a loop.

    initial: what it holds when it comes into being. value: what it holds now; None while that is
    not known, because it was loaded from a tensor and only shapes are simulated. loop: it counts a
    loop, which does not read it back.
    """

    is_register = True
    key = "register"
    __slots__ = ("initial", "loop", "unset", "value")
    __hash__ = None  # type: ignore[assignment]  # two registers have no order and no equality

    def __init__(self, initial: int | None = None, loop: bool = False) -> None:
        self.initial = initial
        self.value = initial
        self.loop = loop
        self.unset = initial is None

    def __repr__(self) -> str:
        return "<register>" if self.value is None else f"<register holding {self.value}>"

    def read(self, doing: str) -> int:
        """Its value; an error where nothing was put into it, or only shapes are known."""
        if self.unset:
            raise refuse(
                f"{doing}: the register was never set.",
                "register_alloc() without a value leaves it undefined.",
                "nisa.register_alloc(0), or nisa.register_move / register_load it first.",
            )
        if self.value is None:
            raise refuse(
                f"{doing} needs the value of a register that was loaded from a tensor, and only "
                "shapes are simulated.",
                "without numbers nobody knows what the register holds.",
                "simulate with arrays: nki.simulate(kernel)(arrays), nki.profile(kernel, "
                "values=True)(arrays); or use a Python int, which is known when the kernel is "
                "compiled.",
            )
        return self.value

    def put(self, value: int | None) -> None:
        """Set it; None where only shapes are simulated."""
        self.value = value
        self.unset = False

    def __bool__(self) -> bool:
        doubt(
            "register: an if or a while in Python asks whether it is 0.",
            "the loop that the device runs is not unrolled; newer compilers refuse Python control "
            "flow on registers.",
            "use nl.while_loop(register, body).",
        )
        return self.read("an if or a while on a register") != 0

    def __eq__(self, other: object) -> bool:
        if other is None:
            return False
        raise self._no_int("a comparison")

    def _no_int(self, where: str) -> Exception:
        return refuse(
            f"{where} with {self!r}, where a Python int is needed.",
            "this index is only known at run time: Python runs when the kernel is compiled.",
            USES,
        )

    def __int__(self) -> int:
        raise self._no_int("int()")

    def __index__(self) -> int:
        raise self._no_int("an index, a slice, nl.ds() or range()")

    def __float__(self) -> float:
        raise self._no_int("float()")


refuse_operators(
    VirtualRegister, lambda register, symbol: register._no_int(f"the operator {symbol}")
)


def whole_number(value: Any, what: str) -> int:
    """A Python int that fits a register."""
    good = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not good or not LOWEST <= value <= HIGHEST:
        raise refuse(
            f"{what} is {value!r}; it is a Python int of 32 bits.",
            "a register holds an integer.",
            "pass a whole number; nisa.register_load takes one from a tensor.",
        )
    return int(value)
