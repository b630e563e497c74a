"""What a recorded kernel computes, and what it costs: for judges.

The numbers that a kernel is judged with are drawn here, from the record itself: whatever a kernel
writes down beforehand cannot have been computed from them.
"""

import hashlib
import json
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from utils.labs import Criterion, Facts
from utils.labs.criteria import MOST_ROWS, at_most, criterion, part, row
from utils.labs.packing import unpack

MOST_BYTES = 2**28
"""That a program may keep in HBM, or that an operand may read: a record that somebody made up must
not fill the memory of whoever judges it. All that the labs ask for is smaller by far."""


@dataclass(frozen=True)
class Replay:
    """A record that was run again with `inputs`. `fault` says why there is nothing to judge, and
    `detail`, which may quote the record, what was found there."""

    fault: str
    detail: str = ""
    inputs: tuple[np.ndarray, ...] = ()
    outputs: tuple[np.ndarray, ...] = ()
    program: Any = None

    @cached_property
    def profile(self) -> Any:
        """The estimate of its time, and its traffic."""
        from utils.nki.simulator.profile import profile_of

        return profile_of(self.program)

    def count(self, *names: str) -> int:
        """How many instructions have one of these names."""
        return sum(self.program.count(name) for name in names)

    @property
    def traffic(self) -> float:
        """Bytes moved to and from HBM over the sizes of the inputs that are read and of the
        outputs. What goes to HBM and back on the way is not needed, wherever it lies there."""
        read = [item for place, item in enumerate(self.inputs) if self.bytes_read_of(place)]
        return self.hbm_bytes / sum(item.nbytes for item in (*read, *self.outputs))

    @property
    def hbm_bytes(self) -> int:
        """Bytes moved to and from HBM."""
        return self.profile.measures.hbm

    def bytes_read_of(self, argument: int) -> int:
        """Bytes that transfers read of one argument."""
        storage = self.program.inputs[argument]
        return sum(
            view.size * view.itemsize
            for view in self._transfer(inputs=True)
            if view.storage is storage
        )

    @property
    def shortest_run(self) -> int:
        """Bytes of the shortest contiguous run that a transfer reads or writes, in HBM or within
        a partition: what one descriptor can move."""
        from utils.nki.simulator.timing.transfers import run_length

        views = [view for side in (True, False) for view in self._transfer(side)]
        runs = (run_length(v, 1 if v.storage.on_chip else 0) * v.itemsize for v in views)
        return min(runs, default=0)

    def _transfer(self, inputs: bool) -> Iterator[Any]:
        """The views that DMA instructions read, or those that they write."""
        from utils.nki.simulator.enums import engine
        from utils.nki.simulator.uses import tensors_of

        for instruction in self.program.instructions:
            if instruction.engine is engine.dma:
                yield from tensors_of(instruction, reads=inputs)


def generator(facts: Facts) -> np.random.Generator:
    """A generator of random numbers that depends on everything a kernel recorded."""
    try:
        text = json.dumps(unpack(facts["program"]))  # however it was packed
    except ValueError:
        text = ""
    return np.random.default_rng(int.from_bytes(hashlib.sha256(text.encode()).digest()[:16]))


def replay(facts: Facts, inputs: tuple[np.ndarray, ...], answer: str) -> Replay:
    """Run a record with numbers. `answer` is the name of the learner's function, for messages."""
    from utils.nki.simulator import replay
    from utils.nki.simulator.errors import DoubtfulKernel, NkiValidationError

    if facts["kind"] == "None":
        return Replay(
            f"`{answer}` returned nothing: allocate the result with buffer=nl.shared_hbm, write it "
            "with nisa.dma_copy, and return it"
        )
    if facts["kind"] != "a tensor":
        return Replay(f"`{answer}` returned {facts['kind']}: return one tensor in shared HBM")
    try:
        with warnings.catch_warnings():  # the learner has seen them when the kernel was recorded
            warnings.simplefilter("ignore", DoubtfulKernel)
            program = replay.from_plain(unpack(facts["program"]), "trn2")
            if _largest(program) > MOST_BYTES:
                return Replay("the kernel moves or keeps far more bytes than its arguments have")
            outputs = replay.replay(program, inputs)
    except (replay.BadProgram, NkiValidationError, ValueError) as refused:
        return Replay("the record of the kernel is not a valid program", str(refused))
    if len(outputs) != 1:
        return Replay("the kernel does not return exactly one result")
    return Replay("", "", inputs, tuple(np.asarray(output) for output in outputs), program)


def _largest(program: Any) -> int:
    """Bytes of all tensors in HBM, or of the largest operand of an instruction."""
    from utils.nki.simulator.uses import tensors_of

    kept = sum(storage.size_bytes for storage in program.storages if not storage.on_chip)
    operands = (
        view.size * view.itemsize
        for instruction in program.instructions
        for reads in (True, False)
        for view in tensors_of(instruction, reads)
    )
    return max(kept, *operands, 0)


