"""When a step of FSDP2 gathers, computes and scatters: a model of one rank with two lanes.

One lane computes block after block, forward and back; the other one carries one collective at a
time, in the order in which they are asked for. Whether a device does both at once, and how fast
each is, is an input: no time of a CPU goes in.
"""

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Span:
    """Something that one lane does: "compute" or "communicate", from begin_s to end_s."""

    lane: str
    name: str
    begin_s: float
    end_s: float


@dataclass(frozen=True)
class Overlap:
    """A step. `waits_s`: how long the computation stands still in it."""

    spans: tuple[Span, ...]
    step_s: float
    waits_s: float


def step(
    blocks: int, forward_s: float, backward_s: float, gather_s: float, scatter_s: float, ahead: int
) -> Overlap:
    """A step over equal blocks, each gathered before its forward and before its backward pass.

    ahead: how many blocks before it is needed a gather is asked for: 0 when the block before has
        ended, 1 when that begins, 2 one block earlier. Each holds one more gathered block.

    >>> [step(4, 1.0, 2.0, 0.5, 0.5, ahead).step_s for ahead in (0, 1)]
    [18.0, 13.0]

    Raises: ValueError for no block, a negative time or a negative ahead.
    """
    if blocks < 1 or ahead < 0 or min(forward_s, backward_s, gather_s, scatter_s) < 0:
        raise ValueError(
            f"{blocks} blocks, {ahead} ahead, times {forward_s}, {backward_s}, {gather_s},"
            f" {scatter_s} s: give at least 1 block, and nothing below 0"
        )
    begins: list[float] = []
    ends: list[float] = []
    spans: list[Span] = []
    scatters: list[tuple[float, str]] = []  # asked for, not yet placed
    free = 0.0

    def carry(name: str, asked: float, seconds: float) -> float:
        nonlocal free
        begin = max(free, asked)
        free = begin + seconds
        spans.append(Span("communicate", name, begin, free))
        return free

    for place, (way, block) in enumerate(_stages(blocks)):
        if ahead:
            asked = begins[place - ahead] if place >= ahead else 0.0
        else:
            asked = ends[-1] if ends else 0.0
        while scatters and scatters[0][0] <= asked:
            since, name = scatters.pop(0)
            carry(name, since, scatter_s)
        ready = carry(f"gather {block}", asked, gather_s)
        begins.append(max(ready, ends[-1] if ends else 0.0))
        ends.append(begins[-1] + (forward_s if way == "forward" else backward_s))
        spans.append(Span("compute", f"{way} {block}", begins[-1], ends[-1]))
        if way == "backward":
            scatters.append((ends[-1], f"scatter {block}"))
    for since, name in scatters:
        carry(name, since, scatter_s)
    step_s = max(free, ends[-1])
    return Overlap(tuple(spans), step_s, step_s - blocks * (forward_s + backward_s))


def _stages(blocks: int) -> Iterator[tuple[str, int]]:
    yield from (("forward", block) for block in range(blocks))
    yield from (("backward", block) for block in reversed(range(blocks)))
