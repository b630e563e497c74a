"""What else a program remembers: the random states of Python, NumPy, torch and the XLA device, and
copies on the host that later steps do not change.

torch and torch_xla are imported late: they take seconds to load.
"""

import random
import sys
from collections import Counter, OrderedDict
from typing import Any

import numpy as np

PLAIN = (int, float, bool, str, bytes, type(None))
KINDS = ("python", "numpy", "torch", "device")


def on_host(state: Any, where: str = "state") -> Any:
    """The same nest of dicts, lists and tuples with every tensor as a copy of its own on the CPU.

    Without the copy an optimizer's next step would change what is to be saved.

    Raises: TypeError for what could be written and not be read again with weights_only, such as an
    array of NumPy: better now than after the failure.

    >>> on_host({"rates": [0.1, print]})  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    TypeError: state['rates'][1] is a builtin_function_or_method: a checkpoint holds ...
    """
    import torch

    if isinstance(state, torch.Tensor):
        return state.detach().to("cpu", copy=True)
    if type(state) in (dict, OrderedDict, Counter):
        return {
            on_host(key, f"a key of {where}"): on_host(value, f"{where}[{key!r}]")
            for key, value in state.items()
        }
    if type(state) in (list, tuple):
        return type(state)(on_host(item, f"{where}[{i}]") for i, item in enumerate(state))
    if type(state) in PLAIN:
        return state
    raise TypeError(
        f"{where} is a {type(state).__name__}: a checkpoint holds tensors, numbers, texts, dicts,"
        " lists and tuples"
    )


def random_states() -> dict[str, Any]:
    """The random states of this process, as plain values and tensors.

    That of the XLA device is there once torch_xla has been imported.
    """
    import torch

    numpy: Any = np.random.get_state()
    name, keys, *rest = numpy
    states = {
        "python": random.getstate(),
        "numpy": (name, torch.from_numpy(keys.astype(np.int64)), *rest),
        "torch": torch.get_rng_state(),
    }
    if "torch_xla" in sys.modules:
        import torch_xla.core.xla_model as xm

        states["device"] = xm.get_rng_state()
    return states


def set_random_states(states: dict[str, Any]) -> None:
    """Put back what `random_states` returned, or a part of it.

    The state of the device must be set after the last `torch_xla.sync()` before the loop, because
    every sync advances it: call this last.
    """
    import torch

    unknown = sorted(set(states) - set(KINDS))
    if unknown:
        raise ValueError(f"{unknown} is no random state: known are {', '.join(KINDS)}")
    if "python" in states:
        random.setstate(_tuples(states["python"]))
    if "numpy" in states:
        name, keys, *rest = states["numpy"]
        np.random.set_state((name, keys.numpy().astype(np.uint32), *rest))
    if "torch" in states:
        torch.set_rng_state(states["torch"])
    if "device" in states:
        import torch_xla.core.xla_model as xm

        xm.set_rng_state(states["device"])


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, tuple | list) else value
