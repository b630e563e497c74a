"""Similar answers: how often independent ones are taken for copies, and copies are missed."""

import ast
import json
import random
import re
import zlib
from collections import Counter
from dataclasses import replace
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from tests.labs.cells import RIGHT_WAYS, ROOT, right_answers, wrong_entries
from tests.labs.disguise import disguised
from utils.course import catalog
from utils.course.misconceptions import is_diff
from utils.labs.grading import answers, gradebook, lab, report, similar

LABS = [entry.name for entry in catalog.labs(ROOT)]
COPIES_OF_EACH = 3
SAME_LINES = 1 / 3
"""Answers with more lines word by word in common are taken for one written after the other."""


class Answer(NamedTuple):
    exercise: str
    name: str
    source: str


@cache
def stubs() -> dict[str, str]:
    """The released answer cells, by exercise id."""
    return {
        f"{name}.{exercise}": stub.source
        for name in LABS
        for exercise, stub in lab.load(ROOT, name).stubs.items()
    }


@cache
def right() -> tuple[Answer, ...]:
    """The published answers, and the other right ones that were written as a whole."""
    results = []
    for name in LABS:
        published = right_answers(name)
        results += [
            Answer(f"{name}.{e}", "published", published[e])
            for e in (exercise.partition(".")[2] for exercise in stubs() if exercise[:5] == name)
        ]
        ways = yaml.safe_load((RIGHT_WAYS / f"{name}.yaml").read_text())
        results += [
            Answer(f"{name}.{exercise}", way, source)
            for exercise, codes in ways.items()
            for way, source in codes.items()
            if not is_diff(source)
        ]
    return tuple(results)


@cache
def wrong() -> tuple[Answer, ...]:
    """The kept wrong answers that were written as a whole and are Python."""
    results = []
    for name in LABS:
        for entry in wrong_entries(name):
            if not is_diff(entry.record.code) and similar.fingerprints(entry.source):
                results.append(Answer(entry.exercise, f"wrong: {entry.name}", entry.source))
    return tuple(results)


def lines_of(answer: Answer) -> Counter[str]:
    """The lines of an answer without comments, docstrings, and lines of the stub."""
    tree = ast.parse(answer.source)
    for node in ast.walk(tree):
        block = getattr(node, "body", None)
        if isinstance(block, list):
            node.body = [s for s in block if not isinstance(getattr(s, "value", 0), ast.Constant)]
    given = {line.strip() for line in stubs()[answer.exercise].splitlines()}
    lines = (line.strip() for line in ast.unparse(tree).splitlines())
    return Counter(line for line in lines if line not in given)


@cache
def independent() -> list[tuple[Answer, Answer]]:
    """Pairs of answers to one exercise of which neither was written after the other."""
    lines = {answer: lines_of(answer) for answer in (*right(), *wrong())}
    results = []
    for one, other in combinations(lines, 2):
        if one.exercise == other.exercise:
            fewest = min(lines[one].total(), lines[other].total())
            if (lines[one] & lines[other]).total() <= SAME_LINES * fewest:
                results.append((one, other))
    return results


@cache
def prints(answer: Answer) -> similar.Prints:
    given = similar.fingerprints(stubs()[answer.exercise])
    return similar.prints_of(answer.source, given)


def is_judged(*answers: Answer) -> bool:
    return all(len(prints(answer)) >= similar.LEAST for answer in answers)


def chosen_on(exercise: str) -> bool:
    """Whether the limits were chosen on this exercise; on the others they are measured."""
    return zlib.crc32(exercise.encode()) % 2 == 0


def false_alarms(pairs: list[tuple[Answer, Answer]], half: bool) -> tuple[int, int]:
    """Pairs that are taken for copies, and pairs that are judged."""
    judged = [pair for pair in pairs if chosen_on(pair[0].exercise) is half and is_judged(*pair)]
    alarms = [pair for pair in judged if similar.share_of(*map(prints, pair)) >= similar.SHARE]
    return len(alarms), len(judged)


def found_copies(half: bool) -> tuple[int, int]:
    """Of disguised copies that are judged, how many are found and how many are not."""
    shares = []
    for answer in right():
        if chosen_on(answer.exercise) is half and is_judged(answer):
            for number in range(COPIES_OF_EACH):
                rng = random.Random(f"{answer.exercise}/{answer.name}/{number}")
                copy = answer._replace(source=disguised(answer.source, rng))
                assert copy.source != answer.source
                shares.append(similar.share_of(prints(answer), prints(copy)))
    result = sum(share >= similar.SHARE for share in shares)
    return result, len(shares) - result


