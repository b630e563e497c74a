"""The small networks of the course: a perceptron, a convolutional net and a GPT.

They are made on the CPU from torch's random state; move them with `.to(device)`. The same seed on
another device would give other weights.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional


def mlp(features: int = 32, hidden: int = 64, classes: int = 10) -> nn.Module:
    """float32 [batch, features] to float32 [batch, classes], three linear layers."""
    return nn.Sequential(
        nn.Linear(features, hidden),
        nn.ReLU(),
        nn.Linear(hidden, hidden),
        nn.GELU(),
        nn.Linear(hidden, classes),
    )


def cnn(channels: int = 3, classes: int = 10) -> nn.Module:
    """float32 [batch, channels, height, width] to float32 [batch, classes]."""
    return nn.Sequential(
        nn.Conv2d(channels, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(16, classes),
    )


class Block(nn.Module):
    """Causal self-attention and a perceptron, each behind a norm and added to its input.

    float32 [batch, length, width] to the same shape.
    """

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        """float32 [batch, length, width] to the same shape."""
        batch, length, width = x.shape
        parts = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        attended = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.project(attended.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(functional.gelu(self.up(self.norm2(x))))


class TinyGPT(nn.Module):
    """A GPT with learned positions: int64 [batch, length] to logits [batch, length, vocabulary].

    vocabulary: number of tokens. context: the largest length. width is a multiple of heads.
    """

    def __init__(
        self, vocabulary: int, width: int = 64, heads: int = 4, layers: int = 2, context: int = 64
    ) -> None:
        if width % heads:
            raise ValueError(f"width {width} is not a multiple of heads {heads}")
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
        # A buffer moves to the device with the model; torch.arange in forward would not.
        self.register_buffer("places", torch.arange(context), persistent=False)

    def forward(self, ids: Tensor) -> Tensor:
        """int64 [batch, length] to logits [batch, length, vocabulary]."""
        x = self.tokens(ids) + self.positions(self.places[: ids.shape[1]])
        return self.head(self.norm(self.blocks(x)))


def next_token_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """Mean cross entropy, a scalar. logits [batch, length, vocabulary], targets [batch, length]."""
    return functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
