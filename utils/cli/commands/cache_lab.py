"""Measure cold and warm starts with a pair of torch and torch-xla that loads its compile cache.

The course's own pair writes a persistent cache on a CPU and cannot load it. torch 2.7.1 with
torch-xla 2.7.0 can: this command makes an environment with them beside the course's own, asks the
questions of lesson 04 there, prints a table and records it. The course's recording is in
utils/facts/data/cache_lab.json; yours goes to .tools/cache_lab.json, or to the file that --out
names.
"""

import argparse
import os
import sys
from pathlib import Path

from utils.cli import cache_lab_environment as environment
from utils.cli import install
from utils.cli.installers import Uv
from utils.training.coldstart import experiments, recording

NEEDS = "nothing"
ROOT = Path(__file__).resolve().parents[3]


def main(arguments: list[str]) -> int:
    """Run the command; returns its exit status."""
    parser = argparse.ArgumentParser("course.py cache-lab", description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, metavar="FILE", help="where to record the result")
    parser.add_argument("--remove", action="store_true", help="delete the second environment")
    parser.add_argument("--record", action="store_true", help="maintainers: the course's recording")
    parser.add_argument("--lock", action="store_true", help="maintainers: write the lock anew")
    options = parser.parse_args(arguments)
    home = environment.LabHome(ROOT)
    if options.remove:
        environment.remove(home, say)
        return 0
    if options.lock:
        environment.write_lock(home, say)
        return 0
    out = recording.RECORDED if options.record else options.out or home.tools / "cache_lab.json"
    if not out.parent.is_dir():
        parser.error(f"there is no folder {out.parent}: make it, or name another --out")
    prepare(home, arguments)
    say("Measuring, one training process after the other (about 10 minutes).")
    measured = experiments.measure(home.python, say, flip_count=experiments.FLIPS)
    recording.save(measured, out)
    say(f"\n{recording.table(measured)}\n\nRecorded in {out}")
    return 0


def prepare(home: environment.LabHome, arguments: list[str]) -> None:
    """Make the environment unless it is there. With a Python other than 3.11, this process becomes
    the same command under 3.11."""
    if environment.ready(home):
        return
    python = environment.python_3_11(home, say)
    if sys.version_info[:2] != environment.PYTHON:
        with install.alone(home, say) as held:
            Uv(home, say, held).fetch()
        sys.stdout.flush()
        os.execv(python, [python, str(ROOT / "course.py"), "cache-lab", *arguments])
    environment.ensure(home, say)


def say(line: str) -> None:
    """A line that is seen at once."""
    print(line, flush=True)
