"""Train a character-level GPT on whatever there is: cpu, xla, cuda or neuron (lesson 15).

python train_anywhere.py                        the fastest device of this machine
python train_anywhere.py --device cpu --steps 60 --save run
python train_anywhere.py --device neuron --bf16 --compile --save run    goes on from there

All that differs between devices is asked of `utils.xla.devices`; no backend is named here.
"""

import argparse
import sys
import time
from pathlib import Path

import torch
from torch.nn.utils import clip_grad_norm_

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from utils.training import checkpoint
from utils.xla import devices
from utils.xla.corpus import Vocabulary, text
from utils.xla.networks import TinyGPT, next_token_loss


def parse(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="auto", choices=(*devices.KINDS, "auto"))
    parser.add_argument("--steps", type=count, default=60)
    parser.add_argument("--batch", type=count, default=16)
    parser.add_argument("--width", type=count, default=64)
    parser.add_argument("--context", type=count, default=32)
    parser.add_argument("--rate", type=float, default=3e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--log-every", type=count, default=10, help="steps between two readings")
    parser.add_argument("--bf16", action="store_true", help="products of matrices in BF16")
    parser.add_argument("--compile", action="store_true", help="where an eager device gains by it")
    parser.add_argument("--save", type=Path, help="folder of checkpoints: begins there, ends there")
    return parser.parse_args(arguments)


SAME = ("batch", "width", "context", "rate", "seed")
"""Options that a run keeps when it goes on; device, format and compiling may be others."""


def count(text):
    """A whole number from 1 on, as argparse reads it."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is too few, 1 is the least")
    return number


def batches(options):
    """The vocabulary, and for each step of the run (inputs, targets), int64 [batch, context].

    The order depends on the seed alone, so a resumed run sees the texts that are still due.
    """
    source = text(20_000)
    vocabulary = Vocabulary.of(source)
    cuts = torch.tensor(vocabulary.encode(source)).unfold(0, options.context + 1, 1)
    order = torch.Generator().manual_seed(options.seed)
    chosen = torch.randint(len(cuts), (options.steps, options.batch), generator=order)
    return vocabulary, [(cuts[rows, :-1], cuts[rows, 1:]) for rows in chosen]


def train(options):
    """Train as the options say. Returns the losses of the steps that were done, as floats."""
    device = devices.get(options.device)
    vocabulary, due = batches(options)

    # Made on the CPU, so that the same seed gives the same weights everywhere.
    torch.manual_seed(options.seed)
    model = TinyGPT(len(vocabulary), options.width, context=options.context).to(device.torch)
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.rate)
    done = resume(options, model, optimizer)
    if done >= options.steps:
        print(f"{options.save} holds {done} steps already: give more as --steps")
        return []
    network = device.compiled(model) if options.compile else model

    losses, pending = [], []
    device.wait()
    begin = time.perf_counter()
    for step, (inputs, targets) in enumerate(due[done:], done + 1):
        inputs, targets = inputs.to(device.torch), targets.to(device.torch)
        with device.autocast(options.bf16):
            logits = network(inputs)
        loss = next_token_loss(logits.float(), targets)
        optimizer.zero_grad()
        loss.backward()
        clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        device.mark_step()

        pending.append(loss.detach())
        if len(pending) == options.log_every or step == options.steps:
            losses += read(pending)
            pending = []
            print(f"step {step:4}  loss {losses[-1]:.4f}")
    device.wait()
    seconds = time.perf_counter() - begin
    rate = options.batch * len(losses) / seconds
    print(f"{rate:.0f} sequences/s, compiling included, on {device.kind}")

    if options.save:
        state = checkpoint.on_host(
            {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
        )
        state["options"] = {name: getattr(options, name) for name in SAME}
        checkpoint.save(options.save, options.steps, state)
    return losses


def read(pending):
    """Losses that wait on the device, as floats: one transfer, however many there are."""
    return torch.stack(pending).tolist()


def resume(options, model, optimizer):
    """Put the newest good checkpoint of the folder back; how many steps are done, 0 if none is."""
    found = checkpoint.latest(options.save) if options.save else None
    if found is None:
        return 0
    for name, before in found.state["options"].items():
        if (now := getattr(options, name)) != before:
            raise ValueError(
                f"{options.save} holds a run with --{name} {before}, not {now}: name a new folder"
            )
    model.load_state_dict(found.state["model"])
    optimizer.load_state_dict(found.state["optimizer"])
    return found.step


if __name__ == "__main__":
    train(parse())
