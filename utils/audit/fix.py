"""Rewrites what is mechanical: `--fix` shows a diff, `--fix --write` writes it.

A rewrite needs two things: a finding of the audit at that place, and code of a form that is listed
here. Everything else stays as it is, to the byte, and is listed as what remains to be done. Numbers
stay the same but for one rewrite that says so: autocast in float16 becomes bfloat16. What starts
several processes of PyTorch/XLA is not touched, because there a step of the optimizer also sums
gradients. There are fixes for the targets torchneuron, neuron-xla and xla.
"""

import ast
import difflib
import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from utils.audit.audit_report import Finding
from utils.audit.audited_files import audit_source
from utils.audit.cells import masked
from utils.audit.rules import TARGETS
from utils.audit.state import ONLY_CUDA

FIXED_TARGETS = tuple(target for target in TARGETS if target != "jax")


@dataclass(frozen=True)
class Rewrite:
    """One place that was rewritten; `line` as before, in a notebook within cell number `cell`."""

    rule: str
    line: int
    what: str
    cell: int | None = None


@dataclass(frozen=True)
class Fixed:
    """A file before and after; the same text where nothing could be rewritten."""

    path: str
    before: str
    after: str
    rewrites: tuple[Rewrite, ...]
    asks: tuple[tuple[int | None, int], ...] = ()
    """Cells and lines as before that go on asking for the device which has become another one."""

    @property
    def diff(self) -> str:
        """The change as a unified diff; of a notebook that of its cells."""
        before, after = (
            "".join(
                f"# cell {number}\n{part}\n" if number else part for number, part in parts.items()
            )
            for parts in (self.parts(self.before), self.parts(self.after))
        )
        lines = difflib.unified_diff(
            before.splitlines(keepends=True),
            after.splitlines(keepends=True),
            f"{self.path} (now)",
            f"{self.path} (fixed)",
        )
        return "".join(line if line.endswith("\n") else line + "\n" for line in lines)

    def parts(self, text: str) -> dict[int | None, str]:
        """Of one of both texts: of a notebook the code cells by number, else the whole."""
        if not self.path.endswith(".ipynb"):
            return {None: text}
        code = [cell for cell in json.loads(text)["cells"] if cell.get("cell_type") == "code"]
        return {number: "".join(cell["source"]) for number, cell in enumerate(code, 1)}


def fix_source(
    text: str, name: str = "source.py", target: str = TARGETS[0], disable: Sequence[str] = ()
) -> Fixed:
    """Rewrite one Python source or notebook held in memory; other files stay as they are.

    disable: rules that the project's settings switch off.
    Raises: ValueError for a target without fixes.

    >>> print(fix_source('import torch\\nx = torch.ones(2).cuda()  # here').after)
    import torch
    x = torch.ones(2).to("neuron")  # here
    """
    check(target)
    parts, put = _parts(text, name)

    def findings(parts: list[str]) -> list[Finding]:
        results = audit_source(put(parts), name, target).findings
        return [item for item in results if item.rule not in disable]

    mending = _Mending(parts, findings, target, name.endswith(".ipynb"))
    after, rewrites = mending.best()
    text_after = put(after) if rewrites else text
    return Fixed(name, text, text_after, tuple(rewrites), tuple(mending.asks))


def check(target: str) -> None:
    """Raises: ValueError for a target without fixes."""
    if target not in FIXED_TARGETS:
        raise ValueError(f"there are fixes for {', '.join(FIXED_TARGETS)}, not for {target!r}")


def fix_file(file: Path, name: str, target: str = TARGETS[0], disable: Sequence[str] = ()) -> Fixed:
    """Rewrite a file in memory; nothing is written. Raises as `fix_source`, OSError for what cannot
    be read, and UnicodeDecodeError for another encoding than UTF-8.
    """
    return fix_source(file.read_bytes().decode("utf-8"), name, target, disable)


def _parts(text: str, name: str) -> tuple[list[str], Callable[[list[str]], str]]:
    """A source as pieces of Python, of a notebook its cells, and what puts them together again."""
    if name.endswith(".py"):
        mark = "\ufeff" if text.startswith("\ufeff") else ""
        return [text.removeprefix(mark)], lambda parts: mark + parts[0]
    try:
        content = json.loads(text) if name.endswith(".ipynb") else {}
        cells = [cell for cell in content["cells"] if cell.get("cell_type") == "code"]
        sources = [masked("".join(cell["source"])) for cell in cells]
    except (ValueError, KeyError, TypeError, AttributeError):
        return [], lambda parts: text  # what is no notebook of format 4 is told by the audit
    parts = [plain for plain, _ in sources]

    def put(after: list[str]) -> str:
        made = json.loads(text)
        cells = [cell for cell in made["cells"] if cell.get("cell_type") == "code"]
        for cell, before, now, (_, restored) in zip(cells, parts, after, sources, strict=True):
            if now != before:
                lines = restored(now).splitlines(keepends=True)
                cell["source"] = lines if isinstance(cell["source"], list) else "".join(lines)
        return _write(made, text) if after != parts else text

    return parts, put


_Chosen = dict[int, set[tuple[int, int]]]
"""By part the places of questions."""


