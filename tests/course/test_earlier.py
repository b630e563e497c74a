"""Earlier answers: what is read from the notebooks beside one, and what is said where it is not."""

import json
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

from utils.course import catalog, earlier, labgen
from utils.course.catalog import ROOT
from utils.course.earlier import Earlier, Problem, Wanted

HALF = Wanted("lab99", "ex2", ("half", "quarter"))
RIGHT = "def half(x):\n    return x / TWO\n\n\ndef quarter(x):\n    return half(half(x))\n"
STUB = 'def half(x):\n    raise NotImplementedError("lab99.ex2: not attempted yet")\n'


def of(*cells: tuple[str, str]) -> Any:
    return earlier.functions_of(HALF, list(cells))


def hand_in(labs: Path, lab: str, *cells: tuple[str, str]) -> None:
    folder = labs / f"{lab}_topic"
    folder.mkdir(parents=True)
    (folder / f"{lab}_topic.ipynb").write_bytes(earlier.notebook(list(cells)))


def test_imports_and_what_other_cells_define_are_there_and_nothing_else_is_run() -> None:
    result = of(
        ("setup", "raise SystemExit('never run')"),
        ("imports", "%matplotlib inline\nimport math\nTWO = int(math.sqrt(4))"),
        ("ex1-code", "SCALE = 3\nopen('/nowhere')\n\ndef helper(x):\n    return SCALE * x"),
        ("own", "this is no python"),
        ("ex2-code", RIGHT + "\n\ndef thrice(x):\n    return helper(x)\n"),
        ("ex2-check", "raise RuntimeError"),
    )
    assert (result["half"](3), result["quarter"](8)) == (1.5, 2)
    assert result["half"].__globals__["thrice"](2) == 6


def test_the_functions_can_be_sent_to_another_process() -> None:
    result = of(("imports", "TWO = 2"), ("ex2-code", RIGHT))
    assert cloudpickle.loads(cloudpickle.dumps(result["quarter"]))(2) == 0.5


@pytest.mark.parametrize(
    ("cells", "kind", "text"),
    [
        ([], "name", "there is no cell ex2-code"),
        ([("ex2-code", STUB)], "unanswered", "it is not attempted yet"),
        ([("ex2-code", "def half(x:\n    return")], "syntax", "cell ex2-code, line 1"),
        ([("ex2-code", "def half(x): ...")], "name", "`quarter` in cell ex2-code"),
        ([("ex2-code", "half = quarter = 3")], "name", "`half` in cell ex2-code"),
        ([("ex2-code", "1 / 0\n" + RIGHT)], "raised", "raises ZeroDivisionError: division by zero"),
        ([("ex2-code", "exit()\n" + RIGHT)], "raised", "cell ex2-code raises"),
        (
            [("imports", "import nothing_such"), ("ex2-code", RIGHT)],
            "raised",
            "cell imports raises ModuleNotFoundError",
        ),
    ],
    ids=lambda item: item if isinstance(item, str) and " " not in item else "",
)
def test_what_is_wrong_is_said_with_lab_and_exercise(cells: list, kind: str, text: str) -> None:
    problem = of(*cells)
    assert isinstance(problem, Problem) and problem.kind == kind
    assert str(problem).startswith("lab 99, exercise 2 (half, quarter): ") and text in str(problem)


def test_an_operator_at_the_begin_of_a_line_is_no_magic() -> None:
    odd = "\n\ndef describe(x):\n    return (\n        'half of %s'\n        % x\n    )\n"
    result = of(("imports", "TWO = 2"), ("ex2-code", RIGHT + odd))
    assert result["half"].__globals__["describe"](3) == "half of 3"
    inside = "%timeit 1\nif True:\n    %matplotlib inline\n" + RIGHT
    assert of(("imports", "TWO = 2"), ("ex2-code", inside))["half"](3) == 1.5


def test_a_copy_beside_the_notebook_is_not_read(tmp_path: Path) -> None:
    here = tmp_path / "labs" / "lab15_torchneuron"
    here.mkdir(parents=True)
    hand_in(tmp_path / "labs", "lab06", ("ex3-code", "def bench(): return 6"))
    copy = tmp_path / "labs" / "lab06_topic" / "lab06_topic-Copy1.ipynb"
    copy.write_bytes(earlier.notebook([("ex3-code", "def bench(): return 'old'")]))
    assert earlier.answers(folder=here).bench() == 6


def test_a_cell_without_its_id_is_found_by_the_function() -> None:
    assert of(("", "TWO = 2"), ("cell-7", RIGHT))["half"](1) == 0.5


def test_a_missing_notebook_and_a_broken_one_are_problems_of_their_exercise(tmp_path: Path) -> None:
    here = tmp_path / "labs" / "lab15_torchneuron"
    here.mkdir(parents=True)
    hand_in(tmp_path / "labs", "lab06", ("ex3-code", "def bench(): return 6"))
    (tmp_path / "labs" / "lab08_topic").mkdir()
    (tmp_path / "labs" / "lab08_topic" / "lab08_topic.ipynb").write_text("{")
    mine = earlier.answers(folder=here)
    assert mine.bench() == 6
    assert {p.wanted.id: p.kind for p in mine.problems} == {
        "lab04.ex3": "missing",
        "lab08.ex1": "broken",
        "lab11.ex1": "missing",
    }
    with pytest.raises(earlier.NotThere, match=r"`merge` comes from lab 11, exercise 1 \(add_lora"):
        mine.merge(None)
    with pytest.raises(AttributeError, match="no earlier answer is called 'train'"):
        mine.train  # noqa: B018
    assert repr(mine).splitlines()[0] == "bench: lab06.ex3"


@pytest.mark.parametrize("wanted", earlier.WANTED["lab15"], ids=lambda item: item.id)
def test_every_wanted_exercise_defines_its_functions_in_the_course(wanted: Wanted) -> None:
    """And the notebook that learners get is told as one that waits for them."""
    paths = catalog.lab_notebooks(ROOT, wanted.lab)
    if not paths:
        pytest.skip(f"{wanted.lab} is not there yet")
    solved = catalog.read_notebook(paths[0])
    released = json.loads(labgen.learner_version(solved, wanted.lab))
    for made, right in ((solved, True), (released, False)):
        cells = [(c["id"], catalog.text(c)) for c in made["cells"] if c["cell_type"] == "code"]
        result = earlier.functions_of(wanted, cells)
        assert (set(result) == set(wanted.functions)) if right else result.kind == "unanswered"


def test_an_empty_one_has_no_functions() -> None:
    assert dict(Earlier({}, []).functions) == {} and repr(Earlier({}, [])) == ""
