"""What one instruction asks of the machine: its queue, how long it takes, what it locks.

Everything here depends only on the layout of the operands, so it is computed once for each
`Checked` and kept there.
"""

from dataclasses import dataclass
from typing import Any

from utils.nki.simulator.enums import MemoryRegion, dge_mode, engine
from utils.nki.simulator.instructions.costs import FEWEST_CYCLES
from utils.nki.simulator.operators import Operator
from utils.nki.simulator.program import Instruction
from utils.nki.simulator.registers import VirtualRegister
from utils.nki.simulator.target import Target
from utils.nki.simulator.tensor import Tensor
from utils.nki.simulator.timing.constants import Constants
from utils.nki.simulator.timing.transfers import Transfer, transfer

TENSOR, VECTOR, SCALAR, GPSIMD, SYNC, IN, OUT = range(7)
QUEUES = ("tensor", "vector", "scalar", "gpsimd", "sync", "dma in", "dma out")
"""The in-order queues of a core: four engines, the Sync sequencer, and the DMA rings of transfers
to SBUF and from it."""
_OF_ENGINE = {
    engine.tensor: TENSOR, engine.vector: VECTOR, engine.scalar: SCALAR, engine.gpsimd: GPSIMD,
    engine.sync: SYNC, engine.dma: IN, engine.unknown: SYNC,
}  # fmt: skip
SBUF_PORT, PSUM_PORT = 0, 1
Part = tuple[int, int, int, int]


@dataclass(frozen=True, eq=False)
class Work:
    """The demands of an instruction; times in ns.

    queue: where it is issued, in order. busy: how long it holds the queue. latency: from then until
    its result can be read. table: the family of functions the Scalar Engine must have loaded.
    weights: time to load a stationary matrix. ports: shared ports that it holds while busy.
    transfer: what DMA engines do for it; start: from the end of `busy` to the first byte.
    generator: the hardware descriptor generator it occupies, or None. reads, writes: names of its
    tensor operands. Those in `lists` are lists of tensors, those in `indices` are found by a tile
    of indices; `registers` names registers and what is found by one. plain: no lists, no
    indices. part: rows and columns of the array (from, to) that a product keeps to; another part
    may begin `turnaround` after it.
    """

    name: str
    queue: int
    busy: float
    latency: float
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    lists: frozenset[str] = frozenset()
    indices: tuple[str, ...] = ()
    registers: tuple[str, ...] = ()
    plain: bool = True
    table: str = ""
    weights: float = 0.0
    ports: tuple[int, ...] = ()
    transfer: Transfer | None = None
    start: float = 0.0
    generator: int | None = None
    part: Part | None = None
    turnaround: float = 0.0


