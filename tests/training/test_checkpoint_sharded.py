"""What four devices saved, two load: every element, wherever it lies now."""

import shutil
from pathlib import Path

import pytest

from utils.training import checkpoint
from utils.training.checkpoint import sharded
from utils.xla import fresh

QUIET = {"TF_CPP_MIN_LOG_LEVEL": "2"}
ROWS, COLUMNS = 12, 4


def state(devices: int, layout: str, fill: float | None = None):
    """A matrix sharded by rows or columns, or on all devices alike, a vector, and plain values."""
    import numpy as np
    import torch
    import torch_xla
    import torch_xla.distributed.spmd as xs
    import torch_xla.runtime as xr

    xr.use_spmd()
    mesh = xs.Mesh(np.arange(devices), (devices,), ("all",))
    matrix = torch.arange(float(ROWS * COLUMNS)).reshape(ROWS, COLUMNS)
    moment = matrix * 10
    vector = torch.arange(3.0)
    tensors = [matrix, moment, vector]
    if fill is not None:
        tensors = [torch.full_like(tensor, fill) for tensor in tensors]
    matrix, moment, vector = (tensor.to(torch_xla.device()) for tensor in tensors)
    place = {"rows": ("all", None), "columns": (None, "all"), "everywhere": (None, None)}[layout]
    for item in (matrix, moment):
        xs.mark_sharding(item, mesh, place)
    torch_xla.sync()
    step = 7 if fill is None else 0
    return {"model": {"matrix": matrix}, "optimizer": {"moment": moment}, "vector": vector,
            "step": step}  # fmt: skip


def save(folder: Path, devices: int, layout: str) -> None:
    sharded.save(folder, state(devices, layout))


def load(folder: Path, devices: int, layout: str):
    import torch_xla.distributed.spmd as xs

    result = sharded.load(folder, state(devices, layout, fill=-1.0))
    matrix = result["model"]["matrix"]
    shards = xs.wrap_if_sharded(matrix).local_shards if layout != "everywhere" else []
    return (
        matrix.cpu().tolist(),
        result["optimizer"]["moment"].cpu().tolist(),
        result["vector"].cpu().tolist(),
        result["step"],
        [tuple(shard.data.shape) for shard in shards],
    )


def on(devices: int, function, *arguments):
    environment = {"CPU_NUM_DEVICES": str(devices), **QUIET}
    return fresh.run(function, *arguments, environment=environment)


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("sharded") / "step-4"
    on(4, save, folder, 4, "rows")
    return folder


@pytest.mark.parametrize(
    ("devices", "layout", "shapes"),
    [
        (2, "rows", [(6, 4)] * 2),
        (4, "columns", [(12, 1)] * 4),
        (3, "rows", [(4, 4)] * 3),
        (2, "everywhere", []),
    ],
)
def test_every_element_arrives_on_other_devices(saved, devices, layout, shapes) -> None:
    matrix, moment, vector, step, result = on(devices, load, saved, devices, layout)
    whole = [[float(COLUMNS * row + column) for column in range(COLUMNS)] for row in range(ROWS)]
    assert matrix == whole
    assert moment == [[10 * item for item in row] for row in whole]
    assert sum(map(sum, matrix)) == sum(range(ROWS * COLUMNS))
    assert (vector, step, result) == ([0.0, 1.0, 2.0], 7, shapes)


def test_the_list_says_where_each_chunk_is(saved: Path) -> None:
    chunks = [item for item in sharded.layout(saved) if item.name == "model.matrix"]
    assert [(chunk.offsets, chunk.shape) for chunk in chunks] == [
        ((3 * i, 0), (3, 4)) for i in range(4)
    ]
    assert {item.name for item in sharded.layout(saved)} == {
        "model.matrix", "optimizer.moment", "vector",
    }  # fmt: skip
    ends = sorted((chunk.begin_bytes, chunk.begin_bytes + chunk.size_bytes) for chunk in chunks)
    assert all(end <= begin for (_, end), (begin, _) in zip(ends, ends[1:], strict=False))


def test_the_files_are_the_shards_their_list_and_the_checksums(saved: Path) -> None:
    names = sorted(path.name for path in saved.iterdir())
    assert names == [".metadata", "__0_0.distcp", "manifest.json"]
    assert [path.name for path in saved.parent.iterdir()] == [saved.name]
    sharded.check(saved)


@pytest.mark.parametrize(
    ("spoil", "kind", "says"),
    [
        (lambda stored: None, checkpoint.Torn, "missing"),
        (lambda stored: stored[:-1], checkpoint.Torn, "size"),
        (lambda stored: b"x" + stored[1:], checkpoint.Damaged, "changed"),
    ],
)
@pytest.mark.parametrize("name", [".metadata", "__0_0.distcp"])
def test_a_file_that_is_not_as_written_is_named(saved, tmp_path, spoil, kind, says, name) -> None:
    copy = shutil.copytree(saved, tmp_path / "copy")
    content = spoil((copy / name).read_bytes())
    (copy / name).unlink()
    if content is not None:
        (copy / name).write_bytes(content)
    with pytest.raises(kind, match=f"copy is not as it was written .{name}: {says}"):
        sharded.load(copy, {})


def test_a_folder_without_a_manifest_is_not_finished(tmp_path: Path) -> None:
    with pytest.raises(checkpoint.Torn, match="has no manifest, which is written last: load"):
        sharded.check(tmp_path)
    (tmp_path / "manifest.json").write_text("[")
    with pytest.raises(checkpoint.Damaged, match="a manifest that cannot be read"):
        sharded.check(tmp_path)
    with pytest.raises(FileNotFoundError, match="there is no folder .*none: give one"):
        sharded.load(tmp_path / "none", {})


def test_one_folder_does_not_replace_another(tmp_path: Path) -> None:
    with pytest.raises(FileExistsError, match="give each step a folder of its own"):
        sharded.save(tmp_path, {})
