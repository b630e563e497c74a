"""The tensors of exercise 4 and their pieces, for the observer, the judge and the examples."""

import hashlib
from typing import Any

import numpy as np

from utils.labs import Facts


def whole(seed: int, name: str, shape: list[int], dtype: str) -> Any:
    """A tensor whose elements all differ."""
    own = int.from_bytes(hashlib.sha256(f"{seed} {name}".encode()).digest()[:4], "little")
    size = int(np.prod(shape, dtype=int))
    # Up to 2048, which every one of the types holds exactly.
    values = np.random.default_rng(own).permutation(2000)[:size] + 1
    return values.reshape(shape).astype(dtype)


def region(start: list[int], shape: list[int]) -> tuple[slice, ...]:
    """
    >>> region([2, 0], [3, 4])
    (slice(2, 5, None), slice(0, 4, None))
    """
    return tuple(slice(a, a + n) for a, n in zip(start, shape, strict=True))


def index_of(tensors: list[Facts], lost: int | None = None) -> Facts:
    """What is known of a checkpoint's files: of each tensor its shape, type and pieces.

    lost: a file that is not there.
    """
    return {
        tensor["name"]: {
            "shape": tensor["shape"],
            "dtype": tensor["dtype"],
            "pieces": [piece for piece in tensor["pieces"] if piece["file"] != lost],
        }
        for tensor in tensors
    }


def wanted_by(tensors: list[Facts], rank: int) -> Facts:
    """The region of each tensor that a rank is to hold."""
    return {tensor["name"]: tensor["wanted"][rank] for tensor in tensors}
