"""The Tensor Engine: products of matrices, and transposes made of them.

How exact a product is. Operands are widened to FP32; products of two BF16, FP16 or FP8 numbers are
exact there. The sum over K (at most 128 rows, 256 with double_row) is FP32 in the order of NumPy's
matrix product, which depends on the machine's BLAS; AWS does not publish the order of the array.
Across instructions the order is exactly that of the program: each element gets one FP32 addition
per `nc_matmul`. So two correct results may differ in the last bits of FP32, and are compared with a
tolerance; sums that FP32 holds exactly (small integers, one-hot rows) agree bit by bit.
"""

import numpy as np

from utils.nki.simulator import program
from utils.nki.simulator.accumulation import accumulated
from utils.nki.simulator.dtypes import widen
from utils.nki.simulator.enums import engine, matmul_perf_mode
from utils.nki.simulator.errors import refuse
from utils.nki.simulator.instruction import Use, instruction
from utils.nki.simulator.instructions.costs import FEWEST_CYCLES
from utils.nki.simulator.instructions.matmul_rules import MATMUL_RULES, columns, doubles, one_bank
from utils.nki.simulator.operands import PSUM, SBUF, result, tile
from utils.nki.simulator.tensor import Tensor

engines = engine
SLOW_FP32 = 4
"""FP32 passes through the array four times (SDK 2.26, nc_matmul)."""
KNOWN_ONES = 2
"""Operands of ones and zeros, and transpose mode from Trainium2 on, save half of that (nc_matmul;
Trainium2 guide, built-in transpose support)."""
STATIONARY_CYCLES = 64
"""What loading the stationary operand costs at most (SDK 2.26, nc_matmul)."""
BIT_EXACT_TRANSPOSE = 3
"""The generation from which a transpose moves bits instead of multiplying with ones."""
VECTOR_TRANSPOSE = 32
"""Largest rows and columns that the Vector Engine transposes."""


def cost_matmul(use: Use) -> float:
    """Columns that stream through the array, at least those of the stationary operand."""
    passes = 1
    if use.stationary.dtype == "float32":
        passes = SLOW_FP32
        fast = use.is_transpose and use.target.generation >= BIT_EXACT_TRANSPOSE
        if fast or use.is_stationary_onezero or use.is_moving_onezero:
            passes = KNOWN_ONES
    loading = min(STATIONARY_CYCLES, columns(use, use.stationary))
    return passes * max(loading, columns(use, use.moving))


@instruction(
    engine=engine.tensor,
    cost=cost_matmul,
    since="0.2",
    dst=result(memory=frozenset({PSUM})),
    stationary=tile(memory=frozenset({SBUF})),
    moving=tile(memory=frozenset({SBUF})),
    rules=MATMUL_RULES,
)
def nc_matmul(
    dst,
    stationary,
    moving,
    is_stationary_onezero=False,
    is_moving_onezero=False,
    is_transpose=False,
    accumulate=None,
    tile_position=(),
    tile_size=(),
    perf_mode=matmul_perf_mode.none,
):
    """dst (+)= stationary.T @ moving, added up in FP32; K lies on the partitions of both operands.

    stationary (K, M), moving (K, N), dst (M, N) in PSUM; further free dimensions are flattened.
    accumulate: False overwrites dst, True adds; None overwrites with the first product at a place
    of the allocation and adds the later ones. perf_mode double_row: FP8 operands (K / 2, 2, ...).
    is_transpose: moving is an identity, and bits move unchanged (from Trainium2 on).
    """
    if is_transpose:
        _transposed(dst, stationary, _order(moving), array=True)
        return
    rows = stationary.shape[0]
    if doubles(perf_mode):
        rows *= 2
    a = stationary.get().reshape(rows, -1)
    b = moving.get().reshape(rows, -1)
    for name, said, found in (
        ("stationary", is_stationary_onezero, a), ("moving", is_moving_onezero, b),
    ):  # fmt: skip
        if said and not ((found == 0) | (found == 1)).all():
            raise _no_ones(name, found)
    with np.errstate(all="ignore"):  # NaN of memory that nobody wrote is no surprise
        accumulated(dst, np.matmul(a.T, b), accumulate)


def _no_ones(name: str, found: np.ndarray) -> Exception:
    value = found[(found != 0) & (found != 1)][0]
    return refuse(
        f"nc_matmul: is_{name}_onezero=True, and {name} holds {value:g}.",
        "the array leaves out passes that only other numbers than 0 and 1 need.",
        f"leave out is_{name}_onezero.",
    )


def _order(moving: Tensor) -> np.ndarray:
    """The place of the 1 in each column of a permutation matrix."""
    ones = moving.get().reshape(moving.shape[0], -1)
    order = np.argmax(ones, axis=0)
    if not np.array_equal(ones, np.eye(len(ones), dtype=np.float32)[:, order]):
        raise refuse(
            f"nc_matmul: is_transpose=True, and moving {moving.shape} is not made of columns with "
            "a single 1.",
            "transpose mode moves bits of stationary and multiplies nothing.",
            "fill moving with nl.shared_identity_matrix, or leave out is_transpose.",
        )
    return order


