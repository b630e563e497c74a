"""Running a kernel on one core or two. Two take turns, so a program is the same every time.

Each of two cores is a thread, and only the one that has the turn runs: it keeps it until its kernel
ends or it waits for the other (`core_barrier`, `sendrecv`).
"""

import contextvars
import threading
from collections.abc import Callable
from typing import Any

from utils.simulator.errors import refuse
from utils.simulator.program import Core, Program, activate, activated


def run_all(program: Program, body: Callable[[], Any]) -> Any:
    """What the kernel of core 0 returns, after all cores have run it."""
    if len(program.cores) == 1:
        with activated(program.cores[0]):
            return body()
    return _Turns(program, body).run()


class _Turns:
    """Passes the turn between the threads of a grid."""

    def __init__(self, program: Program, body: Callable[[], Any]) -> None:
        self.program, self.body = program, body
        self.changed = threading.Condition()
        self.turn = 0
        self.done: set[int] = set()
        self.waiting: dict[int, str] = {}
        self.returned: dict[int, Any] = {}
        self.failed: list[BaseException] = []
        for core in program.cores:
            core.switch = self

    def run(self) -> Any:
        context = contextvars.copy_context
        threads = [
            threading.Thread(target=context().run, args=(self._one, core))
            for core in self.program.cores
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self.failed:
            raise self.failed[0]
        return self.returned[0]

    def _one(self, core: Core) -> None:
        self._take(core)
        before = activate(core)
        try:
            if not self.failed:
                self.returned[core.index] = self.body()
        except BaseException as error:  # noqa: BLE001 (raised again by run, in the caller's thread)
            self.failed.append(error)
        finally:
            activate(before)
            with self.changed:
                self.done.add(core.index)
                self._pass(core.index)

    def _take(self, core: Core) -> None:
        with self.changed:
            self.changed.wait_for(lambda: self.turn == core.index)

    def _pass(self, index: int) -> None:
        others = [c.index for c in self.program.cores if c.index not in self.done]
        if others:
            after = [i for i in others if i > index]
            self.turn = (after or others)[0]
        self.changed.notify_all()

    def wait(self, core: Core, ready: Callable[[], bool], what: str) -> None:
        """Let the other core run until `ready()`; `what` the core waits for is named in errors."""
        while not ready():
            self.waiting[core.index] = what
            others = {c.index for c in self.program.cores} - {core.index}
            if self.failed or others <= self.done or others <= self.waiting.keys():
                if not self.failed:
                    raise self._deadlock(core, what)
                raise RuntimeError("the other core failed")
            with self.changed:
                self._pass(core.index)
            self._take(core)
            activate(core)
            self.waiting.pop(core.index, None)

    def _deadlock(self, core: Core, what: str) -> Exception:
        states = [
            f"core {c.index} "
            + ("has ended" if c.index in self.done else f"waits for {self.waiting.get(c.index)}")
            for c in self.program.cores
        ]
        return refuse(
            f"{what}: no core can go on; {', '.join(states)}.",
            "both cores of a grid must reach the same synchronisation.",
            "call it on both cores, outside of branches on nl.program_id(0).",
        )
