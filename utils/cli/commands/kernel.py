"""Offer the course's kernel in a Jupyter of your own, such as SageMaker Studio (--remove undoes).

The kernel has the same environment as `start`, wherever the notebook server comes from.
"""

import argparse
import json
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from utils.cli.home import Home

NEEDS = "learner"
ROOT = Path(__file__).resolve().parents[3]
NAME = "trainium-course"


def main(arguments: list[str]) -> int:
    """Run the command; returns its exit status."""
    parser = argparse.ArgumentParser("course.py kernel", description=__doc__.splitlines()[0])
    parser.add_argument("--remove", action="store_true", help="remove the kernel again")
    folder = kernel_folder(os.environ)
    if parser.parse_args(arguments).remove:
        removed = remove(folder)
        print(f"Removed {folder}" if removed else f"There is no kernel in {folder}.")
        return 0
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "kernel.json").write_text(json.dumps(specification(Home(ROOT)), indent=1) + "\n")
    print(f'Wrote {folder}\nReload Jupyter and choose the kernel "Trainium course".')
    return 0


def specification(home: Home) -> dict:
    """The kernel.json: an empty variable counts as unset, which shields from the server's own."""
    empty = dict.fromkeys(("PYTHONPATH", "PYTHONHOME", "PYTHONDONTWRITEBYTECODE"), "")
    return {
        "argv": [str(home.python), "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        "display_name": "Trainium course",
        "language": "python",
        "metadata": {"debugger": True},
        "env": empty | {"PYTHONNOUSERSITE": "1", "PJRT_DEVICE": "CPU"},
    }


def kernel_folder(variables: Mapping[str, str]) -> Path:
    """Where Jupyter looks for this user's kernels, on Linux or macOS.

    >>> kernel_folder({"HOME": "/home/ada"}).as_posix()
    '/home/ada/.local/share/jupyter/kernels/trainium-course'
    """
    home = Path(variables.get("HOME") or Path.home())
    share = Path(variables.get("XDG_DATA_HOME") or home / ".local" / "share")
    own = home / "Library" / "Jupyter" if sys.platform == "darwin" else share / "jupyter"
    data = Path(variables.get("JUPYTER_DATA_DIR") or own)
    return data / "kernels" / NAME


def remove(folder: Path, only_of: Home | None = None) -> bool:
    """Remove the kernel; with `only_of` only if it starts that course's Python. Was there one?"""
    try:
        python = json.loads((folder / "kernel.json").read_text())["argv"][0]
    except (OSError, ValueError, LookupError):
        return False
    if only_of and python != str(only_of.python):
        return False
    shutil.rmtree(folder)
    return True
