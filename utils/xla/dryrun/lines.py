"""Which lines of the user's files were run, so that a static finding is told from one that never
had a chance.
"""

import sys
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

_CALLS, _LINES = 8, 5000
"""Of one function, and in one of its calls: later ones are not looked at, which costs time."""


class Lines:
    """Open it around the program. root: the folder whose files are the user's."""

    def __init__(self, root: Path) -> None:
        self._root = f"{root}/"
        self._calls: dict[CodeType, int] = {}
        self._run: dict[str, set[int]] = {}

    def __enter__(self) -> "Lines":
        sys.settrace(self._called)
        return self

    def __exit__(self, *error: Any) -> None:
        sys.settrace(None)

    def data(self) -> dict[str, list[int]]:
        """By file, relative to the folder."""
        return {file.removeprefix(self._root): sorted(run) for file, run in self._run.items()}

    def _called(self, frame: FrameType, event: str, argument: Any) -> Any:
        code = frame.f_code
        if not code.co_filename.startswith(self._root):
            return None
        calls = self._calls.get(code, 0)
        if calls >= _CALLS:
            return None
        self._calls[code] = calls + 1
        run = self._run.setdefault(code.co_filename, set())
        left = _LINES

        def line(frame: FrameType, event: str, argument: Any) -> Any:
            nonlocal left
            run.add(frame.f_lineno)
            left -= 1
            return line if left else None

        return line
