"""Kernels of older NKI (`neuronxcc.nki`, 0.1 to 0.6) as NKI 0.7 wants them: what is mechanical is
rewritten, everything else is named with its line and what to do.

    upgrade(source)       the new source, what was done, and what is left
    main(arguments)       `nki-upgrade FILE`: shows a diff, or writes it with --write

`rewriting` is the transformer of LibCST, `indices` turns arrays of indices into slices, `remains`
finds in the result what still has an old form.

>>> print(upgrade("import neuronxcc.nki.language as nl\\nfor i in nl.affine_range(4): ...").source)
import nki.language as nl
for i in range(4): ...
"""

import argparse
import difflib
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Edit:
    """A place that was rewritten: `line` of the source before, `rule`, and `what` was done."""

    line: int
    rule: str
    what: str


@dataclass(frozen=True)
class Remark:
    """A place that needs a hand: `line` of the new source, `what` was found, `fix`, its page."""

    line: int
    what: str
    fix: str
    page: str

    def __str__(self) -> str:
        return f"{self.line}: {self.what}\n    {self.fix}\n    {self.page}"


@dataclass(frozen=True)
class Upgrade:
    """A source in the newest form, as far as it could be brought there."""

    source: str
    edits: tuple[Edit, ...]
    remarks: tuple[Remark, ...]


def upgrade(source: str) -> Upgrade:
    """Rewrite a kernel's source. A source without NKI comes back as it is.

    Raises: ValueError for what is no Python.
    """
    from utils.nki.upgrade.remains import remarks  # late: LibCST takes a fifth of a second to load
    from utils.nki.upgrade.rewriting import rewrite

    text, edits = rewrite(source)
    return Upgrade(text, tuple(edits), tuple(remarks(text)))


def main(arguments: list[str]) -> int:
    """`nki-upgrade FILE ...`; returns 0 where nothing is left, 1 where a hand is needed, 2 for a
    file that cannot be read."""
    parser = argparse.ArgumentParser(
        "nki-upgrade",
        description="Bring kernels of older NKI to 0.7: show the change, or write it.",
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="a Python file with kernels")
    parser.add_argument("--write", action="store_true", help="write the files instead of a diff")
    given = parser.parse_args(arguments)
    status = 0
    for name in given.files:
        try:
            before = Path(name).read_text(encoding="utf-8")
            result = upgrade(before)
        except (OSError, UnicodeDecodeError, ValueError) as problem:
            print(f"{name}: {problem}", file=sys.stderr)
            status = 2
            continue
        if given.write and result.source != before:
            from utils.course.files import replace_file  # late: only for writing

            replace_file(Path(name), result.source)
        elif not given.write:
            old, new = (text.splitlines(keepends=True) for text in (before, result.source))
            diff = difflib.unified_diff(old, new, f"{name} (now)", f"{name} (NKI 0.7)")
            print(*diff, sep="", end="")
        print(f"{name}: {len(result.edits)} places rewritten, {len(result.remarks)} left")
        for remark in result.remarks:
            print(f"{name}:{remark}")
        status = max(status, 1 if result.remarks else 0)
    return status
