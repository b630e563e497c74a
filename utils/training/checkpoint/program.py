"""A small training program in which everything that can have a state has one, and every random
draw counts.

A tiny GPT with dropout (random on the device), AdamW with moments, a learning rate that warms up
and decays, data in an order that is shuffled anew in each epoch, and three sources of chance on the
host: Python's places the window, NumPy's chooses the tokens to damage, torch's what they become.
torch and torch_xla are imported late: they take seconds to load.
"""

import hashlib
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from utils.training.checkpoint import folder as folders
from utils.training.checkpoint.background import Background
from utils.training.checkpoint.states import KINDS, random_states, set_random_states

PARTS = ("weights", "optimizer", "schedule", "step", "data", *KINDS)


@dataclass(frozen=True)
class Plan:
    """What to train: `steps` steps on batches of `batch` of `texts` texts; a checkpoint after every
    `every` steps, the newest `keep` of which stay."""

    steps: int = 12
    every: int = 3
    keep: int = 2
    texts: int = 10
    batch: int = 2
    seed: int = 8

    def __post_init__(self) -> None:
        if min(self.steps, self.every, self.keep, self.batch, self.texts - self.batch + 1) < 1:
            raise ValueError(f"{self}: steps, every, keep and batch from 1, batch up to texts")


@dataclass(frozen=True)
class Outcome:
    """How a run ended.

    losses: of every step since the very first one, also those before an interruption.
    order: the texts of every step. weights: SHA-256 of the bytes of all weights at the end.
    resumed_at: steps that were not done again. refused: what was wrong with newer checkpoints.
    """

    losses: tuple[float, ...]
    order: tuple[tuple[int, ...], ...]
    weights: str
    resumed_at: int
    refused: tuple[str, ...]


