"""Hand the marks to nbgrader, so that its gradebook, formgrader, manual grading and export work as
usual.

What nbgrader's own autograder would leave behind is written through its gradebook, without running
its converters, which take four times as long for a submission: our marks are the outputs of the
check cells, in the form that nbgrader reads as partial credit. Points that count are then
nbgrader's: a manual score given in formgrader wins and survives grading again.
"""

import copy
import json
import warnings
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import patch

from utils.labs.grading.answers import Notebook
from utils.labs.grading.lab import Lab
from utils.labs.grading.marking import Mark
from utils.labs.grading.records import Graded, Record
from utils.labs.grading.report import mark_text


class GradebookError(RuntimeError):
    """The gradebook in OUT does not fit this lab; the text says what to do."""


class Book:
    """The gradebook of one grading, in the folder `out`."""

    def __init__(self, lab: Lab, root: Path, out: Path):
        # Here and not at the top: nbgrader imports SQLAlchemy, nbconvert and more.
        from nbgrader.preprocessors import ComputeChecksums, SaveCells
        from sqlalchemy.exc import SAWarning

        # SQLAlchemy 2.1 warns about the models of nbgrader. Ignored for good: threads that catch
        # warnings put back the filters that they found.
        warnings.filterwarnings("ignore", "Object of type <Submitted", SAWarning)
        self.lab, self.out = lab, out
        self.assignment = lab.path.stem
        self.url = f"sqlite:///{out / 'gradebook.db'}"
        # With this file nbgrader's commands and formgrader work in the folder, wherever it lies.
        (out / "nbgrader_config.py").write_text("c = get_config()\nc.CourseDirectory.root = '.'\n")
        # formgrader lists the assignments that it finds in this folder, and no others.
        source = out / "source" / self.assignment / lab.path.name
        source.parent.mkdir(parents=True, exist_ok=True)
        source.write_text(json.dumps(lab.notebook, indent=1, sort_keys=True) + "\n")
        resources = {
            "nbgrader": {
                "notebook": self.assignment,
                "assignment": self.assignment,
                "db_url": self.url,
            }
        }
        notebook = _node(lab.notebook)
        with _quiet(), self._open() as book:
            book.update_or_create_assignment(self.assignment)
        try:
            with _quiet():
                ComputeChecksums().preprocess(notebook, resources)
                SaveCells().preprocess(notebook, resources)
        except RuntimeError as error:
            raise GradebookError(
                f"the gradebook in {out} was made for another version of {lab.name} ({error}):"
                " choose another --out"
            ) from None
        self._metadata = {cell.id: cell.metadata for cell in notebook.cells}
        self._book: Any = None

    def _open(self) -> Any:
        from nbgrader.api import Gradebook

        # For a new gradebook nbgrader starts the program alembic, found by its bare name, which
        # takes seconds and an activated environment; its library knows the same.
        with patch("nbgrader.api.get_alembic_version", _newest_schema):
            return Gradebook(self.url)

    def record(self, slug: str, notebook: Notebook, marks: list[Mark], submitted: str = "") -> None:
        """Autograde one submission with these marks. Raises OSError if they cannot be stored.

        submitted: the time in ISO format, which nbgrader shows if it has an offset.
        """
        from nbgrader.utils import compute_checksum
        from sqlalchemy.exc import DBAPIError

        made = notebook_of(self.lab, notebook)
        time = datetime.fromisoformat(submitted) if submitted else None
        if time and not time.tzinfo:
            time = None
        self._write("submitted", slug, made, time)
        points = {self.lab.checks[mark.exercise.name]: mark for mark in marks}
        graded = _node(made)
        for cell in graded.cells:
            cell.metadata = _node(self._metadata.get(cell.id, {}))
            if cell.id in points:
                cell.outputs = [_node(output) for output in _outputs(points[cell.id])]
        self._write("autograded", slug, graded, time)
        answered = {
            cell.id: cell.metadata.nbgrader.get("checksum") != compute_checksum(cell)
            for cell in graded.cells
            if cell.metadata.get("nbgrader", {}).get("solution")
        }
        name = self.assignment
        with _quiet():
            try:
                book = self._book = self._book or self._open()
                book.update_or_create_student(slug)
                stamp = {"timestamp": time.astimezone(UTC).replace(tzinfo=None)} if time else {}
                book.update_or_create_submission(name, slug, **stamp)
                for check, mark in points.items():
                    grade = book.find_grade(check, name, name, slug)
                    grade.auto_score = mark.points
                    # A person gave points to an earlier attempt: they should look again.
                    grade.needs_manual_grade = grade.manual_score is not None
                for answer, is_there in answered.items():
                    comment = book.find_comment(answer, name, name, slug)
                    comment.auto_comment = None if is_there else "No response."
                book.db.commit()
                book.db.expunge_all()  # or a class of thousands stays in memory
            except DBAPIError as error:
                self._book = None
                raise OSError(f"the gradebook cannot be written: {error.orig}") from None

    def _write(self, stage: str, slug: str, made: Any, time: datetime | None) -> None:
        """Write a notebook where nbgrader looks for it, with the time at which it was handed in."""
        folder = self.out / stage / slug / self.assignment
        folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps(made, indent=1, sort_keys=True) + "\n"
        (folder / self.lab.path.name).write_text(text)
        (folder / "timestamp.txt").unlink(missing_ok=True)
        if time:
            (folder / "timestamp.txt").write_text(f"{time.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC\n")

    def graded(self, known: Iterable[Record]) -> Iterator[Graded]:
        """Each of these records, which are in the gradebook, with the points that count."""
        exercise_of = {check: name for name, check in self.lab.checks.items()}
        with _quiet(), self._open() as book:
            for record in known:
                name = self.assignment
                result = book.find_submission_notebook(name, name, record.slug)
                grades = {exercise_of[grade.name]: grade for grade in result.grades}
                # A score of the gradebook stays a score however often it is graded again.
                by_hand = (n for n, grade in grades.items() if grade.manual_score is not None)
                points = {n: float(grade.score) for n, grade in grades.items()}
                yield Graded(record, points, frozenset(by_hand))

    def give(self, slug: str, points: Mapping[str, float]) -> None:
        """Store the points that a person gave, by exercise: they count, whatever checks say."""
        with _quiet(), self._open() as book:
            for name, value in points.items():
                check = self.lab.checks[name]
                grade = book.find_grade(check, self.assignment, self.assignment, slug)
                grade.manual_score = value
            book.db.commit()


