"""A profile in some numbers, and what one can do next: for exercise 5 of lab 10. Judges nothing."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from utils.nki.simulator.profile import Profile
    from utils.nki.simulator.program import Program

ACTIONS = {
    "block": "keep what was loaded for more products: arguments come from HBM several times",
    "lengthen": "fewer and longer transfers: DMA begins transfers more than it moves bytes",
    "rotate": "a place of its own for the tile of each turn: instructions wait for one in use",
    "rebalance": "move work from the engine that is full to one that is not",
    "fuse": "keep on the chip what lies between two operators",
    "stop": "nothing: the kernel is near the bound of the machine",
}
WAITS = {"place": "in use by", "result": "result of", "turn": "its turn"}
"""What a step of the critical path waited for, and how the profile says it."""


def bytes_moved(program: "Program") -> dict[str, int]:
    """Bytes that transfers read of arguments, wrote to results, and moved of anything else in HBM,
    which is between two parts of the kernel: "arguments", "results", "between".
    """
    from utils.nki.simulator.enums import engine
    from utils.nki.simulator.operands import HBM
    from utils.nki.simulator.tensor import Tensor
    from utils.nki.simulator.uses import returned_tensors

    arguments = {id(input_) for input_ in program.inputs}
    results = {id(returned_tensor.storage) for returned_tensor in returned_tensors(program)}
    result = dict.fromkeys(("arguments", "results", "between"), 0)
    for item in (one for core in program.cores for one in core.instructions):
        if item.engine is not engine.dma:
            continue
        spec = item.checked.spec
        for names, kind, own in (
            (spec.inputs, "arguments", arguments),
            (spec.outputs, "results", results),
        ):
            values = [item.args[name] for name in names]
            lists = [v if isinstance(v, list | tuple) else (v,) for v in values]
            for view in (v for some in lists for v in some):
                if isinstance(view, Tensor) and view.buffer in HBM:
                    size = view.size * view.itemsize
                    result[kind if id(view.storage) in own else "between"] += size
    return result


def over_least(program: "Program") -> float:
    """Bytes moved to and from HBM over the sizes of the arguments and results. What goes to HBM and
    back in between is not needed.
    """
    from utils.nki.simulator.uses import returned_tensors

    least = sum(input_.size_bytes for input_ in program.inputs)
    least += sum(
        returned_tensor.size * returned_tensor.itemsize
        for returned_tensor in returned_tensors(program)
    )
    return sum(bytes_moved(program).values()) / least


def wait_shares(profile: "Profile") -> dict[str, float]:
    """Shares of the time by what the critical path waited for: see `WAITS`."""
    spent = dict.fromkeys(WAITS, 0.0)
    for step in profile.critical_path:
        for kind, words in WAITS.items():
            if words in step.waited_for:
                spent[kind] += step.seconds / profile.seconds
    return spent


def summary(profile: "Profile") -> dict[str, float]:
    """The numbers of a profile that say what to do next.

    tensor, vector, scalar, gpsimd, dma: share of the time for which the engine is busy, DMA also
    while it only begins transfers. moving: for which DMA moves bytes. mfu: of the Tensor Engine's
    peak. argument_loads: bytes read of the arguments over their size. between: share of all bytes
    that are neither of arguments nor of results. bytes_per_transfer. place, result, turn: share of
    the time for which the critical path waits for a place in use, for the result of another
    instruction, for its turn on the engine.
    """
    program, result = profile.program, bytes_moved(profile.program)
    transfers = sum(count for (_, name), count in profile.counts.items() if name.startswith("dma_"))
    total = sum(result.values())
    numbers = dict(profile.utilisation) | {
        "moving": profile.moving,
        "mfu": profile.mfu,
        "argument_loads": result["arguments"] / sum(input_.size_bytes for input_ in program.inputs),
        "between": result["between"] / total,
        "bytes_per_transfer": total / transfers,
        **wait_shares(profile),
    }
    return {name: round(float(number), 3) for name, number in numbers.items()}
