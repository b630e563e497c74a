"""Every notebook runs from top to bottom in a fresh kernel: lessons, untouched labs, solutions."""

import json
import os
from pathlib import Path

import pytest

from utils.course import catalog
from utils.course.catalog import ROOT
from utils.course.runner import Run, execute_all

LESSONS = sorted((ROOT / "notebooks").glob("*.ipynb"))
LABS = sorted((ROOT / "labs").glob("*/*.ipynb"))
SOLUTIONS = sorted((ROOT / "solutions").glob("*/*.ipynb"))


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


def execute(source: Path, tmp_path: Path) -> tuple[Run, dict[str, dict], list[dict]]:
    """Execute a copyless run of `source`: the run, the progress it made, the executed cells."""
    progress = tmp_path / "progress.json"
    environment = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    (run,) = execute_all(
        [(source, tmp_path / source.name)], 1, {**environment, "COURSE_PROGRESS": str(progress)}
    )
    assert run.ok, f"cell {run.cell}: {run.error}"
    made = json.loads(progress.read_text())["exercises"] if progress.exists() else {}
    return run, made, catalog.read_notebook(tmp_path / source.name)["cells"]


def shown(cell: dict) -> str:
    return "".join("".join(each.get("data", {}).get("text/plain", "")) for each in cell["outputs"])


def test_there_are_notebooks_of_each_kind() -> None:
    assert LESSONS and LABS and SOLUTIONS


@pytest.mark.parametrize("path", LESSONS, ids=relative)
def test_a_lesson_runs_to_its_end_and_then_once_more(path: Path, tmp_path: Path) -> None:
    notebook = catalog.read_notebook(path)
    again = [{**cell, "id": f"{cell['id']}-again"} for cell in notebook["cells"]]
    twice = tmp_path / "notebooks" / path.name
    twice.parent.mkdir()
    twice.write_text(json.dumps({**notebook, "cells": notebook["cells"] + again}))
    for beside in ("utils", "notebooks/scripts"):
        (tmp_path / beside).symlink_to(ROOT / beside)
    execute(twice, tmp_path)


@pytest.mark.parametrize("path", LABS, ids=relative)
def test_an_untouched_lab_runs_to_its_end_and_scores_nothing(path: Path, tmp_path: Path) -> None:
    _, made, cells = execute(path, tmp_path)
    assert made == {}
    lab = catalog.lab(path.stem.partition("_")[0])
    checks = [cell for cell in cells if "exercise" in cell["metadata"]]
    assert [cell["metadata"]["exercise"]["id"] for cell in checks] == [e.id for e in lab.exercises]
    for cell in checks:
        assert "not attempted · 0 of" in shown(cell), shown(cell)


@pytest.mark.parametrize("path", SOLUTIONS, ids=relative)
def test_a_solution_scores_full_marks(path: Path, tmp_path: Path) -> None:
    _, made, _ = execute(path, tmp_path)
    lab = catalog.lab(path.stem.partition("_")[0])
    assert {each: entry["points"] for each, entry in made.items()} == {
        each.id: each.points for each in lab.exercises
    }
    assert {entry["state"] for entry in made.values()} == {"passed"}
