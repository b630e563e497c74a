"""Train a character-level GPT on an XLA device: what becomes of char_gpt_cuda.py in lesson 02.

PJRT_DEVICE=CPU python char_gpt_xla.py --steps 60
NEURON_CC_FLAGS=--auto-cast=none PJRT_DEVICE=NEURON torchrun --nproc_per_node=32 char_gpt_xla.py
"""

import argparse
import os
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.distributed.xla_backend  # registers the backend "xla"
import torch_xla.runtime as xr
from torch.utils.data import DataLoader, RandomSampler, TensorDataset
from torch_xla.distributed.parallel_loader import MpDeviceLoader

sys.path.append(str(Path(__file__).resolve().parents[2]))
from utils.xla.corpus import Vocabulary, text
from utils.xla.networks import TinyGPT, next_token_loss


def parse(arguments=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--context", type=int, default=32)
    parser.add_argument("--rate", type=float, default=3e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--log-every", type=int, default=10)
    parser.add_argument("--full-precision", action="store_true", help="float32 throughout")
    parser.add_argument("--resume", type=Path, help="a checkpoint to start from")
    parser.add_argument("--save", type=Path, help="where to write a checkpoint at the end")
    return parser.parse_args(arguments)


def windows(context, characters=20_000):
    """All windows of a text as inputs and targets, int64 [count, context], and the vocabulary."""
    source = text(characters)
    vocabulary = Vocabulary.of(source)
    cuts = torch.tensor(vocabulary.encode(source)).unfold(0, context + 1, 1)
    return TensorDataset(cuts[:, :-1], cuts[:, 1:]), vocabulary


def train(options):
    """Train as the options say. Returns the losses that were logged."""
    # distributed
    rank = int(os.environ.get("RANK", 0))
    world = int(os.environ.get("WORLD_SIZE", 1))
    if world > 1:
        dist.init_process_group("xla", init_method="xla://")
        if xr.world_size() != world:
            sys.exit(f"{world} processes, {xr.world_size()} connected: each would train alone")

    # device
    device = torch_xla.device()

    # random state
    torch.manual_seed(options.seed)
    xm.set_rng_state(options.seed + rank)

    # data
    data, vocabulary = windows(options.context)
    order = torch.Generator().manual_seed(options.seed + rank)
    sampler = RandomSampler(data, True, options.steps * options.batch, order)
    loader = DataLoader(
        data,
        batch_size=options.batch,
        sampler=sampler,
        num_workers=options.workers,
    )

    # model
    model = TinyGPT(len(vocabulary), options.width, context=options.context).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.rate)

    # mixed precision
    mixed = not options.full_precision

    # checkpoint
    if options.resume:
        state = torch.load(options.resume, map_location="cpu")
        for group in state["optimizer"]["param_groups"]:
            group["fused"] = None  # True in a CUDA checkpoint: raises, and moves step counters
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])

    # logging
    losses = []

    def log(step, loss):
        losses.append(loss.item())
        print(f"step {step:4}  loss {losses[-1]:.4f}")

    # timing
    xm.wait_device_ops()
    begin = time.perf_counter()

    # data
    for step, (inputs, targets) in enumerate(MpDeviceLoader(loader, device)):
        # mixed precision
        with torch.autocast("xla", dtype=torch.bfloat16, enabled=mixed):
            loss = next_token_loss(model(inputs), targets)

        # optimizer step
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        xm.reduce_gradients(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

        # logging
        if step % options.log_every == 0 and rank == 0:
            xm.add_step_closure(log, (step, loss))

    # timing
    xm.wait_device_ops()
    seconds = time.perf_counter() - begin
    if rank == 0:
        print(f"{options.steps * options.batch * world / seconds:.0f} sequences/s")

    # checkpoint
    if options.save:
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
        xm.save(state, options.save, global_master=True)

    # distributed
    if world > 1:
        dist.destroy_process_group()
    return losses


if __name__ == "__main__":
    train(parse())
