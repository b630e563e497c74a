"""A small Llama that writes the course's own text, character by character, trained in seconds.

On a machine with torch_xla, ask for its device before: a first backward pass on the CPU before the
device exists breaks later ones on it.
"""

import torch

from utils.cost.planner.architecture import Architecture
from utils.serving.engine.llama import Llama
from utils.xla.corpus import Vocabulary, text
from utils.xla.networks import next_token_loss

CONTEXT = 128
"""Places that the model is trained on, and the most that it serves: about four sentences."""


def trained(steps: int = 200, seed: int = 0) -> tuple[Llama, Vocabulary]:
    """A model of 2 layers on the CPU, and its characters. The same steps and seed give the same
    model on the same machine; torch's own random state and threads stay as they were.
    """
    corpus = text(40_000, seed=seed)
    vocabulary = Vocabulary.of(corpus)
    data = torch.tensor(vocabulary.encode(corpus))
    sizes = Architecture(
        "letters", layers=2, width=64, heads=4, key_value_heads=2, feed_forward=128,
        vocabulary=len(vocabulary),
    )  # fmt: skip
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # more would add in another order, and gain nothing at this size
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = Llama(sizes, CONTEXT)
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
