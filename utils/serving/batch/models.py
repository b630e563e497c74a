"""Models of a batch run: a function of a bucket and texts, made once in each process.

`load("letters", ...)` is the course's small Llama, which scores texts. `load("FILE.py:NAME", ...)`
calls NAME(batch, buckets) of a file; what it returns is called with a bucket and at most `batch`
texts, each of at most as many characters, and returns a JSON value for each. If it has `ahead` and
`later`, they count graphs compiled when it was made and since.
"""

import importlib.util
import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

Model = Callable[[int, Sequence[str]], Sequence[Any]]
ROOT = Path(__file__).resolve().parents[3]


def load(name: str, batch: int, buckets: Sequence[int]) -> Model:
    """The model, with every bucket compiled. Raises ValueError for a name that leads nowhere."""
    if name == "letters":
        return _letters(batch, buckets)
    path, mark, factory = name.rpartition(":")
    spec = importlib.util.spec_from_file_location("batch_model", path) if mark else None
    if spec is None or spec.loader is None or not Path(path).is_file():
        raise ValueError(f"--model {name}: give letters, or FILE.py:NAME of a file that exists")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if not hasattr(module, factory):
        raise ValueError(f"--model {name}: {path} defines no {factory}")
    return getattr(module, factory)(batch, tuple(buckets))


def _letters(batch: int, buckets: Sequence[int]) -> Model:
    # Late: torch and torch_xla take seconds, and whoever brings a model may do without them.
    import torch
    import torch_xla

    from utils.serving.engine import letters
    from utils.xla.meter import Meter

    device = torch_xla.device()  # before any backward pass: see letters
    network, vocabulary = letters.load(ROOT / ".tools" / "serve")
    if max(buckets) > network.context:
        raise ValueError(f"letters reads {network.context} characters, a bucket has {max(buckets)}")
    network = network.to(device).requires_grad_(False)

    class Letters:
        """Bits that the model needs for each text: the fewer, the better it foresaw it."""

        def __init__(self) -> None:
            self.ahead = self.later = 0
            for bucket in buckets:
                self(bucket, ["a"])
            self.ahead, self.later = self.later, 0

        @torch.no_grad()
        def __call__(self, bucket: int, texts: Sequence[str]) -> list[Any]:
            ids = torch.zeros(batch, bucket, dtype=torch.int64)
            lengths = torch.zeros(batch, 1, dtype=torch.int64)
            for row, text in enumerate(texts):
                ids[row, : len(text)] = torch.tensor(vocabulary.encode(text))
                lengths[row] = len(text)
            read = torch.arange(1, bucket) < lengths  # what a character before it foretells
            with Meter() as meter:
                inputs, read = ids.to(device), read.to(device)
                surprise = -torch.log_softmax(network(inputs).float(), -1)[:, :-1]
                chosen = surprise.gather(2, inputs[:, 1:, None])[..., 0]
                bits = (chosen * read).sum(1) / math.log(2)
                values = bits.cpu().tolist()
            self.later += meter.reading.compiles
            return [
                {"bits": round(value, 3), "characters": len(text)}
                for value, text in zip(values, texts, strict=False)
            ]

    return Letters()


def answer(model: Model, batch: int, bucket: int, texts: Sequence[str]) -> list[dict[str, Any]]:
    """For each text {"result": value}, or {"reason": why there is none}. Where a batch raises, its
    texts are computed one by one.
    """
    entries: list[dict[str, Any]] = []
    for begin in range(0, len(texts), batch):
        group = list(texts[begin : begin + batch])
        try:
            values = list(model(bucket, group))
            if len(values) != len(group):
                raise ValueError(f"the model gave {len(values)} results for {len(group)} texts")
            json.dumps(values, allow_nan=False)
            entries += [{"result": value} for value in values]
        except Exception as error:
            if len(group) == 1:
                entries.append({"reason": f"{type(error).__name__}: {error}"})
            else:
                entries += [answer(model, batch, bucket, [text])[0] for text in group]
    return entries
