"""Access patterns: `t.ap([[stride, count], ...])`.

A pattern counts elements of the storage, not of the view, as the hardware does: the view that it is
called on gives only where to begin (and not even that according to the guides, which contradict
the API reference here: such calls are doubted). On chip every partition does the same, so the first
pair steps from one partition to the next, and the others stay inside a partition. (AWS, access
patterns:
https://awsdocs-neuron.readthedocs-hosted.com/en/latest/nki/deep-dives/nki-aps.html)
"""

from typing import Any, TypeVar

from utils.nki.simulator.dtypes import DType, dtype_of
from utils.nki.simulator.errors import NkiValidationError, doubt, is_whole, refuse
from utils.nki.simulator.views import Views

Pairs = list[tuple[int, int]]
Viewed = TypeVar("Viewed", bound=Views)


def pattern_view(
    tensor: Viewed, pattern: Any, offset: int | None, dtype: Any, by_row: bool
) -> tuple[Viewed, NkiValidationError | None]:
    """The view of `tensor`'s storage that a pattern describes, and what is wrong if it leaves it.

    pattern: pairs (stride, count) in elements of `dtype`, outermost first. offset: elements of
    `dtype` from where `tensor` begins. by_row: each index brings its own row, so the first pair
    does not say how far the rows reach. Raises where this is no pattern at all.
    """
    made = _type(tensor, dtype)
    pairs = _pairs(tensor, pattern)
    start = _start(tensor, offset, made)
    view = tensor.again(
        tuple(count for _, count in pairs), tuple(stride for stride, _ in pairs), start, made
    )
    try:
        if tensor.storage.on_chip:
            _inside_partitions(tensor, view, pairs)
        else:
            _inside_hbm(view, pairs[1:] if by_row else pairs)
    except NkiValidationError as error:
        return view, error
    return view, None


def _type(tensor: Views, dtype: Any) -> DType:
    if tensor.indirect is not None:
        raise refuse(
            f"ap of {tensor!r}, whose elements are found at run time.",
            "one instruction looks up one list of indices: a view is indirect once.",
            "call ap on the tensor itself, with scalar_offset or vector_offset.",
        )
    made = tensor.dtype if dtype is None else dtype_of(dtype)
    row_bytes = tensor.storage.row_bytes
    if row_bytes % made.itemsize:
        raise refuse(
            f"ap of {tensor!r} as {made!r}: {row_bytes} bytes in a partition are no multiple of "
            f"{made.itemsize}.",
            "a pattern in another type counts elements of that type.",
            f"allocate the tile with a row that is a multiple of {made.itemsize} bytes.",
        )
    return made


def _pairs(tensor: Views, pattern: Any) -> Pairs:
    pairs = [tuple(item) if isinstance(item, (list, tuple)) else (item,) for item in pattern]
    whole = all(
        len(pair) == 2 and all(map(is_whole, pair)) and pair[0] >= 0 and pair[1] >= 1
        for pair in pairs
    )
    if not pairs or not whole:
        raise refuse(
            f"ap of {tensor!r}: the pattern {pattern!r}.",
            "a pattern is a list of pairs [stride, count] in elements: strides of 0 or more, "
            "counts of 1 or more, known at compile time.",
            f"start from {tensor.get_pattern()}, the pattern of this view.",
        )
    return [(int(stride), int(count)) for stride, count in pairs]


def _start(tensor: Views, offset: Any, made: DType) -> int:
    """Where the pattern begins, in elements of its type."""
    if offset is not None and not is_whole(offset):
        raise refuse(
            f"ap of {tensor!r}: offset={offset!r}.",
            "the offset of a pattern is fixed at compile time.",
            "give an integer; an index known at run time is scalar_offset= or vector_offset=.",
        )
    begin = tensor.offset * tensor.dtype.itemsize
    if begin % made.itemsize:
        raise refuse(
            f"ap of {tensor!r} as {made!r}: the view begins at byte {begin}, no multiple of "
            f"{made.itemsize}.",
            "an element begins at a multiple of its size.",
            "call ap on the whole tensor and count the offset in the new type.",
        )
    start = begin // made.itemsize + int(offset or 0)
    if begin:
        doubt(
            f"ap: called on a view that begins at element {tensor.offset} of its tensor.",
            "the API reference lets the pattern begin where the view does, as here; two guides of "
            "the same release say that the view's offset is ignored.",
            f"call ap on the whole tensor, with offset={start}.",
        )
    return start


def _inside_partitions(tensor: Views, view: Views, pairs: Pairs) -> None:
    row, partitions = view.row, view.storage.partitions
    stride, count = pairs[0]
    if count > 1 and stride != row:
        raise refuse(
            f"ap of {tensor!r}: the first pair is [{stride}, {count}]; its stride must be {row}, "
            "the elements of one partition.",
            "on chip the first pair steps from a partition to the next one; engines do not skip or "
            "repeat partitions.",
            f"write [{row}, {count}] first, and the steps inside a partition after it.",
        )
    if view.offset < 0 or view.offset // row + count > partitions:
        raise refuse(
            f"ap of {tensor!r}: {count} partitions from partition {view.offset // row}; the tile "
            f"has {partitions}.",
            "a pattern covers partitions of its own tile.",
            f"use at most {max(partitions - view.offset // row, 0)} partitions here.",
        )
    last = view.offset % row + _span(pairs[1:])
    if last >= row:
        raise refuse(
            f"ap of {tensor!r}: the pattern {view.get_pattern()} from element {view.offset % row} "
            f"reaches element {last} of a partition, which has {row}.",
            "past the end of its row a pattern would read another tile's bytes.",
            f"lower the counts or strides so that the last element is at most {row - 1}.",
        )


def _inside_hbm(view: Views, pairs: Pairs) -> None:
    last = view.offset + _span(pairs)
    if view.offset < 0 or last >= view.row:
        raise refuse(
            f"ap of {view!r}: the pattern {view.get_pattern()} covers the elements {view.offset} "
            f"to {last}; the tensor has 0 to {view.row - 1}.",
            "a pattern counts elements from the start of the tensor, in row-major order.",
            "lower the offset, counts or strides; a partial last tile needs smaller counts.",
        )


def _span(pairs: Pairs) -> int:
    """How far the last element of a pattern lies behind its first."""
    return sum(stride * (count - 1) for stride, count in pairs)
