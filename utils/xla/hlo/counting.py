"""FLOPs and bytes of a whole graph."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from utils.xla.hlo.operators import FREE, OperatorCost, calls_of, moved_bytes, work
from utils.xla.hlo.text import Computation, Instruction, Module, read


@dataclass(frozen=True)
class Cost:
    """What a graph costs.

    by_operator: by name of the operator, most FLOPs first.
    bytes_fused: inputs read once and results written once, the least any compiler can reach. Of a
        table of which only rows or slices are taken, those are counted.
    uncounted: operators whose work is not in `flops` or not in full, and how many there are: their
        work depends on the data (sort), is not in the text (custom-call, while) or is none of this
        chip's (all-reduce).
    """

    by_operator: Mapping[str, OperatorCost]
    bytes_fused: float
    uncounted: Mapping[str, int]

    @cached_property
    def total(self) -> OperatorCost:
        """Of all operators together."""
        return sum(self.by_operator.values(), OperatorCost())

    @property
    def flops(self) -> float:
        """Floating-point additions, multiplications and the like; no transcendentals."""
        return self.total.flops

    @property
    def matrix_flops(self) -> float:
        """Those of matrix products and convolutions."""
        return sum(
            self.by_operator[k].flops for k in ("dot", "convolution") if k in self.by_operator
        )

    @property
    def transcendentals(self) -> float:
        """exp, tanh, erf, sqrt, power and the like, each counted as one."""
        return self.total.transcendentals

    @property
    def bytes_unfused(self) -> float:
        """Read and written if every operator goes through memory: the most a compiler may need."""
        return self.total.bytes


def cost(hlo_text: str) -> Cost:
    """Counts the work of an HLO text such as `utils.xla.graph.hlo_text` gives.

    The text is taken as it is, before any optimisation, without the instructions on whose result
    nothing depends: torch_xla writes a + b as a + 1 * b, for instance, and both count. What fell
    back to the CPU is in no graph.
    A matrix product counts two FLOPs for each pair of numbers, a sum of n numbers n - 1.
    Convolutions leave out products with padding, which torch's counter includes. Integer and
    logical operators have no FLOPs. Gather, scatter and slices touch only what they take. The body
    of a while counts as often as the text says, or else once; of the branches of a conditional the
    one with the most FLOPs counts. Both are then `uncounted` too.

    >>> text = '''ENTRY %e (p: f32[4,8], q: f32[8,2]) -> f32[4,2] {
    ...   %p = f32[4,8] parameter(0)
    ...   %q = f32[8,2] parameter(1)
    ...   ROOT %d = f32[4,2] dot(%p, %q), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ... }'''
    >>> cost(text).flops, cost(text).bytes_fused
    (128, 224.0)

    Raises: ValueError if the text is something else.
    """
    module = read(hlo_text)
    entry = module.computations[module.entry]
    counted = _computation(entry, module)
    ordered = sorted(counted.operators.items(), key=lambda item: -item[1].flops)
    return Cost(
        by_operator=dict(ordered), bytes_fused=_fuse(entry), uncounted=dict(counted.uncounted)
    )


@dataclass
class _Tally:
    """What has been counted so far."""

    operators: dict[str, OperatorCost] = field(default_factory=dict)
    uncounted: Counter[str] = field(default_factory=Counter)

    @property
    def total(self) -> OperatorCost:
        return sum(self.operators.values(), OperatorCost())

    def add(self, name: str, one: OperatorCost) -> None:
        self.operators[name] = self.operators.get(name, OperatorCost()) + one

    def include(self, other: "_Tally", times: int = 1, with_bytes: bool = True) -> None:
        for name, item in other.operators.items():
            moved = item.bytes if with_bytes else 0
            once = OperatorCost(item.count, item.flops, item.transcendentals, moved)
            self.add(name, once.repeated(times))
        self.uncounted.update(other.uncounted)


def _computation(computation: Computation, module: Module) -> _Tally:
    tally = _Tally()
    for item in computation.needed:
        if item.opcode not in FREE:
            _add(tally, item, computation, module)
    return tally


def _add(tally: _Tally, one: Instruction, computation: Computation, module: Module) -> None:
    operands = [operand.results for operand in computation.operands(one)]
    inner = {name: _computation(module.computations[name], module) for name in calls_of(one)}
    if one.opcode == "conditional":
        tally.include(max(inner.values(), key=lambda branch: branch.total.flops))
        tally.uncounted["conditional"] += 1
    elif one.opcode in ("call", "while", "fusion"):
        rounds = re.search(r'known_trip_count":\s*\{"n":\s*"(\d+)"', one.attributes)
        for callee in inner.values():
            tally.include(callee, int(rounds[1]) if rounds else 1, one.opcode != "fusion")
        if one.opcode == "fusion":
            tally.add("fusion", OperatorCost(1, bytes=moved_bytes(one, operands)))
        if one.opcode == "while" and not rounds:
            tally.uncounted["while"] += 1
    else:
        for callee in inner.values():
            tally.uncounted.update(callee.uncounted)
        per_run = {name: callee.total for name, callee in inner.items()}
        flops, transcendentals, unknown = work(one, operands, per_run)
        moved = moved_bytes(one, operands)
        tally.add(one.opcode, OperatorCost(1, flops, transcendentals, moved))
        if unknown:
            tally.uncounted[unknown] += 1


TAKES_A_PART = frozenset({"bitcast", "reshape", "gather", "slice", "dynamic-slice"})
"""Those after which only their result is needed of their first operand."""


def _fuse(entry: Computation) -> float:
    """Bytes of the inputs that are needed, each once, and of the results."""
    users: dict[str, list[Instruction]] = {}
    for item in entry.needed:
        for name in item.operands:
            users.setdefault(name, []).append(item)

    def needed(one: Instruction) -> float:
        taken = {}
        for user in users.get(one.name, ()):
            if user.opcode in TAKES_A_PART and one.name not in user.operands[1:]:
                # The same part, taken twice, is read once.
                taken[user.opcode, user.operands, user.attributes] = needed(user)
            elif not (user is entry.root and user.opcode == "tuple" and one.opcode == "parameter"):
                return one.bytes
        return min(sum(taken.values()), one.bytes) if one is not entry.root else one.bytes

    given = [
        element
        for element in entry.needed
        if element.opcode == "parameter"
        or (element.opcode == "constant" and element.array.elements > 1)
    ]
    root = entry.root
    results = entry.operands(root) if root.opcode == "tuple" else [root]
    written = {result.name: result.bytes for result in results if result.opcode != "parameter"}
    return sum(map(needed, given)) + sum(written.values())
