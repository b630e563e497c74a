"""memset: filling a tile with a number."""

import math
from typing import Any

import numpy as np

from utils.nki.simulator.dtypes import narrow
from utils.nki.simulator.enums import engine
from utils.nki.simulator.instruction import Use, instruction
from utils.nki.simulator.instructions.costs import fill
from utils.nki.simulator.instructions.engines import asked, gpsimd_without_psum
from utils.nki.simulator.operands import PSUM, SBUF, result
from utils.nki.simulator.program import Core


def fill_engine(use: Use) -> engine:
    """The engine that the call names; else GpSimd in PSUM, Vector and GpSimd in turn in SBUF.

    The compiler gives fills of PSUM to GpSimd, although a call cannot ask for that: in published
    profiles the Vector Engine goes on carrying sums out while GpSimd clears the next accumulator
    (row pipeline-one-accumulator of utils/facts/data/nki_measurements.yaml).
    """
    named = asked(use, engine.vector, engine.gpsimd)
    if named is not engine.unknown:
        return named
    return engine.gpsimd if use.dst.buffer is PSUM else engine.vector


def not_gpsimd_in_psum_on_request(use: Use) -> None:
    """A call cannot ask for GpSimd in PSUM; what `fill_engine` chooses itself is allowed."""
    if use.args["engine"] is engine.gpsimd:
        gpsimd_without_psum(use)


def alternate(core: Core, args: dict[str, Any]) -> None:
    """Fills of SBUF that name no engine go to Vector and GpSimd in turn."""
    dst = args["dst"]
    if args["engine"] is engine.unknown and getattr(dst, "buffer", None) is SBUF:
        args["engine"] = (engine.vector, engine.gpsimd)[core.fills % 2]
        core.fills += 1


def representable(use: Use) -> None:
    """The number fits the type: no fraction and no overflow in integers, no overflow in floats."""
    value, dtype = use.value, use.dst.dtype
    if isinstance(value, (bool, np.bool_)):
        value = int(value)
    if not isinstance(value, (int, float, np.integer, np.floating)):
        raise use.refuse(
            f"value is {value!r}, it takes a number.",
            "the number is part of the instruction, fixed when the kernel is compiled.",
            "copy a tile with nisa.tensor_copy, or pass a Python number.",
        )
    if dtype.kind == "packed" and value != 0:
        raise use.refuse(
            f"value is {value} for {dtype}; allowed: 0.",
            "an element of a packed type is four numbers in one.",
            "fill with 0, or write the packed numbers with nisa.quantize_mx.",
        )
    if dtype.kind == "int":
        limits = np.iinfo(dtype.numpy)
        if not math.isfinite(value) or value != int(value):
            raise use.refuse(
                f"value is {value} for {dtype}, which holds integers.",
                "since NKI 0.3 a fill does not round.",
                "pass an integer, or fill a float tile.",
            )
        if not limits.min <= value <= limits.max:
            raise use.refuse(
                f"value is {value} for {dtype}, which holds {limits.min} to {limits.max}.",
                "a fill does not wrap around.",
                "use a wider type, or a number in this range.",
            )
    elif dtype.kind == "float" and math.isfinite(value):
        stored = narrow(np.array([value], np.float64), dtype, dtype.numpy).astype(np.float32)[0]
        if not math.isfinite(stored):
            use.doubt(
                f"value is {value}, which {dtype} cannot hold; it becomes {stored}.",
                "rounding to the nearest number of this type goes beyond its largest one.",
                "fill with a number that the type holds.",
            )


@instruction(
    engine=fill_engine,
    cost=fill,
    since="0.2",
    dst=result(),
    rules=(representable, not_gpsimd_in_psum_on_request),
    resolve=alternate,
)
def memset(dst, value, engine=engine.unknown):
    """Fill a tile with a number known at compile time."""
    array = dst.array()
    if dst.dtype.kind == "float":
        array[...] = narrow(np.array([value], np.float64), dst.dtype, array.dtype)[0]
    else:
        array[...] = array.dtype.type(int(value))
    dst.storage.written = True
