"""The puzzles: solutions pass, wrong kernels and cheats are refused by name, the board is whole."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import msgspec
import pytest

from utils.course.catalog import ROOT
from utils.course.misconceptions import apply_diff
from utils.nki.puzzles import board, judging, mistakes, picture
from utils.nki.puzzles.catalog import Puzzle, puzzle, puzzles
from utils.nki.puzzles.command import Request
from utils.nki.puzzles.judging import Verdict, check, draw_cases
from utils.nki.puzzles.observing import Job, Outcome, observe
from utils.nki.puzzles.recording import solution
from utils.nki.puzzles.references import REFERENCES
from utils.nki.tool.__main__ import main
from utils.nki.tool.failures import Refused

IDS = [item.id for item in puzzles()]
STEPS = sorted({item.step for item in puzzles()})
RECORDS = [(name, key) for name, entries in mistakes.records().items() for key in entries]
COPY = """\
import nki
import nki.isa as nisa
import nki.language as nl
{top}

@nki.jit
def copy(x{default}):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
{before}
    for row in range(0, x.shape[0], 128):
        tile = nl.ndarray((128, x.shape[1]), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[nl.ds(row, 128), :])
        nisa.dma_copy(dst=out[nl.ds(row, 128), :], src=tile)
    return {result}
"""


@pytest.fixture(autouse=True)
def own_board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "board.json"
    monkeypatch.setenv(board.VARIABLE, str(path))
    return path


def variant(top: str = "", default: str = "", before: str = "", result: str = "out") -> str:
    """The solution of the first puzzle, changed."""
    return COPY.format(top=top, default=default, before=before, result=result)


def shortly(job: Job) -> list[Outcome]:
    """Without the timed case, which costs most and which a kernel that is refused does not need."""
    return observe(job | {"cases": job["cases"][:-2]})


def judge(which: str, source: str, seed: int = 3) -> Verdict:
    """A verdict without a process of its own."""
    return check(puzzle(which), source, seed, observe)


def test_steps_have_four_puzzles_each_with_a_reference_hints_and_wrong_kernels() -> None:
    assert Counter(item.step for item in puzzles()) == Counter({s: 4 for s in STEPS})
    assert list(REFERENCES) == IDS and list(mistakes.records()) == IDS
    assert set(mistakes.RETURNS) <= set(IDS)
    for item in puzzles():
        assert len(item.hints) == 3 and len(mistakes.records()[item.id]) >= 2
        assert item.best() is not None, "python -m utils.nki.puzzles.recording"
        assert set(item.tiles) == {array.name for array in (*item.arguments, item.result)}


@pytest.mark.parametrize("name", IDS)
def test_our_solution_passes_with_three_stars_at_its_recorded_estimate(name: str) -> None:
    verdict = judge(name, solution(puzzle(name)))
    assert verdict.passed and verdict.refusal is None and verdict.stars == 3, verdict.message
    assert verdict.estimate_us == pytest.approx(verdict.best_us, rel=0.1), (
        "python -m utils.nki.puzzles.recording"
    )
    assert verdict.bound_us < verdict.estimate_us and verdict.cases >= 5


@pytest.mark.parametrize("name", IDS)
def test_an_untouched_stub_is_refused(name: str) -> None:
    verdict = judge(name, puzzle(name).stub())
    assert verdict.refusal == "stub" and verdict.stars == 0
    assert f"{name} is still the stub" in verdict.message


@pytest.mark.parametrize(("name", "key"), RECORDS)
def test_a_wrong_kernel_is_refused_with_its_mistake(name: str, key: str) -> None:
    mistake = mistakes.records()[name][key]
    whole = mistake.kernel.startswith("import nki")
    source = mistake.kernel if whole else apply_diff(solution(puzzle(name)), mistake.kernel)
    verdict = check(puzzle(name), source, 3, shortly)
    assert not verdict.passed and mistake.says in verdict.message, verdict
    assert verdict.refusal in ("rule", "wrong-value") and verdict.failing is not None


CHEATS = {
    "numbers in the file": ("precomputed", variant(top=f"RESULT = ({'1.5, ' * 100})")),
    "zeros": ("precomputed", variant(result="zeros", before="""\
    zeros = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for row in range(0, x.shape[0], 128):
        none = nl.ndarray((128, x.shape[1]), dtype=x.dtype, buffer=nl.sbuf)
        nisa.memset(dst=none, value=0.0)
        nisa.dma_copy(dst=zeros[nl.ds(row, 128), :], src=none)""")),
    "the reference": ("reads-expected", variant(top="from utils.nki.puzzles import references")),
    "a file": ("reads-expected", variant(before="    open('answer')")),
    "a way around": ("reads-expected", variant(before="    nki.importlib.import_module('os')")),
    "numpy": ("host-computation", variant(top="import numpy as np")),
    "torch": ("host-computation", variant(before="    import torch")),
    "its argument": ("host-output", variant(result="x")),
    "an array": ("host-output", variant(result="[1.0, 2.0]")),
    "a tile": ("host-output", variant(result="tile")),
    "behind a tensor": ("host-output", variant(before="    out.storage.data[:] = 1")),
    "nothing written": ("host-output", variant(
        result="other", before="    other = nl.ndarray(x.shape, dtype=x.dtype, "
        "buffer=nl.shared_hbm)")),
    "a global": ("state", variant(top="KEPT = 0", before="    global KEPT")),
    "a list of the file": ("state", variant(top="KEPT = []")),
    "a default": ("state", variant(default=", kept=[]")),
    "an attribute": ("state", variant(before="    copy.calls = 1")),
    "an object that keeps": ("state", variant(
        top="class Kept:\n    calls = 0\n    many = range(9)\n\n\n"
        "def counted(by=(c for c in range(99))):\n    for each in by:\n        return each\n",
        before="    nisa.memset(dst=nl.ndarray((128, 1), nl.float32, nl.sbuf), "
        "value=float(counted()))")),
    "one shape": ("one-shape", variant().replace("range(0, x.shape[0], 128)", "range(1)")),
    "sizes of the example": ("one-shape", variant().replace("(128, x.shape[1])", "(128, 64)")),
    "another package": ("import", variant(top="import yaml")),
    "no kernel": ("no-kernel", "def kernel(x): return x"),
    "no Python": ("no-python", "def copy(x) return x"),
}  # fmt: skip


@pytest.mark.parametrize("what", CHEATS)
def test_a_cheat_is_refused_by_its_name(what: str) -> None:
    code, source = CHEATS[what]
    verdict = judge("copy", source)
    assert verdict.refusal == code, verdict
    assert verdict.stars == 0 and verdict.estimate_us is None and len(verdict.message) > 20


SLIPS = [
    ("copy", "src=x[nl.ds(row, ROWS), :]", "src=x[nl.ds(row, 999), :]", "rule", "At: line 1"),
    ("copy", "return out", "pass", "host-output", "it returns nothing"),
    ("copy", "src=x[nl.ds(row, ROWS), :]", "src=tile", "wrong-value", "nothing had written"),
    ("softmax", "op=nl.maximum", "op=nl.max", "rule", "op is the function nl.max;"),
    ("matmul_sum", "nl.float32", "nl.bfloat16", "rule", "nc_matmul: dst is bfloat16"),
]


@pytest.mark.parametrize(("name", "old", "new", "code", "words"), SLIPS)
def test_a_slip_is_named_for_what_it_is(name, old, new, code, words) -> None:
    source = solution(puzzle(name))
    assert old in source
    verdict = check(puzzle(name), source.replace(old, new), 3, shortly)
    assert verdict.refusal == code and words in verdict.message, verdict
    assert "DMA does not reach" not in verdict.message and "puzzle_" not in verdict.message


def test_all_refusals_have_a_meaning_and_none_is_unused() -> None:
    seen = {code for code, _ in CHEATS.values()} | {"stub", "wrong-value", "rule"}
    assert seen == set(judging.MEANINGS)


def test_hidden_cases_differ_from_check_to_check_and_begin_with_the_example() -> None:
    item = puzzle("copy")
    one, other = draw_cases(item), draw_cases(item)
    assert one[0] == other[0] == one[-1] and one[0].seed == 0
    assert {c.seed for c in one[1:-1]}.isdisjoint({c.seed for c in other[1:-1]})
    assert [case.timed for case in one].count(True) == 1
    assert draw_cases(item, 1) == draw_cases(item, 1) != draw_cases(item, 2)


def test_stars_follow_the_rule() -> None:
    item = puzzle("column_sum")
    best, bound = item.best(), item.bound().seconds
    assert best is not None and best > judging.AT_BOUND * bound
    times = (1.25 * bound, 1.09 * best, 1.11 * best, 1.99 * best, 2.01 * best)
    assert [judging.stars_of(t, item) for t in times] == [3, 3, 2, 2, 1]


def test_the_picture_counts_tiles_of_the_largest_sizes() -> None:
    grids = picture.grids(puzzle("ragged_relu"))
    assert [(g.name, g.shape, g.counts) for g in grids] == [
        ("x", (300, 200), (3, 1)), ("result", (300, 200), (3, 1)),
    ]  # fmt: skip
    assert "| 44" in picture.text(puzzle("ragged_relu"))


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    status = main(["puzzle", *map(str, words)])
    return status, *capsys.readouterr()


def test_the_command_lists_shows_checks_and_keeps_the_best(capsys, tmp_path, own_board) -> None:
    file = tmp_path / "mine.py"
    status, out, _ = run(capsys, "show", "copy", "--stub")
    file.write_text(out)
    assert status == 0 and out == puzzle(1).stub()
    assert run(capsys, "check", 1, file)[0] == 1 and not own_board.exists()
    file.write_text(variant())
    status, out, _ = run(capsys, "check", 1, file)
    assert status == 0 and "Stars: 3 of 3" in out and "Your best so far" in out
    assert "Your best" not in run(capsys, "check", "copy", file)[1]
    kept = board.read().bests["copy"]
    assert kept.stars == 3 and kept.attempts == 2
    assert "***" in run(capsys, "list")[1] and f"3 of {3 * len(IDS)}" in run(capsys, "board")[1]
    assert "Hint 2" in run(capsys, "show", 2, "--hint", 2)[1]
    assert "did you mean softmax" in run(capsys, "show", "softmx")[2]


def test_programs_send_and_read_json_that_the_schema_describes(capsys, monkeypatch) -> None:
    def sent(text: str, *words: object) -> tuple[int, str, str]:
        read, write = os.pipe()
        os.write(write, text.encode())
        os.close(write)
        with open(read) as stdin:
            monkeypatch.setattr(sys, "stdin", stdin)
            return run(capsys, "check", *words, "--json")

    status, out, _ = sent(json.dumps({"puzzle": "copy", "source": variant()}))
    verdict = msgspec.json.decode(out, type=Verdict)
    assert status == 0 and verdict.passed and verdict.refusal is None and verdict.stars == 3
    wrong = variant().replace("src=tile)", "src=x[nl.ds(0, 128), :])")
    status, out, _ = sent(msgspec.json.encode(Request(1, wrong)).decode(), 1)
    verdict = msgspec.json.decode(out, type=Verdict)
    assert status == 1 and verdict.refusal and verdict.failing and verdict.estimate_us is None
    status, _, error = sent("{}")
    assert status == 2 and "puzzle" in error
    assert "the command names puzzle 2" in sent('{"puzzle": 1, "source": ""}', 2)[2]
    schemas = json.loads(run(capsys, "schema", "--json")[1])
    assert set(schemas["verdict"]["$defs"]["Verdict"]["properties"]) == set(
        Verdict.__struct_fields__
    )
    tasks = json.loads(run(capsys, "list", "--json")[1])
    assert [task["id"] for task in tasks] == IDS and "hints" not in tasks[0]
    assert json.loads(run(capsys, "show", "copy", "--json", "--hint", 1)[1])["hints"]
    assert json.loads(run(capsys, "board", "--json")[1])["copy"]["stars"] == 3


def test_a_kernel_that_ends_its_process_is_refused() -> None:
    verdict = check(puzzle(1), variant(before="    raise SystemExit(0)"))
    assert verdict.refusal == "rule" and "SystemExit" in verdict.message


KILLED = """
import os, sys
from utils.course import files
from utils.nki.puzzles import board
from utils.nki.puzzles.judging import Verdict
os.replace = lambda *a: os._exit(9)  # the moment before the new file is there
board.record(Verdict(puzzle=1, name="copy", passed=True, refusal=None, message="", bound_us=1.0,
                     best_us=1.0, estimate_us=1.0, stars=3), "source")
