"""A small Llama that writes the course's own text, character by character, trained in seconds.

On a machine with torch_xla, ask for its device before: a first backward pass on the CPU before the
device exists breaks later ones on it.
"""

import hashlib
import os
from pathlib import Path

import torch

from utils.cost.planner.architecture import Architecture
from utils.serving.engine.llama import Llama
from utils.xla.corpus import Vocabulary, text
from utils.xla.networks import next_token_loss

CONTEXT = 128
"""Places that the model is trained on, and the most that it serves: about four sentences."""


_CORPUS = 40_000


def train(steps: int = 200, seed: int = 0) -> tuple[Llama, Vocabulary]:
    """A model of 2 layers on the CPU, and its characters. The same steps and seed give the same
    model on the same machine; torch's own random state and threads stay as they were.
    """
    corpus = text(_CORPUS, seed=seed)
    vocabulary = Vocabulary.of(corpus)
    data = torch.tensor(vocabulary.encode(corpus))
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # more would add in another order, and gain nothing at this size
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = _new_model(vocabulary)
            optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.0)
            for step in range(steps):
                starts = torch.randint(len(data) - CONTEXT, (6, 1))
                windows = data[starts + torch.arange(CONTEXT + 1)]
                # Up for a tenth of the steps, then down to nothing, in straight lines.
                done = step / steps
                optimizer.param_groups[0]["lr"] = (
                    0.01 * min(10 * (done + 1 / steps), 1) * (1 - done)
                )
                optimizer.zero_grad()
                next_token_loss(model(windows[:, :-1]), windows[:, 1:]).backward()
                optimizer.step()
    finally:
        torch.set_num_threads(threads)
    return model.eval(), vocabulary


def load(folder: Path) -> tuple[Llama, Vocabulary]:
    """The same model from a file in this folder, where the first call trains it and keeps it."""
    from safetensors.torch import load_file, save_file  # late: training needs no file

    made_by = hashlib.sha256(Path(__file__).read_bytes() + torch.__version__.encode()).hexdigest()
    file = folder / f"letters-{made_by[:12]}.safetensors"
    if not file.exists():
        model, vocabulary = train()
        folder.mkdir(parents=True, exist_ok=True)
        part = file.with_suffix(f".{os.getpid()}")
        save_file(model.state_dict(), part)
        part.replace(file)
        return model, vocabulary
    vocabulary = Vocabulary.of(text(_CORPUS))
    with torch.random.fork_rng(devices=[]):
        model = _new_model(vocabulary)
    model.load_state_dict(load_file(file))
    return model.eval(), vocabulary


def _new_model(vocabulary: Vocabulary) -> Llama:
    sizes = Architecture(
        "letters", layers=2, width=64, heads=4, key_value_heads=2, feed_forward=128,
        vocabulary=len(vocabulary),
    )  # fmt: skip
    return Llama(sizes, CONTEXT)
