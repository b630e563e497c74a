"""HLO text as data: computations of instructions with types, operands and attributes."""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Array:
    """The type of one array: "f32" and (16, 64). A dynamic size counts as its upper limit."""

    dtype: str
    shape: tuple[int, ...]

    @property
    def elements(self) -> int:
        """How many numbers."""
        return math.prod(self.shape)

    @property
    def bytes(self) -> float:
        """In memory, densely. Types without data, such as token, have 0."""
        if self.dtype == "pred":
            return self.elements
        bits = re.match(r"(?:bf|f|s|u|c)(\d+)", self.dtype)
        return self.elements * int(bits[1]) / 8 if bits else 0

    @property
    def floating(self) -> bool:
        """Whether it holds floating-point numbers."""
        return self.dtype.startswith(("f", "bf"))


@dataclass(frozen=True)
class Instruction:
    """One line: results (several for a tuple), opcode, operands by name, and the rest as text."""

    name: str
    results: tuple[Array, ...]
    opcode: str
    operands: tuple[str, ...]
    attributes: str
    root: bool

    @property
    def array(self) -> Array:
        """The only result. Raises ValueError for a tuple of several."""
        if len(self.results) != 1:
            raise ValueError(f"{self.name} has {len(self.results)} results, not one")
        return self.results[0]

    @property
    def bytes(self) -> float:
        """Of all results, in memory."""
        return sum(array.bytes for array in self.results)

    def names(self, attribute: str) -> tuple[str, ...]:
        """Computations that an attribute such as to_apply or branch_computations names."""
        result = re.search(rf"\b{attribute}=(\{{[^}}]*\}}|[^,\s]+)", self.attributes)
        return tuple(re.findall(r"[\w.-]+", result[1])) if result else ()

    def numbers(self, attribute: str) -> tuple[int, ...]:
        """Whole numbers of an attribute such as lhs_contracting_dims={1,2}; () if missing."""
        result = re.search(rf"\b{attribute}=\{{?([\d,]*)", self.attributes)
        return tuple(int(item) for item in result[1].split(",") if item) if result else ()


@dataclass(frozen=True)
class Computation:
    """Instructions in the order of the text, each after its operands."""

    name: str
    instructions: tuple[Instruction, ...]

    @cached_property
    def by_name(self) -> Mapping[str, Instruction]:
        """Its instructions by their names."""
        return {instruction.name: instruction for instruction in self.instructions}

    @property
    def root(self) -> Instruction:
        """The instruction whose result is that of the computation."""
        marked = [instruction for instruction in self.instructions if instruction.root]
        return marked[0] if marked else self.instructions[-1]

    @cached_property
    def needed(self) -> tuple[Instruction, ...]:
        """Those on which the root depends: any compiler leaves out the others."""
        names = {self.root.name}
        for instruction in reversed(self.instructions):
            if instruction.name in names:
                names.update(instruction.operands)
        return tuple(item for item in self.instructions if item.name in names)

    def operands(self, instruction: Instruction) -> list[Instruction]:
        """What an instruction works on. Raises ValueError if the computation lacks one of them."""
        unknown = [name for name in instruction.operands if name not in self.by_name]
        if unknown:
            raise ValueError(f"{instruction.name} uses {unknown[0]!r}, which {self.name} lacks")
        return [self.by_name[name] for name in instruction.operands]


@dataclass(frozen=True)
class Module:
    """All computations of a text by name, and the name of the one that runs."""

    computations: Mapping[str, Computation]
    entry: str


def read(text: str) -> Module:
    """Reads HLO text. Raises ValueError if it is something else."""
    if not re.search(r"^\s*ENTRY ", text, flags=re.M):
        raise ValueError(
            "this is no HLO text with an ENTRY computation: give what"
            f" utils.xla.graph.hlo_text returns, found {text[:40]!r}"
        )
    computations: dict[str, Computation] = {}
    entry = name = ""
    lines: list[Instruction] = []
    for line in re.sub(r"/\*.*?\*/", "", text).splitlines():
        line = line.strip()
        if line.endswith("{") and " = " not in line:
            words = line.replace("(", " ").split()
            name = words[words[0] == "ENTRY"].lstrip("%")
            entry = name if words[0] == "ENTRY" else entry
            lines = []
        elif line.startswith("}") and name:
            computations[name] = Computation(name, tuple(lines))
            name = ""
        elif name and " = " in line:
            lines.append(_instruction(line))
    return Module(computations, entry)


def _instruction(line: str) -> Instruction:
    left, _, right = line.partition(" = ")
    end = _closing(right) if right.startswith("(") else right.index(" ")
    written, rest = right[:end], right[end:].strip()
    opcode, _, rest = rest.partition("(")
    end = _closing("(" + rest) - 1
    inside, attributes = rest[: end - 1], rest[end:]
    named = opcode not in ("parameter", "constant", "iota")
    return Instruction(
        name=left.removeprefix("ROOT ").lstrip("%"),
        results=tuple(_arrays(written)),
        opcode=opcode,
        operands=tuple(item.split()[-1].lstrip("%") for item in _split(inside)) if named else (),
        attributes=attributes,
        root=left.startswith("ROOT "),
    )


def _arrays(written: str) -> Iterator[Array]:
    for dtype, sizes in re.findall(r"([a-z]\w*)\[([^\]]*)\]", written):
        yield Array(dtype, tuple(int(size.strip("<= ")) for size in sizes.split(",") if size))


def _closing(text: str) -> int:
    """The place behind the bracket that closes the one at the start."""
    depth = 0
    for place, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return place + 1
    raise ValueError(f"a bracket is never closed in {text[:60]!r}")


def _split(text: str) -> Iterator[str]:
    """The parts between those commas that are in no brackets."""
    depth, begin = 0, 0
    for place, letter in enumerate(text):
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            yield text[begin:place].strip()
            begin = place + 1
    if text[begin:].strip():
        yield text[begin:].strip()