class Order:
    """The order of the data: numbers of texts, batch after batch, shuffled anew in every epoch.

    Its state is two numbers, as the shuffle follows from the seed and the epoch. Whoever takes
    them too early, with a loader that prefetches, has the position of the loader and not that of
    the training.
    """

    def __init__(self, texts: int, batch: int, seed: int) -> None:
        self.texts, self.batch, self.seed = texts, batch, seed
        self.epoch = self.position = 0

    def next(self) -> list[int]:
        """The texts of the next batch; what is left of an epoch and fills no batch is dropped."""
        if self.position + self.batch > self.texts:
            self.epoch, self.position = self.epoch + 1, 0
        shuffled = list(range(self.texts))
        random.Random(f"{self.seed} {self.epoch}").shuffle(shuffled)
        chosen = shuffled[self.position : self.position + self.batch]
        self.position += self.batch
        return chosen

    def state_dict(self) -> dict[str, int]:
        """Where the order is: the epoch and the position in it."""
        return {"epoch": self.epoch, "position": self.position}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Go on from where `state_dict` was taken."""
        self.epoch, self.position = state["epoch"], state["position"]


class Program:
    """The training program: `state()` is all that it needs to go on, `put(state)` goes on."""

    length, vocabulary = 8, 24

    def __init__(self, plan: Plan) -> None:
        import torch
        import torch_xla
        from torch import nn

        from utils.xla.networks import TinyGPT

        random.seed(plan.seed)
        np.random.seed(plan.seed)
        torch.manual_seed(plan.seed)
        torch_xla.manual_seed(plan.seed)
        self.device = torch_xla.device()
        model = TinyGPT(self.vocabulary, width=8, heads=2, layers=1, context=self.length)
        model.norm = nn.Sequential(model.norm, nn.Dropout(0.1))
        self.model = model.to(self.device)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=0.01)
        rates = (
            torch.optim.lr_scheduler.LinearLR(self.optimizer, 0.25, total_iters=4),
            torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, plan.steps),
        )
        self.schedule = torch.optim.lr_scheduler.ChainedScheduler(rates, self.optimizer)
        made = torch.Generator().manual_seed(plan.seed)
        self.texts = torch.randint(self.vocabulary, (plan.texts, 2 * self.length), generator=made)
        self.data = Order(plan.texts, plan.batch, plan.seed)
        self.step = 0
        self.losses: list[float] = []
        self.order: list[list[int]] = []
        # What has been recorded runs now, so that no later sync is needed before the loop.
        torch_xla.sync()

    def train_one_step(self) -> float:
        """Train on the next batch; returns the loss, in nats per token."""
        import torch_xla

        from utils.xla.networks import next_token_loss

        chosen = self.data.next()
        ids, targets = (tensor.to(self.device) for tensor in self._batch(chosen))
        self.optimizer.zero_grad()
        loss = next_token_loss(self.model(ids), targets)
        loss.backward()
        self.optimizer.step()
        torch_xla.sync()
        self.schedule.step()
        self.step += 1
        self.losses.append(loss.item())
        self.order.append(chosen)
        return self.losses[-1]

    def _batch(self, chosen: list[int]) -> tuple[Any, Any]:
        """Windows of the chosen texts, and the same with some tokens damaged."""
        import torch

        start = random.randrange(self.length)
        targets = self.texts[chosen, start : start + self.length]
        damaged = torch.from_numpy(np.random.random(targets.shape) < 0.2)
        noise = torch.randint(self.vocabulary, targets.shape)
        return torch.where(damaged, noise, targets), targets

    def state(self) -> dict[str, Any]:
        """All that the program needs to go on, one entry for each of `PARTS` and the record."""
        return {
            "weights": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "schedule": self.schedule.state_dict(),
            "step": self.step,
            "data": self.data.state_dict(),
            **random_states(),
            "record": {"losses": self.losses, "order": self.order},
        }

    def put(self, state: dict[str, Any], without: tuple[str, ...] = ()) -> None:
        """Go on from `state`. without: parts to leave as they are after a start, to see what it
        changes."""
        import torch_xla

        loaders = {
            "weights": self.model.load_state_dict,
            "optimizer": self.optimizer.load_state_dict,
            "schedule": self.schedule.load_state_dict,
            "data": self.data.load_state_dict,
        }
        for part, load in loaders.items():
            if part not in without:
                load(state[part])
        if "step" not in without:
            self.step = state["step"]
        self.losses, self.order = list(state["record"]["losses"]), list(state["record"]["order"])
        torch_xla.sync()
        # Last: each sync before the loop would advance the device's state.
        set_random_states({kind: state[kind] for kind in KINDS if kind not in without})

    def digest(self) -> str:
        """SHA-256 of the bytes of all weights."""
        weights = hashlib.sha256()
        for tensor in self.model.state_dict().values():
            weights.update(tensor.cpu().numpy().tobytes())
        return weights.hexdigest()


def train(
    folder: Path,
    plan: Plan = Plan(),
    without: tuple[str, ...] = (),
    before_step: Callable[[int], None] = lambda step: None,
    background: bool = False,
) -> Outcome:
    """Train to the end of `plan`, from the newest good checkpoint in `folder` if there is one.

    without: parts of the checkpoint that are not put back, of `PARTS`. before_step: called with
    the number of steps done. background: write while training goes on.

    Raises: ValueError for a part that is none of `PARTS`; what `latest` and `save` raise.
    """
    if unknown := sorted(set(without) - set(PARTS)):
        raise ValueError(f"{unknown} is no part of a checkpoint: known are {', '.join(PARTS)}")
    program = Program(plan)
    result = folders.latest(folder)
    if result:
        folders.set_aside(result.refused)
        program.put(result.state, without)
    with Background(folder, plan.keep) as saver:
        while program.step < plan.steps:
            before_step(program.step)
            program.train_one_step()
            if program.step % plan.every == 0:
                saver.save(program.step, program.state())
                if not background:
                    saver.wait()
    return Outcome(
        tuple(program.losses),
        tuple(map(tuple, program.order)),
        program.digest(),
        result.step if result else 0,
        tuple(map(str, result.refused)) if result else (),
    )
