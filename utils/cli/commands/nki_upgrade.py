"""Bring NKI kernels of older versions to NKI 0.7: show the change, or write it with --write.

What is mechanical is rewritten; what is left is named with its line, what to do and the page.
"""

from utils.nki import upgrade

NEEDS = "learner"


def main(arguments: list[str]) -> int:
    """Run the command; returns its exit status."""
    return upgrade.main(arguments)
