"""A decoder of the shape of Llama: RMSNorm, rotary positions, grouped queries, a gated perceptron.

Its parameters have the names of a Hugging Face checkpoint without the groups in front, so that
`load` reads such a folder. Attention is given from outside: over the sequence itself for training,
over a cache of blocks for serving; everything else is the same code.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from utils.cost.planner.architecture import Architecture

Attend = Callable[[int, Tensor, Tensor, Tensor], Tensor]
"""Of a layer's number, queries [rows, length, heads, head width], keys and values [rows, length,
key_value_heads, head width]: what the queries find, in their own shape."""


@dataclass(frozen=True)
class Rotary:
    """How fast positions turn. theta: the base of the wavelengths. The rest is what Llama 3.1 calls
    rope type llama3: wavelengths longer than trained / low are stretched by `factor`, those shorter
    than trained / high are left alone, and those between in proportion.
    """

    theta: float = 10_000.0
    factor: float = 1.0
    low: float = 1.0
    high: float = 4.0
    trained: int = 8192

    def tables(self, context: int, width: int) -> tuple[Tensor, Tensor]:
        """Cosines and sines, float32 [context, width] each, for heads of that width."""
        turns = 1.0 / self.theta ** (torch.arange(0, width, 2).float() / width)
        kept = (self.trained * turns / (2 * math.pi) - self.low) / (self.high - self.low)
        kept = kept.clamp(0, 1)
        turns = kept * turns + (1 - kept) * turns / self.factor
        angles = torch.outer(torch.arange(context).float(), turns).repeat(1, 2)
        return angles.cos(), angles.sin()


def attention(q: Tensor, k: Tensor, v: Tensor, seen: Tensor) -> Tensor:
    """What queries find, [rows, length, heads, head width].

    q: [rows, length, heads, head width]. k, v: [rows, places, key_value_heads, head width]; each
    of their heads serves the same number of heads of queries. seen: bool [rows, length, places].
    """
    groups = q.unflatten(2, (k.shape[2], -1))
    scores = torch.einsum("rlgnw,rpgw->rgnlp", groups, k) / math.sqrt(q.shape[3])
    scores = scores.masked_fill(~seen[:, None, None], float("-inf"))
    return torch.einsum("rgnlp,rpgw->rlgnw", scores.softmax(-1), v).flatten(2, 3)


def causal(layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attention of a sequence to itself, for training and for the plain loop."""
    length = q.shape[1]
    seen = torch.ones(1, length, length, dtype=torch.bool, device=q.device).tril()
    return attention(q, k, v, seen)


class Layer(nn.Module):
    """Attention and a gated perceptron, each behind a norm and added to its input."""

    def __init__(self, sizes: Architecture, number: int, eps: float) -> None:
        super().__init__()
        self.number, self.head_width = number, sizes.head_width
        width, keys = sizes.width, sizes.key_value_heads * sizes.head_width
        self.input_layernorm = nn.RMSNorm(width, eps)
        self.q_proj, self.o_proj = (nn.Linear(width, width, bias=False) for _ in range(2))
        self.k_proj, self.v_proj = (nn.Linear(width, keys, bias=False) for _ in range(2))
        self.post_attention_layernorm = nn.RMSNorm(width, eps)
        self.gate_proj, self.up_proj = (
            nn.Linear(width, sizes.feed_forward, bias=False) for _ in range(2)
        )
        self.down_proj = nn.Linear(sizes.feed_forward, width, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, attend: Attend) -> Tensor:
        """[rows, length, width] to the same. cos, sin: [rows, length, 1, head width]."""
        y = self.input_layernorm(x)
        q, k, v = (
            project(y).unflatten(2, (-1, self.head_width))
            for project in (self.q_proj, self.k_proj, self.v_proj)
        )
        result = attend(self.number, _turn(q, cos, sin), _turn(k, cos, sin), v)
        x = x + self.o_proj(result.flatten(2))
        y = self.post_attention_layernorm(x)
        return x + self.down_proj(functional.silu(self.gate_proj(y)) * self.up_proj(y))


def _turn(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat((-second, first), -1) * sin


class Llama(nn.Module):
    """int64 [rows, length] to logits [rows, length, vocabulary].

    sizes: an `Architecture` that is gated, without biases, dropout or a table of positions.
    context: the most places. stop: runs of ids that end a text, as `Request` takes them.
    """

    def __init__(
        self,
        sizes: Architecture,
        context: int,
        rotary: Rotary = Rotary(),  # noqa: B008  (frozen)
        eps: float = 1e-5,
        stop: tuple[tuple[int, ...], ...] = (),
    ) -> None:
        other = sizes.biases or sizes.dropout or sizes.positions or not sizes.gated
        if other or sizes.norm_vectors != 1:
            raise ValueError(
                f"{sizes.name} is no Llama: needed are gated perceptrons and RMSNorm, and no"
                " biases, dropout or table of positions"
            )
        super().__init__()
        self.sizes, self.context, self.stop = sizes, context, stop
        self.embed_tokens = nn.Embedding(sizes.vocabulary, sizes.width)
        self.layers = nn.ModuleList(Layer(sizes, number, eps) for number in range(sizes.layers))
        self.norm = nn.RMSNorm(sizes.width, eps)
        self.lm_head = nn.Linear(sizes.width, sizes.vocabulary, bias=False)
        if sizes.tied:
            self.lm_head.weight = self.embed_tokens.weight
        cos, sin = rotary.tables(context, sizes.head_width)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)

    def hidden(self, ids: Tensor, places: Tensor, attend: Attend) -> Tensor:
        """What the head reads, [rows, length, width]. ids, places: int64 [rows, length]."""
        x = self.embed_tokens(ids)
        cos, sin = self.cos[places].unsqueeze(2), self.sin[places].unsqueeze(2)
        for layer in self.layers:
            x = layer(x, cos, sin, attend)
        return self.norm(x)

    def forward(self, ids: Tensor) -> Tensor:
        """int64 [rows, length] to logits [rows, length, vocabulary], without a cache."""
        places = torch.arange(ids.shape[1], device=ids.device).expand(ids.shape)
        return self.lm_head(self.hidden(ids, places, causal))


