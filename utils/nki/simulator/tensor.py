"""A tensor of a kernel: a view that can be indexed, reshaped and walked through by a pattern, and
that answers what Python asks of an object that has no numbers while a kernel is compiled.
"""

from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np

from utils.nki.simulator.errors import NkiValidationError, doubt, refuse, refuse_operators, repeats
from utils.nki.simulator.memory import Storage
from utils.nki.simulator.patterns import pattern_view
from utils.nki.simulator.views import Views


class Tensor(Views):
    """A view of HBM, SBUF or PSUM. Made by `nl.ndarray` or by indexing; holds no numbers itself.

    assign: what `tile[...] = value` does; `language` sets it, because it issues instructions.
    """

    __slots__ = ()
    assign: ClassVar[Callable[["Tensor", Any], None]]

    def __setitem__(self, key: Any, value: Any) -> None:
        """`tile[...] = other` is a copy by an engine, or a DMA where one side is in HBM."""
        type(self).assign(self[key], value)

    @property
    def data(self) -> Self:
        """Itself: what of a grid is the operand of an instruction (NKI 0.7)."""
        return self

    def ap(
        self, pattern: Any, offset: int | None = None, scalar_offset: Any = None,
        vector_offset: Any = None, indirect_dim: int = 0, dtype: Any = None,
    ) -> "Tensor":  # fmt: skip
        """A free access pattern [[stride, count], ...] over the storage, in elements.

        On chip the first pair is the partition; its stride is the elements of a partition. Of this
        view only its beginning counts, to which `offset` is added. `scalar_offset` (one index) and
        `vector_offset` (one for each row) move the pattern at run time along `indirect_dim`. Where
        an element lies outside of the storage, the instruction that is given the view raises.
        """
        view, error = pattern_view(self, pattern, offset, dtype, vector_offset is not None)
        if scalar_offset is None and vector_offset is None:
            return view if error is None else Outside.of(view, error)
        if error is not None:
            raise error
        return self._moved(view, scalar_offset, vector_offset, indirect_dim)

    # ---- what Python asks --------------------------------------------------------------------

    def __bool__(self) -> bool:
        """True, because it is there: libraries write `if bias:` of an argument that may be None."""
        if repeats():
            raise self._no_value("a while")
        doubt(
            f"{self.buffer.value} tensor: an if, an and or a not asks whether it is true, and it "
            "is: it is not None.",
            "a kernel is compiled before there are numbers, so Python cannot ask what it holds.",
            "write tensor != None; for control that depends on data use nisa.select_reduce, "
            "nl.where, or a register with nl.fori_loop.",
        )
        return True

    def __int__(self) -> int:
        raise self._no_value("int()")

    def __index__(self) -> int:
        raise self._no_value("an index or range()")

    def __float__(self) -> float:
        raise self._no_value("float()")

    def __array__(self, *args: Any, **kwargs: Any) -> np.ndarray:
        raise self._no_value("NumPy")

    def _no_value(self, where: str) -> Exception:
        return refuse(
            f"{where} asks for the numbers of {self!r}.",
            "a kernel is compiled before there are numbers: Python sees shapes and types only.",
            "compute with nisa or nl instructions; for control that depends on data use "
            "nisa.select_reduce, nl.where, or a register with nl.fori_loop.",
        )


_NAMES = {"+": "add", "-": "subtract", "*": "multiply", "/": "divide", "**": "power"}


def _no_operator(tensor: Tensor, symbol: str) -> Exception:
    if symbol == "@":
        fix = "nisa.nc_matmul(dst=product, stationary=a, moving=b), with product in PSUM."
    else:
        name = _NAMES.get(symbol, "add")
        fix = (
            f"nisa.tensor_tensor(dst=tile, data1=a, data2=b, op=nl.{name}), with tiles in SBUF; "
            f"for a number nisa.tensor_scalar(dst=tile, data=a, op0=nl.{name}, operand0=2.0)."
        )
    return refuse(
        f"{symbol} on {tensor!r}: tensors have no operators.",
        "each instruction names the tile that it writes, its engine and where its operands are.",
        fix,
    )


refuse_operators(Tensor, _no_operator)


class Outside(Tensor):
    """A pattern that leaves its storage: it may be written down, but no instruction takes it.

    Published kernels make the pattern of the next step and then ask whether there is one.
    """

    __slots__ = ("error",)
    error: NkiValidationError

    @classmethod
    def of(cls, view: Tensor, error: NkiValidationError) -> Self:
        """The view that raises `error` as soon as an instruction takes it."""
        made = cls(view.storage, view.dtype, view.shape, view.strides, view.offset)
        made.error = error
        return made

    @property
    def key(self) -> int:
        """Raises: the view has no layout."""
        raise self.error

    def again(self, *args: Any, **kwargs: Any) -> Self:
        """Raises, as there is no view of it."""
        raise self.error

    def array(self) -> np.ndarray:
        """Raises: the view has no elements."""
        raise self.error


def whole(storage: Storage) -> Tensor:
    """The view of everything in an allocation."""
    made = Tensor(storage, storage.dtype, storage.shape, storage.form.strides)
    if storage.address is None:
        made._key = storage.form.key
    return made
