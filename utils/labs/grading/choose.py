"""Choose the notebook of a submission that counts, and tell which lab notebooks belong to."""

import re
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from utils.labs.grading.inbox import Found
from utils.labs.grading.lab import Lab
from utils.labs.grading.notebook import NotANotebook, decoded, parse
from utils.labs.grading.pour import defines, pour, untouched


@dataclass(frozen=True)
class Choice:
    """The notebook of a submission that counts. doubt: why a person should look at the choice."""

    cells: list[dict[str, Any]]
    notes: tuple[str, ...] = ()
    doubt: str = ""


def choose(files: list[Found], lab: Lab) -> Choice:
    """The notebook that fits the lab best. Raises NotANotebook.

    The best has the most answers that differ from the released ones, then the most of the lab's
    exercises, of its cell names and answer functions, then the released file name; the first by
    name of several equal ones. Which of two with equally many, but other answers was meant is in
    doubt. Notebooks with the checks of another lab are passed over.
    """
    if not files:
        raise NotANotebook("no notebook was found (no file ends in .ipynb)")
    readable, reasons, others = [], [], []
    for file in files:
        try:
            cells = parse(file.content)
            if _of_another_lab(cells, lab):
                others.append(f"{file.name} is of another lab")
                continue
            readable.append((_fit(cells, file, lab), file, cells, _answers(cells, lab)))
        except NotANotebook as error:
            reasons.append(f"{file.name}: {error}")
    readable = [each for each in readable if each[0] > (0, 0, False)]
    if not readable:
        nothing = f"{files[0].name} holds nothing of {lab.name}"
        raise NotANotebook("; ".join([*reasons, *others][:3]) or nothing)
    readable.sort(key=lambda each: (-len(each[3]), [-int(n) for n in each[0]], each[1].name))
    _, file, cells, answers = readable[0]
    equal = [f.name for _, f, _, a in readable[1:] if len(a) == len(answers) and a != answers]
    notes, doubt = [], ""
    if equal:
        count = f"{len(equal) + 1} notebooks with different answers"
        doubt = f"{count}; took {file.name}, not {', '.join(equal)}"
    elif len(files) - len(others) > 1:
        count = len(files) - len(others)
        notes.append(f"took {file.name}, the best fit of {count} notebooks")
    if encoding := decoded(file.content)[1]:
        notes.append(f"{file.name} is written in {encoding}, not in UTF-8")
    return Choice(cells, tuple(notes), doubt)


def _of_another_lab(cells: list[dict[str, Any]], lab: Lab) -> bool:
    """Whether the checks in a notebook are another lab's: all labs name their cells alike."""
    checked = {n for cell in cells for n in _CHECK.findall(cell["source"])}
    return bool(checked) and lab.name not in checked


_CHECK = re.compile(r"""^check\(["'](lab\d+)\.ex\d+["']""", re.MULTILINE)


def _answers(cells: list[dict[str, Any]], lab: Lab) -> dict[str, str]:
    """The answers of a notebook that are not as released, by exercise."""
    poured, released = pour(cells, lab), untouched(lab)
    found = {e.name: poured.answer(e.name).source.strip() for e in lab.exercises}
    return {n: text for n, text in found.items() if text != released.answer(n).source.strip()}


def _fit(cells: list[dict[str, Any]], file: Found, lab: Lab) -> tuple[int, int, bool]:
    source = "\n".join(cell["source"] for cell in cells)
    mentioned = sum(f'"{e.id}"' in source for e in lab.exercises)
    names = {name for cell in cells for name in cell["names"]}
    own = [c for c in lab.cells if c.exercise]
    known = sum(c.id in names for c in own) + sum(
        defines(e.function, source) for e in lab.exercises
    )
    same_name = file.name.rpartition("/")[2] == lab.path.name
    return mentioned, known, same_name and bool(mentioned or known)


def lab_of(contents: list[bytes], names: list[str]) -> str:
    """Which lab a set of notebooks belongs to: the one whose checks most of them hold.

    Raises ValueError if that is not clear.
    """
    votes: Counter[str] = Counter()
    for content in contents:
        with suppress(UnicodeDecodeError):
            text = decoded(content)[0]
            votes.update(n for n in names if re.search(rf'"{n}\.ex\d', text))
    best = votes.most_common(2)
    if len(names) == 1:
        return names[0]
    if not best or (len(best) > 1 and best[0][1] == best[1][1]):
        raise ValueError(f"cannot tell which lab this is: add --lab, one of {', '.join(names)}")
    return best[0][0]
