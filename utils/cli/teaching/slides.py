"""A lesson as slides: a section a slide, with its figures, what is predicted, and notes.

Everything is taken from the lesson's notebook and from its predictions, so slides follow a lesson
that changes. The page needs no network and no other file.
"""

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from utils.course import catalog
from utils.course.catalog import Lesson
from utils.course.lesson import FOLDER, Prediction, predictions, sentence_of

ENDS = ("Sources", "Next", "Recap", "Quiz", "Check this claim")
"""Sections that are no slides of their own; what was measured stands on the slides before."""
_SOURCE = re.compile(r"\s*\[(?!\d)[a-z0-9][a-z0-9-]*-[a-z0-9-]*\]|\s*\[on\]")
_MEASURED = re.compile(r"<details><summary>(.*)</summary>(.*)</details>", re.DOTALL)
_LINK = re.compile(r"\[([^\]]+)\]\([^)]*\.ipynb[^)]*\)")
SENTENCES, BILL = 2, "**The bill.**"
"""Sentences of a section on its slide; the paragraph that stands on the first one."""
_NOTEBOOK = re.compile(r"\bcells?\b|\boutput|\bbelow\b|\bin brackets\b", re.IGNORECASE)
_LENGTH = re.compile(r"\d+ min · ")
_SENTENCE = re.compile(r"(?<=[a-z0-9)*`][.?!])\s+(?=[A-Z*`])")


@dataclass
class Slide:
    """title and text (Markdown); figures as (PNG in base64, alternative text).

    asked: numbers to predict before the section runs. measured: {what: the number that the lesson
    shows} of all its numbers. notes: what stands in the lesson there, as Markdown. before: the part
    of the notes before the first prediction, which gives no answer away.
    """

    title: str
    text: str = ""
    figures: list[tuple[str, str]] = field(default_factory=list)
    asked: list[Prediction] = field(default_factory=list)
    measured: dict[str, str] = field(default_factory=dict)
    notes: str = ""
    before: str = ""


def slides(lesson: Lesson) -> list[Slide]:
    """The slides of a lesson. Raises CatalogError if its notebook cannot be read."""
    notebook = catalog.read_notebook(lesson.path)
    name = f"lesson{lesson.number}"
    records = predictions(name) if (FOLDER / f"{name}.yaml").is_file() else {}
    results, kept = [Slide(f"{lesson.number} · {lesson.title}")], True
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            for heading, body in _sections(catalog.text(cell)):
                if heading:
                    kept = heading not in ENDS
                    results += [Slide(heading)] if kept else []
                if kept:
                    results[-1].notes += f"{body}\n\n"
                    results[-1].before += "" if results[-1].asked else f"{body}\n\n"
        elif kept:
            results[-1].asked += [records[key] for key in _keys(cell) if key in records]
            for output in cell.get("outputs", []):
                _add(results[-1], output)
    for slide in results:
        slide.notes = plain(slide.notes)
        slide.text = _text(slide)
    return [slide for slide in results if slide.text or slide.figures or slide.asked]


def _add(slide: Slide, output: dict[str, Any]) -> None:
    """A figure of a cell's output, or a number that it measured, to the slide."""
    data = output.get("data", {})
    if image := data.get("image/png"):
        alt = output.get("metadata", {}).get("image/png", {}).get("alt", "")
        slide.figures.append(("".join(image).strip(), alt))
    number = _MEASURED.fullmatch("".join(data.get("text/html", "")))
    if number:
        slide.measured[html.unescape(number[1])] = html.unescape(number[2])


def plain(text: str) -> str:
    """Markdown without what leads nowhere on paper: names of sources, links to notebooks.

    >>> plain("It waits [xla-source]; see [lesson 04](04_x.ipynb) and a[0].")
    'It waits; see lesson 04 and a[0].'
    """
    return _LINK.sub(r"\1", _SOURCE.sub("", text)).strip()


def _sections(text: str) -> Iterator[tuple[str, str]]:
    """(heading or "", text below it) of a cell of Markdown; the title of the notebook is left out.
    A paragraph that begins with "**Move this first.**" is a section too.

    >>> list(_sections("# 03 · T\\n\\nWhy.\\n\\n## 1 First\\n\\nIdea."))
    [('', 'Why.'), ('1 First', 'Idea.')]
    """
    text = re.sub(r"\A# .*\n", "", text)
    text = re.sub(r"^\*\*((?:Move|Choose) this first)\.\*\* ", r"## \1\n", text, flags=re.MULTILINE)
    first, *others = re.split(r"^##+ ", text, flags=re.MULTILINE)
    if first.strip():
        yield "", first.strip()
    for part in others:
        heading, _, body = part.partition("\n")
        yield heading.strip(), body.strip()


def _keys(cell: dict[str, Any]) -> list[str]:
    """The keys that a cell asks to predict."""
    call = re.search(r"^predict\(([^)]*)\)", catalog.text(cell), re.MULTILINE)
    return re.findall(r"(\w+)=", call[1]) if call else []


def _text(slide: Slide) -> str:
    """What of the notes before a prediction stands on the slide: a list or table whole, else the
    first sentences that are not about the notebook itself.
    """
    blocks = [plain(block) for block in slide.before.split("\n\n") if block.strip()]
    blocks = [block for block in blocks if not _LENGTH.match(block)]
    for block in blocks:
        if block.startswith(("- ", "| ")) and not slide.figures:
            return block
    others = ("- ", "| ", "1. ", "```", BILL)
    prose = " ".join(block for block in blocks if not block.startswith(others))
    sentences = [item for item in _SENTENCE.split(" ".join(prose.split())) if item]
    own = [item for item in sentences if not _NOTEBOOK.search(item)]
    chosen = (own or sentences)[:SENTENCES]
    if slide.asked and own and own[-1].endswith("?") and own[-1] not in chosen:
        chosen.append(own[-1])  # the question itself
    lines = [f"- {item}" for item in chosen]
    return "\n".join(lines + [f"\n{block}" for block in blocks if block.startswith(BILL)])


def wrong_numbers(prediction: Prediction) -> list[tuple[str, str]]:
    """(a wrong number, what it tells about the thinking), for the notes."""
    rows = [(f"{number:g}", sentence_of(text)) for number, text in prediction.wrong.items()]
    return rows + ([("another", prediction.otherwise)] if prediction.otherwise else [])
