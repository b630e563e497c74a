"""Random bits. The hardware's streams are not published, so these are NumPy's."""

import numpy as np

from utils.simulator.enums import engine
from utils.simulator.instruction import instruction
from utils.simulator.instructions.rules import elements
from utils.simulator.operands import result, tile
from utils.simulator.program import running

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


@instruction(
    engine=lambda use: use.args["engine"],
    cost=elements("dst"),
    since="0.2",
    dst=result(dtypes=INTEGERS),
)
def rng(dst, engine=engine.vector):
    """Fill a tile with random bits."""
    bits = _stream().integers(0, 2**32, dst.shape, np.uint32)
    dst.put_raw(bits.astype(dst.dtype.numpy))


@instruction(
    engine=engine.vector,
    cost=elements("src_seeds"),
    since="0.2",
    src_seeds=tile(dtypes=WORDS),
)
def set_rng_seed(src_seeds):
    """Begin the random bits of this core anew from a (1, 1) tile."""
    seed = int(src_seeds.raw().reshape(-1)[0]) % 2**32
    running("nisa.set_rng_seed").registers[STREAM] = np.random.default_rng(seed)
