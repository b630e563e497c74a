"""A small training run with everything that has state, for exercise 1 of lab 08."""

import random

import numpy as np
import torch
import torch_xla
import torch_xla.core.xla_model as xm
from torch import Tensor, nn
from torch.nn import functional as F

ROWS, FEATURES = 40, 6


class Batches:
    """Batches of a small data set, in an order that is drawn anew for each epoch.

    order: the rows of this epoch, in turn. position: how many of them were used. generator: draws
    the next order.
    """

    def __init__(self, seed: int, rows_per_batch: int) -> None:
        rng = np.random.default_rng(seed)
        self.x = torch.from_numpy(rng.standard_normal((ROWS, FEATURES), dtype=np.float32))
        self.y = self.x.prod(dim=1, keepdim=True)
        self.rows_per_batch = rows_per_batch
        self.generator = torch.Generator().manual_seed(seed)
        self.order: list[int] = []
        self.position = 0

    def next(self) -> tuple[Tensor, Tensor]:
        """x, float32 [rows, features], and y, float32 [rows, 1], varied at random on the host."""
        if self.position + self.rows_per_batch > len(self.order):
            self.order = torch.randperm(ROWS, generator=self.generator).tolist()
            self.position = 0
        rows = self.order[self.position : self.position + self.rows_per_batch]
        self.position += self.rows_per_batch
        x = self.x[rows] + 0.1 * torch.randn(len(rows), FEATURES)
        x = x * np.float32(np.random.uniform(0.9, 1.1))
        return (x.flip(1) if random.random() < 0.5 else x), self.y[rows]


class Run:
    """A training run: all that changes while it trains hangs on it or is a random state.

    model: on the XLA device. optimizer: AdamW. scheduler: its learning rate warms up, then falls.
    batches: where the data come from. step: how many steps are done.
    """

    def __init__(self, seed: int, rows_per_batch: int) -> None:
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)
        device = torch_xla.device()
        xm.set_rng_state(seed, device)
        self.model = nn.Sequential(
            nn.Linear(FEATURES, 8), nn.Tanh(), nn.Dropout(0.2), nn.Linear(8, 1)
        ).to(device)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=0.02)
        self.scheduler = torch.optim.lr_scheduler.LambdaLR(
            self.optimizer, lambda step: min((step + 1) / 4, 4 / (step + 1))
        )
        self.batches = Batches(seed, rows_per_batch)
        self.step = 0

    def train_step(self) -> float:
        """Train on one batch; returns its loss."""
        x, y = self.batches.next()
        device = torch_xla.device()
        self.optimizer.zero_grad()
        loss = F.mse_loss(self.model(x.to(device)), y.to(device))
        loss.backward()
        self.optimizer.step()
        self.scheduler.step()
        torch_xla.sync()
        self.step += 1
        return loss.item()
