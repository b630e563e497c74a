"""One training job, divided as a layout says; counted on each rank and compared with one process.

Written as for any device: `device` and `backend` are all that a Neuron instance changes.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from utils.training.native.predicted import Layout

if TYPE_CHECKING:
    from torch.distributed.device_mesh import DeviceMesh


@dataclass(frozen=True)
class Job:
    """Sizes of the model, the batch and the run; float32, with SGD.

    rows: of the whole batch, the same for every layout. bucket_bytes: of DDP. ahead: for how many
    blocks FSDP2 gathers early in the forward pass, beyond what it does by itself.
    """

    features: int = 24
    width: int = 32
    hidden: int = 64
    blocks: int = 3
    outputs: int = 8
    rows: int = 32
    steps: int = 3
    rate: float = 0.1
    seed: int = 0
    bucket_bytes: int = 16 * 1024
    ahead: int = 0


class Block(nn.Module):
    """[rows, width] to the same: a perceptron beside its input."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(width, hidden), nn.Linear(hidden, width)

    def forward(self, x: Tensor) -> Tensor:
        """[rows, width] to [rows, width]."""
        return x + self.down(torch.relu(self.up(x)))


class Network(nn.Module):
    """[rows, features] to [rows, outputs]: a stem, blocks, a head."""

    def __init__(self, job: Job) -> None:
        super().__init__()
        self.stem = nn.Linear(job.features, job.width)
        self.blocks = nn.ModuleList(Block(job.width, job.hidden) for _ in range(job.blocks))
        self.head = nn.Linear(job.width, job.outputs)

    def forward(self, x: Tensor) -> Tensor:
        """[rows, features] to [rows, outputs]."""
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def network(job: Job) -> Network:
    """On the CPU, so that the same seed gives the same weights on every rank and every device."""
    torch.manual_seed(job.seed)
    return Network(job)


def shapes(job: Job) -> dict[str, tuple[int, ...]]:
    """Of the parameters, by name, in the order of the model."""
    with torch.device("meta"):
        return {name: tuple(one.shape) for name, one in Network(job).named_parameters()}


def batches(job: Job) -> list[tuple[Tensor, Tensor]]:
    """Inputs [rows, features] and targets [rows, outputs] of each step."""
    order = torch.Generator().manual_seed(job.seed + 1)
    return [
        (
            torch.randn(job.rows, job.features, generator=order),
            torch.randn(job.rows, job.outputs, generator=order),
        )
        for _ in range(job.steps)
    ]


def mesh_of(where: Layout, device: str = "cpu") -> "DeviceMesh":
    """The ranks as a mesh with the axes "data" and "model"."""
    from torch.distributed.device_mesh import init_device_mesh

    return init_device_mesh(device, (where.data, where.model), mesh_dim_names=("data", "model"))


def divide(model: Network, where: Layout, job: Job, device: str = "cpu") -> nn.Module:
    """The model, divided over all ranks of the process group.

    Tensor parallelism comes before FSDP2, and FSDP2 wraps the blocks before the root: what is
    wrapped later takes the parameters that are left.
    """
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor.parallel import (
        ColwiseParallel,
        RowwiseParallel,
        parallelize_module,
    )
    from torch.nn.parallel import DistributedDataParallel

    model = model.to(device)
    if where.parallelism == "ddp":
        return DistributedDataParallel(model, bucket_cap_mb=job.bucket_bytes / 2**20)
    mesh = mesh_of(where, device)
    if where.uses("model"):
        plan = {"up": ColwiseParallel(), "down": RowwiseParallel()}
        for block in model.blocks:
            parallelize_module(block, mesh["model"], plan)
    if where.uses("data"):
        units = [fully_shard(block, mesh=mesh["data"]) for block in model.blocks]
        fully_shard(model, mesh=mesh["data"])
        for place, unit in enumerate(units if job.ahead else ()):
            unit.set_modules_to_forward_prefetch(units[place + 1 : place + 1 + job.ahead])
    return model


def counting() -> Any:
    """A `CommDebugMode` that keeps the order as well: `.events` holds (kind, bytes) of each
    collective and what else is written there.
    """
    from torch.distributed.tensor.debug import CommDebugMode

    class Counting(CommDebugMode):
        """Counts as its parent does; `bytes` are those of the result on this rank."""

        def __init__(self) -> None:
            super().__init__()
            self.events: list[tuple[str, int]] = []

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None):
            before = self.get_total_counts()
            result = super().__torch_dispatch__(func, types, args, kwargs)
            if self.get_total_counts() > before:
                self.events.append((_kind(func), _bytes(args[0])))
            return result

    return Counting()


def _kind(func: Any) -> str:
    name = func._overloadpacket.__name__.replace("_", "")
    for kind in ("all-reduce", "all-gather", "reduce-scatter", "broadcast"):
        if kind.replace("-", "") in name:
            return kind
    return name


def _bytes(first: Any) -> int:
    """c10d's operators name the result first, functional ones (all-reduce) what is of its size."""
    tensors = first if isinstance(first, list | tuple) else [first]
    return sum(_bytes(one) if isinstance(one, list | tuple) else one.nbytes for one in tensors)


def totals(events: list[tuple[str, int]]) -> dict[str, tuple[int, int]]:
    """Kind -> (number, bytes), of collectives alone.

    >>> totals([("forward blocks.0", 0), ("all-gather", 8), ("all-gather", 4)])
    {'all-gather': (2, 12)}
    """
    results: dict[str, tuple[int, int]] = {}
    for kind, size in events:
        if " " not in kind:
            number, sum_ = results.get(kind, (0, 0))
            results[kind] = number + 1, sum_ + size
    return dict(sorted(results.items()))


