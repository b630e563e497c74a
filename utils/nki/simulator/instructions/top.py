"""The largest elements: eight at a time on the Vector Engine, many on the GpSimd Engine."""

import numpy as np

from utils.nki.simulator.enums import engine
from utils.nki.simulator.instruction import instruction
from utils.nki.simulator.instructions.costs import per_element
from utils.nki.simulator.instructions.gather import LANES, same_partitions
from utils.nki.simulator.instructions.gpsimd import PLAIN, SBUF_ONLY, a_number
from utils.nki.simulator.instructions.rules import an_integer, same_size
from utils.nki.simulator.operands import Use, result, tile
from utils.nki.simulator.table import for_operands

EIGHT = 8
FEWEST, MOST = 8, 16384
INDICES = frozenset(("uint16", "uint32"))
MOST_ACTIVE = 65535


@for_operands
def eight(use: Use, *names: str) -> None:
    """{names}: eight elements in each partition."""
    for name in names:
        tensor = use.args[name]
        if tensor is not None and tensor.elements != EIGHT:
            raise use.refuse(
                f"{name} has {tensor.elements} elements per partition {tensor.shape}; it has "
                f"{EIGHT}.",
                f"the engine keeps {EIGHT} values of a partition.",
                f"{name} = nl.ndarray((P, {EIGHT}), ...); repeat max8 and nc_match_replace8 "
                "for more.",
            )


@for_operands
def searched(use: Use, name: str) -> None:
    """{name} has 8 to 16384 elements in each partition, in at most 3 dimensions."""
    tensor = use.args[name]
    if not FEWEST <= tensor.elements <= MOST or tensor.ndim > 3:
        raise use.refuse(
            f"{name} has {tensor.elements} elements per partition in {tensor.ndim} dimensions; "
            f"allowed are {FEWEST} to {MOST} in up to 3.",
            "the instruction passes once over the row.",
            "search pieces of the row, then the results of the pieces.",
        )


@instruction(
    engine.vector, per_element("src"),
    dst=result(dtypes=PLAIN), src=tile(dtypes=PLAIN),
    rules=(searched("src"), eight("dst"), same_partitions("src", "dst")),
)  # fmt: skip
def max8(dst, src):
    """The eight largest elements of each partition, in descending order."""
    values = src.get().reshape(src.shape[0], -1)
    top = np.partition(values, -EIGHT, axis=1)[:, -EIGHT:]
    dst.put(np.ascontiguousarray(np.sort(top, axis=1)[:, ::-1]))


def find(data: np.ndarray, values: np.ndarray, order: range) -> np.ndarray:
    """For each value, in this order, the first position that no equal value has taken, or -1.

    data: (P, n). values: (P, 8). Returns (P, 8).
    """
    taken = np.zeros(data.shape, bool)
    rows = np.arange(len(data))
    match_ = np.full(values.shape, -1, np.int64)
    for column in order:
        equal = (data == values[:, column : column + 1]) & ~taken
        there, place = equal.any(axis=1), equal.argmax(axis=1)
        match_[there, column] = place[there]
        taken[rows[there], place[there]] = True
    return match_


def put_positions(dst, value: np.ndarray) -> None:
    """Write positions; all bits are ones where a value was not found."""
    limit = np.iinfo(dst.dtype.numpy).max
    dst.put_raw(np.where(value < 0, limit, value).astype(dst.dtype.numpy))


@instruction(
    engine.vector, per_element("data"),
    dst=result(dtypes=INDICES), data=tile(dtypes=PLAIN), vals=tile(dtypes=PLAIN),
    rules=(searched("data"), eight("dst", "vals"), same_partitions("data", "vals", "dst")),
)  # fmt: skip
def nc_find_index8(dst, data, vals):
    """Where each of eight values stands first in its partition; all ones where it does not.

    Equal values get the positions of equal elements, in ascending order.
    """
    rows, values = data.get().reshape(data.shape[0], -1), vals.get().reshape(vals.shape[0], -1)
    put_positions(dst, find(rows, values, range(EIGHT)))


