"""The planner's memory against what the compiler of this machine places, on four layouts."""

import pytest

from utils import spmd
from utils.planner.compiled import compiled_step, tiny_gpt

# The speed of the code is not looked at; what is placed in memory is decided before it is made.
FLAGS = "--xla_backend_optimization_level=0"
SMALL = {"vocabulary": 512, "width": 64, "heads": 4, "layers": 2, "context": 64}
CASES = [
    ("one", 1, {"width": 128, "heads": 8}, 8),
    ("data", 4, {}, 8),
    ("fsdp", 4, {"width": 128, "context": 128}, 16),
    ("tensor", 4, {"vocabulary": 1024, "width": 128}, 16),
]


def measured(layout: str, devices: int, sizes: dict[str, int], batch: int) -> spmd.Memory:
    """The second step of a TinyGPT, when the moments of AdamW exist."""
    import numpy as np
    import torch
    import torch_xla
    import torch_xla.distributed.spmd as xs
    from torch_xla.distributed.spmd.xla_sharding import mark_sharding_with_gradients

    from utils.networks import TinyGPT, next_token_loss

    torch.set_num_threads(1)
    device = torch_xla.device()
    model = TinyGPT(**sizes).to(device)
    ids = torch.randint(0, sizes["vocabulary"], (batch, sizes["context"])).to(device)
    mesh = xs.Mesh(np.arange(devices), (devices,), ("x",))
    if layout in ("data", "fsdp"):
        xs.mark_sharding(ids, mesh, ("x", None))
    for name, weight in model.named_parameters():
        first = ("x",) + (None,) * (weight.dim() - 1)
        if layout == "fsdp" or (
            layout == "tensor" and any(part in name for part in ("qkv", "up", "tokens", "head"))
        ):
            xs.mark_sharding(weight, mesh, first)
        elif layout == "tensor" and name.endswith(("project.weight", "down.weight")):
            xs.mark_sharding(weight, mesh, (None, "x"))
    if layout == "fsdp":
        # Without it the partitioner gathers tokens where weights are smaller.
        def along_the_batch(module, inputs, output):
            return mark_sharding_with_gradients(output, mesh, ("x", None, None))

        for module in model.modules():
            if not isinstance(module, torch.nn.Sequential | TinyGPT) and module != model.positions:
                module.register_forward_hook(along_the_batch)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=False)

    def step() -> None:
        next_token_loss(model(ids), ids).backward()
        optimizer.step()
        optimizer.zero_grad()
        torch_xla.sync()

    step()
    with spmd.Compiled() as program:
        step()
    return program.memory


@pytest.mark.parametrize(("layout", "devices", "changes", "batch"), CASES)
def test_the_estimate_agrees_with_the_compiled_program(
    layout: str, devices: int, changes: dict[str, int], batch: int
) -> None:
    sizes = SMALL | changes
    found = spmd.run(
        measured, layout, devices, sizes, batch, devices=devices, flags=FLAGS, seconds=120
    )
    step = compiled_step(tiny_gpt(**sizes), batch, sizes["context"], layout, devices)
    assert found.donated_bytes == step.state, "weights and moments, to the byte"
    # The step count, the learning rate and the like are a few scalars more.
    assert 0 <= found.arguments_bytes - step.state - step.batch < 128
    assert found.outputs_bytes == 0
    assert step.total == pytest.approx(found.peak_bytes, rel=0.1)


def test_sizes_that_the_devices_do_not_divide_are_named() -> None:
    small = tiny_gpt(*SMALL.values())
    with pytest.raises(ValueError, match="must be multiples of 4"):
        compiled_step(small, 6, 64, "data", 4)
    with pytest.raises(ValueError, match="one of one, data, fsdp, tensor"):
        compiled_step(small, 8, 64, "zigzag", 4)
