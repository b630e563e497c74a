"""Gathers inside SBUF, and positions of non-zero elements."""

import math

import numpy as np

from utils.nki.simulator.enums import engine
from utils.nki.simulator.errors import refuse
from utils.nki.simulator.instruction import instruction
from utils.nki.simulator.instructions.gpsimd import SBUF_ONLY, STARTUP_CYCLES, startup_and_elements
from utils.nki.simulator.instructions.rules import an_integer, needs_generation, same_types
from utils.nki.simulator.operands import Use, result, tile, update
from utils.nki.simulator.table import for_operands

LANES = 16
"""Partitions that one of the eight cores of the GpSimd Engine reaches."""
RUNS = (1, 2, 4, 8, 16, 32)
MOST_INDICES = 4096
GROUP = 512
"""Elements that one of the instructions behind nc_n_gather handles."""


@for_operands
def same_partitions(use: Use, *names: str) -> None:
    """{names} have the same number of partitions."""
    counts = {name: use.args[name].shape[0] for name in names}
    if len(set(counts.values())) > 1:
        raise use.refuse(
            f"partitions differ: {', '.join(f'{n} has {c}' for n, c in counts.items())}.",
            "each partition gathers into itself.",
            "slice or allocate them with the same number of partitions.",
        )


def cost_local_gather(use: Use) -> float:
    """A start-up, and cycles by the number and the length of the runs."""
    e, item = use.num_elem_per_idx, use.src_buffer.dtype.itemsize
    rate = ((28 + 4 * e) / (4 * e)) / min(4 / item, e)
    return STARTUP_CYCLES + _valid(use) * e / rate


def _valid(use: Use) -> int:
    """How many indices each core takes."""
    there = use.index.elements * LANES
    return there if use.num_valid_indices is None else use.num_valid_indices


def gather_groups(use: Use) -> None:
    """Groups of 16 partitions gather runs of elements with the indices that they hold."""
    there, valid, run = use.index.elements * LANES, _valid(use), use.num_elem_per_idx
    partitions = use.src_buffer.shape[0]
    if partitions % LANES:
        raise use.refuse(
            f"{partitions} partitions; a multiple of {LANES} is needed.",
            f"each core of the GpSimd Engine reaches {LANES} partitions.",
            "pad the tiles, or gather inside each partition with nisa.nc_n_gather.",
        )
    if run not in RUNS:
        raise use.refuse(
            f"num_elem_per_idx is {run!r}; allowed: {', '.join(map(str, RUNS))}.",
            "the engine reads runs of these lengths.",
            "pass num_elem_per_idx=1, or split longer runs.",
        )
    if not isinstance(valid, (int, np.integer)) or not 1 <= valid <= min(there, MOST_INDICES):
        raise use.refuse(
            f"{valid!r} indices for each core; 1 to {min(there, MOST_INDICES)} are possible with "
            f"an index of shape {use.index.shape}.",
            f"a core takes the indices of its {LANES} partitions, at most {MOST_INDICES}.",
            "give num_valid_indices a smaller number, or gather in several calls.",
        )
    if use.dst.elements not in (valid * run, there * run):
        raise use.refuse(
            f"dst has {use.dst.elements} elements per partition; {valid} indices of {run} elements "
            f"make {valid * run}.",
            "each index brings num_elem_per_idx elements.",
            f"dst = nl.ndarray(({partitions}, {valid}, {run}), ...).",
        )


@instruction(
    engine.gpsimd, cost_local_gather,
    dst=update(memory=SBUF_ONLY), src_buffer=tile(memory=SBUF_ONLY),
    index=tile(memory=SBUF_ONLY, dtypes=frozenset({"uint16"})),
    rules=(
        same_partitions("src_buffer", "index", "dst"), same_types("src_buffer", "dst"),
        gather_groups,
    ),
)  # fmt: skip
def local_gather(dst, src_buffer, index, num_elem_per_idx=1, num_valid_indices=None):
    """Gather with indices that 16 partitions share.

    The indices of a group of 16 partitions, taken partition first, are positions in each of its
    partitions; every index brings `num_elem_per_idx` neighbours. Elements of `dst` past the valid
    indices stay as they are.
    """
    source = src_buffer.raw().reshape(src_buffer.shape[0], -1)
    made = dst.raw().reshape(dst.shape[0], -1).copy()
    taken = index.raw().reshape(index.shape[0], -1).astype(np.int64)
    for first in range(0, source.shape[0], LANES):
        group = slice(first, first + LANES)
        flat = taken[group].T.reshape(-1)[:num_valid_indices]
        _inside(flat, source.shape[1] - num_elem_per_idx, f"partitions {first} and following")
        columns = (flat[:, None] + np.arange(num_elem_per_idx)).reshape(-1)
        made[group, : columns.size] = source[group][:, columns]
    dst.put_raw(made)


