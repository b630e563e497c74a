"""The collectives of a compiled program, read from its HLO text: kind, number, bytes, groups.

What a collective does is defined in https://openxla.org/xla/operation_semantics. Only the text
after partitioning has them: before it, a sharding is an annotation on an operator.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from utils.xla.hlo.operators import calls_of
from utils.xla.hlo.text import Array, Computation, Instruction, Module, read

KINDS = (
    "all-reduce",
    "all-gather",
    "reduce-scatter",
    "all-to-all",
    "collective-permute",
    "collective-broadcast",
    "ragged-all-to-all",
)


@dataclass(frozen=True)
class Collective:
    """One collective of a program that every device runs.

    kind: one of KINDS; a pair of -start and -done is one.
    results: the arrays that each device holds afterwards; one program may carry several in a tuple.
    operand_bytes: what each device puts in, summed over the arrays.
    groups: which devices talk to each other, by number; for a collective-permute, the pairs
        (from, to). () if the text names none.
    times: how often it runs in one run of the program: more than once in a loop whose number of
        rounds the text gives, else once.
    """

    kind: str
    results: tuple[Array, ...]
    operand_bytes: float
    groups: tuple[tuple[int, ...], ...]
    times: int = 1

    @property
    def bytes(self) -> float:
        """The result of one run on one device. For a reduce-scatter that is one share, and for an
        all-gather all shares.
        """
        return sum(array.bytes for array in self.results)

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Of the results, on one device."""
        return tuple(array.shape for array in self.results)

    def __str__(self) -> str:
        arrays = ", ".join(f"{a.dtype}[{','.join(map(str, a.shape))}]" for a in self.results)
        often = f" x{self.times}" if self.times > 1 else ""
        return f"{self.kind}{often} {arrays}, {self.bytes:,.0f} bytes, groups {_short(self.groups)}"


def _short(groups: tuple[tuple[int, ...], ...]) -> str:
    return " ".join("-".join(map(str, group)) for group in groups) or "not named"


def collectives(compiled_text: str) -> tuple[Collective, ...]:
    """The collectives of a compiled HLO text, in the order of the text.

    Both branches of a conditional count, and the body of a loop as often as the text says.

    >>> text = '''HloModule m, num_partitions=4
    ... ENTRY %e (p: f32[8,2]) -> f32[8,8] {
    ...   %p = f32[8,2] parameter(0)
    ...   ROOT %g = f32[8,8] all-gather(%p), dimensions={1}, replica_groups={{0,1,2,3}}
    ... }'''
    >>> for each in collectives(text):
    ...     print(each)
    all-gather f32[8,8], 256 bytes, groups 0-1-2-3

    Raises: ValueError if the text is no HLO, or names groups in a form that is not known here.
    """
    module = read(compiled_text)
    everybody = _devices(compiled_text)
    return tuple(_in_computation(module.computations[module.entry], module, everybody, 1))


def totals(result: Iterable[Collective]) -> dict[str, tuple[int, float]]:
    """Number of runs and bytes of the results on one device, by kind, in the order of KINDS.

    >>> one = Collective("all-reduce", (Array("f32", (8,)),), 32, ((0, 1),), times=3)
    >>> totals([one])
    {'all-reduce': (3, 96.0)}
    """
    summed: dict[str, tuple[int, float]] = {}
    for item in sorted(result, key=lambda one: KINDS.index(one.kind)):
        number, size = summed.get(item.kind, (0, 0.0))
        summed[item.kind] = number + item.times, size + item.times * item.bytes
    return summed


def _in_computation(
    computation: Computation, module: Module, everybody: int, times: int
) -> Iterator[Collective]:
    for one in computation.instructions:
        kind = one.opcode.removesuffix("-start")
        if kind in KINDS:
            yield _collective(kind, one, computation, everybody, times)
        # The end of an asynchronous call names the computation that its start has named already.
        elif one.opcode not in ("async-update", "async-done"):
            rounds = times * _rounds(one)
            for name in calls_of(one):
                yield from _in_computation(module.computations[name], module, everybody, rounds)


def _rounds(one: Instruction) -> int:
    result = re.search(r'known_trip_count":\s*\{"n":\s*"(\d+)"', one.attributes)
    return int(result[1]) if one.opcode == "while" and result else 1


def _collective(
    kind: str, one: Instruction, computation: Computation, everybody: int, times: int
) -> Collective:
    operands = [array for operand in computation.operands(one) for array in operand.results]
    results = one.results
    if one.opcode.endswith("-start") and len(results) >= 2 * len(operands):
        # The type of a -start lists what goes in, what comes out, and then tokens of the runtime;
        # that of an all-reduce-start only what comes out.
        results = results[len(operands) : 2 * len(operands)]
    return Collective(
        kind=kind,
        results=results,
        operand_bytes=sum(array.bytes for array in operands),
        groups=_groups(one.attributes, everybody),
        times=times,
    )


def _devices(text: str) -> int:
    """How many devices the header of the text names."""
    header = text.lstrip().partition("\n")[0]
    results = [
        re.search(rf"\b{name}=(\d+)", header) for name in ("num_partitions", "replica_count")
    ]
    return int(np.prod([int(item[1]) for item in results if item]))


def _groups(attributes: str, everybody: int) -> tuple[tuple[int, ...], ...]:
    """Groups in any of the three forms that XLA writes: listed, counted, and by axes of a mesh."""
    result = re.search(r"\b(?:replica_groups|source_target_pairs)=(.+)", attributes)
    if result is None:
        return ()
    listed = re.match(r"\{((?:\{[\d,]*\},?)*)\}", result[1])
    if listed:
        written = re.findall(r"\{([\d,]+)\}", listed[1])
        groups = tuple(tuple(map(int, group.split(","))) for group in written)
        # No group at all means one group of all.
        return groups or ((tuple(range(everybody)),) if everybody > 1 else ())
    counted = re.match(r"\[([\d,]+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?", result[1])
    if counted:
        shape, counts, order = (_numbers(group) for group in counted.groups())
        return _rows(np.arange(np.prod(counts)).reshape(counts).transpose(order or None), shape)
    meshed = re.match(r"mesh\[((?:'\w+'=\d+,?)+)\] \{((?:'\w+',?)*)\}", result[1])
    if meshed:
        sizes = dict(re.findall(r"'(\w+)'=(\d+)", meshed[1]))
        talking = re.findall(r"'(\w+)'", meshed[2])
        order = tuple(list(sizes).index(axis) for axis in sizes if axis not in talking)
        order += tuple(list(sizes).index(axis) for axis in talking)
        counts = tuple(int(size) for size in sizes.values())
        together = int(np.prod([int(sizes[axis]) for axis in talking]))
        return _rows(np.arange(np.prod(counts)).reshape(counts).transpose(order), (-1, together))
    raise ValueError(
        f"groups written as {result[1][:60]!r} are unknown: known are {{{{0,1}},{{2,3}}}},"
        " [2,2]<=[4] with or without T(1,0), and mesh['x'=2,'y'=2] {'y'}"
    )


def _numbers(written: str | None) -> tuple[int, ...]:
    return tuple(map(int, written.split(","))) if written else ()


def _rows(numbers: np.ndarray, shape: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(int(number) for number in row) for row in numbers.reshape(shape))
