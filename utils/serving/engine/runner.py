"""A Llama and its cache of blocks on a device: one graph for each bucket, and one for decoding.

Both are the same computation on other shapes: [1, bucket] tokens of one sequence, or [slots, 1] of
all. Where a token is written and what it may see are tensors, so no graph depends on the traffic.
"""

from collections.abc import Sequence as Items

import numpy as np
import torch
from torch import Tensor

from utils.serving.engine.llama import Llama, attention
from utils.serving.engine.requests import Settings
from utils.xla.buckets import bucket_of

Row = tuple[Items[int], int, Items[int]]
"""Tokens, the place of the first, and the blocks of their sequence."""


class Cells:
    """Keys or values of one layer, a cell for each place of each block, as the model computes them.

    shape: (cells, key_value_heads, head width).
    """

    def __init__(
        self, shape: tuple[int, int, int], dtype: torch.dtype, device: torch.device
    ) -> None:
        # Made on the host: zeros made on an XLA device would be a part of the first graph.
        self.content = torch.zeros(shape, dtype=dtype).to(device)

    @property
    def nbytes(self) -> int:
        """Of all cells, used or not."""
        return self.content.nbytes

    def write(self, cells: Tensor, x: Tensor) -> None:
        """x: [n, key_value_heads, head width], for cells [n]."""
        self.content.index_copy_(0, cells, x)

    def read(self, cells: Tensor) -> Tensor:
        """[..., key_value_heads, head width] of cells [...]."""
        return self.content[cells]


class QuantisedCells(Cells):
    """The same in INT8, with a scale for each cell and head."""

    def __init__(
        self, shape: tuple[int, int, int], dtype: torch.dtype, device: torch.device
    ) -> None:
        super().__init__(shape, torch.int8, device)
        self.scales = torch.zeros((*shape[:2], 1), dtype=dtype).to(device)

    @property
    def nbytes(self) -> int:
        """Of all cells, with their scales."""
        return self.content.nbytes + self.scales.nbytes

    def write(self, cells: Tensor, x: Tensor) -> None:
        """As `Cells`; the largest value of a cell and head becomes 127."""
        scales = x.abs().amax(-1, keepdim=True).clamp(min=1e-9) / 127
        self.content.index_copy_(0, cells, (x / scales).round().to(torch.int8))
        self.scales.index_copy_(0, cells, scales)

    def read(self, cells: Tensor) -> Tensor:
        """As `Cells`, in the dtype of the model."""
        return self.content[cells].to(self.scales.dtype) * self.scales[cells]


class Runner:
    """Computes logits for an `Engine`, as `loop.Runner` describes.

    The model itself moves to the device, and its weights are no longer trained.
    keys, values: of each layer, the cells of all blocks. cache: how they are kept, a class below.
    """

    def __init__(
        self,
        model: Llama,
        settings: Settings,
        device: torch.device | str = "cpu",
        cache: type["Cells"] | None = None,
    ) -> None:
        if settings.context > model.context:
            raise ValueError(
                f"the settings allow {settings.context} tokens, the model {model.context}: lower"
                " the context of the settings"
            )
        self.settings, self.vocabulary = settings, model.sizes.vocabulary
        self.device = torch.device(device)
        self.model = model.to(self.device).eval().requires_grad_(False)
        sizes = model.sizes
        shape = (settings.blocks * settings.block_size, sizes.key_value_heads, sizes.head_width)
        dtype, kind = model.embed_tokens.weight.dtype, cache or Cells
        self.keys = [kind(shape, dtype, self.device) for _ in range(sizes.layers)]
        self.values = [kind(shape, dtype, self.device) for _ in range(sizes.layers)]

    @property
    def cache_bytes(self) -> int:
        """Of all blocks, used or not."""
        return sum(cells.nbytes for cells in (*self.keys, *self.values))

    def warm_up(self) -> None:
        """Run every graph once, on block 0, so that no request waits for a compiler."""
        for bucket in self.settings.buckets:
            self.prefill([0] * min(bucket, self.settings.context), 0, [])
        self.decode([None] * self.settings.slots)

    def prefill(self, tokens: Items[int], start: int, blocks: Items[int]) -> np.ndarray:
        """Logits [vocabulary] behind a piece of a sequence; its keys and values are kept."""
        bucket = bucket_of(len(tokens), self.settings.buckets)
        return self._run([(tokens, start, blocks)], bucket)[0]

    def decode(self, rows: Items[tuple[int, int, Items[int]] | None]) -> np.ndarray:
        """Logits [slots, vocabulary] behind one token of each slot; of an empty one they mean
        nothing.
        """
        return self._run([((row[0],), *row[1:]) if row else ((), 0, ()) for row in rows], 1)

    @torch.no_grad()
    def _run(self, rows: list[Row], length: int) -> np.ndarray:
        size, sees = self.settings.block_size, self.settings.blocks_per_sequence
        ids, places, targets = (np.zeros((len(rows), length), np.int64) for _ in range(3))
        tables = np.zeros((len(rows), sees), np.int64)
        last = np.zeros(len(rows), np.int64)
        for row, (tokens, start, blocks) in enumerate(rows):
            tables[row, : len(blocks)] = blocks
            count = len(tokens)
            at = np.arange(start, start + count)
            ids[row, :count], places[row, :count] = tokens, at
            # Padding, and a row without a sequence, keeps target 0: the first place of block 0.
            targets[row, :count] = tables[row, at // size] * size + at % size
            last[row] = max(count - 1, 0)
        inputs = (ids, places, targets, tables, last)
        logits = self._logits(*[torch.from_numpy(item).to(self.device) for item in inputs])
        if self.device.type == "xla":
            import torch_xla  # late: slow to load, and not needed on a CPU

            torch_xla.sync()
        return logits.cpu().double().numpy()

    def _logits(
        self, ids: Tensor, places: Tensor, targets: Tensor, tables: Tensor, last: Tensor
    ) -> Tensor:
        """Logits [rows, vocabulary] behind the token at `last` of each row.

        ids, places, targets: int64 [rows, length]: tokens, their places in their sequences, and in
        the cache. tables: int64 [rows, blocks of a sequence]. last: int64 [rows].
        """
        size = self.settings.block_size
        offsets = torch.arange(size, device=self.device)
        cells = (tables[:, :, None] * size + offsets).flatten(1)  # [rows, places of a sequence]
        known = torch.arange(cells.shape[1], device=self.device)
        seen = known <= places[:, :, None]

        def attend(layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            keys, values = self.keys[layer], self.values[layer]
            keys.write(targets.flatten(), k.flatten(0, 1))
            values.write(targets.flatten(), v.flatten(0, 1))
            return attention(q, keys.read(cells), values.read(cells), seen)

        hidden = self.model.hidden(ids, places, attend)
        return self.model.lm_head(hidden[torch.arange(len(last), device=self.device), last])
