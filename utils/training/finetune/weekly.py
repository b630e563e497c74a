"""A week of fine-tuning: one adapter trained on a tiny GPT, with the graphs that it took.

Made to run through `utils.xla.fresh`, each week in a process of its own, as a job that starts on
Monday morning. With a `cache` folder torch_xla stores each compiled graph there under its key, a
hash of the graph, so that two weeks can be compared by names of files.

What needs torch or torch_xla is imported late: they take seconds to load.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from utils.xla import corpus

CONTEXT = 32


@dataclass(frozen=True)
class Week:
    """What is fine-tuned, and how.

    base, start, data: seeds of the base's weights, of the new adapter, and of the text.
    rank, alpha, targets: of the adapter. rows, length: of a batch, in sequences and tokens.
    lr: learning rate; lr_is_tensor: it is given to AdamW as a tensor on the device (capturable).
    weight_decay: of AdamW. steps: how many. dtype: of the frozen base. layers: of the base.
    """

    base: int = 0
    start: int = 1
    data: int = 2
    rank: int = 4
    alpha: float = 8.0
    targets: tuple[str, ...] = ("qkv", "project")
    rows: int = 4
    length: int = 16
    lr: float = 0.013
    lr_is_tensor: bool = False
    weight_decay: float = 0.02
    steps: int = 4
    dtype: str = "float32"
    layers: int = 1


@dataclass(frozen=True)
class Done:
    """What a week did.

    compiles: new graphs in each step. losses: in nats per character, one per step.
    keys: names of the graphs in the cache folder, sorted; empty without one.
    hits, misses, failures: of the cache folder; a failure is an entry found that does not load.
    adapter: the SHA-256 of the trained adapter, which tells two weeks apart.
    """

    compiles: tuple[int, ...]
    losses: tuple[float, ...]
    keys: tuple[str, ...]
    hits: int
    misses: int
    failures: int
    adapter: str


def run(week: Week, cache: Path | None = None) -> Done:
    """Train the adapter of one week. `cache`: only in a process that has used no device so far."""
    import torch_xla.runtime
    from torch_xla.debug.metrics import counter_value

    if cache is not None:
        torch_xla.runtime.initialize_cache(str(cache))
    compiles, losses, adapter = _train(week)
    hits, misses, failures = (
        int(counter_value(f"PersistentCache{name}") or 0)
        for name in ("Hit", "Miss", "DeserializeFailure")
    )
    keys = tuple(sorted(path.name for path in cache.iterdir())) if cache is not None else ()
    return Done(compiles, losses, keys, hits, misses, failures, adapter)


def changes(pairs: Mapping[str, tuple[Week, Week]]) -> dict[str, int]:
    """Graphs that are new in the second week of each pair, after the first ran in this process.

    A graph that an earlier pair has compiled would not be new: give each change a shape or a rank
    that no other pair has. All graphs are there after two steps, so that is what each week runs.
    """
    counts: dict[str, int] = {}
    ran: set[Week] = set()
    for name, pair in pairs.items():
        before, after = (replace(week, steps=2) for week in pair)
        if before not in ran:  # once is enough: its graphs stay
            run(before)
            ran.add(before)
        counts[name] = sum(run(after).compiles)
    return counts


def _train(week: Week) -> tuple[tuple[int, ...], tuple[float, ...], str]:
    import torch
    import torch_xla

    from utils.training.finetune import lora
    from utils.xla.meter import Meter
    from utils.xla.networks import TinyGPT, next_token_loss

    device = torch_xla.device()
    text = corpus.text(4_000, seed=week.data)
    letters = corpus.Vocabulary.of(corpus.text(20_000))
    data = torch.tensor(letters.encode(text))
    chance = torch.Generator().manual_seed(week.data)
    torch.manual_seed(week.base)
    model = TinyGPT(len(letters), width=16, layers=week.layers, context=CONTEXT)
    model = model.to(getattr(torch, week.dtype))
    torch.manual_seed(week.start)
    lora.add(model, week.targets, week.rank, week.alpha)
    optimizer = _adamw(lora.trainable(model.to(device)), week, device)

    compiles: list[int] = []
    losses: list[float] = []
    for _ in range(week.steps):
        begins = torch.randint(len(data) - week.length, (week.rows, 1), generator=chance)
        windows = data[begins + torch.arange(week.length + 1)]
        ids, targets = (part.contiguous().to(device) for part in (windows[:, :-1], windows[:, 1:]))
        with Meter() as meter:
            optimizer.zero_grad()
            loss = next_token_loss(model(ids), targets)
            loss.backward()
            optimizer.step()
            torch_xla.sync()
        compiles.append(meter.reading.compiles)
        losses.append(loss.item())
    stored = b"".join(part.float().numpy().tobytes() for part in lora.adapter(model).values())
    return tuple(compiles), tuple(losses), hashlib.sha256(stored).hexdigest()


def _adamw(parameters: list[Any], week: Week, device: Any) -> Any:
    import torch

    # One dimension: a tensor without any is a number in disguise, and 0 would be a constant.
    lr = torch.tensor([week.lr]).to(device) if week.lr_is_tensor else week.lr
    return torch.optim.AdamW(
        parameters, lr=lr, weight_decay=week.weight_decay, capturable=week.lr_is_tensor,
        foreach=False,
    )  # fmt: skip
