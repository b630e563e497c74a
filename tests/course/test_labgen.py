"""labs/ is made from solutions/: reproducible, nothing of the solution left, faults named."""

import json
from pathlib import Path

import pytest

from tests.labs.lab99 import course as lab99
from utils.course import catalog, labgen
from utils.course.catalog import CatalogError

LAB = Path("labs", "lab99_sums", "lab99_sums.ipynb")


def cells(path: Path) -> dict[str, dict]:
    return {cell["id"]: cell for cell in json.loads(path.read_text())["cells"]}


def source(cell: dict) -> str:
    return "".join(cell["source"])


def test_the_learners_notebook_holds_stubs_and_no_solution(course: Path) -> None:
    assert labgen.write(course) == [course / LAB]
    made = cells(course / LAB)
    assert source(made["ex1-code"]) == (
        'def double(number):\n    """Twice the number."""\n'
        '    raise NotImplementedError("lab99.ex1: not attempted yet")'
    )
    assert source(made["ex2-code"]).endswith(
        '    raise NotImplementedError("lab99.ex2: not attempted yet")\n    return total / count'
    )
    assert "SOLUTION" not in (course / LAB).read_text()
    assert "ex1-why" not in made and "ex2-hints" in made


def test_a_task_says_minutes_and_points_from_the_check_cell(course: Path) -> None:
    labgen.write(course)
    content = json.loads((course / LAB).read_text())
    tasks = {cell["id"]: source(cell) for cell in content["cells"] if "task" in cell["id"]}
    for exercise in catalog.exercises("lab99", course):
        name = exercise.id.partition(".")[2]
        line = f"Difficulty: 1 of 3 · {exercise.minutes} minutes · {exercise.points:g} points"
        assert line in tasks[f"{name}-task"].splitlines()


def test_cells_keep_ids_points_and_lose_outputs(course: Path) -> None:
    path = catalog.lab_notebooks(course)[0]
    content = lab99.solution()
    content["metadata"]["papermill"] = {"duration": 3.1}
    check = content["cells"][4]
    check["execution_count"] = 7
    check["outputs"] = [{"output_type": "stream", "name": "stdout", "text": ["a", "b"]}]
    check["metadata"]["papermill"] = {"duration": 1.2}
    lab99.save(path, content)
    labgen.write(course)
    made = cells(course / LAB)["ex1-check"]
    assert made["outputs"] == [] and made["execution_count"] is None
    assert made["metadata"]["nbgrader"]["points"] == 4
    assert made["metadata"]["editable"] is False and made["metadata"]["deletable"] is False
    assert made["metadata"]["exercise"]["id"] == "lab99.ex1"
    assert "papermill" not in (course / LAB).read_text()


def test_generation_is_reproducible_to_the_byte_and_then_silent(course: Path) -> None:
    labgen.write(course)
    first = (course / LAB).read_bytes()
    assert labgen.write(course) == []
    (course / LAB).unlink()
    labgen.write(course)
    assert (course / LAB).read_bytes() == first
    assert labgen.drift(course) == []


def test_a_source_with_lines_as_lists_gives_the_same_lab(course: Path) -> None:
    labgen.write(course)
    first = (course / LAB).read_bytes()
    content = lab99.solution()
    for cell in content["cells"]:
        cell["source"] = cell["source"].splitlines(keepends=True)
    lab99.save(catalog.lab_notebooks(course)[0], content)
    assert labgen.write(course) == []
    assert (course / LAB).read_bytes() == first


def test_drift_names_the_file_and_the_cell(course: Path) -> None:
    assert labgen.drift(course) == [f"{LAB} is missing"]
    labgen.write(course)
    good = (course / LAB).read_text()
    (course / LAB).write_text(good.replace("Twice the number", "Thrice the number"))
    assert labgen.drift(course) == [f"{LAB} differs from its solution, first in cell 'ex1-code'"]
    (course / LAB).write_text(good + "\n")
    assert labgen.drift(course) == [
        f"{LAB} differs from its solution, in its metadata or in the order of its cells"
    ]
    (course / LAB).write_text("{")
    assert "not a readable notebook" in labgen.drift(course)[0]
    labgen.write(course)
    stray = course / "labs" / "lab98_old" / "lab98_old.ipynb"
    lab99.save(stray, lab99.solution())
    assert labgen.drift(course) == [
        "labs/lab98_old/lab98_old.ipynb has no solution notebook: delete it"
    ]


