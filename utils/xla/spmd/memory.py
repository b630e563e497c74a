"""What a compiled program needs in memory, as the compiler itself reports it."""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Memory:
    """Bytes of one device for one run of a program, all of them held at once.

    arguments_bytes: what is handed in: weights, state of the optimizer, batch, each as far as this
        device holds it.
    donated_bytes: those of the arguments that a result is written over, such as updated weights.
    outputs_bytes: results that need memory of their own.
    temporaries_bytes: the one block in which the compiler places everything in between. Values
        that do not live at the same time share places, so this is the highest point, not the sum.
    other_bytes: constants, tables of pointers and scratch of single threads.
    """

    arguments_bytes: int
    donated_bytes: int
    outputs_bytes: int
    temporaries_bytes: int
    other_bytes: int

    @property
    def peak_bytes(self) -> int:
        """Of all parts together; what is donated is counted once, as an argument."""
        return self.arguments_bytes + self.outputs_bytes + self.temporaries_bytes + self.other_bytes


def memory(report: str) -> Memory:
    """Reads the buffer assignment that XLA's CPU compiler dumps.

    Raises: ValueError if it is none, or if its parts do not add up to the total that it states.
    """
    stated = re.search(r"^Total bytes used: (\d+)", report, flags=re.M)
    lines = dict(
        (number, (int(size), kind))
        for number, size, kind in re.findall(
            r"^allocation (\d+): size (\d+), (.*):$", report, flags=re.M
        )
    )
    if stated is None or not lines:
        raise ValueError(
            "this is no buffer assignment of XLA's CPU compiler: give the file that ends in"
            f" -buffer-assignment.txt, found {report[:40]!r}"
        )
    sums = dict.fromkeys(("arguments", "donated", "outputs", "temporaries", "other"), 0)
    for size, kind in lines.values():
        sums[_part(kind)] += size
        if _part(kind) == "arguments" and "maybe-live-out" in kind:
            sums["donated"] += size
    result = Memory(**{f"{part}_bytes": size for part, size in sums.items()})
    if result.peak_bytes != int(stated[1]):
        raise ValueError(
            f"the allocations add up to {result.peak_bytes} bytes and the report says {stated[1]}"
        )
    return result


def _part(kind: str) -> str:
    if re.match(r"parameter \d+", kind):
        return "arguments"
    if "preallocated-temp" in kind:
        return "temporaries"
    # The result of a program with several results is a table of pointers to them.
    if "maybe-live-out" in kind and "output shape is |(" not in kind:
        return "outputs"
    return "other"
