"""Whether a tensor that has become shorter is the last batch of a loader."""

import math
from collections.abc import Iterator, Sequence

from utils.xla.doctor.trace import Spec, Trace, uploaded


def is_last_batch(was: Spec, now: Spec, history: Sequence[Trace], new: Trace) -> bool | None:
    """None where it cannot be told. history: the earlier runs, of which `was` is from one.

    What comes from the host shows it. A batch has the same rows in several runs, and the largest
    tensor of a run is as long as it. Boxes and sentences change their length in every run, or have
    several lengths in one.
    """
    if was.shape[1:] != now.shape[1:] or not was.shape or now.shape[0] >= was.shape[0]:
        return False
    runs = [[spec.shape for spec in _from_host(trace)] for trace in history]
    here = [spec.shape for spec in _from_host(new)]
    steady = [run for run in runs if was.shape in run]
    if not steady or now.shape not in here:
        return None
    tail = was.shape[1:]
    before = {shape[0] for run in runs for shape in run if shape[1:] == tail}
    after = {shape[0] for shape in here if shape[1:] == tail}
    if before != {was.shape[0]} or not after <= {was.shape[0], now.shape[0]}:
        return False
    largest = max(here, key=math.prod)
    # A step may take several batches, of which only the last is short.
    if max(steady[-1], key=math.prod)[0] != was.shape[0] or (
        largest[0] != now.shape[0] and largest[1:] != tail
    ):
        return False
    return True if len(steady) > 1 else None


def _from_host(trace: Trace) -> Iterator[Spec]:
    specs = [leaf for _, leaf in trace.inputs if isinstance(leaf, Spec)]
    specs += [leaf for call in trace.calls if uploaded(call) for leaf in call.tensors]
    return (leaf for leaf in specs if leaf.shape)
