"""A small GPT in parts, so that a cache of keys and values can be put between them: exercise 4 of
lab 11.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

IDS, WIDTH, HEADS, LAYERS, CONTEXT = 23, 16, 2, 2, 96


class Layer(nn.Module):
    """Attention and a perceptron. `project` makes what attention takes, `finish` does the rest."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """x [rows, length, width] to queries, keys and values, each [rows, heads, length, size]."""
        rows, length, width = x.shape
        parts = self.qkv(self.norm1(x)).view(rows, length, 3, self.heads, width // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        return q, k, v

    def finish(self, x: Tensor, attended: Tensor) -> Tensor:
        """x [rows, length, width] and the attended values [rows, heads, length, size] to the next
        x.
        """
        x = x + self.out(attended.transpose(1, 2).flatten(2))
        return x + self.down(functional.gelu(self.up(self.norm2(x))))


class Decoder(nn.Module):
    """A GPT with learned places: int64 [rows, length] to logits [rows, length, ids].

    heads, size: of keys and values. context: the largest length. places: int64 [context], 0, 1, ...
    """

    def __init__(self, ids: int = IDS, context: int = CONTEXT) -> None:
        super().__init__()
        self.heads, self.size, self.context = HEADS, WIDTH // HEADS, context
        self.tokens, self.positions = nn.Embedding(ids, WIDTH), nn.Embedding(context, WIDTH)
        self.layers = nn.ModuleList(Layer(WIDTH, HEADS) for _ in range(LAYERS))
        self.norm, self.output = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, IDS)
        self.register_buffer("places", torch.arange(context))

    def embed(self, ids: Tensor, places: Tensor) -> Tensor:
        """ids int64 [rows, length] at places int64 [length] to x [rows, length, width]."""
        return self.tokens(ids) + self.positions(places)

    def logits(self, x: Tensor) -> Tensor:
        """x [rows, length, width] to logits [rows, length, ids]."""
        return self.output(self.norm(x))

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embed(ids, self.places[: ids.shape[1]])
        for layer in self.layers:
            q, k, v = layer.project(x)
            attended = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = layer.finish(x, attended)
        return self.logits(x)


def draw(seed: int) -> Decoder:
    """A model on the CPU."""
    with torch.random.fork_rng(devices=[]):  # a check must not disturb the learner's random state
        torch.manual_seed(seed)
        with torch.device("cpu"):
            model = Decoder().to(torch.float32).requires_grad_(False)
            for parameter in model.parameters():
                if parameter.dim() == 2:
                    parameter.mul_(1.5)  # so that what comes next depends on all that came before
    return model