class _Mending:
    """Looks for the rewrites that go together: the audit finds nothing new after them."""

    def __init__(
        self,
        parts: list[str],
        findings: Callable[[list[str]], list[Finding]],
        target: str,
        is_notebook: bool,
    ) -> None:
        self.parts, self.findings, self.target = parts, findings, target
        self.is_notebook = is_notebook
        # In a notebook a name may come from any cell.
        is_there = any(re.search(r"^import torch\b", part, re.M) for part in parts)
        self.names = ({"torch"} if is_there else set()) if is_notebook else None
        self.chosen: _Chosen = {}
        self.links: dict[str, set[str]] = {}
        self.asks: list[tuple[int | None, int]] = []
        self.result = _Result(parts, [], [])

    def best(self) -> tuple[list[str], list[Rewrite]]:
        """The parts after it, and what was rewritten."""
        found = self.findings(self.parts)
        if found:
            self.result = self._rewritten(found, {})
            self._change_questions()
            self.links = self._links()
            if any(self.links.values()):
                self._change_questions()
                self.asks = [
                    (self._cell(number), line)
                    for number, places in self._every().items()
                    for line, column in sorted(places)
                    if (line, column) not in self.chosen.get(number, ())
                ]
        return self.result.parts, self.result.rewrites

    def _rewritten(self, found: list[Finding] | None, chosen: _Chosen) -> "_Result":
        """With these questions changed, everything else that the audit is then sure of."""
        from utils.audit import questions, rewriting  # late: LibCST takes a while to load

        parts, rewrites = list(self.parts), list[Rewrite]()
        for number, places in chosen.items():
            parts[number], asked = questions.change(parts[number], self.target, self.links, places)
            rewrites += [
                Rewrite(rule, line, what, self._cell(number))
                for (line, _), (rule, what) in asked.items()
            ]
        found = self.findings(parts) if found is None else found
        for number, part in enumerate(parts):
            own = [item for item in found if item.cell == self._cell(number)]
            lines = part.split("\n")  # a magic is put back as it was
            own = [item for item in own if _MAGIC not in lines[item.line - 1]]
            if own and _is_python(part):
                parts[number], done = rewriting.rewritten(part, own, self.target, self.names)
                rewrites += [Rewrite(*one, self._cell(number)) for one in done]
        return _Result(parts, rewrites, self.findings(parts))

    def _cell(self, number: int) -> int | None:
        return number + 1 if self.is_notebook else None

    def _change_questions(self) -> None:
        """What is asked of the device changes wherever nothing speaks against it."""
        every = self._every()
        new = [
            (part, place)
            for part in every
            for place in sorted(every[part] - self.chosen.get(part, set()))
        ]
        self._take_most(new)

    def _every(self) -> _Chosen:
        from utils.audit import questions

        return {
            number: set(questions.change(part, self.target, self.links)[1])
            for number, part in enumerate(self.parts)
            if _is_python(part)
        }

    def _take_most(self, new: list[tuple[int, tuple[int, int]]]) -> None:
        """All of these questions that can change, by halves."""
        chosen = {number: set(places) for number, places in self.chosen.items()}
        for number, place in new:
            chosen.setdefault(number, set()).add(place)
        if new and not self._take(chosen) and len(new) > 1:
            self._take_most(new[: len(new) // 2])
            self._take_most(new[len(new) // 2 :])

    def _take(self, chosen: _Chosen) -> bool:
        """Take these questions if nothing gets worse and something better."""
        from utils.audit import questions

        chosen = {number: places for number, places in chosen.items() if places}
        tried = self._rewritten(None, chosen)
        is_better = tried.weight < self.result.weight or bool(self.links)
        if not is_better or any(n > self.result.counts[rule] for rule, n in tried.counts.items()):
            return False
        if tried.counts["cuda-tensor-type"]:  # it is told behind a question, too
            return False
        if any(
            questions.is_half(self.parts[number], places, tried.parts[number])
            for number, places in chosen.items()
        ):
            return False
        self.result, self.chosen = tried, chosen
        return True

    def _links(self) -> dict[str, set[str]]:
        """By word the names that held it before, and hold its other word now."""
        from utils.audit import questions

        def held(parts: list[str], word: str) -> set[str]:
            return {n for p in parts if _is_python(p) for n in questions.holders(p, word)}

        after = self.result.parts
        links = {
            word: held(self.parts, word) & held(after, other) - held(after, word)
            for word, other in questions.WORDS[self.target].items()
        }
        if any(one.rule == "nccl" for one in self.result.rewrites):
            links["nccl"].add("get_backend")
        return links


_MAGIC = "# trn-audit "


class _Result:
    """A source after its rewrites, and what the audit still finds."""

    def __init__(self, parts: list[str], rewrites: list[Rewrite], findings: list[Finding]) -> None:
        self.parts, self.rewrites = (
            parts,
            sorted(set(rewrites), key=lambda one: (one.cell or 0, one.line)),
        )
        said = [item for item in findings if item.severity != "note"]
        # What stands behind a question for CUDA does not count: it may come out from there.
        self.counts = Counter(item.rule for item in said if item.note != ONLY_CUDA)
        self.weight = len(said)


def _is_python(part: str) -> bool:
    try:
        ast.parse(part)
    except (SyntaxError, ValueError):
        return False
    return True


def _write(content: dict[str, Any], like: str) -> str:
    """A notebook as JSON, in the layout that the text before had."""
    end = "\n" if like.endswith("\n") else ""
    before = json.loads(like)
    layouts: list[Callable[[Any], str]] = [
        lambda data, indent=indent, ascii=ascii, separators=separators: (  # type: ignore[misc]
            json.dumps(data, indent=indent, ensure_ascii=ascii, separators=separators) + end
        )
        for indent, separators in (
            (1, None),
            (2, None),
            (4, None),
            (None, None),
            (None, (",", ":")),
        )
        for ascii in (False, True)
    ]
    layout = next((one for one in layouts if one(before) == like), layouts[0])
    return layout(content)
