"""What a grading knows of each submission, in one file each, written when that submission is done.

Tables, reports and the class page are made of these files and can be made at any time. A file is
replaced whole or not at all, so a grading that is interrupted goes on where it stopped.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec

from utils.course.files import replace_file
from utils.labs.grading.lab import Lab
from utils.labs.grading.marking import Mark
from utils.labs.grading.submissions import File


@dataclass(frozen=True)
class Record:
    """One submission that was graded.

    entry: its name in the folder of submissions. key: of what it was graded with, see `key_of`; ""
    if it is to be graded again by the next run. seed: which drew its hidden cases. status:
    "graded", "graded with problems" or "not graded". signs: remarks for the instructor only, like
    log. id, late, submitted: as in `Submission`.
    """

    entry: str
    student: str
    slug: str
    key: str
    seed: str
    status: str
    marks: tuple[Mark, ...]
    notes: tuple[str, ...] = ()
    signs: tuple[str, ...] = ()
    id: str = ""
    late: bool = False
    log: dict[str, Any] = msgspec.field(default_factory=dict)
    submitted: str = ""

    @property
    def points(self) -> float:
        """Points in all exercises, as the judges gave them."""
        return sum(mark.points for mark in self.marks)


@dataclass(frozen=True)
class Graded:
    """A record with what counts. points: by exercise, as in the gradebook, before any penalty.
    by_hand: the exercises whose points a person gave.
    """

    record: Record
    points: dict[str, float]
    by_hand: frozenset[str] = frozenset()

    @property
    def total(self) -> float:
        """Points in all exercises together."""
        return round(sum(self.points.values()), 2)

    @property
    def counts(self) -> bool:
        """Whether there are points to hand on: a person's do so even where grading failed."""
        return self.record.status != "not graded" or bool(self.by_hand)


def key_of(files: Iterable[File], notes: Iterable[str], lab: Lab, root: Path, seed: str) -> str:
    """A hash of all that a grading depends on: what was handed in, the released lab, the code that
    observes and judges its answers, and the seed.
    """
    parts: list[bytes] = [seed.encode(), json.dumps(lab.notebook, sort_keys=True).encode()]
    for path in sorted((root / "utils" / "labs" / lab.name).glob("*.[py]*")):  # code and YAML
        parts += [path.name.encode(), path.read_bytes()]
    for file in files:
        parts += [file.name.encode("utf-8", "surrogateescape"), file.content]
    parts += [note.encode("utf-8", "surrogateescape") for note in notes]
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()


def keep(out: Path, record: Record) -> None:
    """Write a record to `out`. Raises OSError; what was there before is there then."""
    text = json.dumps(asdict(record), default=str)
    replace_file(_folder(out) / f"{record.slug}.json", text, private=True)


def read(out: Path) -> Iterator[Record]:
    """The records in `out`, by file name. What cannot be read counts as not graded."""
    for path in sorted(_folder(out).glob("*.json")):
        try:
            yield msgspec.convert(json.loads(path.read_bytes()), Record)
        except (OSError, ValueError):  # msgspec's error is a ValueError too
            continue


def _folder(out: Path) -> Path:
    return out / "records"
