"""What else a program remembers: the random states of Python, NumPy, torch and the XLA device, and
copies on the host that later steps do not change."""

import random
from typing import Any

KINDS = ("python", "numpy", "torch", "device")


def on_host(state: Any) -> Any:
    """The same nest of dicts, lists and tuples with every tensor as a copy of its own on the CPU.

    Without the copy an optimizer's next step would change what is to be saved.
    """
    import torch

    if isinstance(state, torch.Tensor):
        return state.detach().to("cpu", copy=True)
    if isinstance(state, dict):
        return {key: on_host(value) for key, value in state.items()}
    if isinstance(state, tuple | list):
        return type(state)(map(on_host, state))
    return state


def random_states() -> dict[str, Any]:
    """The random states of this process, as plain values and tensors.

    That of the XLA device is there once torch_xla has been imported.
    """
    import sys

    import numpy as np
    import torch

    name, keys, place, has_gauss, gauss = np.random.get_state()
    states = {
        "python": random.getstate(),
        "numpy": (name, torch.from_numpy(keys.astype(np.int64)), place, has_gauss, gauss),
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
    import numpy as np
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
