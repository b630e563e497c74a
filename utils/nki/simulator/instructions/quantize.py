"""Block-scaled numbers (MX) of Trainium3: quantisation, and products of quantised tiles.

A block is 8 partitions by 4 neighbours. The four neighbours of a partition are packed into one
element of an `_x4` type, the first in the lowest bits; the block's scale is a power of two in E8M0.
Scales lie in the quadrant of 32 partitions that their block comes from, four partitions of it:
block row g has partition 32 * (g // 4) + g % 4, counted from where the tile of scales begins.
(AWS, https://awsdocs-neuron.readthedocs-hosted.com/en/latest/nki/deep-dives/mxfp-matmul.html)
"""

import ml_dtypes
import numpy as np

from utils.chip.mx import quantise_tile
from utils.nki.simulator.accumulation import add_product
from utils.nki.simulator.enums import engine
from utils.nki.simulator.instruction import instruction
from utils.nki.simulator.instructions.costs import FEWEST_CYCLES
from utils.nki.simulator.instructions.gpsimd import SBUF_ONLY
from utils.nki.simulator.instructions.rules import needs_generation
from utils.nki.simulator.operands import PSUM, Use, result, tile
from utils.nki.simulator.table import for_operands
from utils.nki.simulator.tensor import Tensor

ELEMENTS = {
    "float8_e5m2_x4": ("e5m2", ml_dtypes.float8_e5m2),
    "float8_e4m3fn_x4": ("e4m3fn", ml_dtypes.float8_e4m3fn),
    "float4_e2m1fn_x4": ("e2m1", ml_dtypes.float4_e2m1fn),
}
PACKED = frozenset(ELEMENTS)
PACKED_FP8 = PACKED - {"float4_e2m1fn_x4"}
SCALES = frozenset(("float8_e8m0fnu", "uint8"))
QUADRANT, BLOCK, NEIGHBOURS = 32, 8, 4
SCALE_BIAS = 127
STARTS = (0, 4, 8, 12)
GUIDE = (
    "https://awsdocs-neuron.readthedocs-hosted.com/en/latest/nki/guides/architecture/"
    "trainium3_arch.html"
)


