"""What students get back, and what people mark without knowing whose it is."""

import base64
import csv
import hashlib
import html
import json
import re
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from utils.course.files import replace_file
from utils.labs.grading import downloads, folders, report
from utils.labs.grading.platforms.policy import Late
from utils.labs.grading.platforms.results import Results, platform_of
from utils.labs.grading.records import Graded
from utils.labs.grading.spreadsheets import csv_text


def annotate(results: Results, student: Graded, late: Late | None) -> dict[str, Any] | None:
    """The student's notebook with the marks below each check; None where nothing was graded.

    late: what was taken off, told at the top; None leaves out the top, and with it the name.
    """
    if not student.counts:
        return None
    assignment = results.lab.path
    path = results.out / "submitted" / student.record.slug / assignment.stem / assignment.name
    notebook: dict[str, Any] = json.loads(path.read_bytes())
    check_of = results.lab.checks
    texts = {check_of[m.exercise.name]: _mark_text(student, m) for m in student.record.marks}
    cells = [] if late is None else [_cell("marks", _top(results, student, late))]
    for raw in notebook["cells"]:
        cells.append(raw)
        if text := texts.get(raw.get("id", "")):
            cells.append(_cell(f"{raw['id']}-marks", text))
    return {**notebook, "cells": cells}


def _mark_text(student: Graded, mark: Any) -> str:
    name = mark.exercise.name
    text = report.mark_text(mark)
    if name in student.by_hand:
        text = f"{student.points[name]:g} points given by hand; the checks said:\n{text}"
    return text


def _top(results: Results, student: Graded, late: Late) -> str:
    record = student.record
    lines = [f"{results.lab.title}: {record.student}"]
    lines.append(f"{student.total:g} of {results.lab.points:g} points")
    lines += _about(student, late)
    return "\n".join([*lines, *record.notes]) + "\n"


def _about(student: Graded, late: Late) -> list[str]:
    """What a student should know of the due date; nothing where all was in time."""
    if not late.percent:
        return []
    off = f"{late.percent:g} % of the points are taken off"
    return [f"{late.remark}; {off}: {late.after(student.total):g} points count"]


def _cell(name: str, text: str) -> dict[str, Any]:
    # Preformatted and escaped: nothing in it is markup, whatever an answer made a message say.
    source = f"<pre>{html.escape(text)}</pre>"
    return {"cell_type": "markdown", "id": name, "metadata": {}, "source": source}


def release(
    results: Results, late: Mapping[str, Late], folder: Path, platform: str = ""
) -> list[str]:
    """Write a report and an annotated notebook for each student below `folder`; returns the names
    of those whom the platform would not find.

    Without a platform each student has a folder. "moodle" names the folders as its "Upload multiple
    feedback files in a zip" asks for. "canvas" names the files like the one that was downloaded,
    because its upload of graded submissions finds students by the two numbers in it (canvas-lms,
    infer_comment_context_from_filename). For both everything is packed beside `folder` too. Raises
    ValueError if the folder holds files.
    """
    if folder.exists() and any(folder.iterdir()):
        raise ValueError(f"{folder} holds files: choose an empty or a new folder for --to")
    without = []
    for student in results.students:
        record = student.record
        entry = downloads.entry_of(record.entry)
        if platform and (platform_of(record) != platform or not entry.id.isdigit()):
            without.append(record.student)
            continue
        own = folder
        names = (f"{results.lab.path.stem}.html", f"{results.lab.path.stem}_marked.ipynb")
        if platform == "moodle":
            own = folder / f"{entry.name}_{entry.id}_assignsubmission_file_"
        elif platform == "canvas":
            names = (f"{Path(record.entry).stem}.html", f"{Path(record.entry).stem}.ipynb")
        else:
            own = folder / record.slug
        own.mkdir(parents=True, exist_ok=True)
        taken = late.get(record.slug, Late())
        message = replace(record, notes=(*record.notes, *_about(student, taken)))
        page = report.student_page(results.lab, replace(student, record=message))
        (own / names[0]).write_text(page, encoding="utf-8")
        if notebook := annotate(results, student, taken):
            (own / names[1]).write_text(_text(notebook), encoding="utf-8")
    if platform and folder.exists():
        shutil.make_archive(str(folder), "zip", folder)
    return without


def _text(notebook: Mapping[str, Any]) -> str:
    return json.dumps(notebook, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def codes(out: Path, slugs: Iterable[str]) -> dict[str, str]:
    """A code for each student that tells nothing of the name, always the same in this folder.

    Who knows the seed, which lies in the folder too, can find the name.
    """
    seed = folders.known_seed(out, None)
    if seed is None:
        raise ValueError(f"{out} holds no seed: give the --out of an earlier `course.py grade`")
    result: dict[str, str] = {}
    for slug in sorted(slugs):
        digest = hashlib.sha256(f"{seed}/{slug}".encode()).digest()
        text, length = base64.b32encode(digest).decode(), 6
        while text[:length] in result.values():
            length += 1
        result[slug] = text[:length]
    return result


def write_by_hand(results: Results) -> Path:
    """Write notebooks without names for marking by hand, and a table that takes the marks.

    `codes.csv` in the folder of results, which nobody else may read, says whose they are. What
    students wrote themselves may hold their names. Returns the folder.
    """
    folder = results.out / "by_hand"
    code_of = codes(results.out, (s.record.slug for s in results.students))
    names = [exercise.name for exercise in results.lab.exercises]
    marks, private = [["code", *names]], [["code", "student", "id", "slug"]]
    for student in sorted(results.students, key=lambda s: code_of[s.record.slug]):
        record = student.record
        code = code_of[record.slug]
        private.append([code, record.student, record.id, record.slug])
        if notebook := annotate(results, student, None):
            replace_file(folder / f"{code}.ipynb", _text(notebook))
            marks.append([code, *(f"{student.points[name]:g}" for name in names)])
    replace_file(results.out / "codes.csv", csv_text(private), private=True)
    replace_file(folder / "marks.csv", csv_text(marks))
    return folder


def read_marks(results: Results, path: Path) -> dict[str, dict[str, float]]:
    """Points in a table as `write_by_hand` writes it that differ from those that count, by slug and
    exercise. Raises ValueError that names what cannot be taken.
    """
    code_of = codes(results.out, (s.record.slug for s in results.students))
    known = {code_of[s.record.slug]: s for s in results.students}
    most = {exercise.name: exercise.points for exercise in results.lab.exercises}
    changed: dict[str, dict[str, float]] = {}
    with path.open(encoding="utf-8-sig", newline="") as file:
        first = file.readline()
        file.seek(0)
        for row in csv.DictReader(file, delimiter=";" if ";" in first else ","):
            code = row.get("code") or ""
            if code not in known:
                raise ValueError(
                    f"{path}: {code or 'a row without code'} is none of the codes here"
                )
            for name in most:
                text = (row.get(name) or "").strip()
                points = _points(text, most[name], f"{path}: {name} of {code}")
                if points is not None and points != known[code].points[name]:
                    changed.setdefault(known[code].record.slug, {})[name] = points
    return changed


def _points(text: str, most: float, what: str) -> float | None:
    """A number of points; None for an empty cell, which changes nothing."""
    if not text:
        return None
    if not re.fullmatch(r"\d+([.,]\d+)?", text) or float(text.replace(",", ".")) > most:
        raise ValueError(f"{what} is {text}; give points from 0 to {most:g}")
    return float(text.replace(",", "."))
