"""List the quoted facts to look up again; show figures by key, claims of articles by text.

Figures come from utils/facts/data: chips, instances, costs and launch (.yaml), statements from
software.yaml, claims from claims.csv. Limits: prices {price} days, statements about software
{software}, documentation and estimates {documentation}.
"""

import argparse
import datetime
import itertools
import sys
import textwrap

from utils.chip.landscape import landscape
from utils.facts import LIMITS, claims, figures, stale, table
from utils.facts.ages import last_try

NEEDS = "learner"


def main(arguments: list[str]) -> int:
    """Run the command; returns its exit status."""
    description = (__doc__ or "").format(**LIMITS)
    parser = argparse.ArgumentParser(
        "course.py facts",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--key", metavar="PREFIX", help='figures whose key begins so, such as "trainium2.hbm"'
    )
    parser.add_argument("--claims", metavar="TEXT", help="claims of articles that contain a text")
    parser.add_argument("--chips", action="store_true", help="chips of five vendors side by side")
    parser.add_argument(
        "--today",
        type=_day,
        default=datetime.date.today(),
        metavar="DATE",
        help="the day on which ages count, such as 2027-01-31 (default: today)",
    )
    given = parser.parse_args(arguments)
    try:
        if given.key is not None:
            print(_figures(given.key, given.today))
        if given.claims is not None:
            print(_claims(given.claims))
    except LookupError as error:
        print(error.args[0], file=sys.stderr)
        return 1
    if given.chips:
        print(landscape())
    if given.key is None and given.claims is None and not given.chips:
        print(_stale(given.today))
    return 0


def _day(text: str) -> datetime.date:
    try:
        return datetime.date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a date: write one such as 2027-01-31"
        ) from None


def _figures(prefix: str, today: datetime.date) -> str:
    result = figures(prefix)
    if not result:
        begins = ", ".join(sorted({key.partition(".")[0] for key in figures()}))
        raise LookupError(f"no figure begins with {prefix!r}; they begin with {begins}")
    lines = [str(table(result, today=today))]
    for item in result.values():
        before = "".join(f"; {old.text} on {old.date}" for old in item.history)
        also = "".join(f"; also {other.text}: {other.note}" for other in item.also if other.note)
        if item.note or also or before:
            lines.append(f"{item.key}: {(item.note + also + before).removeprefix('; ')}")
    return "\n".join(lines)


def _claims(text: str) -> str:
    result = claims(text)
    if not result:
        raise LookupError(f"no claim contains {text!r}; notebooks/claims.ipynb shows all of them")
    lines = []
    for item in result:
        lines.append(f"{item.id}  {item.verdict}  ({item.topic})  {item.text}")
        for line in filter(None, (item.correct, item.note, item.source)):
            lines.append(textwrap.indent(line, "       "))
    return "\n".join(lines)


def _stale(today: datetime.date) -> str:
    old = stale(today)
    limits = ", ".join(f"{kind} {days} days" for kind, days in LIMITS.items())
    if not old:
        return f"nothing is older on {today} than its limit ({limits})"
    lines = [f"{len(old)} facts are older on {today} than their limits ({limits}), oldest first:"]
    for (days, kind, source), group in itertools.groupby(
        old, key=lambda item: (item.days, item.kind, item.source)
    ):
        keys = ", ".join(item.key for item in group)
        lines.append(f"{days:4} days  {kind:13}  {source}")
        lines.append(textwrap.fill(keys, 96, initial_indent=" " * 11, subsequent_indent=" " * 11))
        if state := last_try(source):
            lines.append(" " * 11 + f"state of {state}")
    lines.append("After a look at the page, write value and date into utils/facts/data/.")
    return "\n".join(lines)
