"""The Tensor Engine: products of matrices, and transposes made of them.

How exact a product is. Operands are widened to FP32; products of two BF16, FP16 or FP8 numbers are
exact there. The sum over K (at most 128 rows, 256 with double_row) is FP32 in the order of NumPy's
matrix product, which depends on the machine's BLAS; AWS does not publish the order of the array.
Across instructions the order is exactly that of the program: each element gets one FP32 addition
per `nc_matmul`. So two correct results may differ in the last bits of FP32, and are compared with a
tolerance; sums that FP32 holds exactly (small integers, one-hot rows) agree bit by bit.

Source of every rule: AWS, nisa.nc_matmul and nisa.nc_transpose,
https://awsdocs-neuron.readthedocs-hosted.com/en/latest/nki/api/generated/nki.isa.nc_matmul.html
"""

from typing import Any

import numpy as np

from utils.nki.simulator.accumulation import add_product
from utils.nki.simulator.dtypes import widen
from utils.nki.simulator.enums import engine, matmul_perf_mode
from utils.nki.simulator.errors import refuse
from utils.nki.simulator.instruction import instruction
from utils.nki.simulator.instructions.costs import FEWEST_CYCLES
from utils.nki.simulator.operands import PSUM, SBUF, Use, result, tile
from utils.nki.simulator.program import active
from utils.nki.simulator.tensor import Tensor

WIDE = frozenset(("float32", "tfloat32"))
NARROW = frozenset(("bfloat16", "float16", "float8_e4m3", "float8_e5m2"))
OCP_FP8 = "float8_e4m3fn"
TILES = {2: (64, 128), 3: (32, 64, 128), 4: (32, 64, 128)}
"""Sizes of the parts into which the array's rows or columns can be divided, by generation."""


def doubles(mode: Any) -> bool:
    """Whether a `perf_mode` asks for double_row; published kernels write its name, too."""
    return mode in (matmul_perf_mode.double_row, matmul_perf_mode.double_row.value)


def is_double(use: Use) -> bool:
    """Whether the call asks for double_row."""
    return doubles(use.perf_mode)


def columns(use: Use, tensor: Tensor) -> int:
    """Columns of an operand in the array: free elements, of which double_row takes two at once."""
    return tensor.elements // 2 if is_double(use) else tensor.elements


def types(use: Use) -> None:
    """Both operands are FP32 or TF32, or both are shorter floats; FP8 formats are not mixed."""
    generation = use.target.generation
    allowed = WIDE | NARROW | ({OCP_FP8} if generation >= 4 else set())
    pair = {"stationary": use.stationary, "moving": use.moving}
    for name, tensor in pair.items():
        if tensor.dtype not in allowed:
            needs = " (it needs generation 4)" if tensor.dtype == OCP_FP8 else ""
            raise use.refuse(
                f"{name} is {tensor.dtype}; generation {generation} multiplies "
                f"{', '.join(sorted(allowed))}{needs}.",
                "the array multiplies floating point numbers.",
                f"convert {name} with nisa.tensor_copy into a tile of dtype=nl.bfloat16.",
            )
    match_ = f"stationary is {use.stationary.dtype}, moving is {use.moving.dtype}"
    if len({tensor.dtype in WIDE for tensor in pair.values()}) == 2:
        wide = "stationary" if use.stationary.dtype in WIDE else "moving"
        other = "moving" if wide == "stationary" else "stationary"
        raise use.refuse(
            f"{match_}; either both or none are float32 or tfloat32.",
            "FP32 passes through the array in several rounds, the other types in one.",
            f"nisa.tensor_copy {wide} into a tile of dtype=nl.{pair[other].dtype} (faster), or "
            f"{other} into one of dtype=nl.{pair[wide].dtype}.",
        )
    if {use.stationary.dtype, use.moving.dtype} >= {"float8_e4m3", OCP_FP8}:
        raise use.refuse(
            f"{match_}; the two kinds of E4M3 do not meet in one product.",
            "float8_e4m3 has a largest value of 240, float8_e4m3fn one of 448: the array decodes "
            "one kind at a time.",
            "convert one operand to the type of the other.",
        )


