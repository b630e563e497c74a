"""What the capstone fine-tunes: a small GPT, sentences in an order that has state, and the task."""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import nn

from utils.xla.corpus import Vocabulary, sentences
from utils.xla.networks import TinyGPT

TRAINED, EVALUATED = 30, 12
"""Sentences to train on, and to evaluate."""

LONGEST, CONTEXT = 64, 160
"""Inputs of the longest sentence, at most; and of the model, because buckets may be longer."""


class Batches:
    """Sentences to train on, in an order that is drawn anew for each epoch, each cut at random.

    order: the sentences of this epoch, in turn. position: how many of them were used. generator:
    draws the next order. Where a sentence is cut, torch's random state on the host decides.
    """

    def __init__(self, seed: int, known: list[list[int]], rows: int) -> None:
        self.known, self.rows = known, rows
        self.generator = torch.Generator().manual_seed(seed)
        self.order: list[int] = []
        self.position = 0

    def next(self) -> list[list[int]]:
        """The ids of the next sentences, always `rows` of them, of very different lengths."""
        if self.position + self.rows > len(self.order):
            self.order = torch.randperm(len(self.known), generator=self.generator).tolist()
            self.position = 0
        chosen = self.order[self.position : self.position + self.rows]
        self.position += self.rows
        cuts = torch.randint(12, LONGEST + 2, (self.rows,)).tolist()
        return [self.known[place][:cut] for place, cut in zip(chosen, cuts, strict=True)]


@dataclass(frozen=True)
class Task:
    """One fine-tuning, from plain values: the same for every process that is told them.

    steps: to train. save_every: so many steps. names, rank, alpha: of the adapters. rows: sentences
    of a batch. repeats: samples of the benchmark.
    """

    seed: int = 15
    steps: int = 7
    save_every: int = 2
    names: tuple[str, ...] = ("qkv", "up")
    rank: int = 2
    alpha: float = 6.0
    rows: int = 4
    lr: float = 0.05
    repeats: int = 5

    longest = LONGEST

    @cached_property
    def _letters(self) -> Vocabulary:
        return Vocabulary.of("".join(sentences(400)))

    def _ids(self, count: int, seed: int) -> list[list[int]]:
        return [
            self._letters.encode(sentence)[: LONGEST + 1] for sentence in sentences(count, seed)
        ]

    @cached_property
    def sentences(self) -> list[list[int]]:
        """The ids of the sentences to evaluate: of 20 to 65 ids."""
        return self._ids(EVALUATED, self.seed + 1)

    def model(self) -> nn.Module:
        """The model to fine-tune, on the CPU: int64 [rows, length] to logits [rows, length, ids].

        It is the same at every call, and the caller's random state stays as it is.
        """
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            made = TinyGPT(len(self._letters), width=16, heads=2, layers=1, context=CONTEXT)
            return made.to("cpu", torch.float32)

    def batches(self) -> Batches:
        """The sentences to train on, from their start."""
        return Batches(self.seed, self._ids(TRAINED, self.seed), self.rows)

    def schedule(self, optimizer: torch.optim.Optimizer) -> torch.optim.lr_scheduler.LRScheduler:
        """The learning rate of an optimizer, which falls with each step."""
        return torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (1 + step))
