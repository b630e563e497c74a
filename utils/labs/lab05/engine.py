"""A tensor engine in NumPy for exercise 3 of lab 05: it multiplies BF16 and gives FP32.

What it enforces is what it is given: operands that are not BF16, or tiles that are too deep, raise.
What it cannot enforce is that nobody multiplies elsewhere: `a` and `b` are ordinary arrays. So it
counts its products, and the check asks that every product of the result came from here.
"""

from typing import Any

import ml_dtypes
import numpy as np

from utils.facts import figure

DEPTH = int(figure("trainium2.engines.tensor.rows").number)
"""Rows of the engine: the deepest K-tile it takes at once."""


class Partial(np.ndarray):
    """A tile's product in FP32, which notes in which dtypes it is added to others.

    An array made of it by np.asarray notes nothing.
    """

    noted: set[str] | None = None

    def __array_finalize__(self, made_from: Any) -> None:
        self.noted = getattr(made_from, "noted", None)

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Any, out: tuple[Any, ...] = (), **named: Any
    ) -> Any:
        plain = [
            input_.view(np.ndarray) if isinstance(input_, Partial) else input_ for input_ in inputs
        ]
        if out:
            named["out"] = tuple(
                item.view(np.ndarray) if isinstance(item, Partial) else item for item in out
            )
        result = getattr(ufunc, method)(*plain, **named)
        if ufunc in (np.add, np.subtract) and self.noted is not None:
            self.noted.add(str(np.asarray(result).dtype))
        if out:
            return out[0]
        if isinstance(result, np.ndarray):
            partial = result.view(Partial)
            partial.noted = self.noted
            return partial
        return result


class TensorEngine:
    """Multiplies tiles; `products` counts multiplications, `sums` the dtypes of the additions that
    the results were part of.
    """

    depth = DEPTH

    def __init__(self) -> None:
        self.products = 0
        self.sums: set[str] = set()

    def multiply(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """a @ b in FP32, rounded once. a: BF16 [m, k], b: BF16 [k, n], k at most `depth`.

        Raises TypeError for other dtypes, ValueError for other shapes.
        """
        for name, item in (("a", a), ("b", b)):
            dtype = getattr(item, "dtype", type(item).__name__)
            if dtype != ml_dtypes.bfloat16:
                raise TypeError(f"{name} is {dtype}: the engine multiplies bfloat16 only here")
        if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[0]:
            raise ValueError(f"shapes {a.shape} and {b.shape}: they must be [m, k] and [k, n]")
        if a.shape[1] > self.depth:
            raise ValueError(f"k is {a.shape[1]}: the engine takes tiles of k up to {self.depth}")
        self.products += a.shape[0] * a.shape[1] * b.shape[1]
        exact = np.asarray(a, np.float64) @ np.asarray(b, np.float64)
        result = exact.astype(np.float32).view(Partial)
        result.noted = self.sums
        return result
