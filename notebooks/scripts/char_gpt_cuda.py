"""Train a character-level GPT on NVIDIA GPUs: the script that lesson 02 migrates.

python char_gpt_cuda.py --steps 200
torchrun --nproc_per_node=8 char_gpt_cuda.py --steps 200
"""

import argparse
import os
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, RandomSampler, TensorDataset

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
    local_rank = int(os.environ.get("LOCAL_RANK", 0))
    if world > 1:
        dist.init_process_group("nccl")

    # device
    device = torch.device("cuda", local_rank)
    torch.cuda.set_device(device)
    torch.backends.cuda.matmul.allow_tf32 = True

    # random state
    torch.manual_seed(options.seed)
    torch.cuda.manual_seed_all(options.seed)

    # data
    data, vocabulary = windows(options.context)
    order = torch.Generator().manual_seed(options.seed + rank)
    sampler = RandomSampler(data, True, options.steps * options.batch, order)
    loader = DataLoader(
        data,
        batch_size=options.batch,
        sampler=sampler,
        num_workers=options.workers,
        pin_memory=True,
    )

    # model
    model = TinyGPT(len(vocabulary), options.width, context=options.context).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.rate, fused=True)

    # mixed precision
    mixed = not options.full_precision
    scaler = torch.amp.GradScaler("cuda", enabled=mixed)

    # checkpoint
    if options.resume:
        state = torch.load(options.resume, map_location="cuda")
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        scaler.load_state_dict(state["scaler"])

    # distributed
    network = model
    if world > 1:
        network = DistributedDataParallel(model, device_ids=[local_rank])

    # compile
    network = torch.compile(network)

    # logging
    losses = []

    # timing
    torch.cuda.synchronize()
    begin = time.perf_counter()

    # data
    for step, (inputs, targets) in enumerate(loader):
        # data
        inputs = inputs.to(device, non_blocking=True)
        targets = targets.to(device, non_blocking=True)

        # mixed precision
        with torch.autocast("cuda", dtype=torch.float16, enabled=mixed):
            loss = next_token_loss(network(inputs), targets)

        # optimizer step
        optimizer.zero_grad(set_to_none=True)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()

        # logging
        value = loss.item()
        if step % options.log_every == 0 and rank == 0:
            losses.append(value)
            print(f"step {step:4}  loss {value:.4f}")

    # timing
    torch.cuda.synchronize()
    seconds = time.perf_counter() - begin
    if rank == 0:
        print(f"{options.steps * options.batch * world / seconds:.0f} sequences/s")
        print(f"{torch.cuda.max_memory_allocated() / 2**20:.0f} MiB at most")

    # checkpoint
    if options.save and rank == 0:
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
        torch.save({**state, "scaler": scaler.state_dict()}, options.save)

    # distributed
    if world > 1:
        dist.destroy_process_group()
    return losses


if __name__ == "__main__":
    train(parse())
