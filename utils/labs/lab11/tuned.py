"""A small language model with adapters, and its texts, for exercises 2, 3 and 5 of lab 11."""

import random
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

IDS = 11
"""Different ids that the sentences have."""


class Adapted(nn.Module):
    """A frozen linear layer with two thin matrices beside it, which train.

    down: float32 [rank, in]. up: float32 [out, rank]. A scale, such as alpha / rank, is not kept
    apart: it is in `up` already.
    """

    def __init__(self, base: nn.Linear, rank: int) -> None:
        super().__init__()
        self.base = base.requires_grad_(False)
        self.down = nn.Parameter(0.5 * torch.randn(rank, base.in_features))
        self.up = nn.Parameter(0.5 * torch.randn(base.out_features, rank))

    def forward(self, x: Tensor) -> Tensor:
        return self.base(x) + x @ self.down.T @ self.up.T


class Tuned(nn.Module):
    """Next-token logits from the last two tokens: int64 [rows, length] to [rows, length, ids].

    All of it is frozen but the adapters of `mix` and `head`, which have been trained before.
    """

    def __init__(self, ids: int = IDS, width: int = 6, hidden: int = 9, rank: int = 2) -> None:
        super().__init__()
        self.tokens = nn.Embedding(ids, width).requires_grad_(False)
        self.mix = Adapted(nn.Linear(2 * width, hidden), rank)
        self.head = Adapted(nn.Linear(hidden, ids), rank)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.tokens(ids)
        before = functional.pad(x, (0, 0, 1, 0))[:, :-1]
        return self.head(self.mix(torch.cat([x, before], dim=-1)).tanh())


def draw(seed: int, rank: int = 2) -> Tuned:
    """A model on the CPU."""
    with torch.random.fork_rng(devices=[]):  # a check must not disturb the learner's random state
        torch.manual_seed(seed)
        with torch.device("cpu"):
            return Tuned(rank=rank).to(torch.float32)


def sentences(seed: int, lengths: list[int]) -> list[list[int]]:
    """Ids of sentences of these lengths, in which an id often brings a certain next one."""
    rng = random.Random(f"sentences {seed}")
    follows = rng.sample(range(IDS), IDS)
    made = []
    for length in lengths:
        ids = [rng.randrange(IDS)]
        while len(ids) < length:
            ids.append(follows[ids[-1]] if rng.random() < 0.7 else rng.randrange(IDS))
        made.append(ids)
    return made


def batches(case: dict[str, Any]) -> list[list[list[int]]]:
    """The sentences of each step of exercise 2; case["lengths"] has a list for each step."""
    return [sentences(case["seed"] + k, lengths) for k, lengths in enumerate(case["lengths"])]


def micro_batches(case: dict[str, Any]) -> list[list[tuple[Tensor, Tensor]]]:
    """The micro-batches of each step of exercise 3, on the CPU: inputs and targets, int64 [rows,
    longest], with -100 as the target where a sentence has ended.

    case["lengths"]: of each step, each micro-batch and each sentence; 1 is a sentence without
    targets.
    """
    made: list[list[tuple[Tensor, Tensor]]] = []
    seed = case["seed"]
    for step in case["lengths"]:
        made.append([])
        for lengths in step:
            seed += 1
            made[-1].append(pad(sentences(seed, lengths), case["longest"]))
    return made


def pad(rows: list[list[int]], length: int) -> tuple[Tensor, Tensor]:
    """Inputs, filled up with 0, and targets, filled up with -100: int64 [rows, length] each."""
    with torch.device("cpu"):
        inputs = torch.zeros(len(rows), length, dtype=torch.int64)
        targets = torch.full((len(rows), length), -100)
        for row, ids in enumerate(rows):
            inputs[row, : len(ids) - 1] = torch.tensor(ids[:-1])
            targets[row, : len(ids) - 1] = torch.tensor(ids[1:])
    return inputs, targets


def adapter(seed: int, rank: int, alpha: float) -> dict[str, Any]:
    """An adapter of another training, on the CPU: {"rank": ..., "alpha": ..., "weights": {name:
    tensor}} with the names that the model has for its own, such as "mix.down" [rank, in].

    Its output is to be scaled by alpha / rank.
    """
    trained = draw(seed, rank)
    names = [name for name, item in trained.named_parameters() if item.requires_grad]
    state = trained.state_dict()
    return {"rank": rank, "alpha": alpha, "weights": {name: state[name] for name in names}}


def requests(case: dict[str, Any]) -> list[tuple[str, Tensor]]:
    """The requests of exercise 5: the adapter's name, and ids, int64 [rows, length], on the CPU."""
    made = []
    for place, (name, rows, length) in enumerate(case["requests"]):
        ids = sentences(case["seed"] + place, [length] * rows)
        made.append((name, torch.tensor(ids, device="cpu")))
    return made