@dataclass(frozen=True)
class Trained:
    """What a rank reports of a run.

    first, last: kind -> (number, bytes) of collectives in the first and in the last step.
    events: of the last step, in order: (kind, bytes), and ("forward blocks.0", 0) and the like.
    buckets: bytes of DDP's buckets in the last step, as its own hook sees them.
    held_bytes: parameters on this rank between two steps.
    off: the largest absolute difference from one process that trains on the whole batch, of
        "outputs" and "gradients" of the last step, and "updates": weights after it minus the start.
    """

    rank: int
    first: dict[str, tuple[int, int]]
    last: dict[str, tuple[int, int]]
    events: list[tuple[str, int]]
    buckets: list[int]
    held_bytes: int
    off: dict[str, float]


def train(where: Layout, job: Job, device: str = "cpu") -> Trained:
    """Train on this rank; the process group has to be there, with the ranks of the layout.

    Raises: ValueError for another number of ranks, and for rows that they cannot share equally.
    """
    import torch.distributed as dist

    if dist.get_world_size() != where.ranks:
        raise ValueError(
            f"{where} needs {where.ranks} ranks and the launcher started {dist.get_world_size()}"
        )
    if job.rows % where.data:
        raise ValueError(f"{job.rows} rows over {where.data} data ranks: give a multiple")
    torch.set_num_threads(1)
    share = job.rows // where.data
    place = dist.get_rank() // where.model  # along "data", of a mesh that is filled by rows
    mine = slice(place * share, (place + 1) * share)
    plain = network(job)
    start = _whole(plain)
    expected = _steps(plain, plain, job, "cpu", slice(None))
    model = divide(network(job), where, job, device)
    inner = model.module if where.parallelism == "ddp" else model
    sent: list[int] = []
    if where.parallelism == "ddp":
        _observe_buckets(model, sent)
    result = _steps(model, inner, job, device, mine, sent)
    off = {
        "outputs": _off(result["outputs"], expected["outputs"][mine]),
        "gradients": _farthest(result["gradients"], expected["gradients"]),
        "updates": _farthest(
            {name: value - start[name] for name, value in result["weights"].items()},
            {name: value - start[name] for name, value in expected["weights"].items()},
        ),
    }
    return Trained(
        dist.get_rank(),
        totals(result["first"]),
        totals(result["events"]),
        result["events"],
        sent,
        sum(_local(one).nbytes for one in inner.parameters()),
        off,
    )


def _steps(
    model: nn.Module, inner: nn.Module, job: Job, device: str, mine: slice, sent: Any = None
) -> dict[str, Any]:
    """The steps of a run: the last one's outputs, gradients, weights and events."""
    optimizer = torch.optim.SGD(inner.parameters(), lr=job.rate)
    first: list[tuple[str, int]] = []
    for step, (inputs, targets) in enumerate(batches(job)):
        inputs, targets = inputs[mine].to(device), targets[mine].to(device)
        if sent is not None:
            sent.clear()
        optimizer.zero_grad()
        with counting() as counted:
            hooks = _note(inner, counted.events) if step == job.steps - 1 else []
            outputs = model(inputs)
            nn.functional.mse_loss(outputs, targets).backward()
        for hook in hooks:
            hook.remove()
        optimizer.step()
        first = first or counted.events
    return {
        "outputs": outputs.detach().cpu(),
        "gradients": _whole(inner, "grad"),
        "weights": _whole(inner),
        "first": first,
        "events": counted.events,
    }


def _note(model: nn.Module, events: list[tuple[str, int]]) -> list[Any]:
    """Hooks that write when the computation of each block begins, forward and backward."""

    def note(text: str) -> Callable[..., None]:
        return lambda *_: events.append((text, 0))

    hooks = []
    for name, block in model.blocks.named_children():  # type: ignore[union-attr, operator]
        # The first product of a block forward, and the last one's gradient, come first.
        hooks.append(block.up.register_forward_pre_hook(note(f"forward {name}")))
        hooks.append(block.down.register_full_backward_pre_hook(note(f"backward {name}")))
    return hooks


def _observe_buckets(model: Any, sent: list[int]) -> None:
    import torch.distributed as dist
    from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook

    # torch reads these two annotations.
    def observed(group: Any, bucket: dist.GradBucket) -> torch.futures.Future[Tensor]:
        sent.append(bucket.buffer().nbytes)
        return allreduce_hook(group, bucket)

    model.register_comm_hook(None, observed)


def _local(tensor: Any) -> Tensor:
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor


def _whole(model: nn.Module, what: str = "data") -> dict[str, Tensor]:
    """Parameters or their gradients, gathered from all ranks, copies on the CPU, by name."""
    results = {}
    for name, one in model.named_parameters():
        value: Any = one.grad if what == "grad" else one.detach()
        results[name] = (value.full_tensor() if hasattr(value, "full_tensor") else value).cpu()
    return {name: value.clone() for name, value in results.items()}


def _off(some: Tensor, other: Tensor) -> float:
    return (some - other).abs().max().item()


def _farthest(some: Mapping[str, Tensor], others: Mapping[str, Tensor]) -> float:
    return max(_off(some[name], other) for name, other in others.items())