def _transposed(dst: Tensor, data: Tensor, order: np.ndarray | None = None, *, array: bool) -> None:
    """dst = data.T, with its columns in `order`; array: through the array of the Tensor Engine."""
    raw = data.raw().reshape(data.shape[0], -1)
    moved = raw.T if order is None else raw.T[:, order]
    core = program.active()
    old = core is not None and core.program.target.generation < BIT_EXACT_TRANSPOSE
    if old and array and not np.isfinite(values := widen(moved)).all():
        with np.errstate(all="ignore"):  # 0 * inf: the whole row of the result becomes NaN
            moved = np.matmul(values, np.eye(values.shape[1], dtype=np.float32))
    if moved.dtype == dst.array().dtype:
        dst.put_raw(np.ascontiguousarray(moved))
    else:
        dst.put(np.ascontiguousarray(widen(moved)))


# ---- transpose -----------------------------------------------------------------------------------


def which_engine(use: Use) -> engine:
    """The engine asked for; else the Tensor Engine wherever it can read and write."""
    if use.args["engine"] is not engines.unknown:
        return use.args["engine"]
    reaches = use.dst.buffer is PSUM and use.data.buffer is SBUF
    small = max(use.data.shape[0], use.data.elements) <= VECTOR_TRANSPOSE
    return engines.tensor if reaches or not small else engines.vector


def _memories(use: Use) -> None:
    """The Tensor Engine transposes from SBUF to PSUM; the Vector Engine reaches both."""
    if use.engine not in (engines.tensor, engines.vector):
        raise use.refuse(
            f"engine={use.engine.name}; allowed are tensor and vector.",
            "only these engines exchange partitions and columns.",
            "leave out engine, or pass nisa.engine.tensor.",
        )
    if use.engine is engines.vector:
        return
    if use.dst.buffer is not PSUM:
        raise use.refuse(
            f"on the Tensor Engine it writes PSUM; dst is in {use.dst.buffer.value}.",
            "the array sends its results to PSUM only.",
            f"add a PSUM tile of shape ({use.data.elements}, {use.data.shape[0]}) and dtype=nl."
            f"{use.data.dtype}, and nisa.tensor_copy it to SBUF.",
        )
    if use.data.buffer is not SBUF:
        raise use.refuse(
            f"on the Tensor Engine it reads SBUF; data is in {use.data.buffer.value}.",
            "the array takes its operands from SBUF only.",
            "nisa.tensor_copy data to an SBUF tile first.",
        )


def _transpose_shapes(use: Use) -> None:
    """Partitions and columns change places: up to 128 of each, on the Vector Engine 32."""
    data, dst = use.data, use.dst
    rows, free = data.shape[0], data.elements
    limit = VECTOR_TRANSPOSE if use.engine is engines.vector else use.target.partitions
    if max(rows, free) > limit:
        raise use.refuse(
            f"data has {rows} partitions and {free} columns {data.shape}; the "
            f"{use.engine.name.capitalize()} Engine transposes at most {limit} by {limit}.",
            "its rows become columns of one tile and its columns partitions.",
            f"loop over blocks data[:, nl.ds(i * {limit}, {limit})]"
            + (
                ", or use engine=nisa.engine.tensor, up to "
                f"{use.target.partitions} by {use.target.partitions}."
                if use.engine is engines.vector
                else "."
            ),
        )
    if (dst.shape[0], dst.elements) != (free, rows):
        raise use.refuse(
            f"dst has {dst.shape[0]} partitions and {dst.elements} columns {dst.shape}; data "
            f"{data.shape} becomes {free} partitions and {rows} columns.",
            "partitions and (flattened) columns change places.",
            f"pass dst[0:{free}, 0:{rows}], or allocate dst with the shape ({free}, {rows}).",
        )


def _transpose_types(use: Use) -> None:
    """data and dst have the same type."""
    data, dst = use.data, use.dst
    if data.dtype == dst.dtype:
        return
    if dst.dtype == "float32" and data.dtype.is_float:
        use.doubt(
            f"data is {data.dtype}, dst is {dst.dtype}.",
            "the documentation asks for one type; the simulator widens on the way into dst.",
            f"allocate dst with dtype=nl.{data.dtype}.",
        )
        return
    raise use.refuse(
        f"data is {data.dtype}, dst is {dst.dtype}; both have the same type.",
        "a transpose moves bits and converts nothing.",
        f"allocate dst with dtype=nl.{data.dtype}; the nisa.tensor_copy that follows converts.",
    )


def cost_transpose(use: Use) -> float:
    """Columns that stream through the array, in several passes for FP32; on the Vector Engine
    one cycle for each element of a partition.
    """
    data = use.data
    if use.engine is engines.vector:
        return max(FEWEST_CYCLES, data.elements)
    passes = 1
    if data.dtype == "float32":
        passes = KNOWN_ONES if use.target.generation >= BIT_EXACT_TRANSPOSE else SLOW_FP32
    return passes * max(data.shape[0], min(STATIONARY_CYCLES, data.elements))


@instruction(
    engine=which_engine,
    cost=cost_transpose,
    since="0.2",
    dst=result(),
    data=tile(),
    rules=(_memories, _transpose_shapes, _transpose_types, one_bank),
)
def nc_transpose(dst, data, engine=engine.unknown):
    """Exchange partitions and (flattened) columns of a tile.

    Tensor Engine: up to 128 by 128, from SBUF to PSUM. Vector Engine: up to 32 by 32. On Trainium1
    the Tensor Engine multiplies with an identity, so a NaN or an infinity spreads over its row.
    """
    array = engine is not engines.vector and dst.buffer is PSUM and data.buffer is SBUF
    _transposed(dst, data, array=array)
