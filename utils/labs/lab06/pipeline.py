"""A loader's work on a fake clock: exact to the tick, with the real threads of an answer.

`Pipeline.make` is what a loader calls in its threads, `Pipeline.consume` is the training loop. Both
sleep on one clock, which stands still until as many batches are being made as workers and the limit
ahead allow; then it moves on to whatever ends next. So a loader that keeps its workers busy never
depends on how this machine schedules its threads; one that does not is waited for a moment, twice.
A moment is a number of slices, not a time: a process that stands still for a second loses one.
"""

import hashlib
import operator
import os
import signal
import threading
from collections import Counter
from typing import Any

SLICE_S = 0.004
"""Real seconds of a slice, in which the threads of the loader have their turn."""
PATIENCE = 25
"""Slices to wait for a thread to begin a batch; after two that never came, one."""
LESS = 1
MOST = 45
"""Slices in which nothing at all moves, after which a loader is taken to be stuck."""
SPARE = 5
"""How many batches more than there are, a loader that does not end is asked for."""


ELSEWHERE = "make was called in another process: use threads of this one"


class Over(SystemExit):
    """Ends a thread of an answer without a word, when the check no longer needs it."""


def batch_of(number: int, salt: int) -> list[int]:
    """A batch that nobody can make without `make`, not from others either."""
    return [number, int.from_bytes(hashlib.blake2b(b"%d %d" % (salt, number)).digest()[:4])]


def number_of(batch: Any, salt: int) -> int:
    """The number of a batch, -1 for anything that `make` did not make."""
    if isinstance(batch, list) and len(batch) == 2 and all(isinstance(b, int) for b in batch):
        return batch[0] if batch == batch_of(batch[0], salt) else -1
    return -1


def batch_number(number: Any, count: int) -> int:
    """The number of a batch as an int. Raises IndexError if there is no such batch, TypeError if
    it is no whole number.
    """
    if not 0 <= (place := operator.index(number)) < count:
        raise IndexError(f"there is no batch {place}: they are 0 to {count - 1}")
    return place


def at_home(process: int) -> None:
    """Raises RuntimeError in any other process: the clock stands in this one."""
    if os.getpid() != process:
        raise RuntimeError(ELSEWHERE)


class Pipeline:
    """One run of a loader.

    make_ticks: what each batch takes to be made; step_ticks: what each takes to be used.
    workers, ahead: what the loader is told. salt: makes batches that cannot be guessed.
    """

    def __init__(
        self, make_ticks: list[int], step_ticks: list[int], workers: int, ahead: int, salt: int
    ) -> None:
        self._make_ticks, self._step_ticks, self._salt = make_ticks, step_ticks, salt
        self._workers, self._ahead = workers, ahead
        self._moved = threading.Condition()
        self._now, self._wake = 0, 0
        self._pending: dict[object, tuple[int, int]] = {}  # ticket to batch and end
        self._finished: set[int] = set()
        self._requested, self._state = 0, "busy"
        self._over = False
        self._main, self._process = threading.get_ident(), os.getpid()
        self._begun: list[int] = []
        self._got: list[int] = []
        self._waits: list[int] = []
        self._in_consumer = self._most_ahead = self._most_together = self._shortfalls = 0
        self._ended = self._stuck = False

    def make(self, number: int) -> list[int]:
        """Batch `number`, after its time on the clock. Called by a loader, in any thread."""
        ticket = object()
        at_home(self._process)
        with self._moved:
            if self._over:
                raise Over
            number = batch_number(number, len(self._make_ticks))
            self._begun.append(number)
            self._in_consumer += threading.get_ident() == self._main
            end = self._now + self._make_ticks[number]
            self._pending[ticket] = number, end
            self._most_ahead = max(self._most_ahead, len(self._begun) - self._requested)
            self._most_together = max(self._most_together, len(self._pending))
            self._moved.notify_all()
            self._moved.wait_for(lambda: ticket not in self._pending or self._over)
            if self._over:
                raise Over
        return batch_of(number, self._salt)

    def consume(self, load: Any) -> None:
        """Take every batch of the loader that load(make, count, workers, ahead) gives, and work on
        each.
        """
        driver = threading.Thread(target=self._drive)
        driver.start()
        try:
            iterator = iter(load(self.make, len(self._make_ticks), self._workers, self._ahead))
            for _ in range(len(self._make_ticks) + SPARE):
                before = self._ask()
                try:
                    batch = next(iterator)
                except StopIteration:
                    self._ended = True
                    break
                self._take(batch, before)
        except Over:
            self._stuck = True
        except RuntimeError as error:
            # A DataLoader puts a long report around what its worker raised; on a busy machine it
            # ends the others first, and raises that.
            if ELSEWHERE not in str(error) and "DataLoader worker" not in str(error):
                raise
            raise RuntimeError(ELSEWHERE) from None
        finally:
            with self._moved:
                self._over = True
                self._moved.notify_all()
            driver.join()

    def facts(self) -> dict[str, Any]:
        """What was seen, as plain values; waits in ticks."""
        return {
            "got": self._got,
            "ended": self._ended,
            "waits": self._waits,
            "begun": len(self._begun),
            "twice": sum(1 for count in Counter(self._begun).values() if count > 1),
            "in_consumer": self._in_consumer,
            "most_ahead": self._most_ahead,
            "most_together": self._most_together,
            "stuck": self._stuck,
        }

    def _ask(self) -> int:
        with self._moved:
            self._requested += 1
            self._state = "waiting"
            self._moved.notify_all()
            return self._now

    def _take(self, batch: Any, before: int) -> None:
        with self._moved:
            self._got.append(number_of(batch, self._salt))
            self._waits.append(self._now - before)
            step = self._step_ticks[min(len(self._got), len(self._step_ticks)) - 1]
            self._wake = self._now + step
            self._state = "stepping"
            self._moved.notify_all()
            self._moved.wait_for(lambda: self._now >= self._wake)
            self._state = "busy"

    def _is_settled(self) -> bool:
        """Whether nothing more happens before the clock moves, if the loader does what it may."""
        if self._over:
            return True
        if self._state == "busy" or (self._state == "stepping" and self._now >= self._wake):
            return False
        taken, waiting = len(self._got), self._state == "waiting"
        if waiting and (taken in self._finished or taken >= len(self._make_ticks)):
            return False
        allowed = min(len(self._make_ticks), taken + self._ahead)
        return len(self._pending) >= min(self._workers, allowed - len(self._finished))

    def _drive(self) -> None:
        """Move the clock, in a thread of its own."""
        idle = 0
        with self._moved:
            while True:
                patience = LESS if self._shortfalls > 1 else PATIENCE
                settled = any(
                    self._moved.wait_for(self._is_settled, SLICE_S) for _ in range(patience)
                )
                if self._over:
                    return
                self._shortfalls += not settled
                ends = [end for _, end in self._pending.values()]
                if self._state == "stepping" and self._wake > self._now:
                    ends.append(self._wake)
                if ends:
                    idle = 0
                    self._move_to(min(ends))
                elif (idle := idle + patience) > MOST:
                    self._interrupt()

    def _move_to(self, moment: int) -> None:
        self._now = moment
        for ticket, (number, end) in list(self._pending.items()):
            if end <= moment:
                del self._pending[ticket]
                self._finished.add(number)
        self._moved.notify_all()

    def _interrupt(self) -> None:
        """The loader waits for what never comes: stop it, as a learner would."""
        self._stuck = self._over = True
        self._moved.notify_all()
        if self._main == threading.main_thread().ident:
            signal.pthread_kill(self._main, signal.SIGALRM)
