"""A course in a folder: one lesson and the solution notebook of lab 99."""

import json
from pathlib import Path
from typing import Any

from utils.course import tracks
from utils.course.notebooks import to_text

SETUP = "import sys; sys.path[:0] = ['..', '../..']\nfrom utils.labs.check import check"
DOUBLE = """def double(number):
    \"\"\"Twice the number.\"\"\"
    ### BEGIN SOLUTION
    return number + number
    ### END SOLUTION"""
MEAN = """def mean(read, count):
    ### BEGIN SOLUTION
    total = sum(read(index) for index in range(count))
    ### END SOLUTION
    return total / count"""
TRACKS = """all:
  name: All
  whom: For everybody.
  parts: [["99", lab99.ex1, lab99.ex2]]
"""
HINTS = "".join(f"<details><summary>Hint {n}</summary>add</details>\n" for n in (1, 2, 3))


def markdown(name: str, source: str, **metadata: Any) -> dict[str, Any]:
    return {"cell_type": "markdown", "id": name, "metadata": metadata, "source": source}


def code(name: str, source: str, **metadata: Any) -> dict[str, Any]:
    return {
        "cell_type": "code",
        "execution_count": None,
        "id": name,
        "metadata": metadata,
        "outputs": [],
        "source": source,
    }


def exercise(name: str, title: str, points: int, minutes: int, source: str) -> list[dict[str, Any]]:
    solution = {"grade": False, "solution": True, "locked": False, "grade_id": f"{name}-code"}
    grade = {"grade": True, "solution": False, "locked": True, "grade_id": f"{name}-check"}
    return [
        markdown(f"{name}-task", f"## {title}\n\nDifficulty: 1 of 3"),
        code(f"{name}-code", source, nbgrader={**solution, "schema_version": 3, "task": False}),
        code(
            f"{name}-check",
            f'check("lab99.{name}")',
            nbgrader={**grade, "points": points, "schema_version": 3, "task": False},
            exercise={"id": f"lab99.{name}", "title": title, "minutes": minutes},
        ),
        markdown(f"{name}-hints", HINTS),
        markdown(f"{name}-why", "Because.", tags=["solution-only"]),
    ]


def notebook(kind: str, cells: list[dict[str, Any]], **course: Any) -> dict[str, Any]:
    facts = {"number": "99", "minutes": 5, "needs": "Python", "after": ["00"], "proves": "sums"}
    return {
        "cells": cells,
        "metadata": {
            "course": {"kind": kind, **facts, **course},
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def lesson() -> dict[str, Any]:
    cells = [
        markdown("title", "# 99 · Counting\n\nPromise."),
        code("answer", "print('six times seven is', 6 * 7)\n6 * 7"),
    ]
    return notebook("lesson", cells)


def solution() -> dict[str, Any]:
    cells = [
        markdown("title", "# Lab 99 · Sums\n\nPromise."),
        code("setup", SETUP, tags=["setup"]),
        *exercise("ex1", "Twice", 4, 5, DOUBLE),
        *exercise("ex2", "Mean", 8, 10, MEAN),
    ]
    return notebook("lab", cells)


def save(path: Path, content: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def build(root: Path) -> Path:
    """Write the course under `root`; returns the solution notebook."""
    path = root / "notebooks" / "99_counting.ipynb"
    save(path, lesson())
    path.write_text(to_text(lesson()), encoding="utf-8")  # as `course.py labs` writes it
    path = root / "solutions" / "lab99_sums" / "lab99_sums.ipynb"
    save(path, solution())
    (root / tracks.FILE).parent.mkdir(parents=True)
    (root / tracks.FILE).write_text(TRACKS)
    return path
