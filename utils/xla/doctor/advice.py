"""The words of a diagnosis: what a cause is called, and one sentence on what to write instead."""

import re
from typing import Any

from utils.xla.doctor.trace import VIEWS, Call

DTYPE = "use one dtype in all steps: convert before the loop, not for some of them"
FIRST_STEP = "nothing: it happens once; run two steps before you measure"
BEFORE_A_STEP = (
    "nothing, if the later steps have the same: it happens once; else choose with torch.where, or"
    " accept one graph for each"
)
SUM = (
    "nothing, if it happens once; where the sum starts at a number again and again, collect the"
    " tensors in a list and add them up where they are read"
)
NUMBER_OR_TENSOR = "give a tensor in all steps, or a number in all"
_RANDOM = {"bernoulli", "bernoulli_", "native_dropout"}
_DROPOUT = (
    "nothing, if train() and eval() alternate: each has a graph; and keep p of a dropout above 0,"
    " because at 0 it records no operator"
)
_BRANCH = "compute both sides and choose with torch.where, or accept one graph for each side"
GRADIENTS = (
    "nothing, if it happens once, as where parameters are frozen; accept one graph for each, as"
    " where several steps add up their gradients"
)
OTHER_STEP = "nothing, if the program has several kinds of step: each has a graph of its own"
EQUAL = (
    "nothing, if one only passes the other, as a counter does; else choose numbers that do not"
    " coincide, or put one into a tensor of one element on the device"
)
KEPT = "keep the same results in every step: a result that is alive is an output of the graph"
MARKERS = "pass the same step markers in every step: each stretch between two is one graph"
_READ = "read after the step marker, or keep the value on the device as a tensor"
_READ_AGAIN = (
    "read once and use the copy on the host: one .cpu() of the whole tensor, or of torch.stack of"
    " several"
)
_ASSERT = (
    "drop the assert, check the values on the host before they are moved, or check them every N"
    " steps"
)
_CONDITION = "choose on the device with torch.where, or decide after the step marker, every N steps"
_CONDITIONS = (
    "join the conditions on the device, with & or torch.stack, and read once, after the step marker"
)
FALLBACK = "use an operator that XLA has, or move this work to the data pipeline on the host"
NOTHING_RAN = (
    "keep the result, as in `return loss`, and move the batch to the device: a result that nobody"
    " keeps is never computed"
)
UNKNOWN = "compare utils.xla.graph.hlo_text of the results of both steps"


_PAD = "pad to one length, or to a few bucket lengths, and mask what is padding"


def shape(rows: int, last_batch: bool | None) -> str:
    """For a tensor whose shape has changed; last_batch: of `rows` rows before, or None where that
    cannot be told.

    >>> shape(64, True)
    'pad the batch to 64 rows and mask the rest, or drop it: drop_last=True'
    """
    if last_batch is None:
        return f"if it is a loader's last batch, pad to {rows} rows or drop_last=True; else {_PAD}"
    if last_batch:
        return f"pad the batch to {rows} rows and mask the rest, or drop it: drop_last=True"
    return _PAD


_CONSTANTS = {
    "slice": "x.index_select(dim, start + torch.arange(length, device=x.device)) with start a"
    " tensor of one element; for a moving stop pad and mask",
    "select": "index with a tensor of one element: x[torch.tensor([i]).to(x.device)]",
    "select_backward": "index with a tensor of one element where the value comes from: "
    "x[torch.tensor([i]).to(x.device)]",
    "pow": "make the exponent a tensor of one element on the device",
    "roll": "x.index_select with the rolled positions as a tensor",
    "arange": "make the longest range once and mask it, or add its start as a one-element tensor",
    "native_batch_norm": "keep eps the same in all steps",
    "native_layer_norm": "keep eps the same in all steps",
}
_STOP = "take one length, or a few bucket lengths, and mask what is too much"
_SLICE = {2: "start", 3: "stop", 4: "step"}
_SPECIAL = (
    "0, 1 and -1 are constants of their own: keep this number away from them, or use a tensor of"
    " one element, torch.tensor([c]).to(device)"
)


def constant(call: Call, place: int, was: Any, now: Any) -> str:
    """For leaf number `place`, which is part of the graph of an operator, and has changed."""
    if (call.name, _SLICE.get(place)) == ("slice", "stop"):  # and the start has not
        return _STOP
    if call.name in _CONSTANTS:
        return _CONSTANTS[call.name]
    if any(isinstance(n, float) and abs(abs(n) - round(abs(n))) < 1e-7 for n in (was, now)):
        if any(abs(n) < 1.5 and abs(abs(n) - round(abs(n))) < 1e-7 for n in (was, now)):
            return _SPECIAL
    if not isinstance(was, float) and not isinstance(now, float):
        return "keep this number the same in all steps; if it is a size, pad and mask"
    return "keep this number the same in all steps, or use a tensor of one element on the device"


_DATA_DEPENDENT = {
    "select": _CONSTANTS["select"],
    "index_put": "x.masked_fill(mask, value) or torch.where(mask, value, x)",
    "index": "torch.where(mask, x, 0), which keeps the shape, and divide by mask.sum() for a mean",
    "slice": "keep the whole tensor and mask what is too much: torch.where(position < n, x, 0)",
    "repeat_interleave": "give output_size, or compute the positions on the host with the batch",
}


def data_dependent(operator: str) -> str:
    """For an operator whose result has a shape that its values decide."""
    return _DATA_DEPENDENT.get(
        operator, "torch.where with a mask, which keeps the shape, or do it on the host"
    )


def read(call: Call, *, again: bool = False) -> str:
    """For a value that the host reads; again: the line has read one before in the same step."""
    if call.where and re.search(r"\bassert\b", call.where.source):
        return _ASSERT
    if isinstance(call.value, bool):
        return _CONDITIONS if again else _CONDITION
    return _READ_AGAIN if again else _READ


_ARGUMENTS = {
    "select": "index",
    "select_backward": "index",
    "pow": "exponent",
    "to": "uploaded number",
    "tensor": "new tensor",
}


def argument(call: Call, place: int) -> str:
    """A name for leaf number `place` of the call."""
    if call.name == "slice":
        return f"{_SLICE.get(place, 'dimension')} of a slice"
    if isinstance(call.leaves[place], str):
        return f"an option of {call.name}"
    return _ARGUMENTS.get(call.name, f"a number of {call.name}")


def branch(calls: list[Call]) -> str:
    """For operators that ran in one step and not in the other."""
    return _DROPOUT if any(call.name in _RANDOM for call in calls) else _BRANCH


def changed_operators(was: list[Call], now: list[Call]) -> str:
    """Which operators ran in one step and not in the other."""
    if was and now:
        before, after = names(was), names(now)
        if before == after:  # such as gt.Scalar and gt.Tensor
            pair = zip(was, now, strict=False)
            before, after = next(
                ((a.operator, b.operator) for a, b in pair if a.operator != b.operator),
                (before, after),
            )
        return f"other operators: {before} became {after}"
    return f"operators added: {names(now)}" if now else f"operators missing: {names(was)}"


def inside(call: Call) -> str:
    """Which line of an optimizer, when the user's line is only its `step()`."""
    return f", in {call.library.rpartition('/')[2]}" if call.optimizer else ""


def names(calls: list[Call]) -> str:
    """Of operators, the first few."""
    names = list(dict.fromkeys(call.name for call in calls if call.name not in VIEWS))
    names = names or list(dict.fromkeys(call.name for call in calls))
    return ", ".join(names[:3]) + (" ..." if len(names) > 3 else "")
