"""The cases and the judgement of the block allocator, exercise 2 of lab 16.

What a device would hold is played along: every place of every block. So what is wrong shows as a
sequence that reads tokens which are not its own.
"""

import random
from typing import Any

from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.criteria import criterion, not_judged

SAYS = says("lab16")

WEIGHTS = {"contents": 3, "blocks in use": 2, "out of memory": 2}


class Reference:
    """Blocks counted, not numbered: how many are in use, and who shares the last one."""

    def __init__(self, count: int, size: int) -> None:
        self.count, self.size = count, size
        self.tables: dict[int, list[list[int]]] = {}  # a block is a list with its number of users
        self.lengths: dict[int, int] = {}

    @property
    def used(self) -> int:
        """Blocks that somebody uses."""
        return len({id(block) for table in self.tables.values() for block in table})

    def append(self, sequence: int, tokens: int) -> tuple[bool, int]:
        """Whether there is place for the tokens, and how many blocks are copied for it."""
        table, length = self.tables.get(sequence, []), self.lengths.get(sequence, 0)
        copied = bool(length % self.size and table[-1][0] > 1)
        new = -(-(length + tokens) // self.size) - len(table)
        if new + copied > self.count - self.used:
            return False, 0
        if copied:
            table[-1][0] -= 1
            table[-1] = [1]
        self.tables[sequence] = [*table, *([1] for _ in range(new))]
        self.lengths[sequence] = length + tokens
        return True, int(copied)

    def fork(self, sequence: int, child: int) -> None:
        """Let `child` share all blocks of a sequence."""
        self.tables[child] = [*self.tables[sequence]]
        self.lengths[child] = self.lengths[sequence]
        for block in self.tables[child]:
            block[0] += 1

    def free(self, sequence: int) -> None:
        """Give up the blocks of a sequence."""
        for block in self.tables.pop(sequence):
            block[0] -= 1
        del self.lengths[sequence]


def block_cases(rng: random.Random) -> list[Facts]:
    """A few operations that show each rule once; then many, with and without much memory."""
    fixed = [
        ["append", 0, 6], ["fork", 0, 1], ["append", 1, 1], ["append", 0, 1], ["free", 0],
        ["append", 2, 8], ["fork", 2, 5], ["append", 5, 1], ["append", 2, 5], ["append", 3, 9],
        ["append", 3, 4], ["free", 1], ["append", 3, 8], ["free", 2], ["free", 5], ["free", 3],
        ["append", 4, 23], ["fork", 4, 6], ["append", 6, 1],
    ]  # fmt: skip
    return [
        {"count": 6, "size": 4, "operations": fixed},
        *(_operations(rng, count) for count in (9, 24)),
    ]


def _operations(rng: random.Random, count: int) -> Facts:
    size = rng.choice((3, 4, 5))
    reference, operations, number = Reference(count, size), list[list[Any]](), 0
    for _ in range(70):
        live = sorted(reference.lengths)
        kind = rng.choices(("append", "new", "fork", "free"), (6, 2, 2, 2))[0] if live else "new"
        of = rng.choice(live) if live else 0
        if kind == "fork":
            number += 1
            operations.append(["fork", of, number])
        elif kind == "free":
            operations.append(["free", of])
        else:
            number += kind == "new"
            tokens = rng.choice((1, 1, 2, size, size + 1, 2 * size))
            operations.append(["append", number if kind == "new" else of, tokens])
        getattr(reference, operations[-1][0])(*operations[-1][1:])
    operations += [["free", length] for length in sorted(reference.lengths)]
    operations += [["append", number + 1, count * size], ["append", number + 2, 1]]
    return {"count": count, "size": size, "operations": operations}


def block_words(case: Facts) -> str:
    """What a card says of a case."""
    return f"{case['count']} blocks of {case['size']} tokens, {len(case['operations'])} operations"


def judge_blocks(case: Facts, facts: Facts) -> list[Criterion]:
    """Three criteria: what sequences read, blocks in use, what is said when none is left."""
    played = _Played(case)
    for number, result in enumerate(facts["seen"]):
        played.step(number, *case["operations"][number], result=result)
        if played.unknown:
            break
    rows = []
    for name, weight in WEIGHTS.items():
        text = played.wrong.get(name, "")
        row = criterion(name, weight, not text, "wrong" if text else "right", "right", text)
        # What is unknown after a wrong step is no merit.
        rows.append(not_judged(row) if name in played.unknown and not text else row)
    return rows


class _Played:
    """The places of all blocks, what each sequence should read, and what is wrong so far."""

    def __init__(self, case: Facts) -> None:
        self.count, self.size = case["count"], case["size"]
        self.reference = Reference(self.count, self.size)
        self.places = [[0] * self.size for _ in range(self.count)]
        self.texts: dict[int, list[int]] = {}  # no two writes are alike
        self.tables: dict[int, list[int]] = {}
        self.wrong: dict[str, str] = {}
        self.unknown: tuple[str, ...] = ()  # criteria of which no more is seen: the play ends
        self.writes = 0

    def step(self, number: int, kind: str, *given: int, result: Facts) -> None:
        """Play an operation along, and note what is wrong with it."""
        self.called = f"operations[{number}], {kind}({', '.join(map(str, given))})"
        fits, copies = getattr(self.reference, kind)(*given) or (True, 0)
        if "error" in result and not fits:  # a block was asked for that is not there
            free = self.count - self.reference.used
            return self._note("out of memory", "more-than-there-are", free=free)
        if "error" in result:
            return self._note("contents", result["error"])
        response, after = result["response"], dict(map(tuple, result["tables"]))
        if kind == "fork":
            self.texts[given[1]] = [*self.texts[given[0]]]
        elif kind == "free":
            del self.texts[given[0]]
        elif response is None or not fits:
            return self._refuse(response is not None, fits, after != self.tables)
        if not self._well_formed(response, after):
            return None
        if kind == "append":
            self._write(response, after[given[0]], *given)
        self._look(kind, after, response or [], copies)
        self.tables = after
        return None

    def _note(
        self, name: str, text: str, unknown: tuple[str, ...] = (*WEIGHTS,), /, **of: object
    ) -> None:
        """What is wrong first with a criterion, as a text or the name of a record."""
        if not self.unknown:
            text = SAYS[text].format(**of) if text in SAYS else text
            self.wrong.setdefault(name, f"{self.called}: {text}")
            self.unknown = unknown

    def _refuse(self, given: bool, fits: bool, changed: bool) -> None:
        name = "out of memory"
        if fits and "blocks in use" in self.wrong:
            self.unknown = (name,)  # it follows from that
        elif fits:
            self._note(name, "lost")
        elif given:
            free = self.count - self.reference.used
            self._note(name, "more-than-there-are", (name,), free=free)
        elif changed:
            self._note(name, "half-taken", (name,))

    def _is_block(self, value: object) -> bool:
        return isinstance(value, int) and 0 <= value < self.count

    def _well_formed(self, response: Any, after: dict[int, Any]) -> bool:
        pairs = response if isinstance(response, list) else [] if response is None else [response]
        for pair in pairs:
            if not isinstance(pair, list) or len(pair) != 2 or not all(map(self._is_block, pair)):
                self._note("contents", "return a list of pairs of blocks, (from, to), or None")
        for sequence, table in after.items():
            need, name = len(self.reference.tables[sequence]), f"table({sequence})"
            if not isinstance(table, list) or not all(map(self._is_block, table)):
                self._note("contents", f"{name} is {table}: return a list of blocks")
            elif twice := [block for block in table if table.count(block) > 1]:
                fill = {"block": twice[0], "sequence": sequence, "other": sequence}
                self._note("contents", "given-twice", **fill)
            elif len(table) != need:
                fill = {"table": name, "count": len(table), "need": need}
                self._note("blocks in use", "rounded-otherwise", **fill)
        return not self.unknown

    def _write(self, copies: list[Any], table: list[int], sequence: int, tokens: int) -> None:
        """Copy and write as a device would."""
        for source, goal in copies:
            self.places[goal] = [*self.places[source]]
        text = self.texts.setdefault(sequence, [])
        for _ in range(tokens):
            self.writes += 1
            self.places[table[len(text) // self.size]][len(text) % self.size] = self.writes
            text.append(self.writes)

    def _look(
        self, kind: str, after: dict[int, list[int]], response: list[Any], copies: int
    ) -> None:
        """Whether each sequence reads its own, and no block is in use without need."""
        used, need = len({b for table in after.values() for b in table}), self.reference.used
        if used != need and kind == "fork":
            self._note("blocks in use", "copied-at-fork", used=used, need=need)
        for sequence, text in self.texts.items():
            for place, token in enumerate(text):
                block = after[sequence][place // self.size]
                if self.places[block][place % self.size] == token:
                    continue
                name, other = "copy-not-said", 0
                for other in (item for item in after if block in after[item] and item != sequence):
                    forked = self.texts[other][0] == text[0]
                    name = "no-copy-on-write" if forked else "given-twice"
                return self._note("contents", name, sequence=sequence, other=other, block=block)
        if len(response) > copies:
            self._note("blocks in use", "copied-when-alone", ())
        elif used > need:
            self._note("blocks in use", f"{used} blocks are in use, {need} are needed", ())
        return None
