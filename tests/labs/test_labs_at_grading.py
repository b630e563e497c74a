"""What grading needs of every lab: cases that can be sent and shown, and a sandbox that sees no
judgement.
"""

import ast
import json
import re
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.labs.cells import cases_of
from utils.course import catalog
from utils.course.catalog import ROOT
from utils.labs import judge
from utils.labs.grading import confine
from utils.labs.grading import lab as grading_lab

LABS = catalog.labs(ROOT)
EXERCISES = [exercise.id for lab in LABS for exercise in lab.exercises]
IN_THE_SANDBOX = {
    "lab01": {"examples", "sheets"},
    "lab02": {"findings", "machines", "problems", "train_cuda"},
    "lab03": {"fake", "snippets"},
    "lab04": {"edits", "texts", "training"},
    "lab05": {"engine", "inputs", "stalls"},
    "lab06": {"device", "endings", "examples", "pipeline", "programs", "threads"},
    "lab07": {"examples", "layouts", "mlp", "native", "ranks"},
    "lab08": {"devices", "examples", "killing", "storing", "tensors", "training", "writing"},
    "lab09": {"broken", "rules"},
    "lab10": {"bounds", "given", "reading"},
    "lab11": {"adapting", "decoder", "entered", "nested", "training", "tuned"},
    "lab12": {"compiled", "doors", "draws", "examples", "models", "service"},
    "lab13": {"examples", "models"},
    "lab14": {"examples"},
    "lab15": {"lives", "looks", "reading", "recording", "snippets", "tuning"},
    "lab16": {"branches", "examples", "replica", "traffic"},
    "lab17": {"examples"},
}
"""Modules of a lab that its cells need, beside the observer."""

WITHOUT_TORCH = [
    exercise
    for exercise in EXERCISES
    if exercise[:5] in ("lab01", "lab06", "lab13", "lab14", "lab16", "lab17")
    or exercise in ("lab12.ex3", "lab12.ex4")
]
"""The answer is to be called without it, too."""


@pytest.mark.parametrize("exercise_id", EXERCISES)
@given(seed=st.integers(0, 10**9))
@settings(max_examples=8, deadline=None)
def test_cases_are_plain_the_same_for_a_seed_and_fit_on_a_card(exercise_id: str, seed: int) -> None:
    cases = cases_of(exercise_id, seed)
    assert json.loads(json.dumps(cases)) == cases == cases_of(exercise_id, seed)
    assert len(json.dumps(cases)) < 2**16
    words = judge(exercise_id).words
    assert words is None or all(len(words(case)) <= 160 for case in cases)


@pytest.mark.parametrize("lab", LABS, ids=lambda item: item.name)
def test_a_sandbox_sees_no_judgement(lab: catalog.Lab) -> None:
    seen = confine.exercise_modules(grading_lab.load(ROOT, lab.name), ROOT / "utils")
    own = {path.stem for path in seen if path.parent.name == lab.name}
    assert own == {"__init__", "observe"} | IN_THE_SANDBOX[lab.name]
    assert not {"criteria", "truth"} & {path.stem for path in seen}


LOADERS = {"labs/__init__.py", "labs/forbidden.py"}
"""Import a module by a name that is made up at run time: the observer of a lab, what is closed."""


@pytest.mark.parametrize("lab", LABS, ids=lambda item: item.name)
def test_a_sandbox_sees_whatever_observers_import(lab: catalog.Lab) -> None:
    """What an import names, late ones included, is mounted. Nothing else imports there, and the
    modules that are named in order to be closed exist.
    """
    for path in confine.exercise_modules(grading_lab.load(ROOT, lab.name), ROOT / "utils"):
        for node in ast.walk(ast.parse((ROOT / "utils" / path).read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and str(path) not in LOADERS:
                called = ast.unparse(node.func)
                assert not re.search(r"import_module|__import__|runpy|exec$|eval$", called), path
            name = getattr(node, "value", None)
            if isinstance(name, str) and re.fullmatch(r"utils(\.\w+)+", name):
                parts = name.split(".")
                # The last part may be a function or a class.
                stems = [ROOT.joinpath(*parts), ROOT.joinpath(*parts[:-1])]
                assert any(s.is_dir() or s.with_suffix(".py").is_file() for s in stems), name


def test_judging_and_observing_need_no_torch() -> None:
    assert WITHOUT_TORCH
    command = (
        "import random, sys\n"
        "from utils.labs import judge, observe_case\n"
        f"for name in {WITHOUT_TORCH}:\n"
        "    for case in judge(name).cases(random.Random(1)):\n"
        "        seen = observe_case(name, lambda *_: None, case)\n"
        "        if 'facts' in seen:  # a class of lab 16 that makes None is an error already\n"
        "            judge(name).judge(case, seen['facts'])\n"
        "assert 'torch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", command], cwd=ROOT, check=True)
