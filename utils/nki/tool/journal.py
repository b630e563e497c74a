"""The journal of a search: every outcome is on disk, whole, before the next one counts."""

import fcntl
import json
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from utils.course.files import replace_file
from utils.nki.tool.failures import Refused


class Journal:
    """Outcomes of a search by key, in a file; `with` keeps other searches away from it.

    search: what makes this search this one; a file of another is refused.
    """

    def __init__(self, path: Path, search: dict[str, Any]) -> None:
        self.path, self.search = path, search
        self.outcomes: dict[str, dict[str, Any]] = {}
        self._lock: IO[str] | None = None

    def __enter__(self) -> "Journal":
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = open(self.path.with_name(f".{self.path.name}.lock"), "w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise Refused(f"another search writes {self.path}; name another --journal") from None
        self._read()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._lock is not None:
            self._lock.close()

    def _read(self) -> None:
        if not self.path.exists():
            return
        try:
            content = json.loads(self.path.read_text(encoding="utf-8"))
            search, outcomes = content["search"], dict(content["outcomes"])
        except (ValueError, KeyError, TypeError) as error:
            raise Refused(f"{self.path} is no journal of nki tune: {error!r}") from None
        changed = [name for name in self.search if search.get(name) != self.search[name]]
        if changed:
            raise Refused(
                f"{self.path} is the journal of another search: {', '.join(changed)} "
                f"{'is' if len(changed) == 1 else 'are'} different. Remove it, or name another "
                "--journal"
            )
        self.outcomes = outcomes

    def add(self, key: str, outcome: dict[str, Any]) -> None:
        """Keep an outcome; it is on disk when this returns. Raises KeyError for a second one."""
        if key in self.outcomes:
            raise KeyError(f"{key} is in the journal already")
        self.outcomes[key] = outcome
        content = {"search": self.search, "outcomes": self.outcomes}
        replace_file(self.path, json.dumps(content, indent=1) + "\n")
