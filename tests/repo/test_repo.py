"""The house rules that a machine can hold: notebooks, layers, sizes, words never to be written."""

import ast
import base64
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from utils.cli.commands import test
from utils.course import catalog, copies, labgen
from utils.course.catalog import ROOT
from utils.course.labgen import CELL_ID, TAGS
from utils.course.notebooks import canonical, to_text

LESSONS = sorted((ROOT / "notebooks").glob("*.ipynb"))
SOLUTIONS = sorted((ROOT / "solutions").glob("*/*.ipynb"))
LABS = sorted((ROOT / "labs").glob("*/*.ipynb"))
NOTEBOOKS = [*LESSONS, *SOLUTIONS, *LABS]
MODULES = sorted((ROOT / "utils").rglob("*.py"))

# 170 kB, because results are stored twice: as text, and folded for readers on the web.
NOTEBOOK_BYTES, FIGURE_BYTES, ALL_BYTES = 170_000, 40_000, 5_000_000
LONG, LONG_LINES = 100, 160  # characters; printed lines of lessons and solutions, less to come
ROOMS = 14
SETUP = """\
import sys; sys.path[:0] = ["..", "../..", "../../.."]  # where the course is, in any Jupyter
try:
    from utils.xla import env
except ModuleNotFoundError as error:
    sys.exit(f"{error}: open this notebook with `python3 course.py start`, in its folder")
env.report()"""


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


def cells(path: Path) -> list[dict[str, Any]]:
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


def code_cells(path: Path) -> list[dict[str, Any]]:
    return [cell for cell in cells(path) if cell["cell_type"] == "code"]


def outputs(path: Path) -> list[tuple[str, dict[str, Any]]]:
    return [(cell["id"], output) for cell in code_cells(path) for output in cell["outputs"]]


def test_there_is_something_to_look_at() -> None:
    assert LESSONS and SOLUTIONS and LABS and MODULES


every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=relative)
every_executed = pytest.mark.parametrize("path", [*LESSONS, *SOLUTIONS], ids=relative)


def test_in_a_wrong_folder_the_first_cell_says_what_to_do(tmp_path: Path) -> None:
    command = [sys.executable, "-I", "-c", SETUP]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.stderr.strip() == (
        "No module named 'utils': open this notebook with `python3 course.py start`, in its folder"
    )


@every_notebook
def test_cell_ids_are_unique_slugs_of_ours(path: Path) -> None:
    ids = [cell["id"] for cell in cells(path)]
    assert len(set(ids)) == len(ids)
    bad = [name for name in ids if not CELL_ID.fullmatch(name) or re.fullmatch("[0-9a-f]{8}", name)]
    assert bad == []


@every_notebook
def test_only_known_tags_are_used(path: Path) -> None:
    assert {tag for cell in cells(path) for tag in catalog.tags(cell)} <= TAGS


