"""How a loader ends: when it is left early, and when a batch cannot be made. No clock is needed,
so batches take no time.
"""

import itertools
import os
import threading
import time
from typing import Any

from utils.labs import Answer
from utils.labs.lab06.pipeline import Over, at_home, batch_number, batch_of, number_of
from utils.labs.lab06.threads import Started

STILL_S = 0.03
"""Real seconds without a new batch after which a loader is taken to rest; three times as long as
long as it may begin more."""
REST_S = 1.0


class Source:
    """Batches that take no time, of which one may fail."""

    def __init__(self, count: int, salt: int, fails: int | None = None) -> None:
        self.count, self.salt, self.fails = count, salt, fails
        self.begun, self.over = 0, False
        self._lock, self._process = threading.Lock(), os.getpid()

    def make(self, number: int) -> list[int]:
        at_home(self._process)
        with self._lock:
            if self.over:
                raise Over
            number = batch_number(number, self.count)
            self.begun += 1
        if number == self.fails:
            raise OSError(f"batch {number} cannot be read")
        return batch_of(number, self.salt)

    def rest(self, allowed: int = 0) -> int:
        """How many batches were begun, when no more are. `allowed` may be."""
        end, still = time.monotonic() + REST_S, 0
        while still < (1 if self.begun >= allowed else 3) and time.monotonic() < end:
            seen = self.begun
            time.sleep(STILL_S)
            still = still + 1 if seen == self.begun else 0
        return self.begun


def leave_early(answer: Answer, case: dict[str, Any], started: Started) -> dict[str, Any]:
    """Take a few batches, then drop the loader, as a loop with `break` does."""
    source = Source(case["count"], case["salt"])
    iterator = iter(answer(source.make, case["count"], case["workers"], case["ahead"]))
    taken = [number_of(item, case["salt"]) for item in itertools.islice(iterator, case["taken"])]
    before = source.rest(min(case["count"], case["taken"] + case["ahead"]))
    if hasattr(iterator, "close"):
        iterator.close()
    del iterator
    after, left = source.rest(), started.left()
    source.over = True
    return {"taken": taken, "begun": before, "more": after - before, "left": left}


def failing(answer: Answer, case: dict[str, Any], started: Started) -> dict[str, Any]:
    """Take batches until the one that cannot be made."""
    source = Source(case["count"], case["salt"], case["fails"])
    got, raised = [], ""
    try:
        for batch in answer(source.make, case["count"], case["workers"], case["ahead"]):
            got.append(number_of(batch, case["salt"]))
            if len(got) > case["count"]:
                break
    except Exception as error:
        raised = "as it was" if _same(error, case["fails"]) else "another"
    left = started.left()
    source.over = True
    return {"got": got, "raised": raised, "left": left}


def _same(error: BaseException, fails: int) -> bool:
    """Whether this is the loader's error, or was raised from it."""
    chain = (error, error.__cause__, error.__context__)
    return any(isinstance(e, OSError) and str(e) == f"batch {fails} cannot be read" for e in chain)