def scale_rows(partitions: int) -> np.ndarray:
    """The partition of each block row's scale, from where the scales begin: (partitions / 8,).

    >>> scale_rows(64).tolist()
    [0, 1, 2, 3, 32, 33, 34, 35]
    """
    rows = np.arange(partitions // BLOCK)
    per_quadrant = QUADRANT // BLOCK
    return QUADRANT * (rows // per_quadrant) + rows % per_quadrant


@for_operands
def quadrants(use: Use, *names: str) -> None:
    """{names}: a multiple of 32 partitions."""
    for name in names:
        count = use.args[name].shape[0]
        if count % QUADRANT:
            raise use.refuse(
                f"{name} has {count} partitions; a multiple of {QUADRANT}, up to 128, is needed.",
                f"blocks are counted in quadrants of {QUADRANT} partitions.",
                "pad the tile with zeros.",
            )


@for_operands
def scales(use: Use, name: str, data: str) -> None:
    """{name} is in SBUF and has a place for each block of {data}."""
    tensor, partitions = use.args[name], use.args[data].shape[0]
    needed = int(scale_rows(partitions)[-1]) + 1 if partitions >= BLOCK else 1
    wanted = use.args[data].elements
    start = tensor.partition % QUADRANT
    if start not in STARTS:
        raise use.refuse(
            f"{name} begins at partition {tensor.partition}; scales begin at an offset of "
            f"{', '.join(map(str, STARTS))} in a quadrant.",
            "the engines read the scales of a block from its own quadrant.",
            f"slice one tile of scales as {name}[4:, :] for a second tensor.",
        )
    if tensor.shape[0] < needed or tensor.elements < wanted or tensor.ndim != 2:
        raise use.refuse(
            f"{name} is {tensor.shape}; {partitions} partitions of data need {needed} "
            f"partitions and {wanted} columns.",
            "each block of 8 partitions and 4 neighbours has a scale, in its own quadrant.",
            f"nl.ndarray(({partitions if partitions > QUADRANT else needed}, {wanted}), "
            "dtype=nl.float8_e8m0fnu, buffer=nl.sbuf).",
        )


def four_to_one(use: Use) -> None:
    """dst has the partitions of src and a quarter of its elements."""
    src, dst = use.src, use.dst
    if src.elements % NEIGHBOURS or (dst.shape[0], dst.elements) != (
        src.shape[0],
        src.elements // NEIGHBOURS,
    ):
        raise use.refuse(
            f"src is {src.shape}, dst is {dst.shape}; dst has the partitions of src and a quarter "
            "of its elements.",
            "four neighbours are packed into one element.",
            f"dst = nl.ndarray(({src.shape[0]}, {src.elements // NEIGHBOURS}), "
            "dtype=nl.float8_e4m3fn_x4, buffer=nl.sbuf).",
        )


def cost_quantize(use: Use) -> float:
    """One cycle for four neighbours of a partition."""
    return max(FEWEST_CYCLES, use.src.elements / NEIGHBOURS)


@instruction(
    engine.vector, cost_quantize, cost_source=GUIDE,
    dst=result(memory=SBUF_ONLY, dtypes=PACKED_FP8),
    src=tile(memory=SBUF_ONLY, dtypes=frozenset({"float16", "bfloat16"})),
    dst_scale=result(memory=SBUF_ONLY, dtypes=SCALES, anywhere=True),
    rules=(needs_generation(4), quadrants("src"), four_to_one, scales("dst_scale", "dst")),
)  # fmt: skip
def quantize_mx(dst, src, dst_scale):
    """Quantise to MXFP8: four neighbours to one packed element, one scale for 8 partitions by 4.

    The scale is 2 ** (floor(log2(largest)) - emax + 1), twice that of the specification's sample
    algorithm, so that no element is cut off.
    """
    made = quantise_tile(src.get().reshape(src.shape[0], -1), ELEMENTS[dst.dtype][0])
    dst.put_raw(np.ascontiguousarray(made.element_codes.astype(np.uint8)).view(np.uint32))
    codes = made.scale_codes.view(dst_scale.array().dtype)
    dst_scale.array()[scale_rows(src.shape[0]), : codes.shape[1]] = codes
    dst_scale.storage.written = True


def unpack(data: Tensor, scale: Tensor) -> np.ndarray:
    """The numbers of a quantised tile (K, M), float64, as (4 K, M): row 4 k + j is neighbour j."""
    packed = np.ascontiguousarray(data.raw().reshape(data.shape[0], -1))
    kind = ELEMENTS[data.dtype][1]
    if data.dtype in PACKED_FP8:
        codes = packed.view(np.uint8).reshape(*packed.shape, NEIGHBOURS)
    else:
        shifts = np.arange(NEIGHBOURS, dtype=np.uint16) * NEIGHBOURS
        codes = (packed[..., None] >> shifts & 0xF).astype(np.uint8)
    values = codes.view(kind).astype(np.float64)
    rows = scale.raw().reshape(scale.shape[0], -1)[scale_rows(data.shape[0]), : packed.shape[1]]
    exponents = rows.view(np.uint8).astype(np.int64)
    factors = np.where(exponents == 255, np.nan, np.ldexp(1.0, exponents - SCALE_BIAS))
    values *= np.repeat(factors, BLOCK, axis=0)[:, :, None]
    return values.transpose(0, 2, 1).reshape(-1, packed.shape[1])


def mx_shapes(use: Use) -> None:
    """Both operands have the same partitions, and the result has the shape of the product."""
    stationary, moving, dst = use.stationary, use.moving, use.dst
    if stationary.shape[0] != moving.shape[0]:
        raise use.refuse(
            f"stationary has {stationary.shape[0]} partitions, moving {moving.shape[0]}.",
            "both carry the contraction on partitions and inside the packed elements.",
            "slice both to the same partitions.",
        )
    if stationary.elements > use.target.stationary_columns or stationary.elements % 2:
        raise use.refuse(
            f"stationary has {stationary.elements} columns; an even number up to "
            f"{use.target.stationary_columns} is allowed.",
            "they become the partitions of the result.",
            "loop over blocks of 128 columns.",
        )
    limit = use.target.psum_bytes // dst.dtype.itemsize
    if moving.elements > limit:
        raise use.refuse(
            f"moving has {moving.elements} columns; {limit} results of {dst.dtype} fill PSUM.",
            "the result has one column for each.",
            f"loop over blocks of {limit} columns.",
        )
    if (dst.shape[0], dst.elements) != (stationary.elements, moving.elements):
        raise use.refuse(
            f"dst is {dst.shape}; the product is ({stationary.elements}, {moving.elements}).",
            "columns of stationary become partitions, columns of moving stay columns.",
            f"allocate dst as ({stationary.elements}, {moving.elements}) in PSUM.",
        )
    _row_tile(use)


def _row_tile(use: Use) -> None:
    position, size = use.tile_position, use.tile_size
    if not position and not size:
        return
    good = (
        bool(position) and bool(size)
        and tuple(size) in ((32, 128), (64, 128), (128, 128))
        and position[1] == 0 and 0 <= position[0] < 128 and position[0] % size[0] == 0
        and use.stationary.shape[0] <= size[0]
    )  # fmt: skip
    if not good:
        raise use.refuse(
            f"tile_position is {position!r}, tile_size is {size!r} for "
            f"{use.stationary.shape[0]} partitions; sizes are (32, 128), (64, 128) or (128, 128), "
            "positions (a multiple of the rows, 0), both or none.",
            "the array is divided by rows only.",
            "leave both out for the whole array.",
        )


def cost_matmul_mx(use: Use) -> float:
    """Columns of moving that stream through the array, at least those of stationary up to 64."""
    return max(min(64, use.stationary.elements), use.moving.elements)


@instruction(
    engine.tensor, cost_matmul_mx, cost_source=GUIDE,
    dst=result(memory=frozenset({PSUM}), dtypes=frozenset({"float32", "bfloat16"})),
    stationary=tile(memory=SBUF_ONLY, dtypes=PACKED), moving=tile(memory=SBUF_ONLY, dtypes=PACKED),
    stationary_scale=tile(memory=SBUF_ONLY, dtypes=SCALES, anywhere=True),
    moving_scale=tile(memory=SBUF_ONLY, dtypes=SCALES, anywhere=True),
    rules=(
        needs_generation(4), quadrants("stationary", "moving"), mx_shapes,
        scales("stationary_scale", "stationary"), scales("moving_scale", "moving"),
    ),
)  # fmt: skip
def nc_matmul_mx(
    dst, stationary, moving, stationary_scale, moving_scale, tile_position=None, tile_size=None,
    accumulate=None,
):  # fmt: skip
    """dst (+)= stationary.T @ moving of block-scaled tiles; four rows of K lie in each partition.

    The sum over K is exact here and then rounded to FP32; AWS does not say how the array rounds.
    """
    one, two = unpack(stationary, stationary_scale), unpack(moving, moving_scale)
    with np.errstate(all="ignore"):
        product = np.matmul(one.T, two).astype(np.float32)
    add_product(dst, product, accumulate)
