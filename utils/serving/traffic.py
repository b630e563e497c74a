"""An engine under load on a virtual clock: who waited for what, in modelled seconds or in steps.

The engine is the real one, with its scheduler, blocks and prefixes; only its executions are
replaced or timed. Seconds are those that the two functions given to `Timed` say, such as the bounds
of a chip: no time of this machine goes in.

    from utils.serving import traffic
    engine = Engine(traffic.Timed(Settings(4096, slots=32), *traffic.bounds(model, chip)))
    served = traffic.serve(engine, [(0.0, Request([1] * 500, 100)), ...])
    traffic.goodput_per_s(served, first_s=1.0, token_s=0.05)
"""

import math
from collections.abc import Callable, Iterable
from collections.abc import Sequence as Items
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np

from utils.chip.hardware import Machine
from utils.cost.planner.architecture import Architecture
from utils.serving import generation
from utils.serving.engine import Engine, Request, Settings
from utils.serving.engine.loop import Runner
from utils.xla.buckets import bucket_of

PrefillSeconds = Callable[[int, int], float]
"""Seconds of a piece of a prompt, of its tokens with their padding and of its first place."""
DecodeSeconds = Callable[[Items[int]], float]
"""Seconds of one decode, of the lengths of its sequences."""


class Timed:
    """A runner that lets a clock run.

    now_s: the clock. decodes: of each decode, the place that each slot computed, None if empty.
    inner: the runner that computes; without one every token is 0, and nothing is computed.
    """

    def __init__(
        self,
        settings: Settings,
        prefill_s: PrefillSeconds,
        decode_s: DecodeSeconds,
        inner: Runner | None = None,
    ) -> None:
        self.settings, self.inner = settings, inner
        self.vocabulary = inner.vocabulary if inner else 1_000_000
        self.prefill_s, self.decode_s = prefill_s, decode_s
        self.now_s = 0.0
        self.decodes: list[tuple[int | None, ...]] = []

    def prefill(self, tokens: Items[int], start: int, blocks: Items[int]) -> np.ndarray:
        """As `loop.Runner`; the clock goes on by the seconds of the bucket."""
        self.now_s += self.prefill_s(bucket_of(len(tokens), self.settings.buckets), start)
        return self.inner.prefill(tokens, start, blocks) if self.inner else np.zeros(1)

    def decode(self, rows: Items[tuple[int, int, Items[int]] | None]) -> np.ndarray:
        """As `loop.Runner`; the clock goes on by the seconds of one decode."""
        self.now_s += self.decode_s([row[1] + 1 for row in rows if row])
        self.decodes.append(tuple(row[1] if row else None for row in rows))
        return self.inner.decode(rows) if self.inner else np.zeros((len(rows), 1))


def bounds(
    model: Architecture, machine: Machine, dtype: str = "bf16"
) -> tuple[PrefillSeconds, DecodeSeconds]:
    """Least seconds of pieces of prompts and of decodes on a machine: its roofline.

    Host, sampling, collectives and padding of the decode batch come on top on a real one.
    """

    @cache
    def prefill_s(tokens: int, start: int) -> float:
        return generation.prefill(model, machine, tokens, dtype=dtype, start=start).seconds

    @cache
    def of_batch(batch: int, mean: int) -> float:
        return generation.decode(model, machine, mean, batch, dtype).seconds

    return prefill_s, lambda lengths: of_batch(len(lengths), round(sum(lengths) / len(lengths)))


@dataclass(frozen=True)
class Served:
    """What a request waited for. due_s: when it came. times_s: of each of its tokens."""

    due_s: float
    times_s: tuple[float, ...]

    @property
    def first_token_s(self) -> float:
        """From when it came to its first token (time to first token, TTFT)."""
        return self.times_s[0] - self.due_s

    @property
    def per_token_s(self) -> float:
        """Mean of each token after the first (time per output token, TPOT); 0 if there is none."""
        count = len(self.times_s) - 1
        return (self.times_s[-1] - self.times_s[0]) / count if count else 0.0

    @property
    def longest_gap_s(self) -> float:
        """The longest wait between two tokens: a stall that the mean hides; 0 for one token."""
        return max((later - sooner for sooner, later in pairwise(self.times_s)), default=0.0)


Arrivals = Iterable[tuple[float, Request]]
"""When each request comes, in seconds, ascending."""


def serve(engine: Engine, arrivals: Arrivals, join: bool = True) -> list[Served]:
    """Serve requests as they come, and say when each token was there, in their order.

    engine: new, with a `Timed` runner. join: requests join the running batch at any step; otherwise
    a batch starts when the one before is finished, with the requests that have come by then
    (static batching).

    Raises ValueError for times that descend, and what `Engine.submit` raises.
    """
    clock = engine.runner
    if not isinstance(clock, Timed):
        raise ValueError(f"the runner is a {type(clock).__name__}: serve needs a Timed around it")
    waiting = [*arrivals]
    if any(later[0] < sooner[0] for sooner, later in pairwise(waiting)):
        raise ValueError("requests are given in the order in which they come: sort them by time")
    times: list[list[float]] = [[] for _ in waiting]
    sent = 0
    while sent < len(waiting) or engine.busy:
        if not engine.busy:
            clock.now_s = max(clock.now_s, waiting[sent][0])
        room = math.inf if join else 0 if engine.busy else engine.settings.slots
        while sent < len(waiting) and waiting[sent][0] <= clock.now_s and room:
            engine.submit(waiting[sent][1], _note(times[sent], clock))
            sent, room = sent + 1, room - 1
        engine.step()
    return [Served(due, tuple(seen)) for (due, _), seen in zip(waiting, times, strict=True)]


def _note(times: list[float], clock: Timed) -> Callable[[int], None]:
    return lambda token: times.append(clock.now_s)


def serve_apart(
    arrivals: Arrivals,
    prefill_s: Callable[[int], float],
    transfer_s: Callable[[int], float],
    engine: Engine,
) -> list[Served]:
    """Prompts on a machine of their own, one after the other; keys and values are then sent to a
    second one, which decodes.

    prefill_s, transfer_s: of the tokens of a prompt. The first token comes with the prefill, the
    others from `engine`, whose `Timed` runner takes no time for prompts.
    """
    free_s, firsts, handed = 0.0, [], []
    for due, request in arrivals:
        free_s = max(free_s, due) + prefill_s(len(request.prompt))
        firsts.append((due, free_s))
        if request.max_tokens > 1:
            rest = Request([*request.prompt, 0], request.max_tokens - 1)
            handed.append((free_s + transfer_s(len(request.prompt)), len(firsts) - 1, rest))
    handed.sort(key=lambda item: item[:2])
    decoded = serve(engine, [(time, request) for time, _, request in handed])
    later = {number: item for (_, number, _), item in zip(handed, decoded, strict=True)}
    return [
        Served(due, (first, *(later[number].times_s if number in later else ())))
        for number, (due, first) in enumerate(firsts)
    ]


def attainment(served: Items[Served], first_s: float, token_s: float) -> float:
    """Share of the requests that kept a service level: first token within first_s, and each token
    after it within token_s on average.
    """
    good = sum(item.first_token_s <= first_s and item.per_token_s <= token_s for item in served)
    return good / len(served)


def goodput_per_s(served: Items[Served], first_s: float, token_s: float) -> float:
    """Requests a second that kept the service level, from the first arrival to the last token."""
    end_s = max(item.times_s[-1] for item in served)
    return attainment(served, first_s, token_s) * len(served) / (end_s - served[0].due_s)