def nothing(weights: dict[str, int], fault: str, detail: str = "") -> list[Criterion]:
    """All criteria failed for one reason, said by the first. detail: what was found."""
    return [
        criterion(name, weight, False, *(("", "", "") if place else (detail, "", fault)))
        for place, (name, weight) in enumerate(weights.items())
    ]


def half_step(values: np.ndarray) -> np.ndarray:
    """How far one rounding to BF16 may move a value: half of the distance of its neighbours.

    >>> half_step(np.array([1.0, 1.9, 2.0]))
    array([0.00390625, 0.00390625, 0.0078125 ])
    """
    _, exponent = np.frexp(values)
    return np.ldexp(1.0, exponent - 9)


def distances(result: np.ndarray, right: np.ndarray, rounded: bool = False) -> np.ndarray:
    """How far each value is off, relative to the largest right one; nan and infinity count as inf.

    rounded: one rounding of each value to BF16 does not count.
    """
    with np.errstate(all="ignore"):
        off = abs(result.astype(np.float64) - right) - (half_step(right) if rounded else 0.0)
        return np.nan_to_num(np.maximum(off, 0.0) / abs(right).max(), nan=np.inf, posinf=np.inf)


def farthest(result: np.ndarray, right: np.ndarray, rounded: bool = False) -> float:
    """The largest of the distances."""
    return float(distances(result, right, rounded).max())


def right_values(
    run: Replay, right: np.ndarray, dtype: str, tolerance: float, weight: int, advice: str
) -> Criterion:
    """Whether the one result has the right shape, type and values.

    tolerance: how far a value may lie from the right one, relative to the largest right value, not
    counting one rounding if the result is BF16.
    advice: what to look at if the values are wrong; a fault in shape or type goes first.
    """
    result = run.outputs[0]
    short = dtype == "bfloat16"
    off, message, wrong = float("inf"), advice, np.empty((0, right.ndim), int)
    if result.shape != right.shape:
        message = f"the result has the shape {list(result.shape)}, not {list(right.shape)}"
    elif str(result.dtype) != dtype:
        message = f"the result is {result.dtype}: allocate it with dtype={dtype}, as asked"
    elif fault := _wrong_place(run.program):
        message = fault
    else:
        apart = distances(result, right, short and tolerance > 0)
        off, wrong = float(apart.max()), np.argwhere(apart > tolerance)
        if not np.isfinite(off):
            message = (
                "the result holds nan or infinity: a part of it was never written, memory was "
                f"read that nothing had written, or a step overflowed. {advice}"
            )
    target = f"off by at most {tolerance:.2g}" if tolerance else "equal in every bit"
    if short and tolerance:
        target += " and a rounding"
    passed = off <= tolerance
    measured = target if passed else f"off by {off:.2g}" + " more than a rounding" * short
    places = [tuple(map(int, place)) for place in wrong[:MOST_ROWS]]
    rows = [row(f"element {list(p)}", float(result[p]), float(right[p])) for p in places]
    share = part(len(wrong), right.size)
    return criterion(
        "values", weight, passed, measured, target, message, rows=tuple(rows), share=share
    )


def _wrong_place(program: Any) -> str:
    """What is wrong with where the one result lies, or nothing."""
    from utils.nki.simulator.enums import MemoryRegion
    from utils.nki.simulator.uses import returned_tensors

    storage = returned_tensors(program)[0].storage
    if storage.argument:
        return "the result is one of the arguments: write into a new array, buffer=nl.shared_hbm"
    if storage.buffer is not MemoryRegion.shared_hbm:
        return "the result lies in nl.hbm, which a core has for itself: use buffer=nl.shared_hbm"
    return ""


def close_to(result: np.ndarray, right: np.ndarray) -> bool:
    """Whether finite values are off by some roundings to BF16, not more."""
    return bool(abs(result.astype(np.float64) - right).max() <= 2**-6 * abs(right).max())


def recognise(
    result: np.ndarray, ways: Iterable[tuple[str, np.ndarray]], share: float, otherwise: str
) -> str:
    """The message to the first array that values are near to: off by at most this share of its
    largest value. ways: messages and arrays of one shape, computed as they are asked for.
    """
    return next(
        (text for text, way in ways if abs(result - way).max() <= share * abs(way).max()), otherwise
    )


def few_bytes(run: Replay, limit: float, weight: int, advice: str) -> Criterion:
    """Whether the traffic with HBM is at most `limit` times the least."""
    return at_most("HBM traffic", weight, run.traffic, limit, advice, "{:.3g} times the least")