@every_notebook
def test_a_notebook_is_in_canonical_form(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert to_text(canonical(json.loads(text))) == text, "store it with: course.py run --save"


@every_notebook
def test_a_notebook_begins_with_its_only_level_1_heading(path: Path) -> None:
    prose = "\n".join(catalog.text(c) for c in cells(path) if c["cell_type"] == "markdown")
    headings = re.findall(r"^# .*", re.sub(r"^```.*?^```", "", prose, flags=re.M | re.S), re.M)
    first = catalog.text(cells(path)[0]).splitlines()
    assert headings == first[:1]
    course = json.loads(path.read_text(encoding="utf-8"))["metadata"]["course"]
    points = ""
    if course["kind"] == "lab":
        points = f"{catalog.lab('lab' + course['number']).points:g} points · "
    before = ("after lesson " if points else "after ") + ", ".join(course["after"])
    after = before if course["after"] else "needs no other lesson"
    line = f"{course['minutes']} min · {points}runs on {course['needs']} · {after}"
    assert line in first, f"the line under the title must say: {line}"


@every_notebook
def test_the_set_up_cell_is_the_same_everywhere(path: Path) -> None:
    results = [cell for cell in cells(path) if cell["id"] == "setup"]
    several = SETUP.replace("report()", "report(devices=4)")
    assert [catalog.text(cell) for cell in results] in ([SETUP], [several])
    assert "setup" in catalog.tags(results[0])
    assert code_cells(path)[0]["id"] == "setup"


@pytest.mark.parametrize("path", LESSONS, ids=relative)
def test_a_lesson_lists_the_sources_that_its_prose_names(path: Path) -> None:
    prose = "\n".join(catalog.text(c) for c in cells(path) if c["cell_type"] == "markdown")
    code = "\n".join(catalog.text(c) for c in code_cells(path) if c["id"] == "sources")
    named = set(re.findall(r"\[([a-z0-9-]+)\](?!\()", prose))
    assert named == set(re.findall(r'"([a-z0-9-]+)"', code))


@every_notebook
def test_links_between_files_lead_somewhere(path: Path) -> None:
    prose = "\n".join(catalog.text(c) for c in cells(path) if c["cell_type"] == "markdown")
    targets = re.findall(r"\]\((?!https?:|#)([^)#\s]+)", prose)
    assert [target for target in targets if not (path.parent / target).exists()] == []


@every_executed
def test_outputs_are_kept_and_counted_from_one(path: Path) -> None:
    skipped = {"nbval-skip"}
    ran = [cell for cell in code_cells(path) if not skipped & set(catalog.tags(cell))]
    assert [cell["execution_count"] for cell in ran] == list(range(1, len(ran) + 1))
    assert outputs(path), "no output at all: store them with: course.py run --save"


@every_executed
def test_no_output_is_an_error_or_a_warning(path: Path) -> None:
    bad = [
        (name, output.get("ename") or output.get("text"))
        for name, output in outputs(path)
        if output["output_type"] == "error" or output.get("name") == "stderr"
    ]
    assert bad == []


@every_executed
def test_no_output_names_a_folder_of_a_machine(path: Path) -> None:
    written = json.dumps([output for _, output in outputs(path)])
    assert re.findall(r"/(?:home|Users|root|tmp|mnt|work)/[\w.-]+", written) == []


@every_executed
def test_every_figure_is_small_and_described_in_words(path: Path) -> None:
    for name, output in outputs(path):
        data = output.get("data", {})
        assert not {"image/svg+xml", "image/jpeg"} & set(data), f"{name}: figures are PNG"
        if "image/png" in data:
            size = len(base64.b64decode("".join(data["image/png"])))
            assert size <= FIGURE_BYTES, f"{name}: a figure of {size} bytes"
            words = "".join(data.get("text/plain", ""))
            assert len(words.split()) >= 5, f"{name}: no description, only {words!r}"
            assert not words.startswith("<"), f"{name}: {words!r} describes nothing"


@pytest.mark.parametrize("path", [p for p in LESSONS if p.name[0].isdigit()], ids=relative)
def test_a_lesson_begins_with_something_to_move(path: Path) -> None:
    of_id = {cell["id"]: cell for cell in cells(path)}
    names = list(of_id)
    first = next(place for place, name in enumerate(names) if name.startswith("s1-"))
    parts = [f"explore-{part}" for part in ("idea", "define", "widget", "twin")]
    assert names[first - len(parts) : first] == parts
    idea, define, widget, twin = (of_id[part] for part in parts)
    sentences = re.findall(r"[.?!](?=\s|$)", "".join(idea["source"]).replace("**", ""))
    assert len(sentences) <= 4, "say what to move and what to look for, and no more"
    assert define["metadata"]["jupyter"]["source_hidden"]
    assert "widget" in catalog.tags(widget) and "nbval-ignore-output" in catalog.tags(widget)
    assert twin["outputs"], "readers on the web see one choice"


@pytest.mark.parametrize("path", LABS, ids=relative)
def test_labs_keep_no_outputs_and_no_counts(path: Path) -> None:
    assert outputs(path) == []
    assert {cell["execution_count"] for cell in code_cells(path)} == {None}


def test_notebooks_stay_within_their_budgets() -> None:
    sizes = {relative(path): path.stat().st_size for path in NOTEBOOKS}
    assert {name: size for name, size in sizes.items() if size > NOTEBOOK_BYTES} == {}
    assert sum(sizes.values()) <= ALL_BYTES


def test_no_more_long_lines_are_printed() -> None:
    """JupyterLab breaks them between words (utils/cli/jupyter/custom.css), other pages anywhere."""
    texts = [
        "".join(output["text"])
        for path in (*LESSONS, *SOLUTIONS)
        for _, output in outputs(path)
        if output["output_type"] == "stream"
    ]
    assert sum(len(line) > LONG for text in texts for line in text.split("\n")) <= LONG_LINES


def test_solutions_and_labs_are_the_same_tree() -> None:
    assert [p.relative_to(ROOT / "solutions") for p in SOLUTIONS] == [
        p.relative_to(ROOT / "labs") for p in LABS
    ]


def test_exercise_ids_are_unique_and_every_lesson_and_lab_is_described() -> None:
    ids = [exercise.id for lab in catalog.labs(ROOT) for exercise in lab.exercises]
    assert ids and len(set(ids)) == len(ids)
    for lesson in [*catalog.lessons(ROOT), *catalog.labs(ROOT), *catalog.pages(ROOT)]:
        assert lesson.title and lesson.minutes and lesson.needs and lesson.proves
    assert labgen.generate(ROOT)


def module_name(path: Path) -> str:
    return path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".")


