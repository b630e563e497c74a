"""Records what a learner's kernel would do, without any numbers: for observers.

The kernel gets shapes, so nothing can be computed in NumPy; its instructions are the answer. A
judge replays them with numbers of its own (`kernel_replay`).
"""

from collections.abc import Callable
from typing import Any

from utils.labs import Facts, limit
from utils.labs.forbidden import forbid
from utils.labs.packing import MOST_CHARS, pack
from utils.labs.plain import describe

OURS = ("utils.nki.kernels",)
"""The course's own kernels refuse to be called while an answer runs."""

Sizes = tuple[tuple[int, ...], str]
"""Shape and data type of an argument."""


def record(
    exercise_id: str,
    kernel: Callable[..., Any],
    *arguments: Sizes | float,
    target: str = "trn2",
    also_closed: tuple[str, ...] = (),
) -> Facts:
    """The program of a kernel called with arrays of these sizes, or with these numbers.

    Returns {"program": a packed record, "kind": what the kernel returned}. Raises what the kernel
    raises, a broken hardware rule above all; TimeoutError if it does not end, and ValueError if the
    record is too long to be judged.
    """
    from utils.nki import simulator

    if not simulator.is_ours():
        raise RuntimeError(simulator.use())
    from utils.nki.simulator import launch, replay
    from utils.nki.simulator.arrays import Shape

    taken = [
        Shape(*argument) if isinstance(argument, tuple) else argument for argument in arguments
    ]
    with forbid(exercise_id, *OURS, *also_closed):
        program, stopped = limit.within(
            lambda: launch.run(kernel, tuple(taken), {}, values=False, target=target)
        )
    if stopped:
        raise TimeoutError(
            f"the check stopped the kernel after {limit.SECONDS:g} s: does each of its loops end?"
        )
    returned = program.results
    kind = "a tensor" if isinstance(returned, Shape) else describe(returned)
    text = pack(replay.to_plain(program))
    if len(text) > MOST_CHARS:
        count = len(program.instructions)
        raise ValueError(
            f"the kernel has {count:,} instructions, too many to be judged: let each of them work "
            "on a larger tile"
        )
    return {"program": text, "kind": kind}
