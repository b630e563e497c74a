"""Whether a number is part of the graph of its operator: the operator is tried with another one."""

from typing import Any

import torch
from torch.utils._pytree import tree_flatten, tree_unflatten

from utils.xla.doctor.trace import Call, Spec, elements

_LARGEST = 1 << 24
"""Elements that a trial of an operator may upload at most."""


def is_baked(call: Call, place: int, value: Any) -> bool:
    """Whether the graph of `call` is another one when its leaf number `place` is `value`.

    The operator is recorded alone with either value, and the identities that torch_xla gives to the
    two graphs are compared. Nothing is compiled or run.

    Where that cannot be tried out, a number that torch_xla may upload counts as not baked, and
    everything else as baked.
    """
    other = (*call.leaves[:place], value, *call.leaves[place + 1 :])
    try:
        return _identity(call, call.leaves) != _identity(call, other)
    except Exception:  # whatever an operator may raise for arguments that do not go together
        return not call.scalars[place]


def _identity(call: Call, leaves: tuple[Any, ...]) -> bytes:
    import torch_xla

    if sum(elements(leaf) for leaf in leaves) > _LARGEST or call.executions or call.fallbacks:
        raise ValueError("not to be tried out")
    seed = torch_xla._XLAC._xla_get_rng_seed()
    try:
        # The seed is part of a random operator's graph: both trials start from the same.
        torch_xla._XLAC._xla_set_rng_seed(seed)
        with torch.no_grad():
            args, kwargs = tree_unflatten([_tensor(leaf) for leaf in leaves], call.tree)
            out = tree_flatten(call.target(*args, **kwargs))[0]
        results = [item for item in out if isinstance(item, torch.Tensor)]
        return torch_xla._XLAC._get_graph_hash(results)
    finally:
        torch_xla._XLAC._xla_set_rng_seed(seed)


def _tensor(leaf: Any) -> Any:
    import torch_xla

    if not isinstance(leaf, Spec):
        return leaf
    if leaf.value is not None:
        return torch.tensor(leaf.value, dtype=leaf.dtype)
    # With one dimension more it is an input; a zero without dimensions would be a constant.
    made = torch.zeros((1, *leaf.shape), dtype=leaf.dtype)
    return made.to(torch_xla.device())[0] if leaf.device == "xla" else made[0]
