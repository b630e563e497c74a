"""Real shards to try an answer of exercise 4 on: what XLA puts on four devices and on two."""

from collections.abc import Callable
from typing import Any

from utils.xla import fresh

SHAPES = {"rows": (10, 6), "columns": (5, 9), "copies": (4, 3)}
CUTS: dict[int, dict[str, Any]] = {
    4: {"rows": ("devices", None), "columns": (None, "devices"), "copies": (None, None)},
    2: {"rows": (None, "devices"), "columns": (None, "devices"), "copies": (None, None)},
}
"""How the tensors are cut on so many devices: the first on another axis each time."""


def shards(devices: int) -> dict[str, list[dict[str, Any]]]:
    """What lies on each device: of each tensor the start, the shape and the values.

    To be run in a process that has so many devices and has used none of them.
    """
    import numpy as np
    import torch
    import torch_xla
    import torch_xla.distributed.spmd as xs
    import torch_xla.runtime as xr

    xr.use_spmd()
    mesh = xs.Mesh(np.arange(devices), (devices,), ("devices",))
    results = {}
    for number, (name, shape) in enumerate(SHAPES.items()):
        values = torch.arange(float(np.prod(shape))).reshape(shape) + 100 * number
        tensor = xs.mark_sharding(values.to(torch_xla.device()), mesh, CUTS[devices][name])
        torch_xla.sync()
        results[name] = [_plain(local_shard, values.shape) for local_shard in tensor.local_shards]
    return results


def _plain(shard: Any, shape: Any) -> dict[str, Any]:
    values = shard.unpadded_data.numpy()
    whole = not isinstance(shard.indices, list)  # an Ellipsis: the device holds all of it
    start = [0] * len(shape) if whole else [index.start for index in shard.indices]
    return {"start": start, "shape": list(values.shape), "values": values}


def compare(reshard: Callable[..., Any]) -> dict[str, bool]:
    """Whether `reshard` makes, of what four devices hold, what two devices hold, by tensor."""
    four, two = (
        fresh.run(
            shards, count, environment={"CPU_NUM_DEVICES": str(count), "TF_CPP_MIN_LOG_LEVEL": "2"}
        )
        for count in (4, 2)
    )
    index = {
        name: {
            "shape": list(SHAPES[name]),
            "dtype": str(pieces[0]["values"].dtype),
            "pieces": [
                {"file": file, "start": item["start"], "shape": item["shape"]}
                for file, item in enumerate(pieces)
            ],
        }
        for name, pieces in four.items()
    }
    equal = dict.fromkeys(SHAPES, True)
    for rank in range(2):
        wanted = {
            name: {"start": item[rank]["start"], "shape": item[rank]["shape"]}
            for name, item in two.items()
        }
        made = reshard(index, wanted, lambda file, name: four[name][file]["values"])
        for name in SHAPES:
            equal[name] &= made[name].tolist() == two[name][rank]["values"].tolist()
    return equal
