"""Data parallel training under torchrun, with and without gradients that meet: see lesson 07.

PJRT_DEVICE=CPU torchrun --nproc_per_node=2 two_ranks.py

Each rank prints one line of JSON.
"""

import hashlib
import json
import sys
from pathlib import Path

import torch
import torch.distributed as dist

sys.path.append(str(Path(__file__).resolve().parents[2]))
from utils.xla import env

env.set_defaults()
import torch_xla  # noqa: E402
import torch_xla.core.xla_model as xm  # noqa: E402
import torch_xla.runtime as xr  # noqa: E402

from utils.xla.networks import mlp  # noqa: E402

STEPS = 3


def train(images, labels, optimizer_step):
    """Weights after some steps from the same start: float32 [parameters], on the CPU."""
    torch.manual_seed(0)
    model = mlp().to(torch_xla.device())
    images, labels = images.to(torch_xla.device()), labels.to(torch_xla.device())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(STEPS):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(images), labels).backward()
        optimizer_step(optimizer, list(model.parameters()))
        torch_xla.sync()
    return torch.cat([p.detach().cpu().flatten() for p in model.parameters()])


def step_of_xla(optimizer, parameters):
    """What a script for Neuron says: average the gradients over all ranks, then update."""
    xm.optimizer_step(optimizer)


def step_by_gloo(optimizer, parameters):
    """The gradients leave the device, gloo adds them up on the hosts, the mean goes back."""
    torch_xla.sync()
    flat = torch.cat([p.grad.cpu().flatten() for p in parameters])
    dist.all_reduce(flat)
    means = (flat / dist.get_world_size()).split([p.numel() for p in parameters])
    for parameter, mean in zip(parameters, means, strict=True):
        parameter.grad.copy_(mean.view_as(parameter))
    optimizer.step()


def fingerprint(weights):
    return hashlib.sha256(weights.numpy().tobytes()).hexdigest()[:8]


if __name__ == "__main__":
    dist.init_process_group("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(1)
    images, labels = torch.randn(16, 32), torch.randint(0, 10, (16,))
    mine = slice(rank * 16 // ranks, (rank + 1) * 16 // ranks)
    one = torch.full((1,), rank + 1.0).to(torch_xla.device())
    summed = xm.all_reduce(xm.REDUCE_SUM, one)
    torch_xla.sync()

    by_xla = train(images[mine], labels[mine], step_of_xla)
    by_gloo = train(images[mine], labels[mine], step_by_gloo)
    whole = train(images, labels, step_of_xla)
    line = {
        "rank": rank,
        "ranks of torchrun": ranks,
        "ranks of torch_xla": xr.world_size(),
        "sum by torch_xla": summed.item(),
        "sum of all ranks": ranks * (ranks + 1) / 2,
        "weights by torch_xla": fingerprint(by_xla),
        "weights by gloo": fingerprint(by_gloo),
        "gloo off one process": ((by_gloo - whole).abs().max() / whole.abs().max()).item(),
        "torch_xla off one process": ((by_xla - whole).abs().max() / whole.abs().max()).item(),
    }
    # In one piece, so that the lines of the ranks do not mix.
    sys.stdout.write(json.dumps(line) + "\n")
    dist.destroy_process_group()
