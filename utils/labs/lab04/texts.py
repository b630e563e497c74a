"""Sentences of uneven lengths and a small causal model, for lab 04, exercise 3."""

from typing import Any

from torch import Tensor, nn
from torch.nn import functional

from utils.xla.corpus import Vocabulary, sentences

COUNT = 12
"""Sentences in one problem."""


class CausalModel(nn.Module):
    """Next-token logits from the last four tokens: int64 [rows, length] to [rows, length, classes].

    vocabulary: different ids that may come in. classes: different ids that are predicted.
    """

    def __init__(self, vocabulary: int, classes: int, width: int = 8) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.mix = nn.Conv1d(width, width, 4)
        self.head = nn.Linear(width, classes)

    def forward(self, ids: Tensor) -> Tensor:
        x = functional.pad(self.tokens(ids).transpose(1, 2), (3, 0))  # sees what came before only
        return self.head(self.mix(x).tanh().transpose(1, 2))


def draw(case: dict[str, Any], spare_ids: int = 0) -> tuple[CausalModel, list[list[int]]]:
    """The model, on the CPU, and the sentences of a case as lists of ids.

    `spare_ids` ids that no sentence has are added to those that may come in: they make the graphs
    new, and leave the losses as they are.
    """
    import torch

    lines = sentences(COUNT, case["text"])
    letters = Vocabulary.of("".join(lines))
    with torch.random.fork_rng(devices=[]):  # a check must not disturb the learner's random state
        torch.manual_seed(case["seed"])
        model = CausalModel(len(letters), len(letters)).to("cpu", torch.float32)
    known = model.tokens.weight.detach()
    model.tokens = nn.Embedding.from_pretrained(functional.pad(known, (0, 0, 0, spare_ids)))
    return model, [letters.encode(line) for line in lines]
