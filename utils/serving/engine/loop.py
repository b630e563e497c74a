"""The engine: takes requests, runs step after step, hands out tokens as they come.

One thread uses it. Nothing here knows what computes the logits: a `Runner` does.
"""

from collections.abc import Callable, Iterator
from collections.abc import Sequence as Items
from dataclasses import dataclass, fields
from itertools import count
from typing import Protocol

import numpy as np

from utils.serving.engine.requests import Request, Sequence, Settings
from utils.serving.engine.sampling import sample
from utils.serving.engine.scheduler import Scheduler
from utils.xla.buckets import bucket_of


class Runner(Protocol):
    """Computes logits, and keeps keys and values in the blocks that it is given."""

    settings: Settings
    vocabulary: int

    def prefill(self, tokens: Items[int], start: int, blocks: Items[int]) -> np.ndarray:
        """Logits [vocabulary] behind a piece of a sequence whose first token has place `start`."""

    def decode(self, rows: Items[tuple[int, int, Items[int]] | None]) -> np.ndarray:
        """Logits [slots, vocabulary] behind one token of each slot: (token, place, blocks), or None
        for a slot that is empty.
        """


class Overloaded(RuntimeError):
    """As many requests wait as may."""


@dataclass
class Counts:
    """What an engine has done so far, in steps, rows and tokens.

    steps: in all. chunks: pieces of prompts, each an execution. decodes: executions of the decode
        graph. prefill_tokens, prefill_rows: tokens of pieces, and with their padding.
    decode_tokens, decode_rows: rows of decodes that had a sequence, and all.
    cached_tokens: prompt tokens found in the prefix cache. preemptions: of running sequences.
    """

    steps: int = 0
    chunks: int = 0
    decodes: int = 0
    prefill_tokens: int = 0
    prefill_rows: int = 0
    decode_tokens: int = 0
    decode_rows: int = 0
    cached_tokens: int = 0
    preemptions: int = 0

    def __str__(self) -> str:
        """
        >>> print(Counts(steps=2, chunks=1, decodes=1, prefill_tokens=5, prefill_rows=8))
        2 steps, 1 chunks, 1 decodes, 5 prefill tokens, 8 prefill rows
        """
        values = {field.name.replace("_", " "): getattr(self, field.name) for field in fields(self)}
        return ", ".join(f"{value} {name}" for name, value in values.items() if value)


class Engine:
    """Serves requests with a runner, in its shapes."""

    def __init__(self, runner: Runner) -> None:
        self.runner, self.settings = runner, runner.settings
        self.scheduler = Scheduler(self.settings)
        self._counts = Counts()
        self._numbers = count()

    @property
    def counts(self) -> Counts:
        """What was done so far."""
        self._counts.preemptions = self.scheduler.preemptions
        self._counts.cached_tokens = self.scheduler.cached_tokens
        return self._counts

    @property
    def busy(self) -> bool:
        """Whether any request waits or runs."""
        return bool(self.scheduler.waiting or self.scheduler.running)

    def submit(self, request: Request, on_token: Callable[[int], None] | None = None) -> Sequence:
        """Let a request wait for its turn; later steps generate its tokens.

        on_token: called with each token at once. It may cancel requests and submit new ones; while
            it runs, everything waits for it.

        Raises: ValueError for a request that cannot be served; Overloaded if too many wait.
        """
        check(request, self.settings.context, self.runner.vocabulary)
        if len(self.scheduler.waiting) >= self.settings.max_waiting:
            raise Overloaded(
                f"{self.settings.max_waiting} requests wait already, which is the most: send it"
                " again later"
            )
        sequence = Sequence(next(self._numbers), request, on_token)
        self.scheduler.add(sequence)
        return sequence

    def cancel(self, sequence: Sequence) -> None:
        """Stop a request at once and free what it held; one that has finished stays as it is."""
        if not sequence.finish:
            sequence.finish = "cancelled"
            self.scheduler.remove(sequence)

    def step(self) -> None:
        """One step: each running answer gets a token, and prompts get on with what tokens of the
        step are left.

        Raises what the runner raises: the step may be run again then, and gives the same tokens.
        What a callback raises cancels its own request and comes out when the step is done.
        """
        step = self.scheduler.plan()
        counts = self._counts
        ready: list[tuple[Sequence, np.ndarray]] = []
        for chunk in step.chunks:
            sequence, end = chunk.sequence, chunk.start + chunk.length
            logits = self.runner.prefill(
                sequence.tokens[chunk.start : end], chunk.start, sequence.blocks
            )
            if chunk.last:
                ready.append((sequence, logits))
            counts.chunks += 1
            counts.prefill_tokens += chunk.length
            counts.prefill_rows += bucket_of(chunk.length, self.settings.buckets)
        if step.decodes:
            rows: list[tuple[int, int, Items[int]] | None] = [None] * self.settings.slots
            for element in step.decodes:
                assert element.slot is not None  # it runs
                rows[element.slot] = element.tokens[-1], element.computed, element.blocks
            batch = self.runner.decode(rows)
            ready += [(element, batch[element.slot]) for element in step.decodes]
            counts.decodes += 1
            counts.decode_tokens += len(step.decodes)
            counts.decode_rows += self.settings.slots
        counts.steps += 1
        self.scheduler.computed(step)
        errors: list[Exception] = []
        for sequence, logits in sorted(ready, key=lambda item: item[0].number):
            if not sequence.finish:  # another one's callback may have cancelled it
                try:
                    self._next_token(sequence, logits)
                except Exception as error:  # whatever a callback can raise
                    self.cancel(sequence)
                    errors.append(error)
        if errors:
            raise errors[0]

    def _next_token(self, sequence: Sequence, logits: np.ndarray) -> None:
        token = sample(logits, sequence.request.sampling, len(sequence.tokens))
        sequence.append(token)
        if sequence.finish:
            self.scheduler.remove(sequence)
        if sequence.on_token:
            sequence.on_token(token)

    def run(self) -> None:
        """Step until nothing waits or runs."""
        while self.busy:
            self.step()

    def stream(self, request: Request) -> Iterator[int]:
        """The tokens of a request, each as soon as it is there; other requests go on meanwhile.

        The request is submitted at once; a loop that is left before its end cancels it.
        """
        return self._tokens(self.submit(request))

    def _tokens(self, sequence: Sequence) -> Iterator[int]:
        given = 0
        try:
            while True:
                while given < len(sequence.generated):
                    given += 1
                    yield sequence.generated[given - 1]
                if sequence.finish:
                    return
                self.step()
        finally:
            self.cancel(sequence)


def check(request: Request, context: int, vocabulary: int) -> None:
    """Raises ValueError, saying what to do, for a request that no step could serve."""
    length = len(request.prompt)
    if not length or request.max_tokens < 1:
        raise ValueError(
            f"a prompt has 1 token or more and max_tokens is 1 or more; found {length} and"
            f" {request.max_tokens}"
        )
    if length + request.max_tokens > context:
        raise ValueError(
            f"a prompt of {length} tokens and {request.max_tokens} more are"
            f" {length + request.max_tokens}, but the context holds {context}: shorten the prompt"
            " or ask for fewer tokens"
        )
    if strange := [token for token in request.prompt if not 0 <= token < vocabulary]:
        raise ValueError(
            f"the prompt has the token {strange[0]}, but ids are 0 to {vocabulary - 1}: encode it"
            " with the vocabulary of this model"
        )
    if any(not run for run in request.stop):
        raise ValueError("a stop has no token: leave it out, or give it one or more")
