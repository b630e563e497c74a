"""`nki docs OUT`: every instruction with its cost and what it refuses, and how good estimates are.

All of it follows from the table of instructions and from the recorded validation.
"""

import argparse
import inspect
from pathlib import Path

from utils.course.files import replace_file
from utils.nki.simulator import VERSION, use
from utils.nki.simulator.table import TABLE, Spec, sentence
from utils.nki.tool.failures import FINE
from utils.nki.validation import accuracy, recorded


def add(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    parser.add_argument("out", type=Path, help="a file for Markdown")


def page() -> str:
    """The reference, as Markdown."""
    use()
    from nki import isa  # late: it is found now, and fills the table

    specs = [TABLE[name] for name in sorted(TABLE)]
    parts = [
        f"# Reference of nki {VERSION}",
        f"{len(specs)} instructions of `nki.isa`, each with its operands, the rules that it is "
        "refused by, and its cost. Cycles are of the engine's clock. All times that follow from "
        "them are estimates.",
        *map(_entry, specs),
        "## Functions that issue no instruction",
        *(
            f"- `{name}`: {sentence(made)}"
            for name, made in sorted(vars(isa).items())
            if inspect.isfunction(made) and name not in TABLE and not name.startswith("_")
        ),
        "## How good the estimates are",
        "Published kernels as their authors wrote them, measured and estimated, as recorded when "
        "this version was made:",
        f"```\n{accuracy.recorded()!r}\n```",
        "Kernels that were rewritten for the validation, which says less:",
        recorded()._repr_markdown_(),
    ]
    return "\n\n".join(parts) + "\n"


def _entry(spec: Spec) -> str:
    source = spec.cost_source
    cost = f", [source of the cost]({source})" if source.startswith("https:") else ""
    lines = [
        f"## {spec.name}",
        "",
        f"```\n{spec.document()}\n```",
        "",
        f"[NKI {spec.since}]({spec.page}){cost}",
    ]
    return "\n".join(lines)


def main(given: argparse.Namespace) -> int:
    """Run the command; returns its exit status."""
    replace_file(given.out, page())
    print(f"written: {given.out}")
    return FINE
