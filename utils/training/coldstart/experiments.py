"""The questions of the cache lab, each asked with real training processes and a real cache folder.

Standard library only; the processes run in whatever environment `python` belongs to.
"""

import datetime
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from utils.training.coldstart import process
from utils.training.coldstart.process import Start
from utils.training.coldstart.recording import Flip, Recording, Trial
from utils.xla import manifest
from utils.xla.defaults import cpu_model

SETTINGS = {
    "steps": 3,
    "batch": 8,
    "length": 64,
    "width": 64,
    "layers": 2,
    "dtype": "float32",
    "lr": 1e-3,
    "optimizer": "adamw",
}
# One graph only, so that a flipped byte can meet no other.
FLIP_SETTINGS = SETTINGS | {"batch": 2, "length": 16, "width": 32, "layers": 1, "optimizer": "sgd"}
FLIPS = 64
FLIP_TIMEOUT_SECONDS = 120
REPETITIONS = 3
LENGTHS = (16, 32, 48, 64)
FAST_MATH = "--xla_cpu_enable_fast_math=true"

CHANGES: dict[str, dict[str, Any]] = {
    "nothing": {},
    "learning rate": {"lr": 2e-3},
    "more steps": {"steps": 6},
    "batch": {"batch": 4},
    "length": {"length": 48},
    "dtype": {"dtype": "bfloat16"},
    "width": {"width": 96},
    "layers": {"layers": 3},
    "optimizer": {"optimizer": "sgd"},
    "XLA_FLAGS": {"xla_flags": FAST_MATH},
}

DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "truncated": lambda content: content[: len(content) // 2],
    # The same garbage each time, of the right length.
    "garbage": lambda content: hashlib.shake_256(b"garbage").digest(len(content)),
    "empty": lambda content: b"",
}


@dataclass(frozen=True)
class Lab:
    """A place to work in and the environment to ask: `python` is its interpreter."""

    python: str
    folder: Path
    settings: Mapping[str, Any] = field(default_factory=lambda: SETTINGS)

    def run(self, cache: Path | None, **changes: Any) -> Start:
        """What a training with these changes of the settings did."""
        return self.start(cache, **changes).result()

    def start(self, cache: Path | None, **changes: Any) -> process.Running:
        """The same, left in the background."""
        return process.start(cache, python=self.python, **{**self.settings, **changes})

    def filled(self, name: str) -> Path:
        """A cache folder that one run has filled."""
        cache = self.folder / name
        self.run(cache)
        return cache

    def copy(self, cache: Path, name: str) -> Path:
        """A copy of a cache folder, to damage."""
        return Path(shutil.copytree(cache, self.folder / name))


def cold_and_warm(lab: Lab) -> Iterator[tuple[str, Start]]:
    """The same script in fresh processes: first without, then with what the first one left."""
    yield "no cache", lab.run(None)
    for number in range(1, REPETITIONS + 1):
        cache = lab.folder / f"repetition-{number}"
        yield f"cold {number}", lab.run(cache)
        yield f"warm {number}", lab.run(cache)


def what_changes_the_key(lab: Lab) -> Iterator[tuple[str, Start]]:
    """A cache filled by one script, used read-only by a script that differs in one thing."""
    cache = lab.filled("key")
    for change, changes in CHANGES.items():
        yield change, lab.run(cache, readonly=True, **changes)


def damaged_file(lab: Lab) -> Iterator[tuple[str, Start]]:
    """Every entry damaged, then two starts: does the first get through, and is it mended?"""
    good = lab.filled("good")
    for damage, of in DAMAGES.items():
        cache = lab.copy(good, damage)
        for entry in cache.iterdir():
            entry.write_bytes(of(entry.read_bytes()))
        yield damage, lab.run(cache)
        yield f"{damage}, next start", lab.run(cache)


def two_writers(lab: Lab) -> Iterator[tuple[str, Start]]:
    """Two processes that find the same empty cache at the same moment, and one that comes later."""
    cache = lab.folder / "two-writers"
    writers = [lab.start(cache), lab.start(cache)]
    for number, writer in enumerate(writers, 1):
        yield f"writer {number}", writer.result()
    yield "afterwards", lab.run(cache)


