"""The puzzles of `utils.nki.puzzles` on a page: a task with its picture, and a check of the cell
that it stands in.
"""

import ast
import linecache
import sys
from html import escape

from utils.course.shown import Shown
from utils.nki.puzzles import board as bests
from utils.nki.puzzles.catalog import puzzle
from utils.nki.puzzles.command import timing, verdict_text
from utils.nki.puzzles.judging import check as judged
from utils.show.draw.tiles import puzzle_tiles

CHECK = "check"
"""The line of a cell that is no part of the kernel's file."""


def task(which: str | int) -> None:
    """Show a puzzle: what is wanted, shapes, the tiles, the bound, and hints to open.

    Raises Refused with the names there are for a puzzle that there is not.
    """
    from IPython.display import Markdown, display  # late: only a notebook needs IPython

    item = puzzle(which)
    lines = [f"**{item.number} · {item.title}** (step {item.step} of 5). {item.wanted}", ""]
    lines += [f"- takes `{array}`" for array in item.arguments]
    sizes = "; ".join(f"{name} is {_either(values)}" for name, values in item.sizes.items())
    lines += [f"- returns `{item.result}`", f"- {sizes}", f"- {timing(item)}", ""]
    lines += [
        f"<details><summary>Hint {number}</summary>{escape(hint)}</details>"
        for number, hint in enumerate(item.hints, 1)
    ]
    display(Markdown("\n".join(lines)))
    display(puzzle_tiles(item))


def _either(values: list[int]) -> str:
    *others, last = map(str, values)
    return f"{', '.join(others)} or {last}" if others else last


def check(which: str | int) -> None:
    """Print the verdict on the cell that calls this: values, stars; a best goes to the board.

    The cell is judged as a file, without its lines `check(...)`: imports, helpers and the kernel
    stand in it.
    """
    cell = linecache.getlines(sys._getframe(1).f_code.co_filename)
    item, source = puzzle(which), without_checks("".join(cell))
    verdict = judged(item, source)
    print(verdict_text(verdict, bests.record(verdict, source)))


def without_checks(source: str) -> str:
    """A cell without its lines that call `check`; line numbers stay.

    >>> without_checks("x = 1\\ncheck('copy')\\ny = 2")
    'x = 1\\n\\ny = 2'
    """
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError):
        return source
    lines = source.split("\n")
    for node in body:
        call = node.value if isinstance(node, ast.Expr) else None
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == CHECK:
            end = call.end_lineno or call.lineno
            lines[node.lineno - 1 : end] = [""] * (end - node.lineno + 1)
    return "\n".join(lines)


def board() -> Shown:
    """All puzzles with one's own bests on this machine."""
    return Shown("\n".join(bests.table(bests.read())))
