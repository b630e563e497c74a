"""Random bits and numbers. A core that was never seeded, or seeded by one word, draws from NumPy's
generator, because AWS does not publish that stream; one whose states were set draws by XORWOW
(Marsaglia 2003, https://doi.org/10.18637/jss.v008.i14), which AWS names. The order of the words of
a state, and of the four states of a lane of the Vector Engine, is ours: no page gives it.
"""

from typing import Any

import numpy as np

from utils.nki.simulator.enums import engine
from utils.nki.simulator.instruction import instruction
from utils.nki.simulator.instructions.costs import per_element
from utils.nki.simulator.instructions.gpsimd import SBUF_ONLY
from utils.nki.simulator.instructions.rules import (
    gpsimd_without_psum,
    named_engine_or,
    needs_generation,
    one_element,
)
from utils.nki.simulator.instructions.values import column_of
from utils.nki.simulator.operands import Use, column, result, tile
from utils.nki.simulator.program import running

INTEGERS = frozenset(("int8", "int16", "int32", "uint8", "uint16", "uint32"))
WORDS = frozenset(("int32", "uint32"))
NUMBERS = INTEGERS | {"float8_e4m3", "float8_e5m2", "float16", "bfloat16", "float32", "tfloat32"}
STREAM = "random bits"
WORDS_OF_STATE = {engine.gpsimd: 6, engine.vector: 24}
"""Per partition: one XORWOW state of GpSimd, four of the Vector Engine (AWS, rand_set_state)."""
STATE = 6
WEYL = np.uint32(362437)
BITS = 24
"""Bits of an FP32 number between 0 and 1 that are drawn."""


def _stream() -> np.random.Generator:
    """The generator of the running core; the same numbers in every run."""
    registers = running("nisa.rng").registers
    if STREAM not in registers:
        registers[STREAM] = np.random.default_rng(0)
    return registers[STREAM]


def xorwow(states: np.ndarray, count: int) -> np.ndarray:
    """The next words of each lane, uint32 (lanes, count); `states` are moved on.

    states: uint32 (lanes, n, 6), n generators a lane, which take turns.

    >>> xorwow(np.array([[[1, 2, 3, 4, 5, 0]]], np.uint32), 2).tolist()
    [[362523, 726202]]
    """
    lanes, turns, _ = states.shape
    words = np.empty((lanes, -(-count // turns), turns), np.uint32)
    for round_ in range(words.shape[1]):
        x, v = states[..., 0], states[..., 4]
        t = x ^ (x >> np.uint32(2))
        new = v ^ (v << np.uint32(4)) ^ t ^ (t << np.uint32(1))
        states[..., :4] = states[..., 1:5]
        states[..., 4] = new
        states[..., 5] += WEYL
        words[:, round_] = new + states[..., 5]
    return words.reshape(lanes, -1)[:, :count]


def _bits(dst: Any, on: engine) -> np.ndarray:
    """Words for the elements of `dst`, from the states of the engine if they were set."""
    states = running("nisa.rng").registers.get((STREAM, on))
    if states is None or len(states) < dst.shape[0]:
        return _stream().integers(0, 2**32, dst.shape, np.uint32)
    return xorwow(states[: dst.shape[0]], dst.elements).reshape(dst.shape)


def gpsimd_from_gen3(use: Use) -> None:
    """GpSimd draws numbers from Trainium2 on."""
    if use.engine is engine.gpsimd:
        needs_generation(3)(use)


@instruction(
    named_engine_or(engine.vector, engine.gpsimd),
    per_element("dst"),
    dst=result(dtypes=INTEGERS),
    rules=(gpsimd_without_psum, gpsimd_from_gen3),
)
def rng(dst, engine=engine.vector):
    """Fill a tile with random bits."""
    dst.put_raw(_bits(dst, engine).astype(dst.dtype.numpy))


@instruction(
    engine.vector,
    per_element("src_seeds"),
    src_seeds=tile(dtypes=WORDS),
    rules=(one_element("src_seeds"),),
)
def set_rng_seed(src_seeds):
    """Begin the random bits of this core anew from a (1, 1) tile."""
    seed = int(src_seeds.raw().reshape(-1)[0]) % 2**32
    registers = running("nisa.set_rng_seed").registers
    registers[STREAM] = np.random.default_rng(seed)
    registers.pop((STREAM, engine.vector), None)


def vector_from_gen4(use: Use) -> None:
    """GpSimd from Trainium2 on, the Vector Engine from Trainium3 on."""
    needs_generation(3 if use.engine is engine.gpsimd else 4)(use)


def a_state(use: Use) -> None:
    """Each partition has the words of a state: 6 for GpSimd, 24 for the Vector Engine."""
    name = "src_seeds" if "src_seeds" in use.args else "dst"
    words, elements = WORDS_OF_STATE[use.engine], use.args[name].elements
    if elements != words:
        raise use.refuse(
            f"{name} has {elements} elements in each partition, {words} are a state of "
            f"{use.engine!r}.",
            "the generator is XORWOW with 6 words of state; the Vector Engine has four of them.",
            f"allocate {name} with shape (partitions, {words}).",
        )


@instruction(
    named_engine_or(engine.gpsimd, engine.vector),
    per_element("src_seeds"),
    cost_source="not published",
    src_seeds=tile(memory=SBUF_ONLY, dtypes=frozenset(("uint32",))),
    rules=(vector_from_gen4, a_state),
)
def rand_set_state(src_seeds, engine=engine.gpsimd):
    """Set the state of an engine's random numbers, for each partition its own."""
    words = src_seeds.raw().reshape(src_seeds.shape[0], -1, STATE)
    running("nisa.rand_set_state").registers[STREAM, engine] = words.astype(np.uint32)


@instruction(
    named_engine_or(engine.gpsimd, engine.vector), per_element("dst"), cost_source="not published",
    dst=result(dtypes=frozenset(("uint32",))),
    rules=(gpsimd_without_psum, vector_from_gen4, a_state),
)  # fmt: skip
def rand_get_state(dst, engine=engine.gpsimd):
    """Write the state of an engine's random numbers; one that was never set is arbitrary."""
    registers = running("nisa.rand_get_state").registers
    states = registers.get((STREAM, engine))
    rows = dst.shape[0]
    if states is None or len(states) < rows:
        drawn = _stream().integers(1, 2**32, (rows, dst.elements), np.uint32)
        states = registers[STREAM, engine] = drawn.reshape(rows, -1, STATE)
    dst.put_raw(states[:rows].reshape(dst.shape))


@instruction(
    engine.vector, per_element("dst"), cost_source="not published",
    dst=result(dtypes=NUMBERS), min=column(), max=column(),
    rules=(needs_generation(4),),
)  # fmt: skip
def rand2(dst, min, max):
    """Fill a tile with numbers evenly distributed from `min` to `max`, computed in FP32."""
    low, high = np.float32(column_of(min)), np.float32(column_of(max))
    words = _bits(dst, engine.vector).reshape(dst.shape[0], -1) >> np.uint32(32 - BITS)
    share = words.astype(np.float32) * np.float32(2.0**-BITS)
    dst.put((low + share * (high - low)).reshape(dst.shape))