def read_only(lab: Lab) -> Iterator[tuple[str, Start]]:
    """A cache that may be used and not be written."""
    yield "empty cache", lab.run(lab.folder / "read-only-empty", readonly=True)
    cache = lab.filled("read-only")
    yield "filled cache", lab.run(cache, readonly=True)
    yield "other batch", lab.run(cache, readonly=True, batch=lab.settings["batch"] + 1)


def compile_ahead(lab: Lab) -> Iterator[tuple[str, Start]]:
    """Several lengths: without preparation, and after a short trial run for each of them."""
    steps = 3 * len(LENGTHS)
    yield "unprepared", lab.run(lab.folder / "unprepared", length=LENGTHS, steps=steps)
    cache = lab.folder / "prepared"
    for length in LENGTHS:
        yield f"trial run, length {length}", lab.run(cache, length=length, steps=2)
    yield "prepared", lab.run(cache, length=LENGTHS, steps=steps)


QUESTIONS: dict[str, Callable[[Lab], Iterator[tuple[str, Start]]]] = {
    "cold and warm": cold_and_warm,
    "what changes the key": what_changes_the_key,
    "damaged file": damaged_file,
    "two writers": two_writers,
    "read-only": read_only,
    "compile ahead": compile_ahead,
}


def flips(lab: Lab, count: int, say: Callable[[str], None]) -> tuple[tuple[Flip, ...], float]:
    """Invert one byte of the only entry, at `count` places spread evenly, one process for each.

    Returns what came of each, and the last loss with the good entry.
    """
    good = lab.filled("unflipped")
    reference = lab.run(good)
    manifest.write(good)
    (name,) = [path.name for path in good.iterdir() if path.name != manifest.NAME]
    content = (good / name).read_bytes()

    def flip(number: int) -> Flip:
        position = len(content) * (2 * number + 1) // (2 * count)
        cache = lab.copy(good, f"flip-{number}")
        damaged = bytearray(content)
        damaged[position] ^= 0xFF
        (cache / name).write_bytes(damaged)
        noticed = name in [item.file for item in manifest.check(cache)]
        try:
            start = lab.run(cache, timeout_seconds=FLIP_TIMEOUT_SECONDS)
            outcome, died = judge(start, reference), start.died
            loss = start.losses[-1] if start.losses else None
        except TimeoutError:
            outcome, died, loss = "hang", "", None
        except RuntimeError:
            outcome, died, loss = "error", "", None
        shutil.rmtree(cache)
        say(f"  byte {position:,} of {len(content):,}: {outcome}{died and f' ({died})'}")
        return Flip(position, len(content), outcome, died, loss, noticed)

    # Counts, not seconds, are asked here, so the processes may share the cores.
    with ThreadPoolExecutor(2) as pool:
        return tuple(pool.map(flip, range(count))), reference.losses[-1]


def judge(start: Start, reference: Start) -> str:
    """One of `recording.OUTCOMES` for a start with a flipped byte, beside one without."""
    if start.died:
        return "crash"
    if start.failures:
        return "detected"
    return "no effect" if start.losses == reference.losses else "other loss"


def measure(
    python: str | os.PathLike, say: Callable[[str], None], flip_count: int = FLIPS
) -> Recording:
    """Ask all `QUESTIONS` in the environment of `python`, and flip `flip_count` bytes."""
    trials: list[Trial] = []
    python = os.fspath(python)
    with tempfile.TemporaryDirectory(prefix="cache-lab-") as folder:
        for question, cases in QUESTIONS.items():
            say(f"{question}:")
            place = Path(folder, question.replace(" ", "-"))
            place.mkdir()
            for case, start in cases(Lab(python, place)):
                say(f"  {case}: {start}")
                trials.append(Trial(question, case, start))
        say("one byte inverted:")
        flipped, flip_loss = flips(Lab(python, Path(folder), FLIP_SETTINGS), flip_count, say)
    sample = next(trial.start for trial in trials if not trial.start.died)
    return Recording(
        date=datetime.date.today(),
        cpu=cpu_model(),
        cores=len(os.sched_getaffinity(0)),
        torch=sample.torch,
        torch_xla=sample.torch_xla,
        python=sample.python,
        settings=SETTINGS,
        trials=tuple(trials),
        flip_settings=FLIP_SETTINGS,
        flips=flipped,
        flip_loss=flip_loss,
    )