def contraction(use: Use) -> None:
    """Both operands have the same K, on their partitions."""
    stationary, moving = use.stationary, use.moving
    k, other = stationary.shape[0], moving.shape[0]
    if k == other:
        return
    if stationary.elements == other:
        fix = (
            f"stationary looks like (M, K) = {stationary.shape}: transpose it to (K, M) with "
            "nisa.nc_transpose or nisa.dma_transpose."
        )
    elif moving.elements == k:
        fix = (
            f"moving looks like (N, K) = {moving.shape}: transpose it to (K, N) with "
            "nisa.nc_transpose or nisa.dma_transpose."
        )
    else:
        fix = f"slice both operands to the same K, for example to {min(k, other)} partitions."
    raise use.refuse(
        f"stationary has {k} partitions {stationary.shape}, moving has {other} {moving.shape}: "
        "the contraction sizes differ.",
        "both operands carry the contraction (K) on the partitions.",
        fix,
    )


def sizes(use: Use) -> None:
    """The operands fit the array, and the result has the shape of the product."""
    target, dst = use.target, use.dst
    rows, free = columns(use, use.stationary), columns(use, use.moving)
    if rows > target.stationary_columns:
        raise use.refuse(
            f"stationary has {rows} columns per partition, the limit is "
            f"{target.stationary_columns} (nl.tile_size.gemm_stationary_fmax).",
            f"the array has {target.stationary_columns} columns, and each makes one partition of "
            "the result.",
            f"loop over m and pass stationary[:, nl.ds(m * {target.stationary_columns}, "
            f"{target.stationary_columns})].",
        )
    limit = target.moving_columns
    if target.generation >= 4:
        limit = target.psum_bytes // dst.dtype.itemsize
    if free > limit:
        raise use.refuse(
            f"moving has {free} columns per partition, the limit is {limit} "
            "(nl.tile_size.gemm_moving_fmax).",
            f"one row of the product must fit {limit * dst.dtype.itemsize} bytes of PSUM: "
            + ("one bank." if target.generation < 4 else "all its banks."),
            f"loop over n and pass moving[:, nl.ds(n * {limit}, {limit})].",
        )
    if (dst.shape[0], dst.elements) != (rows, free):
        raise use.refuse(
            f"dst has {dst.shape[0]} partitions and {dst.elements} columns {dst.shape}; "
            f"stationary {use.stationary.shape} and moving {use.moving.shape} make {rows} "
            f"partitions and {free} columns.",
            "the columns of stationary become the partitions of dst, those of moving its columns.",
            f"pass dst[0:{rows}, 0:{free}], or allocate dst with the shape ({rows}, {free}).",
        )


