"""nc_stream_shuffle: moving partitions inside each quadrant of 32."""

import math
from typing import Any

import numpy as np

from utils.nki.simulator.enums import engine
from utils.nki.simulator.instruction import Use, instruction
from utils.nki.simulator.instructions.costs import per_element
from utils.nki.simulator.operands import tile, update

QUADRANT = 32
KEEP = 255


def shuffles(use: Use) -> None:
    """The 32 entries of shuffle_mask name partitions of one quadrant, or 255 to keep a row."""
    dst, src, mask = use.dst, use.src, use.shuffle_mask
    if dst.dtype != src.dtype:
        raise use.refuse(
            f"src is {src.dtype}, dst is {dst.dtype}; both have one type.",
            "a shuffle moves bits and converts nothing.",
            f"allocate dst with dtype={src.dtype!r}, and convert with nisa.tensor_copy.",
        )
    if dst.elements != src.elements:
        raise use.refuse(
            f"src has {src.elements} elements in each partition, dst has {dst.elements}.",
            "every partition moves as a whole.",
            "slice both to the same free size.",
        )
    if not isinstance(mask, (list, tuple)) or len(mask) != QUADRANT:
        found = f"{len(mask)} entries" if isinstance(mask, (list, tuple)) else repr(mask)
        raise use.refuse(
            f"shuffle_mask has {found}; it is a list of {QUADRANT}.",
            "one entry names the source of each partition of a quadrant.",
            "write [0] * 32 to spread one row, or 32 numbers from 0 to 31 (255 keeps a row).",
        )
    active = math.ceil(max(dst.shape[0], src.shape[0]) / QUADRANT) * QUADRANT
    allowed = (0,) if active > 64 else (0, 64) if active == 64 else (0, 32, 64, 96)
    for name in ("src", "dst"):
        start = use.args[name].partition
        if start not in allowed:
            raise use.refuse(
                f"{name} starts at partition {start} with {active} active partitions; such an "
                f"access starts at {', '.join(map(str, allowed))}.",
                "a shuffle works on whole quadrants of 32 partitions.",
                "slice both sides at such a partition.",
            )
    for at, source in enumerate(mask):
        if not isinstance(source, (int, np.integer)) or not (
            0 <= source < QUADRANT or source == KEEP
        ):
            raise use.refuse(
                f"shuffle_mask[{at}] is {source!r}; entries are 0 to {QUADRANT - 1}, or {KEEP}.",
                "partitions are exchanged inside a quadrant only.",
                "name a partition of the quadrant; 255 leaves the row of dst as it was.",
            )
    _sources_exist(use)


def _sources_exist(use: Use) -> None:
    there = use.src.shape[0]
    for target, source in _moves(use.dst.shape[0], use.shuffle_mask):
        if source >= there:
            raise use.refuse(
                f"shuffle_mask takes partition {source} of src for partition {target} of dst; src "
                f"has {there}.",
                f"the mask counts from the start of each quadrant of {QUADRANT} partitions.",
                "pass a src with all partitions that the mask names, or call once for each "
                "quadrant of dst.",
            )


def _moves(count: int, mask: Any) -> list[tuple[int, int]]:
    """(partition of dst, partition of src) for all rows that move."""
    return [
        (at, at - at % QUADRANT + mask[at % QUADRANT])
        for at in range(count)
        if mask[at % QUADRANT] != KEEP
    ]


@instruction(
    engine=engine.vector,
    cost=per_element("src"),
    since="0.2",
    dst=update(),
    src=tile(),
    rules=(shuffles,),
)
def nc_stream_shuffle(dst, src, shuffle_mask):
    """Move partitions inside each quadrant of 32: row i takes row shuffle_mask[i]; 255 keeps it.

    [0] * 32 with a src of one row spreads this row over 32 partitions.
    """
    moves = _moves(dst.shape[0], shuffle_mask)
    if not moves:
        return
    targets, sources = (list(each) for each in zip(*moves, strict=True))
    kept = dst.raw().reshape(dst.shape[0], -1).copy()
    kept[targets] = src.raw().reshape(src.shape[0], -1)[sources]
    dst.put_raw(kept)
