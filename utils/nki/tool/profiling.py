"""`nki profile FILE::KERNEL --shape 128x512`: an estimate as text, trace, page or record."""

import argparse
from pathlib import Path
from typing import Any

from utils.course.files import replace_file
from utils.nki.simulator.profile import NAMES, time_text
from utils.nki.tool import figures
from utils.nki.tool.asked import Asked, argument_of, place_of, shape_of, shape_text
from utils.nki.tool.failures import FINE, author_errors, time_limit

TARGETS = ("trn1", "trn2", "trn3")
LIMIT_S = 600.0


def add_call(parser: argparse.ArgumentParser) -> None:
    """The options that say what a kernel is called with."""
    parser.add_argument(
        "--shape", action="append", default=[], type=shape_of, metavar="128x512:bfloat16",
        help="of an array, in the order of the arguments",
    )  # fmt: skip
    parser.add_argument(
        "--arg", action="append", default=[], type=argument_of, metavar="NAME=VALUE",
        help="another argument of the kernel",
    )  # fmt: skip
    parser.add_argument("--target", choices=TARGETS, help="the chip; default: trn2")
    parser.add_argument("--cores", type=int, choices=(1, 2), default=1, help="of the grid")
    parser.add_argument(
        "--limit", type=float, default=LIMIT_S, help="seconds that a kernel may run; 600"
    )


def add(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    parser.add_argument("kernel", help="FILE::KERNEL")
    add_call(parser)
    parser.add_argument("--as-written", action="store_true", help="instructions keep their order")
    parser.add_argument("--perfetto", type=Path, metavar="OUT.json", help="for ui.perfetto.dev")
    parser.add_argument("--html", type=Path, metavar="OUT.html", help="one page with figures")
    parser.add_argument("--record", type=Path, metavar="OUT.json", help="for nki compare")


def call_of(given: argparse.Namespace, text: str) -> Asked:
    """The call that the options describe."""
    path, name = place_of(text)
    return Asked(path, name, tuple(given.shape), dict(given.arg), given.cores)


def profile(
    asked: Asked,
    target: str | None,
    limit_s: float,
    constants: dict[str, Any] | None = None,
    schedule: str = "list",
) -> figures.Estimates:
    """The estimates of a call, from shapes alone. Raises Refused, KernelFailed."""
    with time_limit(limit_s):
        kernel, arguments = asked.kernel(constants)
        with author_errors():
            return figures.estimate(kernel, asked.shapes, arguments, target, schedule)


def text_of(made: figures.Estimates) -> str:
    """As written, and in short what the compiler may make of it."""
    if made.written is None:
        return f"{made.compiled}\n  as written it does not fit; all of this is as compiled"
    busiest = NAMES[made.compiled.busiest]
    return (
        f"{made.written}\n  as compiled: {time_text(made.compiled.seconds)} (estimate), busiest is "
        f"the {busiest} with {made.compiled.utilisation[made.compiled.busiest]:.0%}"
    )


def main(given: argparse.Namespace) -> int:
    """Run the command; returns its exit status."""
    asked = call_of(given, given.kernel)
    schedule = "as written" if given.as_written else "list"
    made = profile(asked, given.target, given.limit, schedule=schedule)
    print(text_of(made))
    if given.perfetto:
        replace_file(given.perfetto, made.shown.trace_json())
    if given.record:
        shapes = [shape_text(shape) for shape in asked.shapes]
        kept = figures.figures_of(made, shapes, asked.arguments)
        replace_file(given.record, figures.encode(kept))
    if given.html:
        from utils.nki.tool.page import to_page  # late: jinja2 is needed by this only

        replace_file(given.html, to_page(made, asked))
    for path in filter(None, (given.perfetto, given.record, given.html)):
        print(f"written: {path}")
    return FINE