def imports(path: Path) -> set[str]:
    """Every module that a file imports, at its top or inside a function."""
    results: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            results |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                package = module_name(path).split(".")[: -node.level]
                base = ".".join([*package, *filter(None, [base])])
            results |= {base, *(f"{base}.{alias.name}" for alias in node.names)}
    return results


def own(names: set[str]) -> set[str]:
    """Those that name a module of ours, not a function in one."""
    return {
        name
        for name in names
        if name.startswith("utils.")
        and (
            (ROOT / name.replace(".", "/")).is_dir()
            or (ROOT / f"{name.replace('.', '/')}.py").is_file()
        )
    }


def test_rooms_import_downward_only_and_in_no_circle() -> None:
    """The contracts stand in pyproject.toml; `lint-imports` prints the chain that breaks one."""
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, "\n" + done.stdout + done.stderr


def test_importing_utils_does_nothing_and_every_room_says_what_lives_there() -> None:
    assert imports(ROOT / "utils" / "__init__.py") == set()
    rooms = [path for path in (ROOT / "utils").iterdir() if path.suffix != ".py"]
    rooms = [path for path in rooms if path.name != "__pycache__"]
    assert len(rooms) <= ROOMS
    for room in rooms:
        docstring = ast.get_docstring(ast.parse((room / "__init__.py").read_text("utf-8"))) or ""
        assert "May import:" in docstring and "Used by:" in docstring, f"{room.name}: {docstring}"


@pytest.mark.parametrize("path", MODULES, ids=relative)
def test_modules_say_what_they_are_for(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert not text.strip() or ast.get_docstring(ast.parse(text)), "no docstring"


def judging_modules() -> list[Path]:
    return [path for path in MODULES if path.name == "judge.py"]


def test_judges_need_no_xla_and_observers_know_no_judge() -> None:
    assert judging_modules()
    for path in judging_modules():
        seen, open_ones = set(), {module_name(path)}
        while open_ones:
            module = open_ones.pop()
            seen.add(module)
            file = ROOT / f"{module.replace('.', '/')}.py"
            if file.is_file():
                names = imports(file)
                assert not any(name.split(".")[0] == "torch_xla" for name in names), module
                open_ones |= own(names) - seen
        observing = imports(path.with_name("observe.py"))
        assert not any(item.endswith(".judge") for item in observing)


# Written in pieces, because this file is looked at too.
FORBIDDEN = re.compile(
    "|".join(
        (
            "pypi" + r"\.org",
            "python" + r"hosted\.org",
            "download" + r"\.pytorch\.org",
            "anaconda" + r"\.org",
            "/" + r"root/",
            "/" + r"work/",
            "/" + r"tmp/team",
        )
    )
)
IGNORED = {".git", ".venv", ".tools", "__pycache__", ".pytest_cache", ".ruff_cache", ".hypothesis"}
IGNORED |= {".ipynb_checkpoints", ".mypy_cache", ".import_linter_cache", copies.FOLDER}


def written_files() -> list[Path]:
    """Every text file of ours; git is not asked, because a learner's copy may have none."""
    results: list[Path] = []
    for folder, folders, names in os.walk(ROOT):
        folders[:] = sorted(set(folders) - IGNORED)  # an environment has a hundred thousand files
        results += [
            Path(folder, name)
            for name in sorted(names)
            if not name.startswith(".progress") and name not in IGNORED | {"uv.lock"}
        ]
    return results


def test_no_file_names_a_package_registry_or_a_machine() -> None:
    files = written_files()
    assert len(files) > len(NOTEBOOKS)
    results = []
    for path in files:
        text = path.read_text(encoding="utf-8", errors="ignore")
        results += [f"{relative(path)}: {match.group()}" for match in FORBIDDEN.finditer(text)]
    assert results == []


def test_ruff_finds_nothing() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--no-cache", "--output-format=concise", "."],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, "\n" + done.stdout + done.stderr


def test_types_hold() -> None:
    """What mypy checks, and what it leaves out, stands in pyproject.toml."""
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--no-error-summary", "--cache-dir", ROOT / ".tools/mypy"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, "\n" + done.stdout + done.stderr


def test_ci_runs_the_readmes_test_command_with_everything_once() -> None:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    lines = [line for line in script.splitlines() if line and not line.startswith("#")]
    assert lines == ["set -euo pipefail", 'cd "$(dirname "$0")/.."', "exec python3 course.py test"]
    assert "python3 course.py test" in (ROOT / "README.md").read_text(encoding="utf-8")
    workflow = (ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8")
    assert re.findall(r"run: (.*)", workflow) == ["python3 course.py test"]
    # Solutions and labs are executed by a test; nbval would execute them once more.
    assert {"tests", "utils", "notebooks"} == set(test.EVERYTHING)
