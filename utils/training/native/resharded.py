"""A checkpoint of torch.distributed that one number of ranks saves and another one loads.

`save` and `load` run on ranks, such as `ranks.run(save, 4, layout, job, folder)`. Each rank writes
the parts that it holds and reads those that it needs; nobody ever gathers the whole.
"""

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from utils.training.native import job as jobs
from utils.training.native.job import Job
from utils.training.native.predicted import Layout


def save(where: Layout, job: Job, folder: Path) -> str:
    """Train, and save the model and the optimizer; the fingerprint of both on this rank."""
    model, optimizer = _make(where, job)
    place = torch.distributed.get_rank() // where.model
    share = job.rows // where.data
    for inputs, targets in jobs.batches(job):
        mine = slice(place * share, (place + 1) * share)
        optimizer.zero_grad()
        nn.functional.mse_loss(model(inputs[mine]), targets[mine]).backward()
        optimizer.step()
    import torch.distributed.checkpoint as dcp

    dcp.save(_state(model, optimizer), checkpoint_id=folder)
    return fingerprint(_state(model, optimizer))


def load(where: Layout, job: Job, folder: Path) -> tuple[str, str]:
    """Fingerprints on this rank of another start, and of what was loaded over it."""
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint.state_dict import set_state_dict

    model, optimizer = _make(where, replace(job, seed=job.seed + 1))
    state = _state(model, optimizer)
    before = fingerprint(state)
    dcp.load(state, checkpoint_id=folder)
    set_state_dict(
        model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"]
    )
    return before, fingerprint(_state(model, optimizer))


def fingerprint(state: dict[str, Any]) -> str:
    """Of every tensor in it, gathered whole, to the bit. All ranks have to call it."""
    digest = hashlib.sha256()
    for name, tensor in sorted(_tensors(state)):
        whole = tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor
        digest.update(name.encode() + whole.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()[:12]


def _tensors(state: dict[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    results: list[tuple[str, Any]] = []
    for name, value in state.items():
        if isinstance(value, dict):
            results += _tensors(value, f"{prefix}{name}.")
        elif isinstance(value, torch.Tensor):
            results.append((f"{prefix}{name}", value))
    return results


def _make(where: Layout, job: Job) -> tuple[nn.Module, torch.optim.Optimizer]:
    model = jobs.divide(jobs.network(job), where, job)
    return model, torch.optim.AdamW(model.parameters(), lr=1e-3)


def _state(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    from torch.distributed.checkpoint.state_dict import get_state_dict

    weights, moments = get_state_dict(model, optimizer)
    return {"model": weights, "optimizer": moments}
