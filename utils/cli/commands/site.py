"""Build the website of the course: lessons with results, labs, claims, tools, glossary; offline."""

import argparse
import sys
from pathlib import Path


def main(arguments: list[str]) -> int:
    """Run the command; returns its exit status."""
    from utils.cli.site import building, reading  # late: --help needs no packages

    parser = argparse.ArgumentParser("course.py site", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("site"), help="a folder; default: site")
    parser.add_argument(
        "--explorables",
        default="*",
        metavar="PATTERN",
        help="notebooks whose sliders are recorded, ten seconds for each; default: '*', none: ''",
    )
    given = parser.parse_args(arguments)
    out = given.out.resolve()
    try:
        building.build(out, explorables=given.explorables)
    except (OSError, ValueError) as error:
        print(f"course.py site: {error}", file=sys.stderr)
        return 1
    pages = reading.read(out)
    heaviest = max(pages.values(), key=lambda page: page.bytes)
    print(
        f"{out / 'index.html'}: {len(pages)} pages, the heaviest {heaviest.bytes / 1000:.0f} kB"
        f" ({heaviest.path.name})"
    )
    for link in (links := reading.broken_links(pages)):
        print(f"leads nowhere: {link}", file=sys.stderr)
    return 1 if links else 0
