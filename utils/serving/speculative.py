"""Speculative decoding: a small model drafts tokens, the large one checks them all in one pass.

What comes out is distributed exactly as the large model's own tokens, whatever the draft: Leviathan
et al., "Fast inference from transformers via speculative decoding", ICML 2023, and Chen et al.,
"Accelerating large language model decoding with speculative sampling", 2023. NumPy only.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from utils.serving.engine.sampling import Sampling, choose, probabilities

Model = Callable[[Sequence[int]], np.ndarray]
"""Tokens to logits [tokens, vocabulary]: row i is what follows the first i + 1 tokens."""


def verify(
    drafted: Sequence[int], draft: np.ndarray, target: np.ndarray, random: np.random.Generator
) -> list[int]:
    """The tokens that a pass gives: drafted ones as far as they are accepted, and one more.

    drafted: each drawn from its row of draft. draft: [drafted, vocabulary] probabilities.
    target: [drafted + 1, vocabulary], those of the large model at the same places.

    A drafted token is kept with probability target / draft. The first one that is not is drawn
    anew from what of the target the draft left uncovered; after the last one, a token is free.

    Raises ValueError if the shapes do not fit, or a token has probability 0 in its own draft.
    """
    draft, target = np.asarray(draft, dtype=float), np.asarray(target, dtype=float)
    count = len(drafted)
    if len(draft) != count or len(target) != count + 1:
        raise ValueError(
            f"{count} drafted tokens need {count} rows of draft and {count + 1} of target, found"
            f" {len(draft)} and {len(target)}"
        )
    for place, token in enumerate(drafted):
        if not draft[place, token] > 0:
            raise ValueError(
                f"token {token} at place {place} was not drawn from its draft, which gives it"
                " probability 0: pass the distributions that tokens were drawn from"
            )
        if random.random() * draft[place, token] >= target[place, token]:
            uncovered = np.maximum(target[place] - draft[place], 0)
            return [*drafted[:place], choose(uncovered, random.random())]
    return [*drafted, choose(target[count], random.random())]


def acceptance(draft: np.ndarray, target: np.ndarray) -> float:
    """Probability that a token drawn from the draft is kept: what both distributions share.

    >>> acceptance(np.array([0.5, 0.5, 0.0]), np.array([0.25, 0.5, 0.25]))
    0.75
    """
    return float(np.minimum(draft, target).sum())


def tokens_per_pass(accepted: float, length: int) -> float:
    """Tokens that a pass over `length` drafted ones gives on average, each kept with the same
    probability, as if they were independent.

    >>> tokens_per_pass(0.5, 2)
    1.75
    """
    if not 0 <= accepted <= 1 or length < 0:
        raise ValueError(f"accepted is 0 to 1 and length 0 or more, found {accepted}, {length}")
    return float(sum(accepted**kept for kept in range(length + 1)))


def speedup(accepted: float, length: int, draft_cost: float, check_cost: float = 1.0) -> float:
    """Tokens in the time of one plain token: above 1 the drafts pay, below 1 they lose.

    draft_cost: a token of the draft, check_cost: the pass over all drafted ones, both in times of a
    plain token of the large model. A pass costs 1 as long as reading weights bounds it.

    >>> speedup(0.5, 2, draft_cost=0.1), speedup(0.1, 4, draft_cost=0.1) < 1
    (1.4583333333333335, True)
    """
    return tokens_per_pass(accepted, length) / (length * draft_cost + check_cost)


@dataclass(frozen=True)
class Speculated:
    """tokens: the answer. passes: of the large model. drafted, accepted: tokens."""

    tokens: tuple[int, ...]
    passes: int
    drafted: int
    accepted: int


def speculate(
    target: Model,
    draft: Model,
    prompt: Sequence[int],
    count: int,
    length: int,
    sampling: Sampling = Sampling(),  # noqa: B008  (frozen)
) -> Speculated:
    """`count` tokens behind a prompt, at most `length` drafted at a time.

    Temperature 0 gives exactly the greedy tokens of the target. Nothing is cached: every call
    computes its sequence from the start.
    """
    random = np.random.default_rng(sampling.seed)
    tokens, passes, drafted, accepted = [*prompt], 0, 0, 0
    end = len(prompt) + count
    while len(tokens) < end:
        guesses: list[int] = []
        rows = []
        for _ in range(min(length, end - len(tokens) - 1)):
            rows.append(probabilities(draft([*tokens, *guesses])[-1], sampling))
            guesses.append(choose(rows[-1], random.random()))
        logits = target([*tokens, *guesses])[len(tokens) - 1 :]
        wanted = np.array([probabilities(row, sampling) for row in logits])
        more = verify(guesses, np.array(rows).reshape(-1, wanted.shape[1]), wanted, random)
        tokens += more
        passes, drafted, accepted = passes + 1, drafted + len(guesses), accepted + len(more) - 1
    return Speculated(tuple(tokens[len(prompt) :]), passes, drafted, accepted)
