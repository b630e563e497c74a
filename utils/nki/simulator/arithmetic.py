"""Python's operators on things that have no number while a kernel is compiled: each is refused."""

from collections.abc import Callable
from typing import Any

OPERATORS = {
    "+": ("add", "radd"), "-": ("sub", "rsub", "neg"), "*": ("mul", "rmul"),
    "@": ("matmul", "rmatmul"), "/": ("truediv", "rtruediv"), "//": ("floordiv", "rfloordiv"),
    "%": ("mod", "rmod"), "**": ("pow", "rpow"), "<": ("lt",), "<=": ("le",), ">": ("gt",),
    ">=": ("ge",), "&": ("and", "rand"), "|": ("or", "ror"), "^": ("xor", "rxor"),
    "<<": ("lshift",), ">>": ("rshift",),
}  # fmt: skip


def refuse_operators(kind: type, error: Callable[[Any, str], Exception]) -> None:
    """Make every operator on objects of `kind` raise what `error(object, symbol)` makes."""
    for symbol, names in OPERATORS.items():
        for name in names:
            setattr(kind, f"__{name}__", _refused(symbol, error))


def _refused(symbol: str, error: Callable[[Any, str], Exception]) -> Callable[..., Any]:
    def method(self: Any, *others: Any) -> Any:
        raise error(self, symbol)

    return method
