"""The cases and the judgement of the prefix cache, exercise 3 of lab 16.

The judgement knows what every block holds: tokens behind a prefix, for a salt and an adapter. It
judges a cache by its own blocks, so other caches than ours are right as well.
"""

import random
from dataclasses import dataclass
from typing import Any

from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.criteria import criterion, not_judged

SAYS = says("lab16")

WEIGHTS = {"never wrong": 3, "found": 2, "evicted": 2}

Content = tuple[int, int, tuple[int, ...]]
"""Salt, adapter, all tokens up to the end of the block."""


def prefix_cases(rng: random.Random) -> list[Facts]:
    """One trap after another in a few operations; then a busy cache."""
    a, b = [7, 1, 2, 3, 7, 1, 2, 3, 5], [4, 4, 4, 4, 7, 1, 2, 3, 5]
    fixed: list[list[Any]] = [
        ["start", 0, a, 0, 0], ["start", 9, a, 0, 0], ["start", 1, b, 0, 0],
        ["start", 2, a[:8], 0, 0], ["finish", 9], ["finish", 0],
        ["start", 3, a, -1, 0], ["start", 4, a, -2, 0], ["finish", 1], ["finish", 2],
        ["finish", 3], ["finish", 4], ["start", 5, a, 0, 3],
        ["start", 6, [71, 23, 71, 23, 9], 0, 0], ["start", 7, [13, 0, 0, 0, 9], 0, 0],
        ["finish", 5], ["start", 8, a, 0, 0],
    ]  # fmt: skip
    return [{"count": 24, "size": 4, "operations": fixed}, *(_busy(rng, n) for n in (14, 22))]


def _busy(rng: random.Random, count: int) -> Facts:
    """Requests of three system prompts, some with a salt or an adapter, many at once."""
    size = rng.choice((3, 4))
    heads = [[rng.randrange(90) for _ in range(rng.randint(1, 3) * size + 1)] for _ in range(3)]
    operations: list[list[Any]] = []
    live: list[int] = []
    for number in range(60):
        while len(live) > rng.randint(1, 3):
            operations.append(["finish", live.pop(rng.randrange(len(live)))])
        tail = [rng.randrange(90) for _ in range(rng.randint(0, 2 * size))]
        tokens = [*rng.choice(heads), *(rng.choice(heads) if rng.random() < 0.2 else []), *tail]
        salt, adapter = rng.choice((0, 0, 0, -1, -2)), rng.choice((0, 0, 0, 1))
        operations.append(["start", number, tokens, salt, adapter])
        live.append(number)
    return {"count": count, "size": size, "operations": operations}


def prefix_words(case: Facts) -> str:
    """What a card says of a case."""
    starts = sum(name == "start" for name, *_ in case["operations"])
    return f"{case['count']} blocks of {case['size']} tokens, {starts} requests"


def judge_prefixes(case: Facts, facts: Facts) -> list[Criterion]:
    """Three criteria: no block is another prefix's, what is there is found, what is evicted."""
    cache, seen = _Cache(case["count"], case["size"]), list(facts["seen"])
    for name, request, *given in case["operations"]:
        if name == "finish":
            cache.finish(request)
        elif not seen or not cache.start(seen.pop(0), request, *given):
            break
    rows = []
    for name, weight in WEIGHTS.items():
        text = cache.wrong.get(name, "")
        row = criterion(name, weight, not text, "wrong" if text else "right", "right", text)
        # A cache that is wrong, or finds nothing, has nothing else to be praised for.
        hidden = "never wrong" in cache.wrong or not cache.hits
        rows.append(not_judged(row) if hidden and not text else row)
    return rows


@dataclass
class _Block:
    """users: requests that use it. content: of a full block. released: when its last user went.
    sure: whether every cache knows the content, because no block with the same has been evicted.
    """

    users: int = 0
    content: Content | None = None
    released: int = 0
    sure: bool = False


