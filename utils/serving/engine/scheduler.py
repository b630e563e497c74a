"""Who computes what in the next step. Plain Python: no tensor, no clock.

Sequences run in the order of their arrival. One that has a single token to compute, its newest,
has a row in the decode batch; one with more (a prompt, or all of a pre-empted sequence) computes
them in pieces, as far as the step's tokens go. If no block is free for a running sequence, the
youngest one gives up its blocks and waits again; it keeps its tokens and computes them anew.
"""

from collections import deque
from dataclasses import dataclass

from utils.serving.engine.blocks import BlockPool
from utils.serving.engine.requests import Sequence, Settings


@dataclass(frozen=True)
class Chunk:
    """A piece of a prompt: `length` tokens of the sequence from `start` on."""

    sequence: Sequence
    start: int
    length: int

    @property
    def last(self) -> bool:
        """Whether the next token can be chosen after it."""
        return self.start + self.length == len(self.sequence.tokens)


@dataclass(frozen=True)
class Step:
    """What one step computes: pieces one after the other, then one token of each of `decodes`."""

    chunks: tuple[Chunk, ...]
    decodes: tuple[Sequence, ...]


class Scheduler:
    """Sequences that wait and that run, and the blocks that they share."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.pool = BlockPool(settings.blocks, settings.block_size, settings.share_prefixes)
        self.waiting: deque[Sequence] = deque()
        self.running: list[Sequence] = []  # the oldest first, all older than those that wait
        self.preemptions = self.cached_tokens = 0
        self._slots = set(range(settings.slots))

    def add(self, sequence: Sequence) -> None:
        """Let a new sequence wait."""
        self.waiting.append(sequence)

    def remove(self, sequence: Sequence) -> None:
        """Forget a sequence that is finished or cancelled, wherever it is."""
        if sequence.slot is None:
            self.waiting.remove(sequence)
        else:
            self._leave(sequence)

    def plan(self) -> Step:
        """The next step. Its sequences have the blocks that they will write to."""
        decodes = [item for item in [*self.running] if item.left == 1 and self._has_room(item)]
        budget = self.settings.tokens_per_step - len(decodes)
        chunks: list[Chunk] = []
        for sequence in self.running:
            if sequence.left > 1 and budget:
                chunks.append(self._chunk(sequence, budget))
                budget -= chunks[-1].length
        while budget and (admitted := self._admit()):
            if admitted.left == 1:
                decodes.append(admitted)
                budget -= 1
            else:
                chunks.append(self._chunk(admitted, budget))
                budget -= chunks[-1].length
        return Step(tuple(chunks), tuple(decodes))

    def computed(self, step: Step) -> None:
        """Note that a step has run: full blocks may be shared from now on."""
        work = [(chunk.sequence, chunk.length) for chunk in step.chunks]
        work += [(sequence, 1) for sequence in step.decodes]
        size = self.settings.block_size
        for sequence, length in work:
            sequence.computed += length
            for place in range(sequence.stored, sequence.computed // size):
                tokens = tuple(sequence.tokens[place * size : (place + 1) * size])
                block = sequence.blocks[place]
                sequence.prefix = self.pool.store(block, sequence.prefix, tokens)
                sequence.stored += 1

    def _chunk(self, sequence: Sequence, budget: int) -> Chunk:
        length = min(sequence.left, budget, self.settings.buckets[-1])
        return Chunk(sequence, sequence.computed, length)

    def _has_room(self, sequence: Sequence) -> bool:
        """A place for one more token, if need be at the cost of younger ones; False if the sequence
        itself had to give way.
        """
        while sequence.slot is not None:
            if sequence.computed < len(sequence.blocks) * self.settings.block_size:
                return True
            if taken := self.pool.take(1):
                sequence.blocks += taken
            else:
                youngest = self.running[-1]  # alone, a sequence finds enough: Settings sees to that
                self._leave(youngest)
                self.waiting.appendleft(youngest)
                self.preemptions += 1
        return False

    def _admit(self) -> Sequence | None:
        """Start the sequence that waits longest, if there are a slot and blocks for its tokens."""
        if not self.waiting or not self._slots:
            return None
        sequence = self.waiting[0]
        # The newest token is always computed: its logits are not in the cache.
        shared, prefix = self.pool.cached(sequence.tokens[:-1])
        more = self.settings.blocks_of(len(sequence.tokens)) - len(shared)
        blocks = self.pool.take(more, shared)
        if blocks is None:
            return None
        self.waiting.popleft()
        self.running.append(sequence)
        sequence.slot = min(self._slots)
        self._slots.remove(sequence.slot)
        sequence.blocks, sequence.prefix, sequence.stored = blocks, prefix, len(shared)
        sequence.computed = len(shared) * self.settings.block_size
        self.cached_tokens += sequence.computed
        return sequence

    def _leave(self, sequence: Sequence) -> None:
        assert sequence.slot is not None  # it runs
        self.running.remove(sequence)
        self._slots.add(sequence.slot)
        self.pool.release(sequence.blocks)
        sequence.slot, sequence.blocks, sequence.computed = None, [], 0
