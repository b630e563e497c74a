"""What annotations predict against what the partitioner did, in numbers; gradients against those
of one device.
"""

from functools import cache
from typing import Any

import pytest

from utils.xla import fresh, spmd
from utils.xla.spmd import layouts, predicted

BATCH, LENGTH, WIDTH, LAYERS, VOCABULARY = 8, 32, 32, 2, 96
MESHES = {
    "one": (1, 1),
    "dp": (4, 1),
    "tp": (1, 4),
    "2d": (2, 2),
    "fsdp": (4, 1),
    "copies 2d": (2, 2),
}


def step(layout: str, norms: str) -> dict[str, Any]:
    """One step of the tiny GPT, in this process."""
    import torch
    import torch_xla

    from utils.xla.networks import TinyGPT, next_token_loss

    torch.manual_seed(0)
    model = TinyGPT(VOCABULARY, WIDTH, layers=LAYERS, context=LENGTH)
    if norms == "written out":
        layouts.write_out_norms(model)
    ids, targets = torch.randint(0, VOCABULARY, (2, BATCH, LENGTH))
    device = torch_xla.device()
    model, ids, targets = model.to(device), ids.to(device), targets.to(device)
    data, parts = MESHES[layout]
    where = layouts.mesh(data, parts)
    specs = divide(layout, model)
    layouts.annotate(model, where, specs)
    if data > 1:
        layouts.split_batch(where, ids, targets)
    if layout == "fsdp":
        layouts.keep_batch_split(model, where)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with spmd.Compiled() as program:
        loss = next_token_loss(model(ids), targets)
        loss.backward()
        optimizer.step()
        torch_xla.sync()
    return {
        "loss": loss.item(),
        "totals": spmd.totals(program.collectives),
        "collectives": program.collectives,
        "memory": program.memory,
        "gradients": {name: p.grad.cpu() for name, p in model.named_parameters()},
        "shapes": {name: tuple(p.shape) for name, p in model.named_parameters()},
        "specs": specs,
    }


def divide(layout: str, model: Any) -> dict[str, layouts.Spec]:
    if layout in ("tp", "2d"):
        return layouts.tensor_parallel(model)
    return layouts.fully_sharded(model) if layout == "fsdp" else {}


@cache
def compiled(layout: str, norms: str = "written out") -> dict[str, Any]:
    data, parts = MESHES[layout]
    return spmd.run(step, layout, norms, devices=data * parts)


def expected(layout: str, **options: bool) -> dict[str, tuple[int, float]]:
    data, parts = MESHES[layout]
    result = compiled(layout)
    pairs = LAYERS if layout in ("tp", "2d") else 0
    axes = {"data": data, "model": parts}
    return predicted.collectives(
        predicted.Step(result["shapes"], result["specs"], axes, BATCH, LENGTH, WIDTH, pairs),
        **options,
    )


@pytest.mark.parametrize("layout", MESHES)
def test_the_partitioner_does_what_the_annotations_say(layout):
    result = compiled(layout)["totals"]
    assert {kind: result[kind] for kind in sorted(result)} == expected(layout)


def test_data_parallel_adds_up_every_gradient_and_three_scalars():
    result = compiled("dp")
    parameters = sum(4 * gradient.numel() for gradient in result["gradients"].values())
    assert result["totals"] == {"all-reduce": (29 + 3, parameters + 12)}


def test_the_groups_are_the_rows_and_columns_of_the_mesh():
    by_groups = {one.groups for one in compiled("2d")["collectives"]}
    assert by_groups == {((0, 1), (2, 3)), ((0, 2), (1, 3))}
    of_the_model = [c for c in compiled("2d")["collectives"] if c.groups == ((0, 1), (2, 3))]
    activation = 4 * BATCH // 2 * LENGTH * WIDTH
    assert [one.bytes for one in of_the_model] == [activation] * 2 * LAYERS


def test_layer_norm_of_torch_costs_a_gather_of_its_input_forward_and_back():
    result, without = compiled("dp", "of torch")["totals"], compiled("dp")["totals"]
    norms = 2 * LAYERS + 1
    assert result["all-reduce"] == without["all-reduce"]
    assert result["all-gather"] == (2 * norms, 2 * norms * 4 * BATCH * LENGTH * WIDTH)


def test_a_reduce_scatter_would_move_a_quarter_and_the_cpu_compiler_writes_none():
    one = expected("fsdp", reduce_scatter=True)
    parameters = sum(4 * gradient.numel() for gradient in compiled("fsdp")["gradients"].values())
    assert one["reduce-scatter"] == (29, parameters / 4) and one["all-reduce"] == (
        4,
        12 + 4 * LENGTH * WIDTH,
    )
    assert "reduce-scatter" not in compiled("fsdp")["totals"]


def test_what_is_divided_takes_a_share_of_the_memory_for_arguments():
    whole = compiled("one")["memory"]
    parameters = sum(4 * gradient.numel() for gradient in compiled("one")["gradients"].values())
    assert whole.donated_bytes == parameters
    assert compiled("dp")["memory"].donated_bytes == parameters
    assert compiled("fsdp")["memory"].donated_bytes == parameters / 4
    of_pairs = sum(
        4 * item.numel()
        for name, item in compiled("tp")["gradients"].items()
        if name in compiled("tp")["specs"]
    )
    assert compiled("tp")["memory"].donated_bytes == parameters - of_pairs * 3 / 4


@pytest.mark.parametrize("layout", [mesh for mesh in MESHES if mesh != "one"])
def test_gradients_are_those_of_one_device_within_the_derived_tolerance(layout):
    limit = predicted.tolerance(predicted.additions(WIDTH, LENGTH, BATCH, LAYERS, VOCABULARY))
    single = compiled("one")["gradients"]
    largest = max(item.abs().max().item() for item in single.values())
    off = {
        name: (single[name] - item).abs().max().item() / largest
        for name, item in compiled(layout)["gradients"].items()
    }
    assert max(off.values()) <= limit
    # Not by far: a tolerance that passes anything would be none. A gradient of a quarter of the
    # batch, or a sum where a mean belongs, is off by more than 1,000 times as much.
    assert limit < 1e-4


def annotates_a_name_that_is_not_there() -> None:
    import torch

    layouts.annotate(torch.nn.Linear(2, 2), layouts.mesh(1), {"wieght": ("data",)})


def test_a_name_that_the_model_lacks_is_an_error():
    with pytest.raises(fresh.Raised, match="KeyError: 'wieght'"):
        spmd.run(annotates_a_name_that_is_not_there, devices=1)