def test_no_lab_at_all_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match="solutions/ holds no lab"):
        labgen.generate(tmp_path)


def cell(content: dict, name: str) -> dict:
    return next(item for item in content["cells"] if item["id"] == name)


def replaced(name: str, old: str, new: str):
    def edit(content: dict) -> None:
        result = cell(content, name)
        assert old in result["source"]
        result["source"] = result["source"].replace(old, new)

    return edit


def without(name: str):
    return lambda content: content["cells"].remove(cell(content, name))


def graded(name: str, **values):
    return lambda content: cell(content, name)["metadata"]["nbgrader"].update(values)


def described(name: str, **values):
    return lambda content: cell(content, name)["metadata"]["exercise"].update(values)


FAULTS = [
    (replaced("ex1-code", "    ### END SOLUTION", ""), "ex1-code", "is not closed"),
    (replaced("ex1-code", "    return", f"    {labgen.BEGIN}\n    return"), "ex1-code", "inside"),
    (replaced("ex1-code", "return number + number", ""), "ex1-code", "solution is empty"),
    (replaced("ex1-code", "    ### BEGIN SOLUTION\n", ""), "ex1-code", "that never began"),
    (replaced("ex1-code", "### BEGIN", "# BEGIN"), "ex1-code", "must stand alone"),
    (replaced("setup", "import sys", "### BEGIN SOLUTION\nimport sys\n### END SOLUTION\n#"),
     "setup", "only cells called exN-code"),
    (graded("ex1-code", solution=False), "ex1-code", "nbgrader solution cell"),
    (graded("ex1-check", locked=False), "ex1-check", "locked nbgrader grade cell"),
    (graded("ex1-check", grade_id="other"), "ex1-check", "must be 'ex1-check'"),
    (graded("ex1-check", points=0), "ex1-check", "gives 0 points"),
    (graded("ex1-check", points=None), "ex1-check", "gives None points"),
    (described("ex2-check", id="lab99.ex1"), "ex2-check", "must be 'lab99.ex2'"),
    (described("ex1-check", minutes=0), "ex1-check", "lacks the title or the minutes"),
    (replaced("ex1-check", "ex1", "ex2"), "ex1-check", 'must contain check("lab99.ex1")'),
    (replaced("ex1-hints", "Hint 3", "<details>"), "ex1-hints", "has 4 hints"),
    (without("ex1-hints"), "ex1-hints", "is missing"),
    (without("ex2-why"), "ex2-why", "is missing"),
    (without("ex1-check"), "ex1-check", "is missing"),
    (lambda n: cell(n, "ex1-why").update(metadata={}), "ex1-why", "tag it solution-only"),
    (lambda n: cell(n, "setup").update(metadata={"tags": ["fast"]}), "setup", "unknown tag 'fast'"),
    (lambda n: cell(n, "setup").update(id="title"), "title", "the id of an earlier cell"),
    (lambda n: cell(n, "setup").update(id="a1b2c3d4"), "a1b2c3d4", "a meaningful id"),
    (lambda n: cell(n, "setup").update(id="Setup"), "Setup", "a meaningful id"),
]  # fmt: skip


@pytest.mark.parametrize(("edit", "where", "what"), FAULTS)
def test_faults_of_a_source_are_named_with_file_and_cell(course: Path, edit, where, what) -> None:
    content = lab99.solution()
    edit(content)
    lab99.save(catalog.lab_notebooks(course)[0], content)
    with pytest.raises(CatalogError) as error:
        labgen.generate(course)
    assert f"solutions/lab99_sums/lab99_sums.ipynb: cell '{where}'" in str(error.value)
    assert what in str(error.value)


def test_a_lab_without_exercises_or_with_a_wrong_name_is_refused(course: Path) -> None:
    content = lab99.solution()
    content["cells"] = content["cells"][:2]
    lab99.save(catalog.lab_notebooks(course)[0], content)
    with pytest.raises(CatalogError, match="at least one exercise"):
        labgen.generate(course)
    lab99.save(course / "solutions" / "lab99_sums" / "draft.ipynb", lab99.solution())
    with pytest.raises(CatalogError, match="must be called labNN_topic/labNN_topic.ipynb"):
        labgen.generate(course)