def _inside(indices: np.ndarray, last: int, where: str) -> None:
    wrong = np.flatnonzero((indices < 0) | (indices > last))
    if wrong.size:
        raise refuse(
            f"index {indices[wrong[0]]} at position {wrong[0]} of {where}; allowed are 0 to "
            f"{last}.",
            "the engine does not check addresses: it would read what lies behind.",
            "correct the indices.",
        )


def gathered_size(use: Use) -> None:
    """dst has as many elements as indices."""
    if use.dst.elements != use.indices.elements:
        raise use.refuse(
            f"dst has {use.dst.elements} elements per partition, indices has "
            f"{use.indices.elements}.",
            "each index brings one element.",
            "give dst the shape of indices.",
        )


def cost_n_gather(use: Use) -> float:
    """A start-up for each 512 elements of a partition, and one cycle for each element."""
    return STARTUP_CYCLES * math.ceil(use.dst.elements / GROUP) + use.dst.elements


@instruction(
    engine.gpsimd, cost_n_gather,
    cost_source="not published; one instruction like iota for each 512 elements",
    dst=result(memory=SBUF_ONLY), data=tile(memory=SBUF_ONLY),
    indices=tile(memory=SBUF_ONLY, dtypes=frozenset({"uint32"})),
    rules=(same_partitions("data", "indices", "dst"), same_types("data", "dst"), gathered_size),
)  # fmt: skip
def nc_n_gather(dst, data, indices):
    """In each partition by itself: dst[i] = data[indices[i]], free dimensions flattened."""
    source = data.raw().reshape(data.shape[0], -1)
    wanted = indices.raw().reshape(indices.shape[0], -1).astype(np.int64)
    for partition in np.flatnonzero((wanted >= source.shape[1]).any(axis=1)):
        _inside(wanted[partition], source.shape[1] - 1, f"partition {partition}")
    dst.put_raw(np.take_along_axis(source, wanted, axis=1))


def one_more(use: Use) -> None:
    """dst has one element more than src, for the count."""
    if use.dst.shape[0] != use.src.shape[0] or use.dst.elements != use.src.elements + 1:
        raise use.refuse(
            f"dst is {use.dst.shape}, src is {use.src.shape}; dst has as many partitions and one "
            "element more.",
            "the last element takes the count.",
            f"dst = nl.ndarray(({use.src.shape[0]}, {use.src.elements + 1}), dtype=nl.int32, "
            "buffer=nl.sbuf).",
        )


@instruction(
    engine.gpsimd, startup_and_elements, cost_source="not published; taken as iota",
    dst=update(memory=SBUF_ONLY, dtypes=frozenset({"int32"})),
    src=tile(memory=SBUF_ONLY, dtypes=frozenset({"float32", "int32"})),
    rules=(
        needs_generation(3), one_more, an_integer("index_offset"), an_integer("padding_val"),
    ),
)  # fmt: skip
def nonzero_with_count(dst, src, index_offset=0, padding_val=-1):
    """Positions of the elements that are not 0, then padding, then their count.

    Only partitions 0, 16, 32, ... are read and written: one for each core of the engine.
    """
    made = dst.raw().reshape(dst.shape[0], -1).copy()
    data = src.raw().reshape(src.shape[0], -1)
    for partition in range(0, src.shape[0], LANES):
        match_ = np.flatnonzero(data[partition] != 0)
        made[partition, :-1] = padding_val
        made[partition, : match_.size] = match_ + index_offset
        made[partition, -1] = match_.size
    dst.put_raw(made)
