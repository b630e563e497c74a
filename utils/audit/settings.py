"""Settings of an audit in `pyproject.toml`:

    [tool.trn-audit]
    target = "neuron-xla"
    fail-on = "warning"
    exclude = ["third_party/*", "*_test.py"]   # patterns of paths from this file's folder
    disable = ["pin-memory"]
    baseline = "trn-audit.json"

The nearest file at or above the audited path that has this table counts; the command line wins.
"""

import fnmatch
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from utils.audit.rules import RULES, SEVERITIES, TARGETS

FAIL_ON = (*reversed(SEVERITIES), "never")
_KINDS = {"target": str, "fail-on": str, "exclude": list, "disable": list, "baseline": str}


@dataclass(frozen=True)
class Settings:
    """What `[tool.trn-audit]` says; `folder` is that of the file, or None where there is none."""

    folder: Path | None = None
    target: str = TARGETS[0]
    fail_on: str = "error"
    exclude: tuple[str, ...] = ()
    disable: tuple[str, ...] = ()
    baseline: Path | None = None

    def is_excluded(self, file: Path) -> bool:
        """Whether a pattern matches a file or one of the folders above it."""
        if self.folder is None or not self.exclude:
            return False
        try:
            inside = file.resolve().relative_to(self.folder)
        except ValueError:
            return False
        paths = [inside.as_posix(), *(p.as_posix() for p in inside.parents)]
        return any(
            fnmatch.fnmatch(p, pattern.rstrip("/")) for p in paths for pattern in self.exclude
        )


def read_settings(path: Path) -> Settings:
    """The settings that count for an audit of `path`.

    Raises: ValueError, which names the file and the key, for what is unknown or of a wrong type.
    """
    try:
        start = path.resolve()
    except RuntimeError:
        raise ValueError(f"{path} is a link that leads back to itself") from None
    for folder in [start, *start.parents] if start.is_dir() else start.parents:
        file = folder / "pyproject.toml"
        if not file.is_file():
            continue
        try:
            table = tomllib.loads(file.read_text(encoding="utf-8")).get("tool", {})
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError):
            continue  # it is read as a file of requirements too, and told there
        if isinstance(table, dict) and "trn-audit" in table:
            return _settings(table["trn-audit"], file)
    return Settings()


def _settings(table: Any, file: Path) -> Settings:
    head = f"{file}, [tool.trn-audit]"
    if not isinstance(table, dict):
        raise ValueError(f"{head} is no table")
    for key, value in table.items():
        if key not in _KINDS:
            raise ValueError(f"{head}: {key!r} is unknown; there are {', '.join(_KINDS)}")
        texts = isinstance(value, str) or (
            isinstance(value, list) and all(isinstance(item, str) for item in value)
        )
        if not isinstance(value, _KINDS[key]) or not texts:
            kind = "a text" if _KINDS[key] is str else "a list of texts"
            raise ValueError(f"{head}: {key} is {value!r}; give {kind}")
    for key, allowed in (("target", TARGETS), ("fail-on", FAIL_ON), ("disable", RULES)):
        given = table.get(key, [])
        for value in [given] if isinstance(given, str) else given:
            if value not in allowed:
                raise ValueError(f"{head}: {key} {value!r} is none of {', '.join(allowed)}")
    baseline = table.get("baseline")
    return Settings(
        file.parent,
        table.get("target", TARGETS[0]),
        table.get("fail-on", "error"),
        tuple(table.get("exclude", ())),
        tuple(table.get("disable", ())),
        file.parent / baseline if baseline else None,
    )
