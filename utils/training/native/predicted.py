"""What a training step of a layout sends, from the shapes of the parameters and the mesh alone.

Bytes are those of the result on one rank: a gathered parameter counts whole, a reduce-scatter
counts the part that stays.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

PARALLELISMS = ("ddp", "fsdp", "tp", "fsdp+tp")
BYTES = 4
"""Of a float32 number."""

BLOCKS = "blocks"
"""Names of parameters begin with this and a number in each block; the others belong to the root."""

Shapes = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class Layout:
    """A way to divide a job over ranks, which form a mesh of data x model.

    parallelism: one of `PARALLELISMS`. data: ranks that share the batch. model: ranks that share
    each block.

    Raises: ValueError for another name, or a mesh that does not fit it.
    """

    parallelism: str
    data: int = 1
    model: int = 1

    def __post_init__(self) -> None:
        if self.parallelism not in PARALLELISMS:
            raise ValueError(
                f"parallelism {self.parallelism!r} is unknown: use {', '.join(PARALLELISMS)}"
            )
        for axis in ("data", "model"):
            size, used = getattr(self, axis), self.uses(axis)
            if size < 1 or (used and size < 2) or (not used and size != 1):
                allowed = "at least 2" if used else "1"
                raise ValueError(f"{self.parallelism} on {axis} {size}: it has to be {allowed}")

    def uses(self, axis: str) -> bool:
        """Whether the parallelism divides anything over "data" or over "model"."""
        return ("tp" in self.parallelism) if axis == "model" else self.parallelism != "tp"

    @property
    def ranks(self) -> int:
        """Of the whole mesh."""
        return self.data * self.model

    def __str__(self) -> str:
        return f"{self.parallelism} {self.data} x {self.model}"


def layout(parallelism: str, ranks: int) -> Layout:
    """The layout of a parallelism on that many ranks; both axes are used in pairs of model ranks.

    >>> print(layout("fsdp+tp", 4))
    fsdp+tp 2 x 2
    """
    if parallelism == "tp":
        return Layout(parallelism, 1, ranks)
    if parallelism == "fsdp+tp":
        if ranks % 2:
            raise ValueError(f"fsdp+tp on {ranks} ranks: give an even number, from 4 on")
        return Layout(parallelism, ranks // 2, 2)
    return Layout(parallelism, ranks, 1)


def collectives(
    shapes: Shapes, where: Layout, rows: int, bucket_bytes: int
) -> dict[str, tuple[int, int]]:
    """Kind -> (number, bytes) of one step on one rank, from the third step on.

    shapes: of the parameters, by name, in the order of the model; a block has `up` [hidden, width]
        and `down` [width, hidden], both with a bias.
    rows: of the whole batch. bucket_bytes: DDP closes a bucket when it holds that many.

    DDP all-reduces each bucket of gradients; in its first step all are in one bucket, and in the
    second the ranks also agree on the order that they saw. FSDP2 gathers each unit before it is
    used forward, and backward again, except the root, which stays gathered; it reduce-scatters each
    unit's gradients; rows of a parameter are filled up to a multiple of the ranks. Tensor
    parallelism all-reduces the output of each block forward and the gradient of its input backward.

    >>> sizes = {"stem.weight": (8, 4), "blocks.0.up.weight": (6, 8)}
    >>> collectives(sizes, Layout("fsdp", 4), rows=8, bucket_bytes=1)
    {'all-gather': (3, 640), 'reduce-scatter': (2, 96)}

    Raises: ValueError if rows or a divided parameter cannot be divided equally.
    """
    if rows % where.data:
        raise ValueError(f"{rows} rows over {where.data} data ranks: give a multiple")
    if where.parallelism == "ddp":
        sizes = buckets(shapes, bucket_bytes)
        return {"all-reduce": (len(sizes), sum(sizes))}
    local = {name: _over_model(name, shape, where.model) for name, shape in shapes.items()}
    units = _units(local)
    results: dict[str, tuple[int, int]] = {}
    if where.uses("data"):
        whole = {
            unit: sum(_fill(shape, where.data) for shape in own) for unit, own in units.items()
        }
        again = {unit: size for unit, size in whole.items() if unit}
        gathers = [*whole.values(), *again.values()]
        results["all-gather"] = len(gathers), sum(gathers)
        results["reduce-scatter"] = len(whole), sum(whole.values()) // where.data
    if where.uses("model"):
        widths = [shape[0] for name, shape in shapes.items() if name.endswith(".down.weight")]
        sent = 2 * sum(BYTES * rows // where.data * width for width in widths)
        results["all-reduce"] = 2 * len(widths), sent
    return dict(sorted(results.items()))


def buckets(shapes: Shapes, bucket_bytes: int) -> list[int]:
    """Bytes of DDP's buckets, in the order in which they are sent: gradients come in about the
    opposite order of the parameters, and a bucket is closed as soon as it holds `bucket_bytes`.

    >>> buckets({"a": (100,), "b": (10,), "c": (30,)}, 160)
    [160, 400]
    """
    results: list[int] = []
    held = 0
    for shape in reversed(list(shapes.values())):
        held += BYTES * math.prod(shape)
        if held >= bucket_bytes:
            results.append(held)
            held = 0
    return results + [held] if held else results


def held_bytes(shapes: Shapes, where: Layout) -> int:
    """Bytes of the parameters that rank 0 keeps between two steps. Where rows do not divide, ranks
    after it have less.
    """
    local = [_over_model(name, shape, where.model) for name, shape in shapes.items()]
    if where.parallelism == "ddp" or not where.uses("data"):
        return sum(BYTES * math.prod(shape) for shape in local)
    return sum(_fill(shape, where.data) // where.data for shape in local)


def _over_model(name: str, shape: tuple[int, ...], ranks: int) -> tuple[int, ...]:
    """The part of one model rank: `up` by rows of torch's [out, in], `down` by columns."""
    axis = {"up.weight": 0, "up.bias": 0, "down.weight": 1}.get(".".join(name.split(".")[-2:]))
    if axis is None or ranks == 1:
        return shape
    if shape[axis] % ranks:
        raise ValueError(f"{name} {shape} over {ranks} model ranks: axis {axis} has to divide")
    return (*shape[:axis], shape[axis] // ranks, *shape[axis + 1 :])


def _units(shapes: Shapes) -> dict[str, list[tuple[int, ...]]]:
    """What FSDP gathers at once: each block, and as "" the rest."""
    units: dict[str, list[tuple[int, ...]]] = {}
    for name, shape in shapes.items():
        first, second = name.split(".")[:2]
        units.setdefault(f"{first}.{second}" if first == BLOCKS else "", []).append(shape)
    return units


def _fill(shape: Sequence[int], ranks: int) -> int:
    """Bytes of a parameter whose first axis is filled up to a multiple of the ranks."""
    return BYTES * -(-shape[0] // ranks) * ranks * math.prod(shape[1:])
