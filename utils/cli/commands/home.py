"""Say where you are and where to go on; the name of a track, such as kernels, chooses it."""

import argparse

NEEDS = "learner"


def main(arguments: list[str]) -> int:
    """Run the command; returns its exit status."""
    from utils.course.home import home  # late: it needs packages, which --help does not

    parser = argparse.ArgumentParser("course.py home", description=__doc__)
    parser.add_argument("track", nargs="?", default="")
    print(home(parser.parse_args(arguments).track))
    return 0