@torch.no_grad()
def plain_loop(
    model: Llama, prompt: Sequence[int], count: int, stop: tuple[tuple[int, ...], ...] = ()
) -> list[int]:
    """The greedy tokens behind a prompt, the whole sequence computed once more for each of them:
    what any way of serving has to give.
    """
    result: list[int] = []
    device = model.embed_tokens.weight.device
    while len(result) < count and not any(result[-len(run) :] == [*run] for run in stop):
        logits = model(torch.tensor([[*prompt, *result]], device=device))
        result.append(int(logits[0, -1].argmax()))
    return result


def load(folder: Path | str, context: int = 0, dtype: torch.dtype = torch.float32) -> Llama:
    """The model of a Hugging Face checkpoint folder: config.json and safetensors files.

    context: the most places, up to the checkpoint's own, which 0 stands for.

    Raises: FileNotFoundError without these files; ValueError for a model of another kind, or
    weights that are not those of its configuration.
    """
    from safetensors.torch import load_file  # late: training here needs no file

    folder = Path(folder)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    sizes, rotary = _sizes(config, str(folder.name)), _rotary(config)
    longest = config["max_position_embeddings"]
    if not 0 <= context <= longest:
        raise ValueError(f"context is {context}, this checkpoint allows 1 to {longest}")
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise FileNotFoundError(
            f"no *.safetensors in {folder}: weights of other kinds are not read"
        )
    weights = {}
    for file in files:
        for name, weight in load_file(file).items():
            short = name.removeprefix("model.")
            weights[short.replace(".self_attn.", ".").replace(".mlp.", ".")] = weight
    if sizes.tied:
        weights.setdefault("lm_head.weight", weights.get("embed_tokens.weight"))
    ends = config.get("eos_token_id")
    ends = ends if isinstance(ends, list) else [ends]
    stop = tuple((end,) for end in ends if end is not None)
    model = Llama(sizes, context or longest, rotary, config.get("rms_norm_eps", 1e-6), stop)
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        raise ValueError(
            f"the weights in {folder} are not those of its config.json: {error}"
        ) from error
    return model.to(dtype).eval()


def _sizes(config: Mapping[str, Any], name: str) -> Architecture:
    heads = config["num_attention_heads"]
    results = {
        "model_type": config.get("model_type"),
        "hidden_act": config.get("hidden_act", "silu"),
        "attention_bias": config.get("attention_bias", False),
        "mlp_bias": config.get("mlp_bias", False),
        "head_dim": config.get("head_dim") or config["hidden_size"] // heads,
    }
    needed = {
        "model_type": "llama",
        "hidden_act": "silu",
        "attention_bias": False,
        "mlp_bias": False,
        "head_dim": config["hidden_size"] // heads,
    }
    if wrong := [key for key in needed if results[key] != needed[key]]:
        raise ValueError(
            f"{name}: {wrong[0]} is {results[wrong[0]]!r}, and this engine serves models with"
            f" {needed[wrong[0]]!r} only"
        )
    return Architecture(
        name,
        layers=config["num_hidden_layers"],
        width=config["hidden_size"],
        heads=heads,
        key_value_heads=config.get("num_key_value_heads") or heads,
        feed_forward=config["intermediate_size"],
        vocabulary=config["vocab_size"],
        tied=config.get("tie_word_embeddings", False),
    )


def _rotary(config: Mapping[str, Any]) -> Rotary:
    # transformers 5 writes rope_parameters, earlier versions rope_theta and rope_scaling.
    rope = config.get("rope_parameters") or config.get("rope_scaling") or {}
    theta = rope.get("rope_theta") or config.get("rope_theta") or 10_000.0
    kind = rope.get("rope_type") or rope.get("type") or "default"
    if kind == "default":
        return Rotary(theta)
    if kind != "llama3":
        raise ValueError(f"rope type is {kind!r}, allowed are 'default' and 'llama3'")
    low, high = rope["low_freq_factor"], rope["high_freq_factor"]
    trained = rope["original_max_position_embeddings"]
    return Rotary(theta, rope["factor"], low, high, trained)
