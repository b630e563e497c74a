"""Notebooks that papermill executes, each in a fresh kernel: solutions, untouched labs, and once a
night the lessons a second time. Lessons as they are stored belong to nbval, see `course.py test`.
"""

import json
import os
from pathlib import Path
from typing import Any
from unittest import mock

import nbformat
import pytest
from nbval.plugin import IPyNbFile, coalesce_streams, get_sanitize_patterns

from utils.course import catalog, kernel_server, runner
from utils.course.catalog import ROOT
from utils.xla import fresh

LESSONS = sorted((ROOT / "notebooks").glob("*.ipynb"))
LABS = sorted((ROOT / "labs").glob("*/*.ipynb"))
SOLUTIONS = sorted((ROOT / "solutions").glob("*/*.ipynb"))
SANITIZED = ROOT / "tests" / "nbval_sanitize.cfg"


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


def execute(source: Path, tmp_path: Path, **environment: str) -> tuple[dict[str, dict], Path]:
    """The exercises in the progress file that an execution of `source` writes, and its copy."""
    progress, target = tmp_path / "progress.json", tmp_path / f"executed-{source.name}"
    base = dict(os.environ) | environment | {"COURSE_PROGRESS": str(progress)}
    with (
        runner.kernel_environment(base, kernel_server.socket_path()) as inner,
        mock.patch.dict(os.environ, inner, clear=True),
    ):
        run = runner.execute(source, target)
    assert run.ok, f"cell {run.cell}: {run.error}"
    made = json.loads(progress.read_text())["exercises"] if progress.exists() else {}
    return made, target


def differences(source: Path, executed: Path, session: pytest.Session) -> list[str]:
    """What the cells show otherwise than stored, as nbval compares."""
    stored = IPyNbFile.from_parent(session, path=source)
    stored.sanitize_patterns.update(get_sanitize_patterns(SANITIZED.read_text()))
    cells = [cell for cell in nbformat.read(executed, 4).cells if cell.cell_type == "code"]
    result = []
    for item, cell in zip(stored.collect(), cells, strict=True):
        if item.options["check"] and not item.options["skip"]:
            item.colors = mock.Mock(OKBLUE="", FAIL="", ENDC="")
            outputs = (coalesce_streams(entry.outputs) for entry in (cell, item.cell))
            if not item.compare_outputs(*outputs):
                result.append("\n".join([f"cell {cell.id}:", *item.comparison_traceback]))
    return result


def shown(cell: dict[str, Any]) -> str:
    outputs = (output.get("data", {}).get("text/plain", "") for output in cell["outputs"])
    return "".join("".join(text) for text in outputs)


def test_there_are_notebooks_of_each_kind() -> None:
    assert LESSONS and LABS and SOLUTIONS


@pytest.mark.exhaustive
@pytest.mark.parametrize("path", LESSONS, ids=relative)
def test_a_lesson_runs_twice_in_one_kernel(path: Path, tmp_path: Path) -> None:
    notebook = catalog.read_notebook(path)
    again = [{**cell, "id": f"{cell['id']}-again"} for cell in notebook["cells"]]
    twice = tmp_path / "notebooks" / path.name
    twice.parent.mkdir()
    twice.write_text(json.dumps({**notebook, "cells": notebook["cells"] + again}))
    for beside in ("utils", "notebooks/scripts"):
        (tmp_path / beside).symlink_to(ROOT / beside)
    execute(twice, tmp_path, XLA_FLAGS="")


@pytest.mark.parametrize("path", LABS, ids=relative)
def test_an_untouched_lab_runs_to_its_end_and_scores_nothing(path: Path, tmp_path: Path) -> None:
    # An untouched lab cannot pass its own checks.
    made, executed = execute(path, tmp_path, **fresh.FAST, COURSE_STRICT="0")
    assert made == {}
    lab = catalog.lab(path.stem.partition("_")[0])
    cells = catalog.read_notebook(executed)["cells"]
    checks = [cell for cell in cells if "exercise" in cell["metadata"]]
    assert [cell["metadata"]["exercise"]["id"] for cell in checks] == [e.id for e in lab.exercises]
    for cell in checks:
        assert "not attempted · 0 of" in shown(cell), shown(cell)


@pytest.mark.parametrize("path", SOLUTIONS, ids=relative)
def test_a_solution_scores_full_marks_and_shows_what_is_stored(
    path: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    # In its fast way XLA compiles to the same points and outputs, in half of the time.
    nightly = request.config.getoption("exhaustive")
    flags = {"XLA_FLAGS": ""} if nightly else fresh.FAST
    made, executed = execute(path, tmp_path, **flags, COURSE_STRICT="1")
    lab = catalog.lab(path.stem.partition("_")[0])
    assert {name: entry["points"] for name, entry in made.items()} == {
        exercise.id: exercise.points for exercise in lab.exercises
    }
    assert {entry["state"] for entry in made.values()} == {"passed"}
    assert differences(path, executed, request.session) == []
