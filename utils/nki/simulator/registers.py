"""Registers of the engines' sequencers: numbers that are only known while the kernel runs.

A `VirtualRegister` may be changed; an `NkiScalar` (NKI 0.7) may not, and has arithmetic.
"""

import operator
from collections.abc import Callable
from typing import Any

from utils.nki.simulator.errors import doubt, is_whole, refuse, refuse_operators
from utils.nki.simulator.surface import since

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
        text = (
            "register: an if or a while in Python asks whether it is 0.",
            "Python runs when the kernel is compiled, and the register has no value then; up to "
            "NKI 0.6 a while on a register was a loop of the device.",
            "use nl.while_loop(register, body).",
        )
        if since("0.7"):
            raise refuse(*text)
        doubt(*text)
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
    if not is_whole(value) or not LOWEST <= value <= HIGHEST:
        raise refuse(
            f"{what} is {value!r}; it is a Python int of 32 bits.",
            "a register holds an integer.",
            "pass a whole number; nisa.register_load takes one from a tensor.",
        )
    return int(value)


# ---- scalars of NKI 0.7 --------------------------------------------------------------------------

WIDTHS = {"int32": 32, "int64": 64}
ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
}


class NkiScalar(VirtualRegister):
    """One integer computed on the device: from `nisa.scalar_load`, or from arithmetic with others.

    dtype: "int32" or "int64", which fixes its width: what outgrows it wraps. parts: the operator
    and the two operands it comes from, None for one that was loaded; roots: the loaded scalars that
    it comes from. It is never changed.
    (AWS, NKI scalar values:
    https://awsdocs-neuron.readthedocs-hosted.com/en/latest/nki/deep-dives/nki-scalar.html)

    >>> large = NkiScalar("int32", 100_000)
    >>> (large * large).value, (NkiScalar("int64", 1) + 2 - 5).value
    (1410065408, -2)
    """

    __slots__ = ("dtype", "parts", "roots")
    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self, dtype: str, value: int | None = None, parts: tuple[str, Any, Any] | None = None
    ) -> None:
        super().__init__(value)
        self.dtype, self.parts = dtype, parts
        self.unset = parts is None and value is None
        operands = [part for part in (parts or ())[1:] if isinstance(part, NkiScalar)]
        roots = {id(root): root for operand in operands for root in operand.roots}
        self.roots: tuple[NkiScalar, ...] = tuple(roots.values()) or (self,)

    @property
    def key(self) -> str:  # type: ignore[override]
        """What rules may depend on."""
        return f"scalar {self.dtype}"

    def __repr__(self) -> str:
        return f"<{self.dtype} scalar{'' if self.value is None else f' holding {self.value}'}>"

    def put(self, value: int | None) -> None:
        """Set it, once, by the instruction that makes it."""
        self.value, self.unset = (None if value is None else self.wrapped(value)), False

    def wrapped(self, value: int) -> int:
        """What of `value` fits the width: its low bits, as a signed number."""
        half = 1 << (WIDTHS[self.dtype] - 1)
        return (value + half) % (2 * half) - half

    def read(self, doing: str) -> int:
        """Its value; computed from its operands where they are those of another run."""
        if self.parts is None or self.value is not None:
            return super().read(doing)
        sign, left, right = self.parts
        numbers = (v.read(doing) if isinstance(v, NkiScalar) else v for v in (left, right))
        self.value = self.wrapped(ARITHMETIC[sign](*numbers))
        return self.value

    def _with(self, sign: str, other: Any, reverse: bool = False) -> "NkiScalar":
        if isinstance(other, NkiScalar):
            if other.dtype != self.dtype:
                raise refuse(
                    f"{self!r} {sign} {other!r}.",
                    "the width of a scalar is fixed when it is loaded, and nothing widens it.",
                    f"load both from tiles of nl.{self.dtype}.",
                )
        elif not is_whole(other):
            raise self._no_int(f"{sign} with {other!r}, which is no integer")
        left, right = (other, self) if reverse else (self, other)
        made = NkiScalar(self.dtype, parts=(sign, left, right))
        known = all(not isinstance(v, NkiScalar) or v.value is not None for v in (left, right))
        made.value = made.read(f"the operator {sign}") if known else None
        return made

    def __neg__(self) -> "NkiScalar":
        return self._with("-", 0, reverse=True)

    def _compare(self, *_: Any) -> Any:
        raise refuse(
            f"a comparison with {self!r}.",
            "of two int32 scalars it is traced and nothing can use its result; of int64 it is not "
            "compiled at all.",
            "loop with nl.fori_loop, or compute the comparison in a tile.",
        )

    __lt__ = __le__ = __gt__ = __ge__ = __ne__ = _compare

    def __eq__(self, other: object) -> bool:
        if other is None:
            return False
        return self._compare(other)


def _operator(sign: str, reverse: bool) -> Callable[[NkiScalar, Any], NkiScalar]:
    return lambda scalar, other: scalar._with(sign, other, reverse)


for _sign, _name in (("+", "add"), ("-", "sub"), ("*", "mul")):
    setattr(NkiScalar, f"__{_name}__", _operator(_sign, False))
    setattr(NkiScalar, f"__r{_name}__", _operator(_sign, True))
