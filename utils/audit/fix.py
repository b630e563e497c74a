"""Rewrites what is mechanical: `--fix` shows a diff, `--fix --write` writes it.

A rewrite needs two things: a finding of the audit at that place, and code of a form that is listed
here. Everything else stays as it is, to the byte, and is listed as what remains to be done. Numbers
stay the same but for one rewrite that says so: autocast in float16 becomes bfloat16. What starts
several processes of PyTorch/XLA is not touched, because there a step of the optimizer also sums
gradients. There are fixes for the targets torchneuron, neuron-xla and xla.
"""

import difflib
import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from utils.audit.audit_report import Finding
from utils.audit.audited_files import audit_source, decode
from utils.audit.cells import masked
from utils.audit.rules import LESSONS, TARGETS

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

    @property
    def diff(self) -> str:
        """The change as a unified diff; of a notebook that of its cells."""
        before, after = self.before, self.after
        if self.path.endswith(".ipynb"):
            before, after = (_sources(text) for text in (before, after))
        lines = difflib.unified_diff(
            before.splitlines(keepends=True),
            after.splitlines(keepends=True),
            f"{self.path} (now)",
            f"{self.path} (fixed)",
        )
        return "".join(line if line.endswith("\n") else line + "\n" for line in lines)


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
    results = [f for f in audit_source(text, name, target).findings if f.rule not in disable]
    if name.endswith(".ipynb"):
        return _notebook(text, name, results, target)
    if not name.endswith(".py"):
        return Fixed(name, text, text, ())
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    after, rewrites = _python(text.removeprefix(mark), results, target)
    return Fixed(name, text, mark + after, tuple(rewrites))


def check(target: str) -> None:
    """Raises: ValueError for a target without fixes."""
    if target not in FIXED_TARGETS:
        raise ValueError(f"there are fixes for {', '.join(FIXED_TARGETS)}, not for {target!r}")


def fix_file(file: Path, name: str, target: str = TARGETS[0], disable: Sequence[str] = ()) -> Fixed:
    """Rewrite a file in memory; nothing is written. Raises as `fix_source`, and OSError."""
    data = file.read_bytes()
    try:
        return fix_source(data.decode("utf-8"), name, target, disable)
    except UnicodeDecodeError:  # Python in an encoding of its own: read, and left as it is
        text = decode(data)
        return Fixed(name, text, text, ())


def _python(
    text: str, result: Sequence[Finding], target: str, names: set[str] | None = None
) -> tuple[str, list[Rewrite]]:
    """The rewritten text; `names` as in `rewriting.rewritten`."""
    if not result:
        return text, []
    from utils.audit import rewriting  # late: LibCST takes a fifth of a second to load

    after, done = rewriting.rewritten(text, result, target, names)
    return after, [Rewrite(*one) for one in done]


def _notebook(text: str, name: str, result: Sequence[Finding], target: str) -> Fixed:
    try:
        content = json.loads(text)
        cells = [cell for cell in content["cells"] if cell.get("cell_type") == "code"]
    except (ValueError, KeyError, TypeError, AttributeError):
        return Fixed(name, text, text, ())  # what is no notebook of format 4 is told by the audit
    sources = ["".join(cell["source"]) for cell in cells]
    # In a notebook a name may come from any cell.
    names = {"torch"} if any(re.search(r"^import torch\b", s, re.M) for s in sources) else set()
    every: list[Rewrite] = []
    for number, (cell, source) in enumerate(zip(cells, sources, strict=True), 1):
        own = [item for item in result if item.cell == number]
        plain, restored = masked(source)
        try:
            after, rewrites = _python(plain, own, target, names)
        except ValueError:  # a cell that is no Python
            continue
        if rewrites:
            every += [Rewrite(r.rule, r.line, r.what, number) for r in rewrites]
            lines = restored(after).splitlines(keepends=True)
            cell["source"] = lines if isinstance(cell["source"], list) else "".join(lines)
    return Fixed(name, text, _write(content, text) if every else text, tuple(every))


def _write(content: dict[str, Any], like: str) -> str:
    """A notebook as JSON, in the layout that the text before had."""
    end = "\n" if like.endswith("\n") else ""
    before = json.loads(like)
    layouts: list[Callable[[Any], str]] = [
        lambda data, indent=indent, ascii=ascii: (  # type: ignore[misc]
            json.dumps(data, indent=indent, ensure_ascii=ascii) + end
        )
        for indent in (1, 2, 4, None)
        for ascii in (False, True)
    ]
    layout = next((one for one in layouts if one(before) == like), layouts[0])
    return layout(content)


def _sources(text: str) -> str:
    cells = json.loads(text)["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell.get("cell_type") == "code"]
    return "\n".join(f"# cell {number}\n{source}" for number, source in enumerate(code, 1)) + "\n"


def remaining(findings: Iterable[Finding], target: str) -> list[str]:
    """What is left to do by hand, a line for each finding but notes: place, rule, what to write,
    and the section of the lesson that is about it.
    """
    lines = []
    for item in findings:
        if item.severity != "note":
            cell = f"cell {item.cell}, " if item.cell else ""
            see = f" (see {LESSONS[item.rule]})" if item.rule in LESSONS else ""
            advice = item.about.advice_on(target)
            lines.append(f"{item.path}:{cell}{item.line}: {item.rule}: {advice}{see}")
    return lines