def work_of(instruction: Instruction, on: Target, constants: Constants) -> Work:
    """The demands of an instruction, from its record alone."""
    checked, args = instruction.checked, instruction.args
    spec = checked.spec

    def tensors(names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(
            n for n in names
            if isinstance(args[n], Tensor)
            or (isinstance(args[n], (list, tuple)) and any(isinstance(t, Tensor) for t in args[n]))
        )  # fmt: skip

    reads, writes = tensors(spec.inputs), tensors(spec.outputs)
    names = tuple(dict.fromkeys((*reads, *writes)))
    if spec.name == "core_barrier":
        writes = reads  # what comes after it reads what the other core wrote
    results = {n: args[n].indirect for n in names if getattr(args[n], "indirect", None)}
    operands: dict[str, Any] = {
        "reads": reads,
        "writes": writes,
        "lists": frozenset(n for n in names if not isinstance(args[n], Tensor)),
        "indices": tuple(n for n, how in results.items() if how.tile is not None),
        "registers": (
            *(n for n, how in results.items() if how.tile is None),
            *(n for n, value in args.items() if isinstance(value, VirtualRegister)),
        ),
    }
    operands["plain"] = not operands["lists"] and not operands["indices"]
    if checked.engine is engine.dma:
        return _dma(instruction, on, constants, operands)
    which = checked.engine if checked.engine in constants.latency else engine.sync
    cycles = checked.cycles
    clock = constants.clock[which]
    options: dict[str, Any] = {}
    if which is engine.scalar:
        options["table"] = _table(args)
    busy = cycles / clock
    if which is engine.vector:
        busy += constants.vector_access * later_accesses(args, reads)
    if which is engine.tensor:
        weights = args["stationary"] if "stationary" in args else args["data"]
        options["weights"] = weights.elements / constants.fast_weight_load / clock
        if cycles > FEWEST_CYCLES:  # in shorter ones the turnaround hides it
            loads = constants.fp32_loads if weights.dtype == "float32" else 1
            busy += constants.weight_gap * loads
        options["part"] = _part(args, on)
        options["turnaround"] = min(busy, FEWEST_CYCLES / clock)
    if constants.shared_ports:
        options["ports"] = _ports(which, [args[n] for n in names if isinstance(args[n], Tensor)])
    return Work(spec.name, _OF_ENGINE[which], busy, constants.latency[which], **operands, **options)


def _table(args: dict[str, Any]) -> str:
    op = args.get("op")
    return op.table if isinstance(op, Operator) else ""


def later_accesses(args: dict[str, Any], reads: tuple[str, ...]) -> int:
    """Tiles that an instruction reads after its first one, whose start is hidden."""
    tiles = [args[name] for name in reads if isinstance(args.get(name), Tensor)]
    return max(0, sum(tile.elements > 1 for tile in tiles) - 1)


def _part(args: dict[str, Any], on: Target) -> Part | None:
    """The part of the array that `tile_position` and `tile_size` name; None for all of it."""
    position, size = tuple(args.get("tile_position") or ()), tuple(args.get("tile_size") or ())
    if not position or not size or size == (on.partitions, on.stationary_columns):
        return None
    (row, column), (rows, columns) = position, size
    return row, row + rows, column, column + columns


def _ports(which: engine, tensors: list[Tensor]) -> tuple[int, ...]:
    """Trainium1: Vector and GpSimd share a port to SBUF, Vector and Scalar one to PSUM."""
    buffers = {tensor.buffer for tensor in tensors}
    ports = []
    if which in (engine.vector, engine.gpsimd) and MemoryRegion.sbuf in buffers:
        ports.append(SBUF_PORT)
    if which in (engine.vector, engine.scalar) and MemoryRegion.psum in buffers:
        ports.append(PSUM_PORT)
    return tuple(ports)


def _dma(
    instruction: Instruction, on: Target, constants: Constants, operands: dict[str, Any]
) -> Work:
    args, name = instruction.args, instruction.checked.spec.name
    sources = _flat(args, operands["reads"])
    targets = _flat(args, operands["writes"])
    pairs = [(source, targets[0]) for source in sources if targets]
    rate = 1.0
    if "transpose" in name and constants.has_generators:
        on_chip = all(s.storage.on_chip for s in sources)
        rate = constants.dma_transpose_on_chip if on_chip else constants.dma_transpose_from_hbm
    moved = transfer(pairs, constants, on.partitions, rate)
    inward = bool(targets) and targets[0].storage.on_chip
    queue = IN if inward else OUT
    generator: int | None = 0 if inward else 1
    asked = args.get("engine", engine.unknown)
    busy = constants.runtime_descriptors
    if _in_software(args, pairs, operands, constants):
        queue, generator, busy = GPSIMD, None, constants.software_descriptors
    elif not constants.has_generators or args.get("dge_mode") is dge_mode.none:
        generator = None
    else:
        busy = constants.hardware_descriptors
        if asked is engine.scalar:
            queue, generator = SCALAR, 1
        elif asked is engine.sync:
            queue, generator = IN, 0
    return Work(
        name, queue, busy, 0.0, **operands,
        transfer=moved, start=constants.dma_start, generator=generator,
    )  # fmt: skip


def _flat(args: dict[str, Any], names: tuple[str, ...]) -> list[Tensor]:
    results: list[Tensor] = []
    for name in names:
        value = args[name]
        results += [value] if isinstance(value, Tensor) else [t for t in value if t is not None]
    return results


def _in_software(
    args: dict[str, Any],
    pairs: list[tuple[Tensor, Tensor]],
    operands: dict[str, Any],
    constants: Constants,
) -> bool:
    """Descriptors that GpSimd writes: on request, for indices, for casts (a generator has none)."""
    if args.get("dge_mode") is dge_mode.swdge:
        return True
    if any(args[name].indirect.by_row for name in operands["indices"]):
        return True
    return constants.has_generators and any(s.dtype != t.dtype for s, t in pairs)
