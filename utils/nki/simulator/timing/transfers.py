"""What a DMA does: its descriptors, and the time each of the DMA engines takes for its share.

A descriptor is one contiguous run of HBM; on chip it may go on in the next partition: in a printed
profile a contiguous copy to all partitions shows one piece for each engine (AWS, Introduction to
DMA with NKI:
https://awsdocs-neuron.readthedocs-hosted.com/en/latest/nki/get-started/about/nki-dma-overview.html).
Between two places on chip no descriptor is longer than a row. Each engine serves neighbouring
partitions.
"""

from dataclasses import dataclass

from utils.nki.simulator.tensor import Tensor
from utils.nki.simulator.timing.constants import Constants


@dataclass(frozen=True)
class Transfer:
    """One or more copies that an instruction starts.

    shares: ns for which each DMA engine is busy. even: the same for all engines, or 0. hbm_read,
    hbm_written: bytes. descriptors: of all engines together. spread: 0 if one engine moves
    everything, 1 if all take part: they do not begin at the same time.
    """

    shares: tuple[float, ...]
    even: float
    bytes: int
    hbm_read: int
    hbm_written: int
    descriptors: int
    spread: float

    @property
    def longest(self) -> float:
        """Nanoseconds of the busiest engine."""
        return max(self.shares)

    @property
    def busy(self) -> float:
        """Engine-nanoseconds."""
        return sum(self.shares)


def run_length(tensor: Tensor, first: int = 0) -> int:
    """Elements that lie one after the other, in the row-major order of dimensions from `first`."""
    length = 1
    for size, stride in zip(
        reversed(tensor.shape[first:]), reversed(tensor.strides[first:]), strict=True
    ):
        if size == 1:
            continue
        if stride != length:
            break
        length *= size
    return length


def transfer(
    pairs: list[tuple[Tensor, Tensor]], constants: Constants, partitions: int, rate: float = 1.0
) -> Transfer:
    """The copies (source, destination) of one instruction, at a share of the DMA rate.

    Where several sources are combined on the way, their one destination is written once.
    """
    engines = constants.dma_engines
    busy = [0.0] * engines
    moved = read = written = count = 0
    for source, target in pairs:
        size = max(source.dtype.itemsize, target.dtype.itemsize)
        for engine, (elements, descriptors) in _split(source, target, engines, partitions).items():
            busy[engine] += (
                descriptors * constants.descriptor + elements * size / constants.dma_rate / rate
            )
            count += descriptors
        moved += target.size * size
        read += 0 if source.storage.on_chip else source.size * source.dtype.itemsize
        written = 0 if target.storage.on_chip else target.size * target.dtype.itemsize
    even = busy[0] if all(item == busy[0] for item in busy) else 0.0
    spread = (sum(item > 0 for item in busy) - 1) / (engines - 1)
    return Transfer(tuple(busy), even, moved, read, written, count, max(0.0, spread))


def _split(
    source: Tensor, target: Tensor, engines: int, partitions: int
) -> dict[int, tuple[int, int]]:
    """Elements and descriptors of each engine that takes part."""
    on_chip = target if target.storage.on_chip else source if source.storage.on_chip else None
    if on_chip is None:
        run = min(run_length(source), run_length(target))
        share = -(-source.size // engines)
        runs = -(-max(source.size // run, engines) // engines)
        return {e: (min(share, source.size - e * share), runs)
                for e in range(engines) if e * share < source.size}  # fmt: skip
    other = source if on_chip is target else target
    row = on_chip.elements
    inside = run_length(on_chip, 1)
    both = other.storage.on_chip
    outside = min(run_length(other, 1), row) if both else run_length(other)
    item = partitions // engines
    first = on_chip.partition
    rows = [0] * engines
    step = on_chip.strides[0] // on_chip.row if on_chip.shape[0] > 1 else 1
    for i in range(on_chip.shape[0]):
        rows[(first + i * step) // item] += 1
    made = {}
    for engine, count in enumerate(rows):
        if count:
            elements = count * row
            runs = -(-elements // outside)
            if both or inside < row:
                runs = max(runs, count * -(-row // inside))
            made[engine] = (elements, runs)
    return made
