"""Random bits. The hardware's streams are not published, so these are NumPy's."""

import numpy as np

from utils.nki.simulator.enums import engine
from utils.nki.simulator.instruction import Use, instruction
from utils.nki.simulator.instructions.costs import per_element
from utils.nki.simulator.instructions.engines import asked_or, gpsimd_without_psum, needs_generation
from utils.nki.simulator.instructions.rules import one_element
from utils.nki.simulator.operands import result, tile
from utils.nki.simulator.program import running

engines = engine
INTEGERS = frozenset(("int8", "int16", "int32", "uint8", "uint16", "uint32"))
WORDS = frozenset(("int32", "uint32"))
STREAM = "random bits"


def _stream() -> np.random.Generator:
    """The generator of the running core; the same numbers in every run."""
    registers = running("nisa.rng").registers
    if STREAM not in registers:
        registers[STREAM] = np.random.default_rng(0)
    return registers[STREAM]


def gpsimd_from_gen3(use: Use) -> None:
    """GpSimd draws numbers from Trainium2 on."""
    if use.engine is engines.gpsimd:
        needs_generation(3)(use)


@instruction(
    engine=asked_or(engine.vector, engine.gpsimd),
    cost=per_element("dst"),
    since="0.2",
    dst=result(dtypes=INTEGERS),
    rules=(gpsimd_without_psum, gpsimd_from_gen3),
)
def rng(dst, engine=engine.vector):
    """Fill a tile with random bits."""
    bits = _stream().integers(0, 2**32, dst.shape, np.uint32)
    dst.put_raw(bits.astype(dst.dtype.numpy))


@instruction(
    engine=engine.vector,
    cost=per_element("src_seeds"),
    since="0.2",
    src_seeds=tile(dtypes=WORDS),
    rules=(one_element("src_seeds"),),
)
def set_rng_seed(src_seeds):
    """Begin the random bits of this core anew from a (1, 1) tile."""
    seed = int(src_seeds.raw().reshape(-1)[0]) % 2**32
    running("nisa.set_rng_seed").registers[STREAM] = np.random.default_rng(seed)
