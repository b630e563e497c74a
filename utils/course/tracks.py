"""Tracks: ways through the course, from a workshop of 90 minutes to a semester.

`tracks.yaml` names their lessons and exercises in order; titles, minutes and points come from the
catalogue.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import msgspec

from utils.course import catalog
from utils.course.catalog import ROOT, CatalogError, Exercise, Lab, Lesson
from utils.course.shown import markdown
from utils.facts.records import read_as, read_yaml

FILE = Path("utils", "course", "tracks.yaml")
HEAD = ("Track", "Lessons, and exercises of labs", "Minutes")


class _Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A track as it is written in `tracks.yaml`."""

    name: str
    whom: str
    parts: list[list[str]]
    part: str = ""
    most: int | None = None


@dataclass(frozen=True)
class Stop:
    """A lesson, or with `exercise` one of its lab's exercises; `part` counts from 1."""

    notebook: Lesson
    exercise: Exercise | None
    part: int

    @property
    def id(self) -> str:
        """Such as "03" or "lab03.ex2"."""
        return self.exercise.id if self.exercise else self.notebook.number

    @property
    def title(self) -> str:
        """Of the exercise, else of the notebook."""
        return self.exercise.title if self.exercise else self.notebook.title

    @property
    def minutes(self) -> int:
        """Of the exercise, else of the notebook."""
        return self.exercise.minutes if self.exercise else self.notebook.minutes


@dataclass(frozen=True)
class Track:
    """A way through the course.

    key: its name in commands, such as "kernels". whom: a sentence. part: "day" or "week" if it is
    divided. most: the minutes that no part exceeds, None if it promises none.
    """

    key: str
    name: str
    whom: str
    part: str
    most: int | None
    stops: tuple[Stop, ...]

    @property
    def parts(self) -> list[list[Stop]]:
        """Its stops by part."""
        return [list(group) for _, group in groupby(self.stops, key=lambda stop: stop.part)]


def tracks(root: Path = ROOT) -> dict[str, Track]:
    """All tracks by key, in their order. Raises CatalogError if one names what does not exist."""
    lessons = {lesson.number: lesson for lesson in catalog.lessons(root)}
    labs = {lab.name: lab for lab in catalog.labs(root)}
    results = {}
    for key, entry in read_as(dict[str, _Entry], read_yaml(root / FILE), str(FILE)).items():
        try:
            stops = tuple(
                stop
                for part, ids in enumerate(entry.parts, start=1)
                for name in ids
                for stop in _stops(name, part, lessons, labs)
            )
        except KeyError as error:
            raise CatalogError(
                f"{FILE}: track {key!r} names {error}, which is no lesson, lab or exercise;"
                " name one, such as '03', lab03 or lab03.ex2"
            ) from None
        results[key] = Track(key, entry.name, entry.whom, entry.part, entry.most, stops)
    return results


def _stops(
    name: str, part: int, lessons: dict[str, Lesson], labs: dict[str, Lab]
) -> Iterator[Stop]:
    """Raises KeyError if the name is none of a lesson, a lab or an exercise."""
    if name in lessons:
        yield Stop(lessons[name], None, part)
        return
    lab = labs.get(name.partition(".")[0])
    chosen = [e for e in lab.exercises if name in (lab.name, e.id)] if lab else []
    if not lab or not chosen:
        raise KeyError(name)
    yield from (Stop(lab, exercise, part) for exercise in chosen)


def duration(minutes: int) -> str:
    """
    >>> duration(45), duration(120), duration(2067)
    ('45 min', '2 h', '34 h 27 min')
    """
    hours, rest = divmod(minutes, 60)
    if not hours:
        return f"{rest} min"
    return f"{hours} h {rest} min" if rest else f"{hours} h"


def names_of(stops: list[Stop]) -> str:
    """What a part of a track holds, such as "00, 03, lab 03 (1, 2)"."""
    names = []
    for notebook, group in groupby(stops, key=lambda stop: stop.notebook):
        if not isinstance(notebook, Lab):
            names.append(notebook.number)
            continue
        ids = [stop.id for stop in group]
        some = ", ".join(name.partition(".ex")[2] for name in ids)
        whole = len(ids) == len(notebook.exercises)
        names.append(f"lab {notebook.number}" + ("" if whole else f" ({some})"))
    return ", ".join(names)


def table(root: Path = ROOT) -> str:
    """The tracks as a table in Markdown."""
    rows = []
    for track in tracks(root).values():
        parts = [names_of(part) for part in track.parts]
        if track.part:
            parts = [f"{track.part} {n}: {text}" for n, text in enumerate(parts, start=1)]
        minutes = sum(stop.minutes for stop in track.stops)
        text = f"{minutes} ({duration(minutes)})"
        rows.append((f"**{track.name}.** {track.whom}", "; ".join(parts), text))
    return markdown(HEAD, rows)
