"""The accumulator registers of the Vector and the Scalar Engine: one FP32 for each partition.

All reducing instructions of an engine share them. Before a reset they hold nothing that is defined;
here NaN.
"""

from typing import Any

import numpy as np

from utils.nki.simulator import program
from utils.nki.simulator.enums import engine, reduce_cmd
from utils.nki.simulator.errors import doubt
from utils.nki.simulator.operators import Operator, folded
from utils.nki.simulator.tensor import Tensor

LANES = 128


def registers(of: engine) -> np.ndarray:
    """The accumulators of one engine of the running core, (128,) FP32."""
    core = program.running("an accumulator")
    key = ("accumulators", of)
    if key not in core.registers:
        core.registers[key] = np.full(LANES, np.nan, np.float32)
    return core.registers[key]


def accumulate(
    of: engine,
    values: np.ndarray,
    op: Operator,
    command: reduce_cmd,
    *,
    first: int = 0,
    begin: Any = None,
) -> None:
    """Reduce `values` (partitions, elements) FP32 into the accumulators from lane `first` on.

    begin: what load_reduce puts there first, a number or (partitions, 1).
    """
    lanes = registers(of)[first : first + len(values)]
    if command in (reduce_cmd.reset, reduce_cmd.reset_reduce):
        lanes[:] = op.identity
    elif command is reduce_cmd.load_reduce:
        lanes[:] = np.reshape(begin, -1)
    elif command is reduce_cmd.idle:
        if of is engine.vector:
            lanes[:] = np.nan
        return
    if command is not reduce_cmd.reset:
        reduced = op.reduced or folded(op.meaning)
        lanes[:] = op.meaning(lanes, reduced(values))


def read_out(of: engine, into: Tensor | None, *, first: int = 0, negate: bool = False) -> None:
    """Write the accumulators to a column, if there is one."""
    if into is None:
        return
    held = registers(of)[first : first + into.shape[0]]
    if np.isnan(held).all():
        doubt(
            "reduce_res: the accumulators hold no defined value.",
            "no instruction has reset them before this one reads them, or the data was NaN.",
            "begin with reduce_cmd=nisa.reduce_cmd.reset_reduce.",
        )
    into.put(-held if negate else held.copy())
