"""Greedy generation with TinyGPT in three ways: without a cache, with one that grows, and with one
of fixed shape.

A graph has fixed shapes, so whatever grows by one with each token is a new graph for each token.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from utils.xla.buckets import bucket_of
from utils.xla.networks import Block, TinyGPT


@dataclass
class Cache:
    """Keys and values of all layers, float32 [layers][batch, heads, capacity, head width] each.

    Of a cache of fixed shape `capacity` is the most that a sequence can have, and places not
    written yet hold zeros; of one that grows it is the length so far.
    """

    keys: list[Tensor]
    values: list[Tensor]

    @property
    def bytes(self) -> int:
        """Of all keys and values, written or not."""
        tensors = (*self.keys, *self.values)
        return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def empty(model: TinyGPT, batch: int, capacity: int) -> Cache:
    """A cache of fixed shape for `capacity` tokens, on the model's device."""
    if not 1 <= capacity <= len(model.places):
        raise ValueError(f"capacity is 1 to {len(model.places)} (the context), found {capacity}")
    width, heads = model.norm.normalized_shape[0], model.blocks[0].heads
    shape = (batch, heads, capacity, width // heads)

    def zeros() -> list[Tensor]:
        return [torch.zeros(shape, device=model.places.device) for _ in model.blocks]

    return Cache(zeros(), zeros())


def advance(model: TinyGPT, cache: Cache, ids: Tensor, start: Tensor) -> Tensor:
    """The logits [batch, length, vocabulary] of `ids`, whose keys and values go into the cache.

    ids: int64 [batch, length]. start: int64 [1] on the device, the place of the first of them: a
    tensor, because a Python number would be part of the graph. Nothing here has a shape that
    depends on `start`, so all tokens share one graph.
    """
    places = model.places[: ids.shape[1]] + start
    x = model.tokens(ids) + model.positions(places)
    capacity = cache.keys[0].shape[2]
    seen = model.places[:capacity] <= places[:, None]  # [length, capacity]: causal, none unwritten
    for layer, block in enumerate(model.blocks):
        q, k, v = _parts(block, x)
        cache.keys[layer] = cache.keys[layer].index_copy(2, places, k)
        cache.values[layer] = cache.values[layer].index_copy(2, places, v)
        x = _finish(block, x, q, cache.keys[layer], cache.values[layer], seen)
    return model.head(model.norm(x))


def _parts(block: Block, x: Tensor) -> Tensor:
    """Queries, keys and values, [3, batch, heads, length, head width]."""
    batch, length, width = x.shape
    parts = block.qkv(block.norm1(x)).view(batch, length, 3, block.heads, width // block.heads)
    return parts.permute(2, 0, 3, 1, 4)


def _finish(
    block: Block, x: Tensor, q: Tensor, k: Tensor, v: Tensor, seen: Tensor | None
) -> Tensor:
    attended = functional.scaled_dot_product_attention(q, k, v, attn_mask=seen)
    x = x + block.project(attended.transpose(1, 2).reshape(x.shape))
    return x + block.down(functional.gelu(block.up(block.norm2(x))))


def fixed(
    model: TinyGPT, prompt: Sequence[int], count: int, buckets: Sequence[int], capacity: int
) -> Tensor:
    """`count` ids that follow the prompt, int64 [count] on the CPU: one graph for each bucket that
    prompts are padded to, and one for all tokens.

    The padding stands behind the prompt: its keys are overwritten before anything looks at them.
    Raises ValueError if prompt and count do not fit into the capacity, or no bucket holds the
    prompt.
    """
    length, bucket = len(prompt), bucket_of(len(prompt), buckets)
    if max(bucket, length + count) > capacity:
        raise ValueError(
            f"a prompt of {length} in a bucket of {bucket} and {count} new ids need a cache for"
            f" {max(bucket, length + count)}, and this one has {capacity} places"
        )
    device = model.places.device
    cache = empty(model, 1, capacity)
    ids = torch.tensor([[*prompt, *[0] * (bucket - length)]]).to(device)
    place = torch.tensor([0]).to(device)
    with torch.no_grad():
        last = torch.tensor([length - 1]).to(device)
        newest = advance(model, cache, ids, place).index_select(1, last).argmax(-1)
        result = torch.zeros(1, capacity, dtype=torch.int64, device=device)
        result, place = result.index_copy(1, last, newest), last
        _mark(device)
        for _ in range(count - 1):
            place = place + 1
            newest = advance(model, cache, newest, place).argmax(-1)
            result = result.index_copy(1, place, newest)
            _mark(device)
    # Read once, at the end: a read in the loop would make the host wait for each token.
    return result.cpu()[0, length - 1 : length - 1 + count]


def growing(model: TinyGPT, prompt: Sequence[int], count: int) -> Tensor:
    """The same ids with a cache that is one longer after each token: a graph for each length."""
    device = model.places.device
    ids = torch.tensor([list(prompt)]).to(device)
    cache, result = None, []
    with torch.no_grad():
        for _ in range(count):
            start = cache.keys[0].shape[2] if cache else 0
            places = model.places[start : start + ids.shape[1]]
            x = model.tokens(ids) + model.positions(places)
            keys, values = [], []
            for layer, block in enumerate(model.blocks):
                q, k, v = _parts(block, x)
                if cache:
                    k = torch.cat([cache.keys[layer], k], 2)
                    v = torch.cat([cache.values[layer], v], 2)
                keys.append(k)
                values.append(v)
                seen = model.places[: k.shape[2]] <= places[:, None]
                x = _finish(block, x, q, k, v, seen)
            cache = Cache(keys, values)
            ids = model.head(model.norm(x))[:, -1:].argmax(-1)
            _mark(device)
            result.append(ids)
    return torch.cat([item.cpu() for item in result], 1)[0]


def repeated(model: TinyGPT, prompt: Sequence[int], count: int) -> Tensor:
    """The same ids without a cache: the whole sequence once more for each token."""
    device = model.places.device
    ids = torch.tensor([list(prompt)]).to(device)
    with torch.no_grad():
        for _ in range(count):
            ids = torch.cat([ids, model(ids)[:, -1:].argmax(-1)], 1)
            _mark(device)
    return ids.cpu()[0, len(prompt) :]


def _mark(device: torch.device) -> None:
    """A step marker, on a device that has them."""
    if device.type == "xla":
        import torch_xla  # slow to load, and not needed on a CPU

        torch_xla.sync()