"""


def test_the_board_is_whole_after_a_kill(own_board: Path) -> None:
    def verdict(time: float) -> Verdict:
        return Verdict(
            puzzle=1, name="copy", passed=True, refusal=None, message="", bound_us=1.0,
            best_us=1.0, estimate_us=time, stars=2,
        )  # fmt: skip

    assert board.record(verdict(50.0), "one")
    before = own_board.read_bytes()
    done = subprocess.run([sys.executable, "-c", KILLED], cwd=ROOT, env={**os.environ})
    assert done.returncode == 9 and own_board.read_bytes() == before
    assert not board.record(verdict(60.0), "two") and board.record(verdict(40.0), "three")
    assert board.read().bests["copy"].estimate_us == 40.0
    assert board.read().bests["copy"].attempts == 3
    own_board.write_text("{")
    with pytest.raises(Refused, match="is no board of puzzles"):
        board.read()
    assert own_board.read_text() == "{"


def test_the_board_lies_beside_the_progress_file(monkeypatch, tmp_path) -> None:
    monkeypatch.delenv(board.VARIABLE)
    monkeypatch.setenv("COURSE_PROGRESS", str(tmp_path / "progress.json"))
    assert board.board_file() == tmp_path / ".puzzles.json"


def test_a_puzzle_that_there_is_not_is_refused() -> None:
    with pytest.raises(Refused, match="there is no puzzle '99'; there are 1 to"):
        puzzle(99)
    assert isinstance(puzzle("1"), Puzzle)
