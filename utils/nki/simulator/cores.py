"""Running a kernel on several cores. They take turns, so a program is the same every time.

The first core runs on the thread of the caller, each other on a thread of its own, and only the one
that has the turn runs: it keeps it until its kernel ends or it waits for another (`core_barrier`,
`sendrecv`, and between ranks a collective).
"""

import contextvars
import threading
from collections.abc import Callable
from typing import Any

from utils.nki.interrupt import interrupt, settle
from utils.nki.simulator.errors import Line, learner_line, refuse, show_line
from utils.nki.simulator.program import Core, Program, activate, active_core

RETRY_SECONDS = 0.1


Body = Callable[[], Any]


def run_all(programs: list[tuple[Program, Body]]) -> list[Any]:
    """What the kernel of each program's core 0 returns, after all cores of all have run it."""
    runs = [(core, body) for program, body in programs for core in program.cores]
    if len(runs) == 1:
        ((core, body),) = runs
        with active_core(core):
            return [body()]
    returned = _Turns(runs).run()
    return [returned[place] for place, (core, _) in enumerate(runs) if core.index == 0]


class _OtherFailed(BaseException):
    """Ends a core whose partner failed."""


class _Turns:
    """Passes the turn between the threads of a grid, and of all ranks.

    A core is known by its place in `runs`.
    """

    def __init__(self, runs: list[tuple[Core, Body]]) -> None:
        self.runs = runs
        self.place = {id(core): place for place, (core, _) in enumerate(runs)}
        self.changed = threading.Condition()
        self.turn = 0
        self.done: set[int] = set()
        self.waiting: dict[int, tuple[str, Line | None, Callable[[], bool]]] = {}
        self.returned: dict[int, Any] = {}
        self.failed: list[BaseException] = []
        for core, _ in runs:
            core.switch = self

    def run(self) -> dict[int, Any]:
        context = contextvars.copy_context
        threads = [
            threading.Thread(target=context().run, args=(self._one, place), daemon=True)
            for place in range(1, len(self.runs))
        ]
        with active_core(self.runs[0][0]):
            try:
                for thread in threads:
                    thread.start()
                self._one(0)
            except KeyboardInterrupt as interrupt:
                self.failed.insert(0, interrupt)
            for thread in threads:
                self._join(thread)
        if self.failed:
            settle()
            raise self.failed[0]
        return self.returned

    def _join(self, thread: threading.Thread) -> None:
        """Wait for a core; when the other one failed, or at Ctrl-C, end it.

        It is told so again and again: Python drops an exception that meets a thread in a callback.
        """
        while thread.is_alive():
            try:
                if self.failed:
                    self._stop(thread)
                thread.join(RETRY_SECONDS if self.failed else None)
            except KeyboardInterrupt as interrupt:
                self.failed.insert(0, interrupt)

    def _stop(self, thread: threading.Thread) -> None:
        """End a core that is running, or wake it if it waits for its turn."""
        interrupt(thread, _OtherFailed)
        with self.changed:
            self.changed.notify_all()

    def _one(self, place: int) -> None:
        core, body = self.runs[place]
        try:
            self._take(core)
            self.returned[place] = body()
        except _OtherFailed:
            pass
        except BaseException as error:  # noqa: BLE001 (raised again by run, in the caller's thread)
            rank = f" of rank {core.program.rank}" if core.program.world else ""
            error.add_note(f"On the core with nl.program_id(0) == {core.index}{rank}.")
            self.failed.append(error)
        finally:
            with self.changed:
                self.done.add(place)
                self._pass(core)

    def _take(self, core: Core) -> None:
        place = self.place[id(core)]
        with self.changed:
            self.changed.wait_for(lambda: self.turn == place or bool(self.failed))
        if self.failed:
            raise _OtherFailed
        activate(core)

    def _pass(self, core: Core) -> None:
        """The turn goes to the next one that can go on, round the circle."""
        mine, count = self.place[id(core)], len(self.runs)
        round_ = [(mine + step) % count for step in range(1, count)]
        others = [place for place in round_ if place not in self.done]
        able = [p for p in others if p not in self.waiting or self.waiting[p][2]()]
        if others:
            core.program.turns.append((core.index, len(core.instructions)))
            self.turn = (able or others)[0]
        self.changed.notify_all()

    def wait(self, core: Core, ready: Callable[[], bool], what: str) -> None:
        """Let the others run until `ready()`; `what` the core waits for is named in errors."""
        if ready():
            return
        mine = self.place[id(core)]
        self.waiting[mine] = (what, learner_line(), ready)
        others = set(range(len(self.runs))) - {mine}
        stuck = {i for i in others if i in self.waiting and not self.waiting[i][2]()}
        if others <= self.done | stuck:
            raise self._deadlock(core, what)
        with self.changed:
            self._pass(core)
        self._take(core)
        if not ready():  # the turn came back because the other core ended or waits as well
            raise self._deadlock(core, what)
        del self.waiting[mine]

    def _deadlock(self, core: Core, what: str) -> Exception:
        states = []
        for place, (item, _) in enumerate(self.runs):
            state = "has ended" if place in self.done else "has not begun"
            if place in self.waiting:
                doing, line, _ = self.waiting[place]
                state = f"waits at {doing}" + (f" ({show_line(line)})" if line else "")
            rank = f" of rank {item.program.rank}" if item.program.world else ""
            states.append(f"program {item.index}{rank} {state}")
        return refuse(
            f"{what}: no core can go on; {', '.join(states)}.",
            "all cores of a grid, and all ranks of a group, must reach the same synchronisation: "
            "on the device they would wait for ever.",
            "call it on all of them, outside of branches on nl.program_id(0) or the rank.",
        )
