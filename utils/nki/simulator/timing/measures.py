"""What a program does: bytes, FLOP, counts, and how full SBUF and PSUM are in time."""

from collections import Counter, defaultdict
from dataclasses import dataclass

from utils.facts import figures
from utils.nki.simulator.capacity import taken_bytes
from utils.nki.simulator.enums import ON_CHIP
from utils.nki.simulator.memory import Storage
from utils.nki.simulator.program import Program
from utils.nki.simulator.target import Target
from utils.nki.simulator.tensor import Tensor
from utils.nki.simulator.timing.graph import Graph
from utils.nki.simulator.timing.schedule import Schedule
from utils.nki.simulator.timing.work import QUEUES
from utils.nki.simulator.uses import returned_tensors, tensors_of

NANO = 1e-9

PRODUCTS = frozenset(("nc_matmul", "nc_matmul_mx"))
RATES = {"float32": ("fp32_from_clock", "fp32")}
"""Keys of a core's peak for a data type, the first that exists; by default those of BF16."""
FP8_RATES = ("cfp8_from_clock", "cfp8", "fp8", "bf16_from_clock")
MX_RATES = ("mxfp8", "bf16_from_clock")
BF16_RATES = ("bf16_from_clock", "bf16")


@dataclass(frozen=True)
class Measures:
    """Counts of a program.

    counts: instructions by (engine, name). hbm_read, hbm_written: bytes moved. ideal_read,
    ideal_written: each argument that is read once, each result once. flop: of matrix products by
    data type; transposes are none. peak: FLOP/s of one core for each of these types.
    """

    counts: dict[tuple[str, str], int]
    hbm_read: int
    hbm_written: int
    ideal_read: int
    ideal_written: int
    flop: dict[str, float]
    peak: dict[str, float]

    @property
    def hbm(self) -> int:
        """Bytes read and written."""
        return self.hbm_read + self.hbm_written

    @property
    def ideal(self) -> int:
        """Bytes of each argument and each result, once."""
        return self.ideal_read + self.ideal_written


def measures(graph: Graph, program: Program) -> Measures:
    """Counts of all instructions of all cores."""
    counts: Counter[tuple[str, str]] = Counter()
    flop: defaultdict[str, float] = defaultdict(float)
    of_checked: dict[int, tuple[str, float]] = {}
    read = written = 0
    sources: set[Storage] = set()
    targets: set[Storage] = set()
    results = {returned_tensor.storage for returned_tensor in returned_tensors(program)}
    for work, instruction in zip(graph.works, graph.instructions, strict=True):
        engine = "dma" if work.transfer is not None else QUEUES[work.queue]
        counts[engine, work.name] += 1
        if work.transfer is not None:
            read += work.transfer.hbm_read
            written += work.transfer.hbm_written
            sources.update(item.storage for item in tensors_of(instruction, reads=True))
            targets.update(item.storage for item in tensors_of(instruction, reads=False))
        elif work.name in PRODUCTS:
            checked = instruction.checked
            done = of_checked.get(id(checked))
            if done is None:
                done = of_checked[id(checked)] = _product(instruction.args)
            flop[done[0]] += done[1]
    return Measures(
        counts=dict(counts),
        hbm_read=read,
        hbm_written=written,
        ideal_read=sum(s.size_bytes for s in sources if s.argument),
        ideal_written=sum(s.size_bytes for s in targets if s.argument or s in results),
        flop=dict(flop),
        peak={dtype: peak(program.target, dtype) for dtype in flop},
    )


def _product(args: dict[str, Tensor]) -> tuple[str, float]:
    """Data type and FLOP of a matrix product."""
    moving, dst = args["moving"], args["dst"]
    if args.get("is_transpose"):
        return str(moving.dtype), 0.0
    depth = moving.shape[0] * moving.elements / dst.elements * moving.dtype.packed
    return str(moving.dtype), 2.0 * depth * dst.size


def peak(on: Target, dtype: str) -> float:
    """FLOP/s of one core for products of this type, from the clock where the facts say how."""
    keys: tuple[str, ...]
    if dtype.endswith("_x4"):
        keys = MX_RATES
    elif dtype.startswith("float8"):
        keys = FP8_RATES
    else:
        keys = RATES.get(dtype, BF16_RATES)
    known = figures(f"{on.chip}.core_rate.")
    for key in keys:
        result = known.get(f"{on.chip}.core_rate.{key}")
        if result is not None and result.value is not None:
            return result.to("FLOPS")
    raise LookupError(f"no peak of {dtype} is known for {on.chip}")


def occupancy(schedule: Schedule, core: int = 0) -> dict[str, list[tuple[float, int]]]:
    """For "sbuf" and "psum" the steps (seconds, bytes per partition from then on) of one core.

    What rotation adds is in it: tiles that are loaded ahead are there earlier.
    """
    graph, times = schedule.graph, schedule.times
    lives: dict[Storage, list[float]] = {}
    for node, (work, instruction) in enumerate(zip(graph.works, graph.instructions, strict=True)):
        if graph.queue[node] // len(QUEUES) != core:
            continue
        begin = times.start[node] if work.transfer is None else times.first[node]
        for name in (*work.reads, *work.writes):
            value = instruction.args[name]
            for item in value if name in work.lists else (value,):
                if not isinstance(item, Tensor) or not item.storage.on_chip:
                    continue
                life = lives.get(item.storage)
                if life is None:
                    lives[item.storage] = [begin, times.end[node]]
                else:
                    life[0] = min(life[0], begin)
                    life[1] = max(life[1], times.end[node])
    return {entry.value: _steps(schedule, lives, entry) for entry in ON_CHIP}


def _steps(
    schedule: Schedule, lives: dict[Storage, list[float]], buffer: object
) -> list[tuple[float, int]]:
    target = schedule.program.target
    changes: dict[float, int] = {0.0: 0}
    for storage, (begin, end) in lives.items():
        if storage.buffer is not buffer:
            continue
        size = taken_bytes(storage, target)
        changes[begin] = changes.get(begin, 0) + size
        changes[end] = changes.get(end, 0) - size
    steps, level = [], 0
    for time in sorted(changes):
        level += changes[time]
        steps.append((time * NANO, level))
    return steps
