"""The Vector Engine and what it shares with others: copies, pairs of tiles, dropout."""

import numpy as np

from utils.nki.simulator import program
from utils.nki.simulator.dtypes import wrapped
from utils.nki.simulator.enums import engine
from utils.nki.simulator.instruction import Use, instruction
from utils.nki.simulator.instructions.checks import INT32, integers_for_bits, numbers, operator
from utils.nki.simulator.instructions.costs import one_input, per_element, two_inputs
from utils.nki.simulator.instructions.engines import asked, asked_or, gpsimd_without_psum
from utils.nki.simulator.instructions.rules import not_both_in_psum, same_size
from utils.nki.simulator.instructions.values import (
    applied_to_bits,
    bit_rows,
    column_of,
    put_bits,
    rows,
)
from utils.nki.simulator.operands import PSUM, column, result, tile
from utils.nki.simulator.operators import Operator
from utils.nki.simulator.tensor import Tensor

engines = engine

# ---- tensor_copy -----------------------------------------------------------------------------


def scalar_copies_from_gen3(use: Use) -> None:
    """The Scalar Engine copies from Trainium2 on."""
    if use.engine is engines.scalar and use.target.generation < 3:
        raise use.refuse(
            "engine is nisa.engine.scalar on Trainium1 (gen2), it needs gen3 or later.",
            "the Scalar Engine of gen2 has functions only, no copy.",
            "use nisa.activation(dst=..., op=nl.copy, data=...), or engine=nisa.engine.vector.",
        )


@instruction(
    engine=asked_or(engine.vector, engine.scalar, engine.gpsimd),
    cost=one_input("src"),
    since="0.2",
    dst=result(),
    src=tile(),
    rules=(same_size("dst", "src"), gpsimd_without_psum, scalar_copies_from_gen3),
)
def tensor_copy(dst, src, engine=engine.unknown):
    """Copy a tile on chip; a `dst` of another type converts. The usual way out of PSUM.

    Equal types are copied bit by bit, others pass through FP32: integers beyond 2^24 lose bits.
    """
    if src.dtype == dst.dtype:
        dst.put_raw(src.raw())
    else:
        dst.put(src.get())


# ---- tensor_tensor ---------------------------------------------------------------------------


def is_exact(dst: Tensor, data1: Tensor, data2: Tensor, op: Operator, asked: engine) -> bool:
    """Whether GpSimd computes it in 32-bit integers.

    That is so for int32 and uint32 tiles unless the call names the Vector Engine or a tile is in
    PSUM.
    """
    tiles = (dst, data1, data2)
    return (
        not op.is_bitwise
        and asked is not engine.vector
        and all(t.dtype in INT32 for t in tiles)
        and not any(t.buffer is PSUM for t in tiles)
    )


def pair_engine(use: Use) -> engine:
    """Vector Engine, or GpSimd on request, for nl.power and for exact 32-bit integers."""
    named = asked(use, engine.vector, engine.gpsimd)
    op = use.op
    if getattr(op, "name", "") == "power":
        if named is engine.vector:
            raise use.refuse(
                "op is nl.power on the Vector Engine; it runs on GpSimd.",
                "the Vector Engine has no power.",
                "leave engine out, or use nisa.activation with nl.exp and nl.log.",
            )
        return engine.gpsimd
    if named is not engine.unknown:
        return named
    if isinstance(op, Operator) and is_exact(use.dst, use.data1, use.data2, op, named):
        return engine.gpsimd
    return engine.vector


def same_start(use: Use) -> None:
    """Two inputs from SBUF in different partitions cross lanes."""
    first, second = use.data1, use.data2
    if first.buffer is second.buffer and first.partition != second.partition:
        use.doubt(
            f"data1 starts at partition {first.partition}, data2 at {second.partition}.",
            "the notes of AWS's kernel library ask for inputs that start at the same partition.",
            "place both at one partition, for example with nisa.dma_copy.",
        )


@instruction(
    engine=pair_engine,
    cost=two_inputs,
    since="0.2",
    dst=result(),
    data1=tile(),
    data2=tile(),
    rules=(
        operator("op", "arithmetic", "bitwise"),
        numbers("data1", "data2", "dst"),
        same_size("data1", "data2", "dst"),
        not_both_in_psum("data1", "data2"),
        same_start,
        integers_for_bits("op", "data1", "data2", "dst"),
        gpsimd_without_psum,
    ),
)
def tensor_tensor(dst, data1, data2, op, engine=engine.unknown):
    """Combine two tiles element by element; nothing is broadcast.

    int32 and uint32 tiles go to GpSimd, which is exact and wraps around; in PSUM or with
    engine=nisa.engine.vector they pass through FP32 and are exact up to 2^24.
    """
    if op.is_bitwise:
        width = max(data1.itemsize, data2.itemsize)
        left = bit_rows(data1, width)
        put_bits(dst, applied_to_bits(op, left, data2, False))
    elif is_exact(dst, data1, data2, op, engine):
        whole = [t.raw().astype(np.int64).reshape(dst.shape) for t in (data1, data2)]
        dst.put_raw(wrapped(np.asarray(op.meaning(*whole)), dst.dtype.numpy))
    else:
        dst.put(op.meaning(rows(data1), rows(data2)))


# ---- reciprocal, dropout -----------------------------------------------------------------------


@instruction(
    engine=engine.vector,
    cost=per_element("data", 8),
    since="0.2",
    cost_source="https://awsdocs-neuron.readthedocs-hosted.com/en/latest/nki/api/nki.api.shared.html",
    dst=result(),
    data=tile(),
    rules=(same_size("data", "dst"),),
)
def reciprocal(dst, data):
    """1 / x in FP32. Eight times as slow as nisa.activation(op=nl.reciprocal), but more exact on
    the device."""
    with np.errstate(all="ignore"):
        dst.put(np.reciprocal(data.get()))


def drops(use: Use) -> None:
    """prob is a probability, and dst has the type of data."""
    data, prob = use.data, use.prob
    if use.dst.dtype != data.dtype:
        raise use.refuse(
            f"data is {data.dtype}, dst is {use.dst.dtype}; both have one type.",
            "dropout copies what it keeps.",
            f"allocate dst with dtype={data.dtype!r}.",
        )
    if isinstance(prob, Tensor):
        allowed = prob.dtype == "float32" if data.dtype.kind == "int" else prob.dtype.is_float
        if not allowed:
            raise use.refuse(
                f"prob is {prob.dtype} for data of {data.dtype}.",
                "probabilities are float32 for integer data, and of a float type otherwise.",
                "use a float32 column.",
            )
    elif not 0 <= prob <= 1:
        raise use.refuse(
            f"prob is {prob}; allowed: 0 to 1.",
            "it is the probability that an element becomes zero.",
            "pass the fraction to drop, for example 0.1.",
        )


@instruction(
    engine=engine.vector,
    cost=per_element("data"),
    since="0.2",
    dst=result(),
    data=tile(),
    prob=column(),
    rules=(same_size("data", "dst"), drops),
)
def dropout(dst, data, prob):
    """Zero elements at random, each with the probability `prob`; the others keep their value.

    The random stream is not the hardware's; it is the same in every run.
    """
    state = program.running("nisa.dropout").registers
    if "dropout" not in state:
        state["dropout"] = np.random.default_rng(0)
    stored = data.raw().reshape(data.shape[0], -1)
    dropped = state["dropout"].random(stored.shape, np.float32) < column_of(prob)
    dst.put_raw(np.where(dropped, np.zeros((), stored.dtype), stored))
