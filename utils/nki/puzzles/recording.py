"""Writes the estimates of our solutions into bests.yaml: `python -m utils.nki.puzzles.recording`.

For maintainers: after a change of a solution, of the sizes or of the timing model.
"""

from pathlib import Path

from utils.course.files import replace_file
from utils.nki.puzzles.catalog import BESTS, Puzzle, puzzles
from utils.nki.puzzles.judging import check
from utils.nki.puzzles.observing import observe

HEAD = "# Estimates of our solutions in us, by utils.nki.puzzles.recording; do not edit.\n"


def solution(puzzle: Puzzle) -> str:
    """The source of the file with our solution."""
    path = Path(__file__).with_name("solutions") / f"step{puzzle.step}.py"
    return path.read_text(encoding="utf-8")


def main() -> None:
    """Check every solution, and record its estimate."""
    lines = []
    for puzzle in puzzles():
        verdict = check(puzzle, solution(puzzle), seed=1, run=observe)
        print(puzzle.id, verdict.message)
        if verdict.estimate_us is None:
            raise SystemExit(f"{puzzle.id} is refused: {verdict.message}")
        lines.append(f"{puzzle.id}: {verdict.estimate_us:.4g}\n")
    replace_file(BESTS, HEAD + "".join(lines))


if __name__ == "__main__":
    main()
