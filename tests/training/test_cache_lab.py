"""The cache lab: its second environment, its questions, and the recording that lesson 04 shows.

Nothing here needs the second environment or a network: a small script stands in for the training
process, with a cache that behaves like the real one.
"""

import dataclasses
import json
import re
import socket
import sys
from collections import Counter
from pathlib import Path

import pytest

from utils import facts
from utils.cli import builds
from utils.cli import cache_lab_environment as environment
from utils.cli.commands import cache_lab
from utils.cli.home import Record, SetupError, write_record
from utils.training import coldstart
from utils.training.coldstart import Recording, experiments, recording
from utils.xla import defaults

ROOT = Path(__file__).resolve().parents[2]
FAKE = Path(__file__).with_name("fake_training.py")


@pytest.fixture(scope="module")
def fake(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An interpreter that runs the stand-in instead of what it is asked for."""
    path = tmp_path_factory.mktemp("fake") / "python"
    path.write_text(f'#!/bin/sh\nexec {sys.executable} -S {FAKE} "$@"\n')
    path.chmod(0o755)
    return str(path)


@pytest.fixture(scope="module")
def measured(fake: str) -> Recording:
    """All questions asked of the stand-in."""
    return experiments.measure(fake, lambda line: None, flip_count=8)


@pytest.fixture(scope="module")
def recorded() -> Recording:
    return coldstart.read()


def counts(start: coldstart.Start) -> tuple[int | None, ...]:
    return start.compiles, start.hits, start.misses, start.failures


def test_every_question_gets_the_answer_that_it_must(measured: Recording) -> None:
    """With a cache that works as one should, every case is asked as its name says."""
    expect_a_working_cache(measured)
    assert Counter(flip.outcome for flip in measured.flips) == {"detected": 6, "crash": 2}


def expect_a_working_cache(result: Recording) -> None:
    start = result.group("cold and warm")
    assert counts(start["no cache"]) == (2, 0, 0, 0)
    for number in "123":
        assert counts(start[f"cold {number}"]) == (2, 0, 2, 0)
        assert counts(start[f"warm {number}"]) == (0, 2, 0, 0)
        assert start[f"warm {number}"].losses == start[f"cold {number}"].losses
    keys = result.group("what changes the key")
    same = {"nothing", "learning rate", "more steps"}
    assert {case for case, start in keys.items() if start.hits} == same
    assert all(start.misses for case, start in keys.items() if case not in same)
    damaged = result.group("damaged file")
    for damage in experiments.DAMAGES:
        assert counts(damaged[damage]) == (2, 0, 0, 2) and damaged[damage].reason
        assert counts(damaged[f"{damage}, next start"]) == (0, 2, 0, 0)
    writers = result.group("two writers")
    assert counts(writers["afterwards"]) == (0, 2, 0, 0) and writers["afterwards"].entries == 2
    read_only = result.group("read-only")
    assert counts(read_only["empty cache"]) == (2, 0, 2, 0) and not read_only["empty cache"].entries
    assert counts(read_only["filled cache"]) == (0, 2, 0, 0)
    assert counts(read_only["other batch"]) == (2, 0, 2, 0)
    assert read_only["other batch"].entries == 2
    ahead = result.group("compile ahead")
    graphs = len(experiments.LENGTHS) + 1
    assert counts(ahead["unprepared"]) == (graphs, 0, graphs, 0)
    assert counts(ahead["prepared"]) == (0, graphs, 0, 0)
    assert ahead["prepared"].losses == ahead["unprepared"].losses
    assert all(flip.noticed for flip in result.flips)


# --- the recording that comes with the course


def test_the_recording_shows_a_working_cache(recorded: Recording) -> None:
    expect_a_working_cache(recorded)


def test_two_real_writers_both_compile(recorded: Recording) -> None:
    writers = recorded.group("two writers")
    assert counts(writers["writer 1"]) == counts(writers["writer 2"]) == (2, 0, 2, 0)


def test_a_flipped_byte_is_not_always_detected_without_a_manifest(recorded: Recording) -> None:
    outcomes = Counter(flip.outcome for flip in recorded.flips)
    assert set(outcomes) <= set(recording.OUTCOMES) and len(recorded.flips) == experiments.FLIPS
    assert outcomes["detected"] and outcomes["crash"]
    for flip in recorded.flips:
        assert bool(flip.signal) == (flip.outcome == "crash")
        assert (flip.loss is None) == (flip.outcome in ("crash", "hang", "error"))
        assert 0 <= flip.position < flip.of
    # "other loss" goes by all losses; the last alone may be the same.
    same = [flip for flip in recorded.flips if flip.outcome in ("detected", "no effect")]
    assert {flip.loss for flip in same} == {recorded.flip_loss}


def test_the_recording_is_of_the_questions_as_they_are_asked_now(
    recorded: Recording, measured: Recording
) -> None:
    asked = [(trial.group, trial.case) for trial in measured.trials]
    assert [(trial.group, trial.case) for trial in recorded.trials] == asked
    assert recorded.settings == experiments.SETTINGS
    assert recorded.flip_settings == experiments.FLIP_SETTINGS
    assert (recorded.torch.partition("+")[0], recorded.torch_xla) == ("2.7.1", "2.7.0")
    assert recorded.python.startswith("3.11.")
    assert recorded.source.startswith(f"recorded {recorded.date} on {recorded.cores} cores of ")


def test_the_recording_names_no_machine_and_no_folder() -> None:
    text = recording.RECORDED.read_text()
    assert socket.gethostname() not in text
    assert re.findall(r"/(?:home|root|tmp|work|usr|mnt)\b", text) == []
    assert recording.RECORDED.stat().st_size < 100_000


def test_a_recording_is_read_back_as_it_was_written(measured: Recording, tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    recording.save(measured, path)
    again = coldstart.read(path)
    assert dataclasses.replace(again, trials=()) == dataclasses.replace(measured, trials=())
    assert [t.case for t in again.trials] == [t.case for t in measured.trials]
    assert again.trials[0].start.losses == measured.trials[0].start.losses
    with pytest.raises(KeyError, match="there are cold and warm, what changes"):
        again.group("warm")
    path.write_text(json.dumps({"format": 0}))
    with pytest.raises(ValueError, match="no recording of the cache lab"):
        coldstart.read(path)


def test_the_table_shows_every_case(recorded: Recording) -> None:
    table = recording.table(recorded)
    assert recorded.source in table
    for trial in recorded.trials:
        assert f"  {trial.case} " in table and trial.group in table
    assert max(map(len, table.splitlines())) < 140


# --- what is quoted beside the recording


@pytest.mark.parametrize(
    "key",
    ["neuron-cache-" + item for item in "two location key changes failed locks clean".split()]
    + ["neuron-cache-nfs", "neuron-cache-vllm", "neuron-cache-torchneuron"]
    + ["neuron-parallel-compile" + item for item in ("", "-options", "-retries")],
)
def test_statements_on_neuron_have_a_source_that_stays(key: str) -> None:
    quoted = facts.fact(key)
    assert quoted.status == "primary" and quoted.text and not quoted.text.endswith(".")
    assert re.match(
        r"https://github.com/aws-neuron/aws-neuron-sdk/blob/[0-9a-f]{40}/", quoted.source
    )


# --- judging


def test_what_a_flipped_byte_did(recorded: Recording) -> None:
    good = recorded.group("cold and warm")["warm 1"]
    judge = experiments.judge
    assert judge(good, good) == "no effect"
    assert judge(dataclasses.replace(good, died="SIGILL", losses=()), good) == "crash"
    assert judge(dataclasses.replace(good, failures=1), good) == "detected"
    assert judge(dataclasses.replace(good, losses=(1.0,)), good) == "other loss"


def test_the_processor_is_named(tmp_path: Path) -> None:
    (tmp_path / "cpuinfo").write_text("processor\t: 0\nmodel name\t: Some CPU 9000\n")
    assert defaults.cpu_model(tmp_path / "cpuinfo") == "Some CPU 9000"
    assert defaults.cpu_model(tmp_path / "none") == "an unknown CPU"


# --- the second environment


def test_the_lock_has_hashes_and_no_address() -> None:
    text = (ROOT / environment.LOCK).read_text()
    entries = builds.packages(text)
    for pin in environment.PINS:
        name, _, version = pin.partition("==")
        assert entries[name][0].startswith(f"{name}=={version}")
    assert all("--hash=sha256:" in entry for several in entries.values() for entry in several)
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[a-z0-9.-]+==\S+ \\|    --hash=sha256:\w+( \\)?", x) for x in lines)
    assert "://" not in text and "index" not in text


def test_the_slim_build_leaves_the_gpu_libraries_out() -> None:
    text = (ROOT / environment.LOCK).read_text()
    kept = builds.packages(builds.selection(text, "slim"))
    assert {name for name in kept if name.startswith("nvidia")} == set(builds.KEPT)
    assert "triton" not in kept and "torch-xla" in kept


def test_it_lies_in_tools_where_clean_and_git_know_it(tmp_path: Path) -> None:
    home = environment.LabHome(tmp_path)
    assert home.venv == tmp_path / ".tools" / "cache-lab"
    assert ".tools/" in (ROOT / ".gitignore").read_text().splitlines()


def test_remove_deletes_it_and_nothing_else(tmp_path: Path) -> None:
    home, text = environment.LabHome(tmp_path), []
    environment.remove(home, text.append)
    home.venv.mkdir(parents=True)
    (home.tools / "bin").mkdir()
    with pytest.raises(SetupError, match="did not make it"):
        environment.remove(home, text.append)
    write_record(home, Record(python="3.11"))
    environment.remove(home, text.append)
    assert not home.venv.exists() and (home.tools / "bin").exists()
    assert text == [
        "There is no environment of the cache lab.",
        "Removed the environment of the cache lab.",
    ]


def test_this_python_is_taken_if_it_is_3_11(tmp_path: Path, monkeypatch) -> None:
    home = environment.LabHome(tmp_path)
    monkeypatch.setattr(sys, "version_info", (3, 11, 9))
    assert environment.python_3_11(home, print) == sys.executable


def test_another_3_11_is_found_on_the_path(tmp_path: Path, monkeypatch) -> None:
    other = tmp_path / "python3.11"
    other.write_text("#!/bin/sh\necho 3 11\n")
    other.chmod(0o755)
    monkeypatch.setattr(sys, "version_info", (3, 13, 0))
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    assert environment.python_3_11(environment.LabHome(tmp_path), print) == str(other)


def test_without_any_3_11_it_says_what_to_do(tmp_path: Path, monkeypatch) -> None:
    def refused(*given, **more):
        raise SetupError("could not fetch Python 3.11. uv says:\n  no network")

    text = []
    monkeypatch.setattr(sys, "version_info", (3, 13, 0))
    monkeypatch.setattr(environment.shutil, "which", lambda name: None)
    monkeypatch.setattr(environment.Uv, "fetch", lambda uv: None)
    monkeypatch.setattr(environment.installers, "run", refused)
    with pytest.raises(SetupError, match="(?s)no build for 3.13.*no network.*apt-get install"):
        environment.python_3_11(environment.LabHome(tmp_path), text.append)
    assert "30 MB" in text[0]


# --- the command


def test_with_another_python_the_same_command_goes_on_under_3_11(tmp_path, monkeypatch) -> None:
    started = []
    monkeypatch.setattr(environment, "ready", lambda home: False)
    monkeypatch.setattr(environment, "python_3_11", lambda home, say: "/other/python3.11")
    monkeypatch.setattr(cache_lab.Uv, "fetch", lambda uv: None)
    monkeypatch.setattr(cache_lab.os, "execv", lambda *given: started.append(given) or sys.exit(0))
    monkeypatch.setattr(sys, "version_info", (3, 13, 0))
    with pytest.raises(SystemExit):
        cache_lab.prepare(environment.LabHome(tmp_path), ["--out", "mine.json"])
    command = [str(ROOT / "course.py"), "cache-lab", "--out", "mine.json"]
    assert started == [("/other/python3.11", ["/other/python3.11", *command])]


def test_the_command_measures_and_records(fake: str, tmp_path: Path, monkeypatch, capsys) -> None:
    class Home(environment.LabHome):
        python = Path(fake)

    monkeypatch.setattr(environment, "LabHome", Home)
    monkeypatch.setattr(environment, "ready", lambda home: True)
    monkeypatch.setattr(experiments, "FLIPS", 2)
    out = tmp_path / "mine.json"
    assert cache_lab.main(["--out", str(out)]) == 0
    assert coldstart.read(out).group("two writers")["afterwards"].hits == 2
    printed = capsys.readouterr().out
    assert "cold 1: 2 compiles, 0 hits" in printed and f"Recorded in {out}" in printed
    with pytest.raises(SystemExit):
        cache_lab.main(["--out", str(tmp_path / "none" / "mine.json")])
    assert "there is no folder" in capsys.readouterr().err
