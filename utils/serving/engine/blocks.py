"""The allocator of cache blocks, which also remembers what full blocks hold.

A block is held by the sequences that use it. One that nobody uses any more keeps its content until
it is needed, the longest unused first; until then a prompt that begins with the same tokens takes
it as it is, and computes nothing for it.
"""

from collections import OrderedDict

Key = tuple[int, tuple[int, ...]]
"""Tokens of a full block behind a prefix. The prefix has a number that no other ever has, so equal
keys are equal texts from the first token on: nothing depends on hashes being different."""


class BlockPool:
    """`blocks` blocks of `size` tokens. Block 0 is never given out: padding writes there.

    >>> pool = BlockPool(blocks=4, size=2)
    >>> first = pool.take(2)
    >>> prefix = pool.store(first[0], 0, (7, 8))
    >>> pool.release(first)
    >>> pool.cached([7, 8, 9, 9])[0] == first[:1], pool.free
    (True, 3)
    """

    def __init__(self, blocks: int, size: int, share: bool = True) -> None:
        if blocks < 2 or size < 1:
            raise ValueError(f"needs 2 blocks or more of 1 token or more, found {blocks}, {size}")
        self.blocks, self.size, self.share = blocks, size, share
        self.users = [0] * blocks
        self._unused = OrderedDict.fromkeys(range(1, blocks))  # in the order of being given out
        self._known: dict[Key, tuple[int, int]] = {}  # block, and the number of the longer prefix
        self._keys: dict[int, Key] = {}  # of each block that is known
        self._prefixes = 0

    @property
    def free(self) -> int:
        """Blocks that nobody uses."""
        return len(self._unused)

    def cached(self, tokens: list[int]) -> tuple[list[int], int]:
        """The blocks that hold the longest known beginning of these tokens, and its number.

        Only whole blocks count. They are not taken yet: `take` does that.
        """
        results: list[int] = []
        prefix = 0
        for start in range(0, len(tokens) - self.size + 1, self.size):
            entry = self._known.get((prefix, tuple(tokens[start : start + self.size])))
            if entry is None:
                break
            results.append(entry[0])
            prefix = entry[1]
        return results, prefix

    def take(self, count: int, shared: list[int] | tuple[int, ...] = ()) -> list[int] | None:
        """`shared` blocks and `count` more for a new user; None, and nothing taken, if so many are
        not free.
        """
        revived = sum(not self.users[block] for block in shared)
        if count > self.free - revived:
            return None
        for block in shared:
            self.users[block] += 1
            self._unused.pop(block, None)
        return [*shared, *(self._fresh() for _ in range(count))]

    def _fresh(self) -> int:
        block, _ = self._unused.popitem(last=False)
        if key := self._keys.pop(block, None):
            del self._known[key]  # longer prefixes through it are found no more, and age away
        self.users[block] = 1
        return block

    def release(self, blocks: list[int]) -> None:
        """One user less for each. Raises ValueError for a block that nobody uses."""
        for block in reversed(blocks):  # the end of a prefix is given up before its beginning
            if not self.users[block]:
                raise ValueError(f"block {block} is released, but nobody uses it")
            self.users[block] -= 1
            if not self.users[block]:
                self._unused[block] = None
                self._unused.move_to_end(block, last=block in self._keys)

    def store(self, block: int, prefix: int, tokens: tuple[int, ...]) -> int:
        """Remember that a full block holds these tokens behind a prefix, 0 for none.

        Returns the number of the prefix with them. If another block holds the same already, that
        one stays the known one.
        """
        if not self.share:
            return 0
        key = (prefix, tokens)
        if key not in self._known:
            self._prefixes += 1
            self._known[key] = block, self._prefixes
            self._keys[block] = key
        return self._known[key][1]

    def known(self, block: int) -> bool:
        """Whether others may come to share this block, so that nobody may write to it."""
        return block in self._keys
