"""Which parts of an HBM tensor a program moved, and how often."""

import math
from collections import Counter
from dataclasses import dataclass

import numpy as np

from utils.nki.simulator.memory import Storage
from utils.nki.simulator.program import Program
from utils.nki.simulator.tensor import Tensor
from utils.nki.simulator.uses import tensors_of


@dataclass(frozen=True)
class Moved:
    """How often each part of a tensor was moved, seen as a table of rows.

    rows, columns: where the parts begin, and the end: R + 1 and C + 1 borders. times: [R, C].
    """

    rows: tuple[int, ...]
    columns: tuple[int, ...]
    times: np.ndarray

    @property
    def most(self) -> int:
        """How often the part that was moved most was moved."""
        return int(self.times.max())

    @property
    def mean(self) -> float:
        """How often an element was moved, on average."""
        sizes = np.outer(np.diff(self.rows), np.diff(self.columns))
        return float((self.times * sizes).sum() / sizes.sum())


def moves(program: Program, storage: Storage, reads: bool = True) -> Moved:
    """How often the parts of a tensor in HBM were read (or written) by transfers of all cores.

    Dimensions before the last make up the rows. A strided view counts with the gaps inside it.
    """
    boxes: Counter[tuple[int, int, int, int]] = Counter()
    for core in program.cores:
        for instruction in core.instructions:
            for view in tensors_of(instruction, reads):
                if view.storage is storage:
                    boxes[_box(view)] += 1
    width = storage.shape[-1]
    rows = _borders({r for box in boxes for r in box[:2]}, storage.row // width)
    columns = _borders({c for box in boxes for c in box[2:]}, width)
    times = np.zeros((len(rows) - 1, len(columns) - 1), int)
    for (top, bottom, left, right), count in boxes.items():
        high = slice(rows.index(top), rows.index(bottom))
        times[high, columns.index(left) : columns.index(right)] += count
    return Moved(rows, columns, times)


def _borders(result: set[int], end: int) -> tuple[int, ...]:
    return tuple(sorted(result | {0, end}))


def _box(view: Tensor) -> tuple[int, int, int, int]:
    """The rows and columns that a view lies in: from, to, from, to."""
    storage = view.storage
    width = storage.shape[-1]
    if view.indirect is not None:
        return 0, storage.row // width, 0, width
    row, column = divmod(view.offset, width)
    high = wide = 0
    for size, stride in zip(view.shape, view.strides, strict=True):
        if stride % width == 0:
            high += (size - 1) * stride // width
        else:
            wide += (size - 1) * stride
    if column + wide >= width:  # runs over the end of a row
        last = math.ceil((view.offset + wide + 1) / width)
        return row, last + high, 0, width
    return row, row + high + 1, column, column + wide + 1