@instruction(
    engine.vector, per_element("data"),
    dst=result(dtypes=PLAIN), data=tile(dtypes=PLAIN), vals=tile(dtypes=PLAIN),
    dst_idx=result(dtypes=INDICES, optional=True),
    rules=(
        searched("data"), eight("vals", "dst_idx"), same_size("data", "dst"),
        same_partitions("data", "vals"), a_number("imm"),
    ),
)  # fmt: skip
def nc_match_replace8(dst, data, vals, imm, dst_idx=None):
    """Copy `data`, replacing one element for each of eight values by the number `imm`.

    Values are matched from the last to the first, each with the first equal element that is left;
    `dst_idx` takes the positions, all ones where there is none.
    """
    rows, values = data.get().reshape(data.shape[0], -1), vals.get().reshape(vals.shape[0], -1)
    match_ = find(rows, values, range(EIGHT - 1, -1, -1))
    if data.dtype == dst.dtype:
        made = data.raw().reshape(rows.shape).copy()
    else:
        made = dst.storage.narrow(rows, dst.dtype).copy()
    partition, column = np.nonzero(match_ >= 0)
    number = dst.storage.narrow(np.float32([imm]), dst.dtype)[0]
    made[partition, match_[partition, column]] = number
    dst.put_raw(made)
    if dst_idx is not None:
        put_positions(dst_idx, match_)


def snake(use: Use) -> None:
    """The n elements of a row lie in 16 partitions, and both results have K of them."""
    n, k, source = use.n, use.val_dst.elements, use.src
    if k > n or use.idx_dst.elements != k:
        raise use.refuse(
            f"val_dst has {k} elements per partition, idx_dst {use.idx_dst.elements}, n is {n}; "
            "both have K, and K is at most n.",
            "K is the free size of val_dst.",
            "allocate both as (P, K).",
        )
    if source.shape[0] % LANES or source.elements * LANES < n:
        raise use.refuse(
            f"src is {source.shape}; {n} elements need a multiple of {LANES} partitions and "
            f"{-(-n // LANES)} elements in each.",
            f"element i of a group lies in partition i % {LANES}, column i // {LANES}.",
            "load the row with the pattern [[1, 16], [16, n // 16]].",
        )


def cost_topk(use: Use) -> float:
    """Four cycles for each of the n elements of a row, and one for each result."""
    return 4 * use.n + use.val_dst.elements


@instruction(
    engine.gpsimd,
    cost_topk,
    cost_source="https://awsdocs-neuron.readthedocs-hosted.com/en/latest/nki/api/generated/"
    "nki.isa.topk.html",
    val_dst=result(memory=SBUF_ONLY, dtypes=frozenset({"bfloat16"})),
    idx_dst=result(memory=SBUF_ONLY, dtypes=frozenset({"uint32"})),
    src=tile(memory=SBUF_ONLY, dtypes=frozenset({"bfloat16"})),
    rules=(
        same_partitions("src", "val_dst", "idx_dst"),
        an_integer(
            "n",
            EIGHT,
            MOST_ACTIVE,
            why="positions are counted in 16 bits.",
            fix="search longer rows in pieces.",
        ),
        snake,
    ),
)
def topk(val_dst, idx_dst, src, n):
    """The K largest of n elements that lie over 16 partitions, ascending, and their positions.

    Element i of a group of 16 partitions lies in partition i % 16, column i // 16. Here all 16
    partitions of the group get the result, and of equal elements the first ones are taken; AWS says
    neither.
    """
    k = val_dst.elements
    data = src.raw().reshape(src.shape[0], -1)
    values = np.empty((data.shape[0], k), data.dtype)
    places = np.empty((data.shape[0], k), np.uint32)
    for first in range(0, data.shape[0], LANES):
        group = slice(first, first + LANES)
        row = data[group].T.reshape(-1)[:n].astype(np.float32)
        chosen = np.argsort(-row, kind="stable")[:k][::-1]
        places[group], values[group] = chosen, data[group].T.reshape(-1)[chosen]
    val_dst.put_raw(values)
    idx_dst.put_raw(places)
