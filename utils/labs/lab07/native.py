"""A training step divided by FSDP2 and tensor parallelism: what the answer did on each of four
gloo ranks, beside one process that has all rows. Judges nothing.
"""

import math
import os
from typing import TYPE_CHECKING, Any

from utils.labs import Answer, Facts
from utils.labs.plain import describe, number
from utils.training.native import job, ranks

if TYPE_CHECKING:
    from torch import Tensor

MESH = (2, 2)
"""Along "data" and along "model"."""


def train_steps(answer: Answer, case: Facts) -> Facts:
    """What the answer did on each rank, or the error of the first rank that failed. Runs in a
    process that has used no thread of torch.
    """
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"  # a sandbox has no other interface, and no names
    try:
        return {"ranks": ranks.group(_on_rank, math.prod(MESH), (answer, case)), "error": ""}
    except RuntimeError as error:
        if "NotImplementedError: " in str(error):
            raise NotImplementedError(str(error).partition("NotImplementedError: ")[2]) from None
        return {"ranks": [], "error": str(error)[:300]}


def _on_rank(answer: Answer, case: Facts) -> Facts:
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh

    mesh = init_device_mesh("cpu", MESH, mesh_dim_names=("data", "model"))
    model, rows = build(case)
    x, y = rows[mesh.get_local_rank("data")]
    with job.counting() as counted:
        response = answer(model, mesh, x, y)
    pair = response if isinstance(response, list | tuple) and len(response) == 2 else (None, None)
    gradients = [one.grad for one in model.parameters()]
    own = [_local(one).double().square().sum().item() for one in gradients if one is not None]
    return {
        "kind": describe(response),
        "returned": [_plain(value) for value in pair],
        "scatters": sum(kind == "reduce-scatter" for kind, _ in counted.events),
        "held": sum(_local(one).numel() for one in model.parameters()),
        "axes": list(
            getattr(getattr(model.stem.weight, "device_mesh", None), "mesh_dim_names", ())
        ),
        "gradients": _whole(gradients, dist.get_rank() == 0),
        "own_norm": math.sqrt(sum(own)),
    }


def _plain(value: Any) -> Any:
    import torch

    return number(float(value)) if isinstance(value, torch.Tensor) else number(value)


def _local(value: Any) -> Any:
    return value.to_local() if hasattr(value, "to_local") else value


def _axes(parameter: Any) -> list[str]:
    """The axes of the mesh that divide a parameter; none if it is no DTensor."""
    mesh = getattr(parameter, "device_mesh", None)
    return [] if mesh is None else list(mesh.mesh_dim_names)


def _whole(gradients: list[Any], kept: bool) -> list[float | str] | None:
    """All gradients as one list, where they are kept: once is enough for a report. None if a
    parameter has none. Every rank takes part.
    """
    if any(one is None for one in gradients):
        return None
    parts = [one.full_tensor() if hasattr(one, "full_tensor") else one for one in gradients]
    if not kept:
        return None
    flat = [item for one in parts for item in one.detach().double().flatten().tolist()]
    return [number(float(f"{item:.8g}")) for item in flat]


def build(case: Facts) -> "tuple[job.Network, list[tuple[Tensor, Tensor]]]":
    """The whole model, and the rows [rows, features], [rows, outputs] of each data rank."""
    import torch

    sizes = job.Job(features=6, width=case["width"], hidden=2 * case["width"],
                    blocks=case["blocks"], outputs=4, seed=case["seed"])  # fmt: skip
    generator = torch.Generator().manual_seed(case["seed"] + 1)
    rows = [
        (
            torch.randn(count, sizes.features, generator=generator) * (1 + place),
            torch.randn(count, sizes.outputs, generator=generator),
        )
        for place, count in enumerate(case["rows"])
    ]
    return job.network(sizes), rows
