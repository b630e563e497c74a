"""What a process that may be killed notes of itself, and what it died of."""

import hmac
import itertools
import json
import os
from pathlib import Path
from typing import Any

from utils.labs import Facts
from utils.xla import fresh


class Journal:
    """A file that one process writes, a line of JSON for each thing that happened.

    Each line is sealed with a key and its place, so that nobody adds, drops or moves one unseen.
    """

    def __init__(self, path: Path, key: bytes) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._key, self._places = key, itertools.count()

    def note(self, what: Facts) -> None:
        """Add a line of plain JSON values."""
        content = json.dumps(what)
        seal = _seal(self._key, next(self._places), content)
        os.write(self._file, f"{seal} {content}\n".encode())


def lines_of(path: Path, key: bytes) -> list[Facts]:
    """What was noted; lines that somebody else wrote into the file are passed over."""
    results: list[Facts] = []
    for line in path.read_bytes().splitlines() if path.exists() else []:
        seal, _, content = line.decode(errors="replace").partition(" ")
        if hmac.compare_digest(seal.encode(), _seal(key, len(results), content).encode()):
            results.append(json.loads(content))
    return results


def _seal(key: bytes, place: int, content: str) -> str:
    return hmac.new(key, f"{place} {content}".encode(), "sha256").hexdigest()


def dying(*arguments: Any, **options: Any) -> Any:
    """`fresh.run` for an answer that is to be killed: what it died of is returned."""
    try:
        return fresh.run(*arguments, **options)
    except fresh.Died as death:
        return {"returned": death.cause}
