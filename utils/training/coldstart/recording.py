"""What `python3 course.py cache-lab` measured, read from and written to JSON. Standard library
only."""

import dataclasses
import datetime
import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from utils.course.files import replace_file
from utils.training.coldstart.process import Start

RECORDED = Path(__file__).resolve().parents[2] / "facts" / "data" / "cache_lab.json"
FORMAT = 1

OUTCOMES = ("detected", "no effect", "crash", "hang", "other loss", "error")


@dataclass(frozen=True)
class Trial:
    """One training process of the cache lab: its question, its case, and what it did."""

    group: str
    case: str
    start: Start


@dataclass(frozen=True)
class Flip:
    """One byte of one cache entry inverted before the process started.

    position: which byte, counted from 0; of: how many bytes the entry has.
    outcome: "detected" (a failure was counted, the graph compiled again), "no effect" (a hit, the
        same losses), "crash", "hang" (no end within two minutes), "other loss" (a hit, no word
        of warning, and other losses), or "error" (a Python error that names the trouble).
    signal: of a crash, such as "SIGSEGV". loss: the last one; None if there is none.
    noticed: did the manifest name the file?

    XLA does not write the same bytes when it compiles the same graph again, so another run has
    other outcomes at the same positions.
    """

    position: int
    of: int
    outcome: str
    signal: str
    loss: float | None
    noticed: bool


@dataclass(frozen=True)
class Recording:
    """A whole run of the cache lab.

    date, cpu, cores: when and on what. torch, torch_xla, python: versions.
    settings: of the training that all trials share unless their case says otherwise;
    flip_settings and flip_loss: of the flips, with the last loss that the good entry gives.
    """

    date: datetime.date
    cpu: str
    cores: int
    torch: str
    torch_xla: str
    python: str
    settings: dict[str, Any]
    trials: tuple[Trial, ...]
    flip_settings: dict[str, Any]
    flips: tuple[Flip, ...]
    flip_loss: float

    def group(self, name: str) -> dict[str, Start]:
        """{case: what the process did} of one question, such as "cold and warm"."""
        results = {trial.case: trial.start for trial in self.trials if trial.group == name}
        if not results:
            groups = dict.fromkeys(trial.group for trial in self.trials)
            raise KeyError(f"no group {name!r}; there are {', '.join(groups)}")
        return results

    @property
    def source(self) -> str:
        """One line that says where the figures come from, to stand beside them."""
        return (
            f"recorded {self.date} on {self.cores} cores of {self.cpu}, torch {self.torch}, "
            f"torch-xla {self.torch_xla}, Python {self.python}"
        )


def read(path: Path = RECORDED) -> Recording:
    """The recording in `path`, by default the one that comes with the course.

    ValueError if the file is none of this format.
    """
    try:
        stored = json.loads(Path(path).read_text(encoding="utf-8"))
        if stored.pop("format") != FORMAT:
            raise ValueError
        trials = tuple(
            Trial(item["group"], item["case"], Start(**_tuples(item["start"])))
            for item in stored.pop("trials")
        )
        flips = tuple(Flip(**item) for item in stored.pop("flips"))
        date = datetime.date.fromisoformat(stored.pop("date"))
        return Recording(date=date, trials=trials, flips=flips, **stored)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ValueError(
            f"{path} is no recording of the cache lab: write one with"
            " python3 course.py cache-lab --out FILE"
        ) from None


def save(recording: Recording, path: Path) -> None:
    """Write `recording` to `path`, whole or not at all."""
    stored = {"format": FORMAT, **dataclasses.asdict(recording), "date": str(recording.date)}
    replace_file(Path(path), json.dumps(_round(stored), indent=1) + "\n")


def table(recording: Recording) -> str:
    """The whole recording as text, to print."""
    heads = ("compiles", "hits", "misses", "failures", "first step", "last loss", "entries", "KB")
    lines = [recording.source, f"{'':34}" + "".join(f"{head:>11}" for head in heads)]
    group = ""
    for trial in recording.trials:
        if trial.group != group:
            lines.append(trial.group)
        group, start = trial.group, trial.start
        lines.append(f"  {trial.case:32}" + "".join(f"{cell:>11}" for cell in _cells(start)))
    tally = Counter(flip.outcome for flip in recording.flips)
    lines.append(f"one byte inverted, {len(recording.flips)} places")
    lines += [f"  {outcome:32}{tally[outcome]:>11}" for outcome in OUTCOMES]
    noticed = sum(flip.noticed for flip in recording.flips)
    lines.append(f"  {'noticed by the manifest':32}{noticed:>11}")
    return "\n".join(lines)


def _cells(start: Start) -> tuple[str, ...]:
    size = (str(start.entries), f"{start.size_bytes / 1e3:,.0f}")
    if start.died:
        return (start.died, *[""] * 5, *size)
    counts = (start.compiles, start.hits, start.misses, start.failures)
    return (
        *map(str, counts),
        f"{start.first_step_seconds:.2f} s",
        f"{start.losses[-1]:.4f}",
        *size,
    )


def _tuples(stored: dict[str, Any]) -> dict[str, Any]:
    return {
        name: tuple(value) if isinstance(value, list) else value for name, value in stored.items()
    }


def _round(value: Any) -> Any:
    """Seconds to a tenth of a millisecond, and losses no further than float32 tells them apart."""
    if isinstance(value, dict):
        return {name: _round(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_round(item) for item in value]
    return round(value, 7) if isinstance(value, float) else value
