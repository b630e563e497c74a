"""Running a kernel on one core or two. Two take turns, so a program is the same every time.

Core 0 runs on the thread of the caller, core 1 on a thread of its own, and only the one that has
the turn runs: it keeps it until its kernel ends or it waits for the other (`core_barrier`,
`sendrecv`).
"""

import contextvars
import threading
from collections.abc import Callable
from typing import Any

from utils.nki.interrupt import interrupt, settle
from utils.nki.simulator.errors import Line, learner_line, refuse, show_line
from utils.nki.simulator.program import Core, Program, activate, activated

RETRY_SECONDS = 0.1


def run_all(program: Program, body: Callable[[], Any]) -> Any:
    """What the kernel of core 0 returns, after all cores have run it."""
    if len(program.cores) == 1:
        with activated(program.cores[0]):
            return body()
    return _Turns(program, body).run()


class _OtherFailed(BaseException):
    """Ends a core whose partner failed."""


class _Turns:
    """Passes the turn between the threads of a grid."""

    def __init__(self, program: Program, body: Callable[[], Any]) -> None:
        self.program, self.body = program, body
        self.changed = threading.Condition()
        self.turn = 0
        self.done: set[int] = set()
        self.waiting: dict[int, tuple[str, Line | None, Callable[[], bool]]] = {}
        self.returned: dict[int, Any] = {}
        self.failed: list[BaseException] = []
        for core in program.cores:
            core.switch = self

    def run(self) -> Any:
        threads = [
            threading.Thread(
                target=contextvars.copy_context().run, args=(self._one, core), daemon=True
            )
            for core in self.program.cores[1:]
        ]
        with activated(self.program.cores[0]):
            try:
                for thread in threads:
                    thread.start()
                self._one(self.program.cores[0])
            except KeyboardInterrupt as interrupt:
                self.failed.insert(0, interrupt)
            for thread in threads:
                self._join(thread)
        if self.failed:
            settle()
            raise self.failed[0]
        return self.returned[0]

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

    def _one(self, core: Core) -> None:
        try:
            self._take(core)
            self.returned[core.index] = self.body()
        except _OtherFailed:
            pass
        except BaseException as error:  # noqa: BLE001 (raised again by run, in the caller's thread)
            error.add_note(f"On the core with nl.program_id(0) == {core.index}.")
            self.failed.append(error)
        finally:
            with self.changed:
                self.done.add(core.index)
                self._pass(core)

    def _take(self, core: Core) -> None:
        with self.changed:
            self.changed.wait_for(lambda: self.turn == core.index or bool(self.failed))
        if self.failed:
            raise _OtherFailed
        activate(core)

    def _pass(self, core: Core) -> None:
        others = [c.index for c in self.program.cores if c.index not in self.done | {core.index}]
        if others:
            self.program.turns.append((core.index, len(core.instructions)))
            self.turn = others[0]
        self.changed.notify_all()

    def wait(self, core: Core, ready: Callable[[], bool], what: str) -> None:
        """Let the other core run until `ready()`; `what` the core waits for is named in errors."""
        if ready():
            return
        self.waiting[core.index] = (what, learner_line(), ready)
        others = {c.index for c in self.program.cores} - {core.index}
        stuck = {i for i in others if i in self.waiting and not self.waiting[i][2]()}
        if others <= self.done | stuck:
            raise self._deadlock(core, what)
        with self.changed:
            self._pass(core)
        self._take(core)
        if not ready():  # the turn came back because the other core ended or waits as well
            raise self._deadlock(core, what)
        del self.waiting[core.index]

    def _deadlock(self, core: Core, what: str) -> Exception:
        states = []
        for item in self.program.cores:
            state = "has ended"
            if item.index in self.waiting:
                doing, line, _ = self.waiting[item.index]
                state = f"waits at {doing}" + (f" ({show_line(line)})" if line else "")
            states.append(f"program {item.index} {state}")
        return refuse(
            f"{what}: no core can go on; {', '.join(states)}.",
            "both cores of a grid must reach the same synchronisation: on the device they would "
            "wait for ever.",
            "call it on both cores, outside of branches on nl.program_id(0).",
        )
