"""The nine recipes, and one training of a small GPT under one of them, on the XLA device."""

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
import torch_xla
from torch import Tensor, nn
from torch.func import functional_call

from utils.training.precision.rounding import Scaling, stochastic_bf16, with_fp8
from utils.xla import corpus
from utils.xla.networks import TinyGPT, next_token_loss


@dataclass(frozen=True)
class Recipe:
    """Where a training rounds.

    weights: the format in which they stay between two steps, "fp32" or "bf16"; the forward pass
        computes in it too, unless `products` says otherwise.
    products: what the matrix products take: "bf16" or "fp16" by autocast; "fp8" or "fp8 delayed" by
        quantise-dequantise with the present or with past largest values; None: as the weights are.
    update: how a new weight, computed in FP32, gets into its format: "nearest"; "stochastic"; or
        "master", to nearest from an FP32 copy which is kept and takes the updates instead.
    loss_scale: what the loss is multiplied by before backward, and the gradients divided by after.
    """

    weights: str = "fp32"
    products: str | None = None
    update: str = "nearest"
    loss_scale: float = 1.0


RECIPES = {
    "FP32": Recipe(),
    "BF16 autocast": Recipe(products="bf16"),
    "pure BF16": Recipe(weights="bf16"),
    "BF16, stochastic": Recipe(weights="bf16", update="stochastic"),
    "BF16, FP32 master": Recipe(weights="bf16", update="master"),
    "FP16": Recipe(products="fp16"),
    "FP16, scaled loss": Recipe(products="fp16", loss_scale=2.0**16),
    "FP8": Recipe(products="fp8"),
    "FP8, delayed": Recipe(products="fp8 delayed"),
}


@dataclass(frozen=True)
class Update:
    """One update of all weights, each array float32 [weights].

    before: the stored weights. step: what was to be subtracted. after: the stored weights then.
    """

    before: np.ndarray
    step: np.ndarray
    after: np.ndarray


@dataclass(frozen=True)
class Curve:
    """What one training gave; the sequences have one value per step.

    losses: nats per character. changed: share of the stored weights that the step changed.
    zero_gradients: share of the weights' gradients that are exactly zero.
    update: the last update.
    saturated: how many values FP8 formats cut off in the whole training.
    """

    losses: tuple[float, ...]
    changed: tuple[float, ...]
    zero_gradients: tuple[float, ...]
    update: Update
    saturated: int = 0

    @property
    def last(self) -> float:
        """The mean loss of the last 20 steps: the batches differ, one loss says little."""
        return mean(self.losses[-20:])

    @property
    def fall(self) -> float:
        """How far the loss fell: the mean of the first ten steps less that of the last 20."""
        return mean(self.losses[:10]) - self.last


def mean(values: Sequence[float]) -> float:
    """
    >>> mean([1.0, 2.0])
    1.5
    """
    return sum(values) / len(values)


LENGTH, ROWS, WIDTH = 32, 8, 32

MICRO_BATCHES = 8192
"""The loss is divided by this number, as if the batch were one of so many whose gradients are added
up before an update: a batch of two million characters, of which one piece is computed here. Being a
power of two it changes exponents only, so it matters to FP16 alone.
"""

_DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def train(recipe: Recipe, steps: int = 120, rate: float = 1e-4, seed: int = 0) -> Curve:
    """Train from the same weights, on the same batches, whatever the recipe.

    Args:
        steps: updates, one batch each.
        rate: of Adam, about what an update moves a weight by. It is that of a large model, so that
            120 steps end long before this small one has learned what it can.
        seed: of the weights, the batches and the noise of stochastic rounding.

    In each step the new weights are computed in FP32 and then stored as the recipe says. XLA may
    keep intermediate values of one graph in FP32 where the program says BF16; the stored weights
    are results of a graph, so they are in BF16 for certain.
    """
    device = torch_xla.device()
    model = _model(recipe, seed)
    stored = nn.utils.parameters_to_vector(model.parameters()).detach().to(device)
    model = model.to(device)
    wide = stored.float()
    adam = Adam(wide, rate)
    random = torch.Generator().manual_seed(seed)
    scale = torch.tensor(recipe.loss_scale).to(device)
    # What tells the recipes of BF16 weights apart goes into the graph as data, so that they share
    # one: to compile a graph takes longer than to run it 100 times.
    master, by_lot = torch.tensor([recipe.update == "master", recipe.update == "stochastic"]).to(
        device
    )
    torch_xla.sync()
    records = []
    for batch in _batches(steps, seed):
        batch = batch.to(device)
        with _autocast(recipe):
            logits = functional_call(model, _pieces(model, stored.requires_grad_()), batch[:, :-1])
        loss = next_token_loss(logits.float(), batch[:, 1:])
        (loss / MICRO_BATCHES * scale).backward()
        with torch.no_grad():
            gradient = stored.grad
            step = adam.step(gradient.float() / scale)
            before = stored.detach()
            if recipe.weights == "bf16":
                # Without a master copy, what the last rounding dropped is forgotten.
                wide = torch.where(master, wide, before.float()) - step
                noise = torch.rand(len(wide), generator=random).to(device)
                stored = torch.where(by_lot, stochastic_bf16(wide, noise), wide.bfloat16())
            else:
                stored = wide = before - step
            changed, zero = (stored != before).float().mean(), (gradient == 0).float().mean()
        torch_xla.sync()
        records.append((loss.detach(), changed, zero))
    columns = zip(*records, strict=True)
    losses, changes, zeros = (tuple(torch.stack(column).tolist()) for column in columns)
    update = Update(*(item.float().cpu().numpy() for item in (before, step, stored)))
    cut = [part.saturated.sum() for part in model.modules() if isinstance(part, Scaling)]
    return Curve(losses, changes, zeros, update, int(sum(cut)))


class Adam:
    """Adam over one vector, its moments in FP32. `torch.optim.Adam` makes its state in the first
    step, which would be a second graph to compile.
    """

    def __init__(self, like: Tensor, rate: float) -> None:
        self.rate = rate
        self.kept = torch.tensor([[0.9], [0.99]]).to(like.device)
        # The means of the gradient and of its square, and how much of each is still the zero that
        # it started from. One tensor each: two equal ones would be one input of the first graph.
        self.moments = torch.zeros(2, len(like)).to(like.device)
        self.missing = torch.ones(2, 1).to(like.device)

    def step(self, gradient: Tensor) -> Tensor:
        """What to subtract from the weights; both float32 [weights]."""
        new = torch.stack([gradient, gradient**2])
        self.moments = self.kept * self.moments + (1 - self.kept) * new
        self.missing = self.kept * self.missing
        mean, square = self.moments / (1 - self.missing)
        return self.rate * mean / (square.sqrt() + 1e-12)


@cache
def _text() -> tuple[Tensor, int]:
    """The ids of the text, int64 [characters], and the size of the vocabulary."""
    text = corpus.text(60_000)
    letters = corpus.Vocabulary.of(text)
    return torch.tensor(letters.encode(text)), len(letters)


def _batches(steps: int, seed: int) -> Iterator[Tensor]:
    """int64 [ROWS, LENGTH + 1], from random places of the text."""
    ids, _ = _text()
    random = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        starts = torch.randint(len(ids) - LENGTH - 1, (ROWS,), generator=random)
        yield torch.stack([ids[start : start + LENGTH + 1] for start in starts])


def _model(recipe: Recipe, seed: int) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = TinyGPT(_text()[1], width=WIDTH, heads=4, layers=1, context=LENGTH)
    if recipe.products in ("fp8", "fp8 delayed"):
        model = with_fp8(model, delayed=recipe.products == "fp8 delayed")
    return model.to(_DTYPES[recipe.weights])


def _autocast(recipe: Recipe) -> "torch.autocast | nullcontext":
    if recipe.products in _DTYPES:
        return torch.autocast("xla", dtype=_DTYPES[recipe.products])
    return nullcontext()


def _pieces(model: nn.Module, vector: Tensor) -> dict[str, Tensor]:
    """The model's weights by name, each a view of its piece of one vector."""
    named = dict(model.named_parameters())
    pieces = vector.split([item.numel() for item in named.values()])
    return {
        name: piece.view_as(item) for (name, item), piece in zip(named.items(), pieces, strict=True)
    }
