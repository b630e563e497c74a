"""Keeps the output of a cell back until it may be seen, in any front end of Jupyter.

What a kept cell shows is recorded in its order, and one empty place displayed for each part. When
the cell is opened the parts are put into their places, so that the notebook's file holds them as if
the cell had shown them at once. Errors are never kept back.
"""

import io
import itertools
import sys
from collections.abc import Callable
from typing import Any

from utils.course.cells import running_shell
from utils.course.shown import Shown

_numbers = itertools.count(1)


class Kept:
    """The output of one cell: texts, mime bundles with metadata, and what is made only when it is
    shown.
    """

    def __init__(self) -> None:
        self.parts: list[str | tuple[dict, dict] | Callable[[], Shown]] = []
        self.places: list[str] = []

    def write(self, text: str) -> None:
        """Add a text to the one before it, if there is one."""
        if self.parts and isinstance(self.parts[-1], str):
            self.parts[-1] += text
        else:
            self.parts.append(text)

    def place(self, instead: Shown) -> None:
        """Show `instead`, and an empty place for each further part."""
        self.places = [f"course-{next(_numbers)}" for _ in self.parts]
        for number, place in enumerate(self.places):
            _publish(Shown("\n", "<span></span>") if number else instead, place, update=False)

    def open(self) -> None:
        """Put every part into its place."""
        for part, place in zip(self.parts, self.places, strict=True):
            _publish(part, place, update=True)


def _publish(part: Any, place: str, update: bool) -> None:
    from IPython.display import publish_display_data  # late: slow to load

    if callable(part):
        part = part()
    if isinstance(part, str):
        part = Shown(part.rstrip("\n"))
    if isinstance(part, Shown):
        part = {"text/plain": part.text, "text/html": part._repr_html_()}, {}
    publish_display_data(*part, transient={"display_id": place}, update=update)


class _Stream(io.TextIOBase):
    """Stands in for stdout and stderr while a cell is kept back."""

    def __init__(self, kept: Kept) -> None:
        super().__init__()
        self.kept = kept

    def write(self, text: str) -> int:
        self.kept.write(text)
        return len(text)


class Keeper:
    """Asks before every cell of this kernel whether its output is kept back.

    ask: called with source and id of a cell, returns whether to keep. put: called with what was
    kept, once the cell has run, to place it.
    """

    def __init__(self) -> None:
        self.ask: Callable[[str, str], bool] = lambda source, cell_id: False
        self.put: Callable[[Kept], None] = lambda kept: None
        self.kept: Kept | None = None
        self.shell: Any = None

    def install(self, ask: Callable[[str, str], bool], put: Callable[[Kept], None]) -> bool:
        """Begin to ask; returns whether this is a kernel of Jupyter, the only place for it."""
        self.ask, self.put = ask, put
        shell = running_shell()
        if shell is not None and self.shell is None:
            self.shell = shell
            shell.events.register("pre_run_cell", self._start)
            shell.events.register("post_run_cell", self._stop)
        return shell is not None

    def show(self, make: Callable[[], Shown]) -> None:
        """Display what `make` returns: now, or in its turn when the cell is opened."""
        if self.kept:
            self.kept.parts.append(make)
        elif running_shell() is None:
            print(make())
        else:
            from IPython.display import display  # late: slow to load

            display(make())

    def _start(self, info: Any) -> None:
        if not self.ask(info.raw_cell, getattr(info, "cell_id", None) or ""):
            return
        self.kept = Kept()
        self.streams = sys.stdout, sys.stderr
        sys.stdout = sys.stderr = _Stream(self.kept)
        for publisher in (self.shell.display_pub, self.shell.displayhook):
            publisher.register_hook(self._record)

    def _record(self, message: dict[str, Any]) -> dict[str, Any] | None:
        content = message["content"]
        if self.kept is None or message["header"]["msg_type"] == "update_display_data":
            return message
        self.kept.parts.append((content["data"], content["metadata"] or {}))
        return None

    def _stop(self, _: Any) -> None:
        if self.kept is None:
            return
        kept, self.kept = self.kept, None
        sys.stdout, sys.stderr = self.streams
        for publisher in (self.shell.display_pub, self.shell.displayhook):
            publisher.unregister_hook(self._record)
        if kept.parts:
            self.put(kept)


keeper = Keeper()
