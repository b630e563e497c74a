"""Searches with `nki tune`: ranked, verified, and nothing lost or done twice after a kill."""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from utils.nki.tool import trial, tuning
from utils.nki.tool.__main__ import main
from utils.nki.tool.failures import Refused
from utils.nki.tool.journal import Journal

ROOT = Path(__file__).resolve().parents[2]
FILE = Path(__file__).with_name("kernels_for_tool.py")
SHAPE = ("--shape", "128x512:bfloat16")
WIDTHS = ("--param", "width=128,256,512")


@pytest.fixture
def in_process(monkeypatch, tmp_path) -> None:
    """Trials run here, which is quick; what their processes are for has tests of its own."""
    monkeypatch.setattr(trial, "run", trial.run_job)
    monkeypatch.chdir(tmp_path)


def tune(kernel: str, *words: object) -> int:
    return main(["tune", f"{FILE}::{kernel}", *SHAPE, "--jobs", "1", *map(str, words)])


def outcomes(path: Path) -> dict[str, dict]:
    return json.loads(path.read_text())["outcomes"]


def test_the_fastest_that_is_right_wins(in_process, capsys) -> None:
    assert tune("scaled", *WIDTHS, "--reference", f"{FILE}::doubled") == 0
    out = capsys.readouterr().out
    assert "[3/3] estimate width=512" in out and out.endswith("us\n")
    assert "best: width=512" in out and list(out.splitlines())[-4].split()[0] == "width=512"


def test_a_fast_choice_with_other_values_loses(in_process, capsys) -> None:
    assert tune("wide_is_wrong", *WIDTHS) == 0
    out = capsys.readouterr().out
    assert "width=512: values wrong: 6" in out and "best: width=256" in out
    kept = outcomes(Path("wide_is_wrong.tune.json"))
    assert len(kept) == 5 and kept["values width=512"]["wrong"]


def test_where_nothing_is_right_the_status_says_so(in_process, capsys) -> None:
    assert tune("scaled", "--param", "width=300,400") == 1
    assert "no choice is verified" in capsys.readouterr().out
    assert tune("scaled", "--param", "cake=1,2", "--journal", "other.json") == 1
    assert "cake is neither an argument of scaled (x, width, factor)" in capsys.readouterr().out


def test_a_name_of_the_file_is_a_parameter_too(in_process, capsys) -> None:
    words = ("--param", "FACTOR=3.0,2.0", "--reference", f"{FILE}::doubled")
    assert tune("scaled", *words) == 0
    out = capsys.readouterr().out
    assert "FACTOR=3.0: values wrong" in out and "best: FACTOR=2.0" in out


def test_a_search_goes_on_and_is_not_mixed_with_another(in_process, capsys) -> None:
    assert tune("scaled", *WIDTHS) == 0
    before = outcomes(Path("scaled.tune.json"))
    capsys.readouterr()
    assert tune("scaled", *WIDTHS) == 0
    assert "going on: 4 outcomes" in capsys.readouterr().out
    assert outcomes(Path("scaled.tune.json")) == before
    assert tune("scaled", "--param", "width=128,256") == 2
    assert "another search: params is different" in capsys.readouterr().err
    Path("scaled.tune.json").write_text("{")
    assert tune("scaled", *WIDTHS) == 2
    assert "no journal of nki tune" in capsys.readouterr().err


def test_one_search_writes_a_journal_at_a_time(tmp_path) -> None:
    with Journal(tmp_path / "j.json", {}) as journal:
        journal.add("a", {})
        with pytest.raises(KeyError, match="already"):
            journal.add("a", {})
        with pytest.raises(Refused, match="another search writes"):
            with Journal(tmp_path / "j.json", {}):
                pass


def test_too_many_choices_are_refused() -> None:
    with pytest.raises(Refused, match="too many"):
        tuning.choices([(name, tuple(range(100))) for name in "abc"])


def test_a_kernel_may_end_its_process(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    assert tune("ends_the_process", "--param", "how=1,0") == 1
    out = capsys.readouterr().out
    assert "how=1: the process of the trial ended with status 7" in out
    assert "how=0: values failed: the process of the trial ended with status 7" in out


def command(path: Path, *words: str) -> subprocess.Popen[str]:
    environment = os.environ | {"PYTHONPATH": str(ROOT), "TRIALS": str(path / "trials")}
    return subprocess.Popen(
        [sys.executable, "-m", "utils.nki.tool", "tune", f"{FILE}::scaled", *SHAPE, *words],
        cwd=path, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip


def kill_often(path: Path, kills: list[float], *words: str) -> tuple[dict, int]:
    """Outcomes of a search that is killed after these shares of its outcomes, with the trials that
    were begun. Looks after each kill that nothing known before is lost."""
    journal = path / "scaled.tune.json"
    known: dict[str, dict] = {}
    for count in kills:
        search = command(path, *words)
        while search.poll() is None:
            with contextlib.suppress(FileNotFoundError):
                if len(outcomes(journal)) >= count:
                    break
            time.sleep(0.01)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(search.pid, signal.SIGKILL)
        search.communicate()
        now = outcomes(journal)
        assert known.items() <= now.items()
        known = now
    out, _ = command(path, *words).communicate()
    assert "best: width=512" in out
    now = outcomes(journal)
    assert known.items() <= now.items()
    return now, len((path / "trials").read_text().splitlines())


def test_a_search_that_is_killed_goes_on(tmp_path) -> None:
    words = ("--param", "width=256,512", "--jobs", "1")
    kept, begun = kill_often(tmp_path, [1], *words)
    assert set(kept) == {"estimate width=256", "estimate width=512", "values width=512"}
    # A trial of values runs the file twice, for the first choice too; one may have been under way.
    assert 4 <= begun <= 5


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(5))
def test_many_kills_at_any_moment(seed: int, tmp_path) -> None:
    rng = random.Random(seed)
    kills = sorted(rng.choices(range(1, 10), k=4))
    widths = ",".join(map(str, (4, 8, 16, 32, 64, 128, 256, 512)))
    kept, begun = kill_often(tmp_path, kills, "--param", f"width={widths}", "--jobs", "2")
    assert len(kept) == 9 and begun <= 10 + 4 * len(kills)


@pytest.mark.exhaustive
def test_a_scheduler_that_is_not_there_is_said(in_process, capsys) -> None:
    assert tune("scaled", *WIDTHS, "--scheduler", "nonsense") == 2
    assert "no scheduler at nonsense" in capsys.readouterr().err


@pytest.mark.exhaustive
def test_a_cluster_that_loses_a_worker_finds_the_same(tmp_path, monkeypatch, capsys) -> None:
    from distributed import LocalCluster

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        pids = [worker.pid for worker in cluster.workers.values()]
        watched = tuning._outcomes

        def losing(submit, jobs, most):
            for index, item in enumerate(watched(submit, jobs, most)):
                if index == 1:
                    os.kill(pids[0], signal.SIGKILL)
                yield item

        monkeypatch.setattr(tuning, "_outcomes", losing)
        widths = ",".join(map(str, (16, 32, 64, 128, 256, 512)))
        words = ("--param", f"width={widths}", "--scheduler", cluster.scheduler_address)
        assert tune("scaled", *words) == 0
    out = capsys.readouterr().out
    assert "best: width=512" in out and "[6/6]" in out
    kept = outcomes(Path("scaled.tune.json"))
    assert len(kept) == 7 and not [key for key, outcome in kept.items() if "error" in outcome]