def test_both_rates_on_exercises_that_the_limits_were_not_chosen_on() -> None:
    assert similar.MEASURED == {
        "independent": false_alarms(independent(), half=False),
        "copies": found_copies(half=False),
    }
    only_right = [pair for pair in independent() if all(a in right() for a in pair)]
    assert false_alarms(only_right, half=False) == (0, 77)


@pytest.mark.exhaustive
def test_and_on_those_that_they_were_chosen_on() -> None:
    assert false_alarms(independent(), half=True) == (1, 401)
    assert found_copies(half=True) == (322, 5)


def test_a_disguise_changes_what_a_reader_sees() -> None:
    (one,) = (a for a in right() if a[:2] == ("lab05.ex4", "published"))
    copy = disguised(one.source, random.Random(1))
    ast.parse(copy)
    changed = lines_of(one._replace(source=copy))
    assert not lines_of(one) & changed


# A class


def natural_and_rare() -> tuple[Answer, Answer]:
    """An answer as many write it, and one as few do."""
    by_name = {answer.name: answer for answer in right() if answer.exercise == "lab01.ex3"}
    return by_name["published"], by_name["numpy"]


def test_in_a_class_what_many_have_is_no_evidence() -> None:
    natural, few_have = natural_and_rare()
    copies = [disguised(natural.source, random.Random(k)) for k in range(30)]
    rare = [
        few_have.source,
        disguised(few_have.source, random.Random(1)),
        few_have.source.replace("job", "j"),
    ]
    everyone = [prints(natural._replace(source=source)) for source in [*copies, *rare]]
    result, judged = similar.pairs("ex3", everyone, set())
    who = {frozenset((*pair.ones, *pair.others)) for pair in result}
    assert who == {frozenset({30, 32}), frozenset({30, 31, 32})} and judged == 3
    assert {pair.share == 1 for pair in result} == {True, False}
    assert similar.pairs("ex3", everyone, {30, 31, 32}) == ([], 3)
    few, _ = similar.pairs("ex3", everyone[:5], set())
    assert len(few) == 10, "five of a small class may be a group"


def test_short_answers_and_tables_are_not_judged() -> None:
    table = "def f():\n    return {" + ", ".join(f"'{k}': {k}" for k in range(99)) + "}"
    for source in (table, "def f(x):\n    return 2 * x"):
        own = similar.prints_of(source, ())
        assert similar.share_of(own, own) == 0
        assert similar.pairs("ex1", [own, own], set()) == ([], 0)


@pytest.mark.parametrize(
    "source", ["def f(", "%magic", "\x00", "x = '\udce4", "(" * 500, "x = 1\n" * 50_000, ""]
)
def test_what_is_not_python_has_no_fingerprints(source: str) -> None:
    assert similar.fingerprints(source) == {}


def test_the_page_shows_both_answers_and_gives_no_verdict(tmp_path: Path) -> None:
    natural, few_have = natural_and_rare()
    chosen = lab.load(ROOT, "lab01")
    evil = few_have.source + "# <script>alert(1)</script>"
    copy = disguised(few_have.source, random.Random(1))
    for name, source in (("ann", evil), ("bob", copy), ("cem", natural.source), ("dee", "")):
        path = tmp_path / "submitted" / name / chosen.path.stem / chosen.path.name
        path.parent.mkdir(parents=True)
        filled = answers.Notebook(tuple(with_answer(cell, source) for cell in chosen.cells))
        path.write_text(json.dumps(gradebook.notebook_of(chosen, filled)))
    students = [(name.title(), name) for name in ("ann", "bob", "cem", "dee", "nobody")]
    result = similar.compare(chosen, tmp_path, students)
    assert [(p.exercise, p.ones, p.others) for p in result.pairs] == [("ex3", (0,), (1,))]
    assert [who for _, who in result.like_published["ex3"]] == [2]
    rows = report.similar_table(result).splitlines()
    assert rows[1].startswith("ex3,") and rows[1].endswith(",Ann,Bob")
    assert rows[2] == "ex3,1.00,,Cem,the published solution"
    page = report.similar_page(chosen, tmp_path, result)
    assert "<h2>ex3: Ann and Bob</h2>" in page and "not a verdict" in page
    assert "&lt;script&gt;" in page and "<script" not in page
    marked = re.findall(r'<span class="marked">(.*?)</span>', page)
    assert marked and not [line for line in marked if "def fit" in line]
    of = similar.MEASURED["independent"]
    assert f"of {of[1]} pairs of answers that were written apart, {of[0]} are shown" in page


def with_answer(cell: lab.Cell, source: str) -> lab.Cell:
    is_answer = cell.kind == "answer" and cell.exercise == "ex3"
    return replace(cell, source=source) if is_answer else cell