def one_bank(use: Use) -> None:
    """dst lies inside one bank of PSUM (before generation 4)."""
    dst, bank = use.dst, use.target.psum_bank_bytes
    spans_banks = use.target.generation >= 4 and use.instruction == "nc_matmul"
    if use.engine is not engine.tensor or spans_banks:
        return
    pairs = zip(dst.shape[1:], dst.strides[1:], strict=True)
    start = dst.bank_byte
    end = start + (sum((n - 1) * s for n, s in pairs) + 1) * dst.dtype.itemsize
    if start // bank == (end - 1) // bank:
        return
    border = (start // bank + 1) * bank
    raise use.refuse(
        f"dst covers the bytes {start} to {end - 1} of its PSUM partition; the banks are "
        f"{bank} bytes, and byte {border} is the border of bank {start // bank} and bank "
        f"{border // bank}.",
        "the Tensor Engine writes one instruction's result into one bank.",
        f"begin dst at a multiple of {bank // dst.dtype.itemsize} elements of {dst.dtype}, and "
        "write at most that many columns.",
    )


def result_type(use: Use) -> None:
    """dst is FP32; BF16 from generation 4, and the type of the data in transpose mode."""
    dst, generation = use.dst, use.target.generation
    if use.is_transpose:
        allowed = {"float32"} if generation < 3 else {str(use.stationary.dtype), "float32"}
    else:
        allowed = {"float32"} if generation < 4 else {"float32", "bfloat16"}
    if dst.dtype not in allowed:
        newer = " (bfloat16 needs generation 4)" if dst.dtype == "bfloat16" else ""
        raise use.refuse(
            f"dst is {dst.dtype}; generation {generation} writes {' or '.join(sorted(allowed))} "
            f"to PSUM{newer}.",
            "the array adds up in FP32, and PSUM keeps that precision for later products.",
            "allocate the PSUM tile with dtype=nl.float32; nisa.tensor_copy to SBUF rounds once.",
        )


def double_row(use: Use) -> None:
    """perf_mode double_row: FP8 at twice the rate, two rows of K in each partition."""
    modes = (*matmul_perf_mode, *(item.value for item in matmul_perf_mode))
    if use.perf_mode not in modes:
        raise use.refuse(
            f"perf_mode={use.perf_mode!r}; allowed are {', '.join(map(str, matmul_perf_mode))}.",
            "the array has these modes.",
            "leave it out, or pass perf_mode=nisa.matmul_perf_mode.double_row.",
        )
    if not is_double(use):
        return
    generation = use.target.generation
    if generation < 3:
        raise use.refuse(
            f"perf_mode=double_row on generation {generation}; it needs 3 or later.",
            "the array of Trainium1 takes one row of K at a time.",
            "leave out perf_mode, or choose target='trn2'.",
        )
    for name in ("stationary", "moving"):
        tensor = use.args[name]
        if not tensor.dtype.is_fp8:
            raise use.refuse(
                f"perf_mode=double_row with {name} of {tensor.dtype}; it takes float8_e4m3, "
                "float8_e5m2 and, from generation 4, float8_e4m3fn.",
                "two FP8 numbers share the place of one BF16 number.",
                "convert both operands to FP8, or leave out perf_mode.",
            )
        if tensor.ndim < 3 or tensor.shape[1] != 2:
            raise use.refuse(
                f"perf_mode=double_row with {name} of shape {tensor.shape}; its dimension 1 must "
                f"be 2: (K / 2, 2, columns).",
                "K is split between the partitions and the first free dimension.",
                f"allocate {name} as ({tensor.shape[0]}, 2, columns), with row 2 * p + i or "
                "p + i * K / 2 of K at [p, i] in both operands alike.",
            )
    if use.tile_size and tuple(use.tile_size)[-1] != use.target.stationary_columns:
        raise use.refuse(
            f"perf_mode=double_row with tile_size={use.tile_size}; its columns must be "
            f"{use.target.stationary_columns}.",
            "double_row uses all columns of the array.",
            "tile rows only, or leave out perf_mode.",
        )


def parts(use: Use) -> None:
    """`tile_position` and `tile_size` name a part of the array into which the operands fit."""
    position, size = tuple(use.tile_position or ()), tuple(use.tile_size or ())
    if not position and not size:
        return
    allowed = TILES[use.target.generation]
    array = use.target.stationary_columns
    why = f"the array of {array} by {array} is divided into equal parts that work side by side."
    if len(position) != 2 or len(size) != 2:
        raise use.refuse(
            f"tile_position={position} and tile_size={size}; both are pairs (row, column), or "
            "neither is given.",
            why,
            f"tile_position=(0, 0), tile_size=({array}, {array}) is the whole array.",
        )
    for axis, name in enumerate(("row", "column")):
        if size[axis] not in allowed:
            raise use.refuse(
                f"tile_size={size}: the {name} size {size[axis]}; allowed are "
                f"{', '.join(map(str, allowed))} on generation {use.target.generation}.",
                why,
                f"choose the smallest of {allowed} that holds the operand.",
            )
        if position[axis] % size[axis] or not 0 <= position[axis] <= array - size[axis]:
            starts = ", ".join(map(str, range(0, array, size[axis])))
            raise use.refuse(
                f"tile_position={position}: the {name} {position[axis]}; parts of {size[axis]} "
                f"begin at {starts}.",
                why,
                "begin at one of these.",
            )
    for name, match_, most, what in (
        ("stationary", use.stationary.shape[0], size[0], "partitions"),
        ("stationary", columns(use, use.stationary), size[1], "columns"),
    ):
        if match_ > most:
            raise use.refuse(
                f"{name} has {match_} {what}, tile_size={size} has room for {most}.",
                why,
                f"use a larger part, or slice {name} to {most} {what}.",
            )


def accumulate_flag(use: Use) -> None:
    """accumulate is None, True or False."""
    if use.accumulate is not None and not isinstance(use.accumulate, bool):
        raise use.refuse(
            f"accumulate={use.accumulate!r}; allowed are None, True and False.",
            "whether a product overwrites is fixed when the kernel is compiled.",
            "write accumulate=(k > 0) with the Python number k of a loop.",
        )


def transpose_mode(use: Use) -> None:
    """In transpose mode the moving operand is a square of as many rows as the data."""
    if use.is_transpose and use.moving.elements != use.moving.shape[0]:
        raise use.refuse(
            f"is_transpose=True with moving of shape {use.moving.shape}; it must be an identity, "
            f"({use.stationary.shape[0]}, {use.stationary.shape[0]}).",
            "a transpose sends stationary through the array against an identity matrix.",
            "pass an identity of as many rows as stationary has partitions.",
        )


MATMUL_RULES = (
    types, contraction, double_row, sizes, transpose_mode, result_type, one_bank, parts,
    accumulate_flag,
)  # fmt: skip


engines = engine
"""`engine` is also an argument of nc_transpose."""
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
    engine.tensor, cost_matmul,
    dst=result(memory=frozenset({PSUM})), stationary=tile(memory=frozenset({SBUF})),
    moving=tile(memory=frozenset({SBUF})),
    rules=MATMUL_RULES,
)  # fmt: skip
def nc_matmul(
    dst, stationary, moving, is_stationary_onezero=False, is_moving_onezero=False,
    is_transpose=False, accumulate=None, tile_position=(), tile_size=(),
    perf_mode=matmul_perf_mode.none,
):  # fmt: skip
    """dst (+)= stationary.T @ moving, added up in FP32; K lies on the partitions of both operands.

    stationary (K, M), moving (K, N), dst (M, N) in PSUM; further free dimensions are flattened.
    accumulate: False overwrites dst, True adds; None overwrites with the first product at a place
    of the allocation and adds the later ones. perf_mode double_row: FP8 operands (K / 2, 2, ...).
    is_transpose: moving is an identity, and bits move unchanged (from Trainium2 on).
    """
    if is_transpose:
        _transpose(dst, stationary, _order(moving), array=True)
        return
    rows = stationary.shape[0]
    if doubles(perf_mode):
        rows *= 2
    a = stationary.get().reshape(rows, -1)
    b = moving.get().reshape(rows, -1)
    for name, text, match_ in (
        ("stationary", is_stationary_onezero, a), ("moving", is_moving_onezero, b),
    ):  # fmt: skip
        if text and not ((match_ == 0) | (match_ == 1)).all():
            raise _no_ones(name, match_)
    with np.errstate(all="ignore"):  # NaN of memory that nobody wrote is no surprise
        add_product(dst, np.matmul(a.T, b), accumulate)


