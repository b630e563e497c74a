"""Ranks of torchrun: torch_xla on the CPU does not join them, gloo does."""

import os

import pytest

from utils.course.catalog import ROOT
from utils.xla.spmd import predicted, ranks

SCRIPT = ROOT / "notebooks" / "scripts" / "two_ranks.py"


# Lesson 07 runs the same script and states the same of it, except for the last factor.
@pytest.mark.exhaustive
def test_torch_xla_leaves_ranks_alone_and_gloo_makes_them_equal():
    first, second = ranks.torchrun(SCRIPT)
    for item in (first, second):
        assert item["ranks of torchrun"] == 2 and item["ranks of torch_xla"] == 1
    assert [first["sum by torch_xla"], second["sum by torch_xla"]] == [1, 2]
    assert first["weights by torch_xla"] != second["weights by torch_xla"]
    assert first["weights by gloo"] == second["weights by gloo"]
    # 3 steps, in each forward and back through three layers of at most 64 terms, 16 samples.
    limit = predicted.tolerance(3 * (2 * 3 * 64 + 16))
    assert first["gloo off one process"] < limit < first["torch_xla off one process"] / 10


def test_a_rank_that_fails_is_shown(tmp_path):
    script = tmp_path / "fails.py"
    script.write_text("raise SystemExit('no data on this rank')")
    with pytest.raises(RuntimeError, match=r"(?s)0 of 1 ranks.*no data on this rank"):
        ranks.torchrun(script, ranks=1)
    with pytest.raises(ValueError, match="at least 1"):
        ranks.torchrun(script, ranks=0)


def test_ranks_that_do_not_end_are_ended(tmp_path):
    script, pid = tmp_path / "waits.py", tmp_path / "pid"
    script.write_text(
        f"import os, pathlib, time\npathlib.Path({str(pid)!r}).write_text(str(os.getpid()))\n"
        "time.sleep(600)"
    )
    with pytest.raises(TimeoutError, match="waits.py did not end within 8 s on 1 ranks"):
        ranks.torchrun(script, ranks=1, seconds=8)
    if pid.exists():  # on a busy machine the rank has not begun by then
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid.read_text()), 0)
