"""Open the cost model as a page in the browser; arguments go to Voila, such as --no-browser."""

import sys
from pathlib import Path

NEEDS = "learner"


def main(arguments: list[str]) -> int:
    """Run the command; returns its exit status."""
    # Voila is not installed where commands are only listed.
    from utils.cli.commands.start import write_settings
    from utils.show.dashboard import server

    write_settings(Path(sys.prefix))
    return server.serve(arguments)
