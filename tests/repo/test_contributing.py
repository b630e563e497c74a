"""CONTRIBUTING.md is true: the house that it draws, the places it names, the exercise it shows."""

import random
import re
import tomllib
import types

import yaml

from tests.labs.cells import run_cell
from utils.course import misconceptions
from utils.course.catalog import ROOT
from utils.labs import Observer, wrong_answers

PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def test_the_picture_shows_the_rooms_in_their_order() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    layers = next(c for c in contracts if c["name"] == "Rooms import downward only")["layers"]
    (chain,) = re.findall(r"^  (cli(?: --> \w+)+)$", PAGE, re.MULTILINE)
    assert [f"utils.{room}" for room in chain.split(" --> ")] == layers
    assert all(f'{room}["<b>{room}</b>' in PAGE for room in chain.split(" --> "))


def test_ten_recipes_name_at_most_three_places_that_are_there() -> None:
    rows = re.findall(r"^\| ([a-z].*?) \| (.*?) \| (.*?) \|$", PAGE, re.MULTILINE)
    assert len(rows) == 10
    for task, places, _ in rows:
        named = re.findall(r"`([\w./*]*(?:/|\.toml|\.yml)[\w./*]*)`", places)
        assert named and len(named) <= 3, task
        for name in named:
            pattern = re.sub(r"NN(_topic)?", "*", name).rstrip("/")
            assert list(ROOT.glob(pattern)), f"{task}: {name} is not there"


def test_the_exercise_on_the_page_passes_and_refuses_its_wrong_answers(monkeypatch) -> None:
    answer, observe, judge = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (_, records) = re.findall(r"```(?:yaml|mermaid)\n(.*?)```", PAGE, re.DOTALL)
    read = [misconceptions._read(name, record) for name, record in yaml.safe_load(records).items()]
    wrong = [wrong for record in read for wrong in record.answers]
    lab = types.ModuleType("utils.labs.lab99")
    run_cell(observe, "<observe>", vars(lab))
    run_cell(judge, "<judge>", vars(lab))

    def observed(source: str, case: dict) -> dict:
        names: dict = {}
        run_cell(source, "<ex1-code>", names)
        observer: Observer = lab.OBSERVERS["ex1"]
        return observer.observe(names[observer.answer], case)

    def replies(exercise_id: str, case: dict, like: object = None) -> list[tuple[str, dict]]:
        return [(item.says, observed(item.source(answer), case)) for item in wrong]

    monkeypatch.setattr(wrong_answers, "replies", replies)

    def messages(source: str) -> list[str]:
        cases = lab.JUDGES["ex1"].cases(random.Random("public"))
        criteria = [
            criterion
            for case in cases
            for criterion in lab.JUDGES["ex1"].judge(case, observed(source, case))
        ]
        return [criterion.message for criterion in criteria if not criterion.passed]

    assert wrong and messages(answer) == []
    for item in wrong:
        assert item.says in messages(item.source(answer))
    lines = [line for part in (answer, observe, judge, records) for line in part.splitlines()]
    assert len([line for line in lines if line.strip()]) <= 30
