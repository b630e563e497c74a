"""Remove the environment and the caches, and keep your work: notebooks, answers and progress."""

import argparse
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from utils.cli.commands import kernel
from utils.cli.home import Home, read_record

NEEDS = "nothing"
ROOT = Path(__file__).resolve().parents[3]
CACHES = ("__pycache__", ".hypothesis", ".pytest_cache", ".ruff_cache")


def main(arguments: list[str]) -> int:
    """Run the command; returns its exit status."""
    argparse.ArgumentParser("course.py clean", description=__doc__).parse_args(arguments)
    home = Home(ROOT)
    read_record(home)  # Refuses an environment that is not the course's own.
    # Together, because hard links share their space.
    paths = [path for path in (home.venv, home.tools) if path.exists()]
    remove(paths, " and ".join(path.name for path in paths))
    paths = list(caches(ROOT))
    remove(paths, f"{len(paths)} folders that Python and the tests keep for speed")
    if kernel.remove(kernel.kernel_folder(os.environ), only_of=home):
        print("Removed the kernel from your own Jupyter.")
    print("Kept everything else, your work among it.")
    return 0


def remove(paths: list[Path], what: str) -> None:
    """Remove the folders and say what they were and how much they held."""
    if paths:
        megabytes = size_bytes(paths) / 1e6
        for path in paths:
            shutil.rmtree(path)
        print(f"Removed {what}: {megabytes:,.1f} MB")


def caches(root: Path) -> Iterator[Path]:
    """The folders below `root` that tools made and can make again."""
    for folder, inner, _ in os.walk(root):
        yield from (Path(folder, name) for name in inner if name in CACHES)
        inner[:] = [name for name in inner if name not in CACHES and not name.startswith(".")]


def size_bytes(paths: list[Path]) -> int:
    """What the folders occupy on the disk, files with several names counted once."""
    files = {}
    for path in paths:
        for folder, _, names in os.walk(path):
            for name in names:
                state = os.lstat(os.path.join(folder, name))
                files[state.st_ino] = state.st_blocks * 512
    return sum(files.values())
