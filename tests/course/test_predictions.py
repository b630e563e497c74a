"""No lesson tells what it asks: its expected numbers stand outside of it, and what wrong numbers
tell is never said of the right one.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from utils.course import lesson
from utils.course.catalog import ROOT, read_notebook, text

NOTEBOOKS = {
    path: lesson_name
    for path in sorted((ROOT / "notebooks").glob("*.ipynb"))
    if (
        lesson_name := (
            re.findall(r'\bbegin\("(\w+)"\)', path.read_text().replace("\\", "")) or [""]
        )[0]
    )
}
NUMBER = re.compile(r"(?<![\w.,])\d[\d,]*(?:\.\d+)?(?![\w.,]*\d)")


def calls(source: str, name: str) -> Iterator[ast.Call]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name:
            yield node


def code(path: Path) -> list[dict]:
    return [cell for cell in read_notebook(path)["cells"] if cell["cell_type"] == "code"]


def asked(path: Path) -> dict[str, str]:
    """{key: the section that asks for it}"""
    return {
        keyword.arg or "": cell["id"].partition("-")[0]
        for cell in code(path)
        for call in calls(text(cell), "predict")
        for keyword in call.keywords
    }


def test_there_are_lessons_that_ask() -> None:
    assert len(NOTEBOOKS) >= 16 and sum(len(asked(path)) for path in NOTEBOOKS) > 120
    assert set(NOTEBOOKS.values()) == set(lesson.with_predictions())


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_what_is_asked_measured_and_recorded_agree(path: Path) -> None:
    records, sources = lesson.predictions(NOTEBOOKS[path]), [text(cell) for cell in code(path)]
    assert set(asked(path)) <= set(records)
    unused = [key for key in records if not any(re.search(rf"\b{key}\b", s) for s in sources)]
    assert unused == [], "records that the lesson does not measure"
    assert [s for s in sources if "says=" in s] == []
    for source in sources:
        assert all(len(call.args) == 2 and not call.keywords for call in calls(source, "measured"))
        assert all(k.value.value is None for c in calls(source, "predict") for k in c.keywords)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_number_asked_for_gets_an_answer_of_its_own(path: Path) -> None:
    for key in asked(path):
        record = lesson.predictions(NOTEBOOKS[path])[key]
        sentences = [*record.wrong.values(), *([record.otherwise] if record.otherwise else [])]
        assert sentences, f"{key}: no wrong number gets a sentence"
        assert all(lesson.sentence_of(sentence) for sentence in sentences)
        if record.expected is not None:
            for number in record.wrong:
                words = lesson.reaction(record, number, record.expected)
                assert not words.endswith((": right.", ": near.")), (key, number, words)


def words(cell: dict) -> str:
    """What a cell says to its reader: its text, or comments and texts of its code."""
    source = text(cell)
    if cell["cell_type"] == "markdown":
        return source
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    kinds = (tokenize.COMMENT, tokenize.STRING)
    return " ".join(token.string for token in tokens if token.type in kinds)


WORDS = {"ten": 10, "eleven": 11, "twelve": 12, "sixteen": 16, "twenty": 20}


def numbers(source: str) -> set[float]:
    return {float(n.replace(",", "")) for n in NUMBER.findall(source)}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_no_section_states_the_numbers_it_asks_for(path: Path) -> None:
    """Numbers of two digits and more, unless the question has them: a smaller one stands in every
    section for something else.
    """
    messages = []
    for key, section in asked(path).items():
        record = lesson.predictions(NOTEBOOKS[path])[key]
        if isinstance(record.expected, bool | str | list | None):
            continue
        digits = f"{record.expected:.10g}".replace(".", "").strip("0")
        given = numbers(record.what) | {WORDS[word] for word in WORDS if word in record.what}
        if len(digits) < 2 or record.expected in given:
            continue
        for cell in read_notebook(path)["cells"]:
            same_section = cell["id"].partition("-")[0] == section
            if same_section and float(record.expected) in numbers(words(cell)):
                messages.append(f"{cell['id']}: {record.expected} ({key})")
    assert messages == []
