"""Open the cost model as a page in the browser; arguments go to Voila, such as --no-browser."""

import sys
from pathlib import Path

from utils.cli.server import write_settings

NEEDS = "learner"


def main(arguments: list[str]) -> int:
    """Run the command; returns its exit status."""
    from utils.show.dashboard import server  # late: with Voila and matplotlib it takes seconds

    write_settings(Path(sys.prefix))
    return server.serve(arguments)
