"""Training processes with a persistent cache: real ones with the present pair of torch and
torch-xla, and small scripts in their place for what a real one cannot be made to do."""

import os
import sys
import time
from pathlib import Path

import pytest

from utils.training import coldstart
from utils.training.coldstart import Start
from utils.xla import fresh, manifest

SMALL = {
    **{"steps": 2, "batch": 2, "length": 16, "width": 16, "optimizer": "sgd"},
    "xla_flags": fresh.FAST["XLA_FLAGS"],
}


@pytest.fixture(scope="module")
def starts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Start]:
    """A cold start and, meanwhile, one without a cache; then a warm one."""
    cache = tmp_path_factory.mktemp("cold") / "deep" / "cache"
    without = coldstart.start(None, **SMALL)
    cold = coldstart.run(cache, **SMALL)
    written = manifest.usage(cache)
    assert (written.entries, written.size_bytes) == (1, cold.size_bytes)
    return {"cold": cold, "warm": coldstart.run(cache, **SMALL), "none": without.result()}


def test_a_cold_start_compiles_its_graph_and_stores_it(starts: dict[str, Start]) -> None:
    cold = starts["cold"]
    assert (cold.died, cold.compiles, cold.reuses) == ("", 1, 1)
    assert (cold.hits, cold.misses, cold.failures) == (0, 1, 0)
    assert cold.entries == 1 and cold.size_bytes > 10_000
    assert len(cold.graph_seconds) == 1 and len(cold.step_seconds) == len(cold.losses) == 2
    assert cold.first_step_seconds > cold.compile_seconds > 0
    assert cold.reason == ""


def test_this_pair_cannot_load_on_a_cpu_what_it_stored(starts: dict[str, Start]) -> None:
    warm = starts["warm"]
    assert (warm.torch.partition("+")[0], warm.torch_xla) == ("2.9.1", "2.9.0")
    assert (warm.compiles, warm.hits, warm.misses, warm.failures) == (1, 0, 0, 1)
    assert "Deserializing serialized executable not supported" in warm.reason
    assert warm.entries == 1


def test_without_a_cache_nothing_is_counted_or_stored(starts: dict[str, Start]) -> None:
    none = starts["none"]
    assert (none.compiles, none.hits, none.misses, none.failures) == (1, 0, 0, 0)
    assert (none.entries, none.size_bytes) == (0, 0)


def test_the_caches_change_no_loss(starts: dict[str, Start]) -> None:
    assert len({start.losses for start in starts.values()}) == 1


def test_a_start_tells_its_counts(starts: dict[str, Start]) -> None:
    assert str(starts["warm"]).startswith("1 compiles, 0 hits, 0 misses, 1 failures; first step ")


def script(folder: Path, body: str) -> Path:
    path = folder / "python"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def test_death_by_a_signal_is_a_result(tmp_path: Path) -> None:
    died = coldstart.run(tmp_path / "cache", python=script(tmp_path, "kill -SEGV $$"))
    assert (died.died, str(died)) == ("SIGSEGV", "killed by SIGSEGV")
    assert died.compiles is died.failures is died.first_step_seconds is None
    assert (died.losses, died.graph_seconds, died.torch) == ((), (), "")


def test_a_python_error_is_told(tmp_path: Path) -> None:
    wrong = script(tmp_path, "echo 'ImportError: no torch' >&2; exit 1")
    running = coldstart.start(None, python=wrong)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="ended with an error: ImportError: no torch"):
            running.result()


def test_it_ends_with_the_one_who_asked(tmp_path: Path) -> None:
    running = coldstart.start(None, python=script(tmp_path, "exec sleep 60"))
    process = running._process
    del running
    assert process.returncode == -9


def test_a_process_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    running = coldstart.start(None, python=script(tmp_path, "exec sleep 60"), timeout_seconds=0.2)
    assert not running.done()
    with pytest.raises(TimeoutError, match="not done after 0.2 s"):
        running.result()
    assert running.done()


def test_the_caller_goes_on_and_asks_twice(tmp_path: Path) -> None:
    fake = Path(__file__).with_name("fake_training.py")
    begin = time.perf_counter()
    running = coldstart.start(tmp_path / "cache", python=_as_python(tmp_path, fake))
    assert time.perf_counter() - begin < 5
    assert running.result() is running.result()


def test_the_settings_of_the_caller_do_not_reach_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("XLA_FLAGS", "XLA_IR_DEBUG", "CPU_NUM_DEVICES", "PYTHONDONTWRITEBYTECODE"):
        monkeypatch.setenv(name, "1")
    shown = tmp_path / "env"
    with pytest.raises(RuntimeError):
        coldstart.run(None, python=script(tmp_path, f"env > {shown}; exit 1"), xla_flags="--a=b")
    lines = shown.read_text().splitlines()
    assert "XLA_FLAGS=--a=b" in lines and "PJRT_DEVICE=CPU" in lines
    assert not [line for line in lines if line.startswith(("XLA_IR", "CPU_NUM", "PYTHONDONT"))]


def test_a_relative_folder_is_the_callers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    fake = _as_python(tmp_path, Path(__file__).with_name("fake_training.py"))
    assert coldstart.run(Path("here"), python=fake).entries == 2
    assert len(os.listdir(tmp_path / "here")) == 2


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"steps": 0}, "steps is 0"),
        ({"length": [16, 0]}, "length is 0"),
        ({"length": []}, "length is empty"),
        ({"length": 65}, "context of 64"),
        ({"width": 10}, "multiple of 4"),
        ({"dtype": "int8"}, "float32, bfloat16, float16"),
        ({"optimizer": "lion"}, "sgd, adamw"),
    ],
)
def test_settings_that_cannot_be_are_refused_before_anything_starts(
    settings: dict, words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        coldstart.start(None, python="/nonexistent", **settings)


def _as_python(folder: Path, fake: Path) -> Path:
    """An interpreter that runs `fake` instead of what it is asked for."""
    return script(folder, f'exec {sys.executable} {fake} "$@"')
