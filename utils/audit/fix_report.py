"""What `--fix` leaves to people, by rule: every finding that no rewrite has settled."""

from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import groupby

from utils.audit.audit_report import Finding, wrapped
from utils.audit.audited_files import audit_source
from utils.audit.fix import Fixed
from utils.audit.rules import LESSONS, RULES

ORDER = list(RULES)
NEVER_TRUE = "never true now: the device is another one"


def unsettled(fixed: Fixed, found: Sequence[Finding], target: str) -> list[Finding]:
    """The findings of the audit in a file as it is now that its rewrites would not settle."""
    if not fixed.rewrites:
        return list(found)
    asking = list(asks(fixed, fixed.before))
    places = {(item.cell, item.line) for item in asking}
    found = [
        item for item in found if item.severity != "note" or (item.cell, item.line) not in places
    ]
    lines = {cell: _before(fixed, cell) for cell in fixed.parts(fixed.before)}
    before, after = (
        audit_source(text, fixed.path, target).findings for text in (fixed.before, fixed.after)
    )
    seen = {(item.rule, item.cell, item.line) for item in before}
    left = {(item.rule, item.cell, lines[item.cell][item.line]) for item in after}
    # What only the audit of a whole tree sees is never rewritten.
    left_over = [(item, (item.rule, item.cell, item.line)) for item in found]
    return asking + [item for item, place in left_over if place in left or place not in seen]


def asks(fixed: Fixed, text: str) -> Iterator[Finding]:
    """Lines of a text that go on asking for a device which has become another one."""
    before, lines = fixed.parts(fixed.before), fixed.parts(text)
    for cell, line in fixed.asks:
        written = before[cell].splitlines()[line - 1]
        if written in (now := lines[cell].splitlines()):
            place = line if now[line - 1 : line] == [written] else now.index(written) + 1
            yield Finding(
                "cuda-query", "error", fixed.path, place, 1, written.strip(), cell, NEVER_TRUE
            )


def _before(fixed: Fixed, cell: int | None) -> dict[int, int]:
    """Of each line after the rewrites the line before."""
    before, after = (fixed.parts(text)[cell].splitlines() for text in (fixed.before, fixed.after))
    result = {1: 1}
    for _, start, end, first, last in SequenceMatcher(None, before, after, False).get_opcodes():
        for line in range(first, last):
            result[line + 1] = min(start + line - first, max(end - 1, start)) + 1
    return result


def remaining(findings: Iterable[Finding], target: str, rewritten: set[str]) -> str:
    """What is left to do by hand: of each rule what to write, the section of the lesson that is
    about it, and the places. "" if nothing is.

    rewritten: files in which notes count too, because what stays may decide by a device that is
    another one now.
    """
    kept = [item for item in findings if item.severity != "note" or item.path in rewritten]
    kept.sort(key=_order)
    lines = []
    for (_, _, rule), group in groupby(kept, lambda item: (*_order(item)[:2], item.rule)):
        every = list(group)
        see = f" (see {LESSONS[rule]})" if rule in LESSONS else ""
        head = f"{rule} ({every[0].severity}): {RULES[rule].advice_on(target)}{see}"
        lines += wrapped(head, "  ")
        for item in dict.fromkeys(
            (item.path, item.cell, item.line, item.text, item.note) for item in every
        ):
            path, cell, line, text, note = item
            place = f"{path}:{f'cell {cell}, ' if cell else ''}{line}"
            said = f" ({note})" if note else ""
            lines.append(f"    {place}: {' '.join(text.split())[:80]}{said}")
    return "\n".join(["To do by hand:", *lines]) if lines else ""


def _order(item: Finding) -> tuple[bool, bool, int, tuple[str, int, int, int, str]]:
    """What the rewrites themselves have made untrue comes first, notes last."""
    return (
        item.note != NEVER_TRUE, item.severity == "note", ORDER.index(item.rule), item.place
    )  # fmt: skip