def _no_ones(name: str, outcome: np.ndarray) -> Exception:
    value = outcome[(outcome != 0) & (outcome != 1)][0]
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


def _transpose(dst: Tensor, data: Tensor, order: np.ndarray | None = None, *, array: bool) -> None:
    """dst = data.T, with its columns in `order`; array: through the array of the Tensor Engine."""
    raw = data.raw().reshape(data.shape[0], -1)
    moved = raw.T if order is None else raw.T[:, order]
    core = active()
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
    if use.args["engine"] is not engine.unknown:
        return use.args["engine"]
    reaches = use.dst.buffer is PSUM and use.data.buffer is SBUF
    small = max(use.data.shape[0], use.data.elements) <= VECTOR_TRANSPOSE
    return engine.tensor if reaches or not small else engine.vector


def _memories(use: Use) -> None:
    """The Tensor Engine transposes from SBUF to PSUM; the Vector Engine reaches both."""
    if use.engine not in (engine.tensor, engine.vector):
        raise use.refuse(
            f"engine={use.engine.name}; allowed are tensor and vector.",
            "only these engines exchange partitions and columns.",
            "leave out engine, or pass nisa.engine.tensor.",
        )
    if use.engine is engine.vector:
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
    limit = VECTOR_TRANSPOSE if use.engine is engine.vector else use.target.partitions
    if max(rows, free) > limit:
        raise use.refuse(
            f"data has {rows} partitions and {free} columns {data.shape}; the "
            f"{use.engine.name.capitalize()} Engine transposes at most {limit} by {limit}.",
            "its rows become columns of one tile and its columns partitions.",
            f"loop over blocks data[:, nl.ds(i * {limit}, {limit})]"
            + (
                ", or use engine=nisa.engine.tensor, up to "
                f"{use.target.partitions} by {use.target.partitions}."
                if use.engine is engine.vector
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
    if use.engine is engine.vector:
        return max(FEWEST_CYCLES, data.elements)
    passes = 1
    if data.dtype == "float32":
        passes = KNOWN_ONES if use.target.generation >= BIT_EXACT_TRANSPOSE else SLOW_FP32
    return passes * max(data.shape[0], min(STATIONARY_CYCLES, data.elements))


@instruction(
    which_engine, cost_transpose,
    dst=result(), data=tile(),
    rules=(_memories, _transpose_shapes, _transpose_types, one_bank),
)  # fmt: skip
def nc_transpose(dst, data, engine=engine.unknown):
    """Exchange partitions and (flattened) columns of a tile.

    Tensor Engine: up to 128 by 128, from SBUF to PSUM. Vector Engine: up to 32 by 32. On Trainium1
    the Tensor Engine multiplies with an identity, so a NaN or an infinity spreads over its row.
    """
    array = engine is not engines.vector and dst.buffer is PSUM and data.buffer is SBUF
    _transpose(dst, data, array=array)
