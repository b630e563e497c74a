"""What is asked of the engine, what it has to serve with, and what has become of a request."""

from collections.abc import Callable
from collections.abc import Sequence as Items
from dataclasses import dataclass, field

from utils.serving.engine.sampling import Sampling


@dataclass(frozen=True)
class Settings:
    """The shapes of an engine; its graphs follow from them, whatever is asked later.

    context: the most tokens of a sequence, prompt and answer. slots: sequences served at a time.
    block_size: tokens of one block of the cache. blocks: how many there are; block 0 takes what
        padding writes and holds no sequence. 0 stands for as many as all slots can fill.
    buckets: lengths to which a piece of a prompt is padded, ascending: a graph for each.
    tokens_per_step: the most tokens computed in a step, padding not counted: those of running
        answers first, then pieces of prompts. 0 stands for all slots and one largest bucket.
    share_prefixes: full blocks are kept and shared with prompts that begin alike.
    max_waiting: requests that may wait; one more is refused.

    Raises ValueError if one of them is too small for the others.
    """

    context: int
    slots: int = 4
    block_size: int = 8
    blocks: int = 0
    buckets: tuple[int, ...] = (8, 32)
    tokens_per_step: int = 0
    share_prefixes: bool = True
    max_waiting: int = 1024

    def __post_init__(self) -> None:
        if min(self.context, self.slots, self.block_size) < 1 or self.max_waiting < 1:
            raise ValueError(f"context, slots, block_size and max_waiting are 1 or more in {self}")
        if not self.buckets or sorted(set(self.buckets)) != [*self.buckets] or self.buckets[0] < 1:
            raise ValueError(f"buckets are lengths from 1 on, ascending; found {self.buckets}")
        # Set here, because a frozen dataclass has no other place for what depends on the others.
        if not self.blocks:
            object.__setattr__(self, "blocks", 1 + self.slots * self.blocks_per_sequence)
        if not self.tokens_per_step:
            object.__setattr__(self, "tokens_per_step", self.slots + self.buckets[-1])
        if self.blocks <= self.blocks_per_sequence:
            raise ValueError(
                f"{self.blocks} blocks of {self.block_size} tokens do not hold one sequence of"
                f" {self.context} tokens: it needs {self.blocks_per_sequence}, and block 0 holds"
                " none; allow more blocks or a shorter context"
            )
        if self.tokens_per_step <= self.slots:
            raise ValueError(
                f"tokens_per_step is {self.tokens_per_step}, but answers in {self.slots} slots take"
                f" a token each and a prompt could wait for ever: allow {self.slots + 1} or more"
            )

    @property
    def blocks_per_sequence(self) -> int:
        """Blocks of a sequence as long as the context."""
        return self.blocks_of(self.context)

    def blocks_of(self, tokens: int) -> int:
        """Blocks that so many tokens fill, the last one perhaps in part."""
        return -(-tokens // self.block_size)


@dataclass(frozen=True)
class Request:
    """prompt: ids of tokens, one or more. max_tokens: the most that are generated.
    stop: runs of ids; an answer ends with the first one that it contains, as with an end-of-text
        token: ((2,),).
    """

    prompt: Items[int]
    max_tokens: int = 16
    sampling: Sampling = Sampling()
    stop: tuple[tuple[int, ...], ...] = ()


@dataclass(eq=False)
class Sequence:
    """A request under way. Those who asked read `generated` and `finish`; the rest is bookkeeping.

    tokens: the prompt and what was generated. computed: how many of them have keys and values in
        `blocks`. stored, prefix: full blocks known to the pool, and its name for their tokens.
    slot: its row in the batch, None while it waits. number: its place in the order of arrival.
    finish: "" while it is under way, then "stop", "length" or "cancelled".
    """

    number: int
    request: Request
    on_token: Callable[[int], None] | None = None
    tokens: list[int] = field(default_factory=list)
    computed: int = 0
    blocks: list[int] = field(default_factory=list)
    stored: int = 0
    prefix: int = 0
    slot: int | None = None
    finish: str = ""

    def __post_init__(self) -> None:
        self.tokens = [*self.request.prompt]

    @property
    def generated(self) -> list[int]:
        """The answer so far; of one that stopped, with what stopped it."""
        return self.tokens[len(self.request.prompt) :]

    @property
    def left(self) -> int:
        """Tokens to compute before the next one can be chosen."""
        return len(self.tokens) - self.computed

    def append(self, token: int) -> None:
        """Take the next token, and finish if it is the last."""
        self.tokens.append(token)
        answer = self.generated
        if any(answer[-len(run) :] == [*run] for run in self.request.stop):
            self.finish = "stop"
        elif len(answer) == self.request.max_tokens:
            self.finish = "length"
