"""One's own bests, in a file of this machine beside the progress file; nothing is sent anywhere.

The environment variable NKI_PUZZLES names another file. Without the course it is
~/.nki-puzzles.json.
"""

import contextlib
import fcntl
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from utils.course.files import replace_file
from utils.course.progress import progress_file
from utils.facts.tables import columns
from utils.nki.puzzles.catalog import puzzles
from utils.nki.puzzles.judging import Verdict
from utils.nki.simulator import VERSION
from utils.nki.tool.failures import Refused

VARIABLE = "NKI_PUZZLES"
COURSE = Path(__file__).resolve().parents[3] / "course.py"


class Best(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The best kernel so far. source: the beginning of the SHA-256 of its text. version: of the
    model that the estimate is from."""

    estimate_us: float
    stars: int
    source: str
    version: str
    attempts: int = 1


class Board(msgspec.Struct, forbid_unknown_fields=True):
    """Bests by puzzle."""

    nki_puzzles: int = 1
    bests: dict[str, Best] = {}


def board_file() -> Path:
    """Where bests are kept."""
    if named := os.environ.get(VARIABLE):
        return Path(named).absolute()
    if "COURSE_PROGRESS" in os.environ or COURSE.exists():
        return progress_file().with_name(".puzzles.json")
    return Path.home() / ".nki-puzzles.json"


def read(path: Path | None = None) -> Board:
    """The board; an empty one where there is no file. Raises Refused for a file that is none."""
    path = path or board_file()
    try:
        return msgspec.json.decode(path.read_bytes(), type=Board)
    except FileNotFoundError:
        return Board()
    except (msgspec.DecodeError, UnicodeDecodeError, OSError) as error:
        raise Refused(f"{path} is no board of puzzles: {error}; move it away") from None


def record(verdict: Verdict, source: str, path: Path | None = None) -> bool:
    """Keep a kernel that passed if it is the best so far; returns whether it is.

    The file is replaced whole: after a kill it has the old content or the new.
    """
    if verdict.estimate_us is None:
        return False
    path = path or board_file()
    with _locked(path):
        board = read(path)
        old = board.bests.get(verdict.name)
        better = old is None or verdict.estimate_us < old.estimate_us or old.version != VERSION
        attempts = old.attempts + 1 if old else 1
        if better:
            digest = hashlib.sha256(source.encode()).hexdigest()[:16]
            new = Best(verdict.estimate_us, verdict.stars, digest, VERSION, attempts)
        else:
            assert old is not None
            new = msgspec.structs.replace(old, attempts=attempts)
        board.bests[verdict.name] = new
        text = msgspec.json.format(msgspec.json.encode(board), indent=2).decode()
        replace_file(path, text + "\n")
    return better


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path.with_name(f"{path.name}.lock"), "a") as lock:
        with contextlib.suppress(OSError):  # some network file systems have no locks
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def table(board: Board) -> list[str]:
    """All puzzles with one's bests, as lines. Times are estimates."""
    rows = [("", "puzzle", "step", "stars", "yours", "our best", "bound")]
    for puzzle in puzzles():
        mine, best = board.bests.get(puzzle.id), puzzle.best()
        rows.append(
            (
                str(puzzle.number), puzzle.id, str(puzzle.step),
                "*" * mine.stars if mine else "-",
                f"{mine.estimate_us:.3g} us" if mine else "-",
                f"{best * 1e6:.3g} us" if best else "-", f"{puzzle.bound().seconds * 1e6:.3g} us",
            )
        )  # fmt: skip
    stars = sum(best.stars for best in board.bests.values())
    return [
        *columns(rows), f"{stars} of {3 * len(puzzles())} stars. Times are estimates of a model."
    ]  # fmt: skip
