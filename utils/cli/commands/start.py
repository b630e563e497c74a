"""Open the course in JupyterLab; arguments go to JupyterLab, such as --no-browser --port 8890."""

import os
import sys
from pathlib import Path

from utils.cli.server import ROOT, bring_up_copies, environment, options, write_settings
from utils.xla.defaults import has_xla

NEEDS = "learner"


def main(arguments: list[str]) -> int:
    """Run the command; returns its exit status."""
    prefix = Path(sys.prefix)
    write_settings(prefix)
    bring_up_copies(ROOT)
    where = "at the address below" if "--no-browser" in arguments else "in your browser"
    if not has_xla():
        from utils.xla.env import without_xla  # late: it reads all notebooks

        print(f"torch-xla: {without_xla()}.")
    print(f"JupyterLab shows the course {where}; Ctrl-C here, twice, stops it.", flush=True)
    command = [sys.executable, "-P", "-m", "jupyterlab", *options(ROOT, os.geteuid() == 0)]
    os.execve(sys.executable, [*command, *arguments], environment(prefix))
