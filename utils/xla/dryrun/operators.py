"""What the dry run asks of a recorded operator: does it compute, does it read, is it refused?"""

import functools
from collections.abc import Iterable
from typing import Any

from utils.facts.records import content
from utils.xla.doctor.trace import Call, Spec

_MODEL = {"mm", "addmm", "bmm", "convolution_overrideable", "convolution", "embedding", "linear"}


def computed(calls: Iterable[Call]) -> bool:
    """Whether a model was used, or trained."""
    return any(call.name in _MODEL or call.backward for call in calls)


def trained(calls: Iterable[Call]) -> bool:
    """Whether weights were trained: gradients were computed, or an optimizer ran."""
    return any(call.backward or call.optimizer for call in calls)


def is_read(call: Call) -> bool:
    """Whether it brings a value from the device to the host."""
    moved = any(tensor.device == "xla" for tensor in call.tensors) and any(
        result.device == "cpu" for result in call.results
    )
    return bool(call.reads) or (moved and not call.fallbacks)


def refusals(call: Call) -> list[tuple[str, str, str]]:
    """What of an operator Neuron's published lists refuse: (what, error code or "", source)."""
    specs = [*call.tensors, *call.results]
    dtypes = {str(s.dtype).removeprefix("torch.") for s in specs if s.device == "xla"}
    listed = _published_accuracy()
    matches = [
        (f"dtype {name}: {entry['what']}", entry["code"], entry["source"])
        for name, entry in listed["dtypes"].items()
        if name in dtypes
    ]
    given = _dtype_of_first(call)
    for entry in listed["operators"]:
        if call.name in entry["names"] and (not entry["dtypes"] or given in entry["dtypes"]):
            of = f" of {given}" if entry["dtypes"] else ""
            matches.append((f"{call.name}{of}: {entry['what']}", entry["code"], entry["source"]))
    return matches


@functools.cache
def _published_accuracy() -> Any:
    # A script calls operators by the thousand.
    return content("neuron_operators.yaml")


def _dtype_of_first(call: Call) -> str:
    first = next((leaf for leaf in call.leaves if isinstance(leaf, Spec)), None)
    return str(first.dtype).removeprefix("torch.") if first else ""
