"""`nki puzzle`: list, show, check and board, for people and, with --json, for programs."""

import argparse
import sys
from pathlib import Path
from typing import Any

import msgspec

from utils.facts.tables import columns
from utils.nki.puzzles import board, picture
from utils.nki.puzzles.catalog import Puzzle, puzzle, puzzles
from utils.nki.puzzles.judging import MEANINGS, RULE, Verdict, check
from utils.nki.tool.asked import existing
from utils.nki.tool.failures import FINE, FOUND, Refused


class Request(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a program sends to `nki puzzle check --json`: a puzzle by number or name, a source."""

    puzzle: int | str
    source: str


def add(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    commands = parser.add_subparsers(dest="what", required=True, metavar="WHAT")

    def under(name: str, text: str) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=text, description=text)
        made.add_argument("--json", action="store_true", help="one JSON object, for programs")
        return made

    under("list", "all puzzles, with one's own stars")
    show = under("show", "a task: what is wanted, shapes, tiles, the file to begin with")
    show.add_argument("puzzle", help="number or name")
    show.add_argument("--hint", type=int, choices=(1, 2, 3), help="the first one, two or three")
    show.add_argument("--stub", action="store_true", help="only the file to begin with")
    checks = under("check", "values on hidden numbers, cheats, stars for the estimated time")
    checks.add_argument("puzzle", nargs="?", help="number or name; in JSON it may stand there")
    checks.add_argument(
        "file", nargs="?", type=Path, help="with --json, without a file, a JSON object from stdin"
    )
    under("board", "one's own bests on this machine")
    under("schema", "JSON schemas of what check --json reads and writes")


def timing(item: Puzzle) -> str:
    """The sizes that the estimate is made for, the bound and our best."""
    best, bound = item.best(), item.bound()
    timed = ", ".join(f"{name} = {size}" for name, size in item.timed.items())
    return f"Timed at {timed}. Bound {bound.seconds * 1e6:.3g} us (by {bound.bound}; roofline)" + (
        f", our best {best * 1e6:.3g} us (estimate)." if best else "."
    )


def verdict_text(verdict: Verdict, best: bool) -> str:
    """A verdict in words. best: whether it is one's best so far."""
    if verdict.passed:
        return f"{verdict.name}: {verdict.message}.{' Your best so far.' if best else ''}"
    code = verdict.refusal or ""
    return f"{verdict.name}: refused ({code}: {MEANINGS[code]})\n{verdict.message}"


def task_text(item: Puzzle, hints: int = 0) -> str:
    """A task as text."""
    lines = [
        f"{item.number}. {item.title} (step {item.step} of 5)",
        "",
        item.wanted,
        "",
        *(f"takes    {array}" for array in item.arguments),
        f"returns  {item.result}",
        *(f"{name:8} one of {', '.join(map(str, v))}" for name, v in item.sizes.items()),
        "",
        picture.text(item),
        "",
        timing(item),
        f"Stars: {RULE}.",
        "",
        *(f"Hint {i}: {hint}" for i, hint in enumerate(item.hints[:hints], 1)),
        *([""] if hints else []),
        f"nki puzzle show {item.number} --stub > my_{item.id}.py    the file to begin with",
        f"nki puzzle check {item.number} my_{item.id}.py",
    ]
    return "\n".join(lines)


def main(given: argparse.Namespace) -> int:
    """Run the command; returns its exit status: 1 for a kernel that is refused."""
    if given.what == "check":
        return _check(given)
    if given.what == "schema":
        _print({"request": schema(Request), "verdict": schema(Verdict)})
    elif given.what == "show":
        item = puzzle(given.puzzle)
        if given.json:
            _print(_task(item) | {"hints": item.hints[: given.hint or 0]})
        else:
            print(item.stub() if given.stub else task_text(item, given.hint or 0), end="")
            print() if not given.stub else None
    elif given.json:
        bests = board.read().bests
        _print(
            msgspec.to_builtins(bests) if given.what == "board"
            else [_task(item) | {"stars": _stars(bests, item)} for item in puzzles()]
        )  # fmt: skip
    elif given.what == "list":
        rows = [("", "puzzle", "step", "stars", "what")]
        bests = board.read().bests
        for item in puzzles():
            stars = "*" * _stars(bests, item) or "-"
            rows.append((str(item.number), item.id, str(item.step), stars, item.wanted))
        print("\n".join(columns(rows)))
    else:
        print("\n".join(board.table(board.read())))
    return FINE


def _stars(bests: dict[str, board.Best], item: Puzzle) -> int:
    return bests[item.id].stars if item.id in bests else 0


def schema(kind: Any) -> dict[str, Any]:
    """The JSON schema of a record."""
    return msgspec.json.schema(kind)


def _task(item: Puzzle) -> dict[str, Any]:
    task = msgspec.to_builtins(item)
    del task["hints"]
    best = item.best()
    return task | {
        "stub": item.stub(), "bound_us": item.bound().seconds * 1e6,
        "best_us": None if best is None else best * 1e6,
    }  # fmt: skip


def _check(given: argparse.Namespace) -> int:
    which, source = given.puzzle, ""
    if given.file is not None:
        source = existing(given.file).read_text(encoding="utf-8")
    elif given.json:
        try:
            asked = msgspec.json.decode(sys.stdin.buffer.read(), type=Request)
        except msgspec.DecodeError as error:
            raise Refused(f'stdin: {error}; send {{"puzzle": 1, "source": "..."}}') from None
        if which is not None and puzzle(which) != puzzle(asked.puzzle):
            raise Refused(f"the command names puzzle {which}, the JSON object {asked.puzzle}")
        which, source = asked.puzzle, asked.source
    else:
        raise Refused("name a puzzle and a file: nki puzzle check 1 my_copy.py")
    item = puzzle(which)
    verdict = check(item, source)
    best = board.record(verdict, source)
    if given.json:
        _print(msgspec.to_builtins(verdict))
    else:
        print(verdict_text(verdict, best))
    return FINE if verdict.passed else FOUND


def _print(value: Any) -> None:
    print(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())
