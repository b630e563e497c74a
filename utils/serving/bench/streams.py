"""Generation of text as its reader sees it: the wait for the first token, then for each other."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from utils.serving.bench.quantiles import Summary, summary
from utils.serving.bench.timing import CLOCK, Clock, Waited, timed


@dataclass(frozen=True)
class Tokens:
    """Times of generated texts, in seconds.

    first_s: of each text, from the request until its first token is computed. It lies on the device
        then; who reads it pays the way to the host on top.
    next_s: of each text, between each token and the one before.
    """

    first_s: tuple[float, ...]
    next_s: tuple[tuple[float, ...], ...]

    @property
    def to_first(self) -> Summary:
        """Time to first token, over the texts."""
        return summary(self.first_s)

    @property
    def per_output_token(self) -> Summary:
        """Time per output token after the first, one mean for each text, over the texts."""
        return summary(sum(gaps) / len(gaps) for gaps in self.next_s)

    @property
    def between(self) -> Summary:
        """Time from one token to the next, over all tokens: where a text stalls, p99 shows it."""
        return summary(gap for gaps in self.next_s for gap in gaps)

    @property
    def tokens_per_second(self) -> float:
        """Tokens over seconds, first tokens and their wait among them, of one text at a time."""
        gaps = [gap for text in self.next_s for gap in text]
        return (len(self.first_s) + len(gaps)) / (sum(self.first_s) + sum(gaps))


def tokens(
    begin: Callable[[], Any],
    step: Callable[[], Any],
    device: Waited,
    count: int = 32,
    texts: int = 8,
    warmup: int = 1,
    clock: Clock = CLOCK,
) -> Tokens:
    """Time the generation of texts of `count` tokens, one text after the other.

    Args:
        begin: takes a prompt in and returns the first token; all that a text starts with.
        step: returns one token more, of the text begun last.
        device: of `utils.xla.devices.get`.
        count: tokens of one text, at least 2. texts: that count. warmup: texts before them, at
            least 1: the first compiles.

    Each token ends with the device idle, as it must be before somebody can read it. Let `begin` and
    `step` read it (`.item()`) if that is to be part of the times.

    Raises: ValueError for a smaller number.
    """
    for name, value, least in (("count", count, 2), ("texts", texts, 1), ("warmup", warmup, 1)):
        if value < least:
            raise ValueError(f"{name} is {value}, but at least {least} is needed")
    device.wait()
    firsts, gaps = [], []
    for _ in range(warmup + texts):
        firsts.append(timed(begin, device, clock))
        gaps.append(tuple(timed(step, device, clock) for _ in range(count - 1)))
    return Tokens(tuple(firsts[warmup:]), tuple(gaps[warmup:]))
