"""The puzzles as data: arguments, sizes, hints, bounds, and arrays made from a seed."""

import difflib
import functools
import math
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from utils.chip import roofline
from utils.chip.hardware import machine
from utils.facts.records import read_yaml
from utils.nki.simulator.dtypes import dtype_of
from utils.nki.simulator.target import target
from utils.nki.tool.failures import Refused

DATA = Path(__file__).with_name("puzzles.yaml")
BESTS = Path(__file__).with_name("bests.yaml")
TARGET = "trn2"
ROOFLINE = {"bfloat16": "bf16", "float32": "fp32"}
Sizes = dict[str, int]


@dataclass(frozen=True)
class Array:
    """An argument or result: dimensions by name or number, data type, and what it holds.

    values: "normal"; "ids:v", integers below the size v; "/k": normal numbers over sqrt(k);
    "*30": times 30. A dimension may be a product, such as "2*h".
    """

    name: str
    dimensions: tuple[str, ...]
    dtype: str
    values: str = "normal"

    def shape(self, sizes: Sizes) -> tuple[int, ...]:
        """The shape for sizes."""
        return tuple(
            math.prod(sizes[part] if part in sizes else int(part) for part in name.split("*"))
            for name in self.dimensions
        )

    def made(self, sizes: Sizes, rng: np.random.Generator) -> np.ndarray:
        """An array of this kind."""
        kind = dtype_of(self.dtype).numpy
        if self.values.startswith("ids:"):
            return rng.integers(0, sizes[self.values[4:]], self.shape(sizes)).astype(kind)
        values = rng.standard_normal(self.shape(sizes))
        if self.values.startswith("/"):
            values /= math.sqrt(sizes[self.values[1:]])
        if self.values.startswith("*"):
            values *= float(self.values[1:])
        return values.astype(kind)

    def __str__(self) -> str:
        return f"{self.name} ({', '.join(self.dimensions)}) {self.dtype}"


class Puzzle(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One task. takes, gives: arrays as in the file, such as "m n float32". sizes: what each size
    is drawn from, the first ones are shown. timed: sizes that the estimate is made for. flop: the
    products whose sum is the FLOP of matrix products. terms: how many numbers an element sums, a
    size or a number. moves: the dimensions of what is read of an argument, where that is not
    all. tiles: rows and columns of one tile of each array, for the picture.
    """

    id: str
    number: int
    step: int
    title: str
    wanted: str
    takes: dict[str, str]
    gives: str
    sizes: dict[str, list[int]]
    timed: Sizes
    hints: list[str]
    tiles: dict[str, list[str | int]]
    moves: dict[str, str] = {}
    flop: list[list[str | int]] = []
    terms: str | int = 1

    @property
    def arguments(self) -> tuple[Array, ...]:
        """What the kernel takes."""
        return tuple(_array(name, text) for name, text in self.takes.items())

    @property
    def result(self) -> Array:
        """What the kernel returns."""
        return _array("result", self.gives)

    @property
    def shown(self) -> Sizes:
        """The sizes of the example."""
        return {name: values[0] for name, values in self.sizes.items()}

    def arrays(self, sizes: Sizes, seed: int) -> list[np.ndarray]:
        """Arguments of these sizes; the same for a seed."""
        rng = np.random.default_rng(seed)
        return [argument.made(sizes, rng) for argument in self.arguments]

    def bytes_moved(self, sizes: Sizes) -> int:
        """Each argument read once and the result written once, in bytes."""
        takes = [_array(name, self.moves.get(name, text)) for name, text in self.takes.items()]
        every = (*takes, self.result)
        return sum(math.prod(a.shape(sizes)) * dtype_of(a.dtype).itemsize for a in every)

    def flops(self, sizes: Sizes) -> int:
        """FLOP of matrix products."""
        return sum(math.prod(size_of(factor, sizes) for factor in item) for item in self.flop)

    def bound(self) -> roofline.Estimate:
        """The least time at the timed sizes: bytes over the rate of DMA, or FLOP over the peak."""
        core = machine(target(TARGET).chip, "core")
        moved = float(self.bytes_moved(self.timed))
        work = roofline.Work(self.id, float(self.flops(self.timed)), moved)
        return roofline.bound(work, core, ROOFLINE[self.arguments[0].dtype], "dma")

    def best(self) -> float | None:
        """The recorded estimate of our solution, in seconds; None before one is recorded."""
        recorded = _bests().get(self.id)
        return None if recorded is None else recorded * 1e-6

    def stub(self) -> str:
        """The file to begin with."""
        arrays = ", ".join(map(str, self.arguments))
        return STUB.format(
            id=self.id, names=", ".join(self.takes), arrays=arrays, result=self.result
        )


STUB = '''import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def {id}({names}):
    """{arrays};
    returns {result}.
    """
    raise NotImplementedError("write the kernel here")
'''


def size_of(word: str | int, sizes: Sizes) -> int:
    """A size by name, or the number itself."""
    return word if isinstance(word, int) else sizes[word]


def _array(name: str, text: str) -> Array:
    words = text.split()
    at = next(i for i, word in enumerate(words) if word in ("float32", "bfloat16", "int32"))
    return Array(name, tuple(words[:at]), words[at], *words[at + 1 :])


@functools.cache
def puzzles() -> tuple[Puzzle, ...]:
    """All of them, by number."""
    entries = [
        entry | {"number": number, "id": name}
        for number, (name, entry) in enumerate(read_yaml(DATA).items(), 1)
    ]
    return tuple(msgspec.convert(entries, list[Puzzle]))


@functools.cache
def _bests() -> dict[str, float]:
    """Microseconds of our solutions by puzzle."""
    return (read_yaml(BESTS) or {}) if BESTS.exists() else {}


def puzzle(which: str | int) -> Puzzle:
    """A puzzle by number or name. Raises Refused with the names there are."""
    for item in puzzles():
        if str(which) in (str(item.number), item.id):
            return item
    names = [item.id for item in puzzles()]
    near = difflib.get_close_matches(str(which), names, n=1)
    raise Refused(
        f"there is no puzzle {str(which)!r}; there are 1 to {len(names)}: {', '.join(names)}"
        + (f"; did you mean {near[0]}?" if near else "")
    )