def _newest_schema() -> str | None:
    from alembic.script import ScriptDirectory
    from nbgrader.dbutil import ALEMBIC_DIR

    return ScriptDirectory(ALEMBIC_DIR).get_current_head()


def _outputs(mark: Mark) -> list[dict[str, Any]]:
    points = {"text/plain": repr(mark.points)}
    return [
        {"output_type": "stream", "name": "stdout", "text": mark_text(mark)},
        {"output_type": "execute_result", "data": points, "metadata": {}, "execution_count": None},
    ]


def notebook_of(lab: Lab, notebook: Notebook) -> dict[str, Any]:
    """The lab with its answers, as nbgrader reads it. Metadata come from the release; of a
    submission there are nothing but sources.
    """
    released = {cell.id: raw for cell, raw in zip(lab.cells, lab.notebook["cells"], strict=True)}
    cells, own = [], 0
    for cell in notebook.cells:
        if cell.kind == "extra":
            own += 1
            raw: dict[str, Any] = {"cell_type": "code", "id": f"own-{own}", "metadata": {}}
        else:
            raw = copy.deepcopy(released[cell.id])
        raw["source"] = cell.source
        if raw["cell_type"] == "code":
            raw |= {"outputs": [], "execution_count": None}
        cells.append(raw)
    return {**lab.notebook, "cells": cells}


def _node(value: Any) -> Any:
    from nbformat import from_dict

    return from_dict(copy.deepcopy(value))


class _quiet(warnings.catch_warnings):
    """Without the warnings that SQLAlchemy 2.1 gives about nbgrader's models."""

    def __enter__(self) -> Any:
        entered = super().__enter__()
        warnings.simplefilter("ignore")
        return entered
