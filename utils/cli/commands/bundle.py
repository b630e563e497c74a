"""Write one file with the course and its packages, which installs elsewhere without a network.

It fits machines of the same kind as this one with the same Python (3.11, for example).
"""

import argparse
from pathlib import Path

from utils.cli import builds, bundles
from utils.cli.home import Home
from utils.xla.defaults import has_xla

NEEDS = "nothing"
ROOT = Path(__file__).resolve().parents[3]


def main(arguments: list[str]) -> int:
    """Run the command; returns its exit status."""
    parser = argparse.ArgumentParser("course.py bundle", description=__doc__)
    parser.add_argument("--to", type=Path, default=Path("dist"), help="a folder; default: dist")
    parser.add_argument(
        "--torch", choices=("slim", "full"), default="slim", help="full: for machines with a GPU"
    )
    given = parser.parse_args(arguments)
    build = builds.choose(given.torch, "", has_xla())
    out = bundles.make(Home(ROOT), build, given.to.resolve(), print)
    folder = f"trainium-course-{bundles.version(ROOT)}"
    print(f"{out}: {out.stat().st_size / 1e6:.0f} MB. On a machine without a network:")
    print(f"  tar xf {out.name}\n  cd {folder}\n  python3 course.py start")
    return 0