class _Cache:
    """The blocks of an answer, as its own replies have them."""

    def __init__(self, count: int, size: int) -> None:
        self.size, self.blocks = size, [_Block() for _ in range(count)]
        self.requests: dict[int, list[int]] = {}
        self.wrong: dict[str, str] = {}
        self.hits = self.now = 0

    def finish(self, request: int) -> None:
        """A request is over."""
        self.now += 1
        for number in self.requests.pop(request, []):
            self.blocks[number].users -= 1
            self.blocks[number].released = self.now

    def start(
        self, response: Any, request: int, tokens: list[int], salt: int, adapter: int
    ) -> bool:
        """Play a start along; whether what comes next can be judged."""
        self.called = f"request {request}, {len(tokens)} tokens long"
        ends = range(self.size, len(tokens) + 1, self.size)
        keys: list[Content] = [(salt, adapter, tuple(tokens[:end])) for end in ends]
        need, most = -(-len(tokens) // self.size), (len(tokens) - 1) // self.size
        surely, maybe = (self._longest_prefix(keys[:most], sure) for sure in (True, False))
        unused = {number for number, block in enumerate(self.blocks) if not block.users}
        if response is None:
            room = [need - len(some) <= len(unused - {*some}) for some in (surely, maybe)]
            return not all(room) or self._note("evicted", "none-though-unused")
        table, result = response if isinstance(response, list) else (None, response)
        if not isinstance(table, list) or not isinstance(result, int):
            return self._note("never wrong", "return a pair, (table, tokens found), or None")
        if len(table) != need or not all(item in range(len(self.blocks)) for item in table):
            return self._note("never wrong", f"the table {table} is not {need} blocks")
        if result % self.size:
            return self._note("never wrong", "part-of-a-block", length=result, size=self.size)
        if result >= len(tokens):
            return self._note("never wrong", "nothing-left-to-compute")
        shared, new = table[: result // self.size], table[result // self.size :]
        for number, key in zip(shared, keys, strict=False):
            if self.blocks[number].content != key:
                return self._is_misplaced(number, self.blocks[number].content, *key)
        if len(set(table)) < need:
            return self._note("never wrong", "evicts-what-it-found")
        if taken := [number for number in new if number not in unused]:
            name = f"block {taken[0]}"
            if self.blocks[taken[0]].content is None:
                return self._note("never wrong", "part-of-a-block-shared", name=name)
            return self._note("evicted", "evicted-in-use", name=name)
        if len(shared) < len(surely):
            self._note("found", "not-found", length=result, there=len(surely) * self.size)
        self.hits += result
        self._evict([self.blocks[n] for n in new], [self.blocks[n] for n in unused - {*table}])
        for place, number in enumerate(table):
            self._use(self.blocks[number], keys[place] if place < len(keys) else None)
        self.requests[request] = table
        return True

    def _note(self, name: str, text: str, /, **of: object) -> bool:
        """What is wrong first with a criterion, as a text or the name of a record; False."""
        text = SAYS[text].format(**of) if text in SAYS else text
        self.wrong.setdefault(name, f"{self.called}: {text}")
        return False

    def _longest_prefix(self, keys: list[Content], sure: bool) -> list[int]:
        """Blocks that hold the longest beginning of a prompt."""
        result: list[int] = []
        for key in keys:
            own = [n for n, b in enumerate(self.blocks) if b.content == key and b.sure >= sure]
            if not own:
                break
            result.append(own[0])
        return result

    def _is_misplaced(
        self, number: int, held: Content | None, salt: int, adapter: int, text: tuple[int, ...]
    ) -> bool:
        """Say what a block holds that is taken for another."""
        key, other = "other-tokens", 0
        if held is None:
            key = "part-of-a-block-shared"
        elif held[2] == text:
            key, other = ("no-salt", held[0]) if held[0] != salt else ("no-adapter", held[1])
            key = "hashes-collide" if {salt, held[0]} == {-1, -2} else key
        elif held[2][-self.size :] == text[-self.size :]:
            key = "block-alone"
        return self._note("never wrong", key, name=f"block {number}", other=other)

    def _evict(self, taken: list[_Block], kept: list[_Block]) -> None:
        """Note whether something was evicted that should have stayed."""
        lost = [block.released for block in taken if block.content and block.sure]
        if lost and any(block.content is None for block in kept):
            self._note("evicted", "evicted-before-empty")
        elif lost and max(lost) > min((b.released for b in kept if b.sure), default=self.now):
            self._note("evicted", "not-the-longest-unused")

    def _use(self, block: _Block, content: Content | None) -> None:
        block.users += 1
        if content is not None and block.content == content:
            return
        if gone := block.content:  # some caches forget its copies then, and what is longer
            for other in self.blocks:
                held = other.content
                if held and held[:2] == gone[:2] and held[2][: len(gone[2])] == gone[2]:
                    other.sure = False
        block.sure = content is not None and all(b.content != content for b in self.blocks)
        block.content = content
