"""The first cell: defaults, and a report that says what to do."""

import importlib.metadata
import pathlib
import tomllib

import pytest

from utils.xla import defaults, env, fresh


def test_the_pair_is_the_one_of_pyproject():
    project = tomllib.loads((env.ROOT / "pyproject.toml").read_text())["project"]
    pinned = [line.partition(";")[0].strip() for line in project["dependencies"]]
    assert {f"{name}=={version}" for name, version in env.PAIR.items()} <= set(pinned)


def test_everything_works_here(capsys):
    env.report()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 5 and all(line.startswith("[OK]") for line in lines)


def test_a_wrong_version_says_what_is_needed_and_what_to_do(monkeypatch):
    monkeypatch.setitem(env.PAIR, "torch", "1.0")
    line = str(env._package("torch"))
    assert line.startswith("[FAIL] torch")
    assert "needs 1.0" in line and "course.py start" in line


def test_a_missing_package_stops_the_notebook_with_the_report(monkeypatch, capsys):
    monkeypatch.setattr(env, "PAIR", {"no-such-package": "1"})
    with pytest.raises(env.NotReady, match=r"\[FAIL\]") as stop:
        env.report()
    assert "[FAIL] no-such-package" in capsys.readouterr().out
    assert stop.value._render_traceback_() == [f"NotReady: {stop.value}"]


def test_a_device_that_was_chosen_is_kept(monkeypatch):
    monkeypatch.setenv("PJRT_DEVICE", "NEURON")
    env.set_defaults()
    assert env.os.environ["PJRT_DEVICE"] == "NEURON"


@pytest.mark.parametrize(
    ("notebook", "line"),
    [("03_lazy_tensors", "[FAIL]"), ("00_start_here", "[--]"), ("09_nki_basics", "[--]")],
)
def test_without_torch_xla_the_first_cell_says_what_runs_and_stops_the_rest(
    notebook, line, monkeypatch, capsys
):
    monkeypatch.setattr("platform.machine", lambda: "arm64")
    monkeypatch.setattr("platform.system", lambda: "Darwin")
    path = env.ROOT / "notebooks" / f"{notebook}.ipynb"
    monkeypatch.setenv("JPY_SESSION_NAME", str(path))
    if line == "[FAIL]":
        with pytest.raises(env.NotReady, match="says where this runs"):
            env.report()
    else:
        env.report()
    out = capsys.readouterr().out
    (report,) = (row for row in out.splitlines() if " torch-xla " in row)
    assert report.startswith(line) and "no build for macOS on arm64" in report
    assert "lessons and labs 09, 10, 13, 14, the pages claims.ipynb, puzzles.ipynb" in report
    monkeypatch.delenv("JPY_SESSION_NAME")  # nothing is stopped where no server names a notebook
    assert all(component.ok is not False for component in env.check())


def test_a_read_only_course_says_that_progress_is_not_kept(monkeypatch):
    monkeypatch.setattr(env.os, "access", lambda *_: False)
    line = env._progress()
    assert line.ok and "not kept" in line.text


def two_devices_then_three():
    env.report(devices=2)
    (device,) = (item for item in env.check(3) if item.name == "device")
    return str(device)


def test_devices_are_started_once_and_another_number_asks_for_a_restart():
    line = fresh.run(two_devices_then_three)
    assert line.startswith("[FAIL] device") and "restart the kernel" in line


def versions(monkeypatch, **installed):
    """Pretend that these packages are installed, and no others."""
    known = {name.replace("_", "-"): version for name, version in installed.items()}

    def version(name):
        if name not in known:
            raise importlib.metadata.PackageNotFoundError(name)
        return known[name]

    monkeypatch.setattr("importlib.metadata.version", version)
    specs = {name for name in installed if name != "torch"}
    monkeypatch.setattr(env.importlib.util, "find_spec", lambda name: name in specs or None)


def test_a_kernel_with_torchneuron_is_told_which_kernel_to_choose(monkeypatch, capsys):
    versions(monkeypatch, torch="2.14.0", torch_neuronx="2.14.3.0.1234")
    assert defaults.neuron_through() == "native"
    with pytest.raises(env.NotReady):
        env.report()
    first = capsys.readouterr().out.splitlines()[0]
    assert first.startswith("[FAIL] TorchNeuron  this Python has torch 2.14.0 and torch-neuronx")
    assert "course.py start" in first and "COURSE_NEURON_PYTHON=" in first
    assert "torch-xla has builds" not in first and "does not start" not in first


def test_the_environment_of_aws_with_pytorch_xla_is_accepted(monkeypatch):
    versions(monkeypatch, torch="2.9.0", torch_xla="2.9.0", torch_neuronx="2.9.0.2.15.32035")
    assert defaults.neuron_through() == "xla"
    assert env._package("torch").ok and env._package("torch-xla").ok
    versions(monkeypatch, torch="2.8.0", torch_xla="2.8.1", torch_neuronx="2.8.0.1")
    assert not env._package("torch").ok


@pytest.mark.parametrize(
    ("installed", "device"),
    [
        ({"torch_neuronx": "2.9.0.2.15.32035"}, "NEURON"),
        ({"torch_neuronx": "2.14.3.0"}, "CPU"),
        ({}, "CPU"),
    ],
)
def test_torch_xla_takes_a_neuron_device_only_where_it_can(monkeypatch, installed, device):
    versions(monkeypatch, **installed)
    monkeypatch.setattr(pathlib.Path, "exists", lambda self: True)
    monkeypatch.setattr("ctypes.CDLL", lambda *_, **__: None)
    monkeypatch.delenv("PJRT_DEVICE")
    env.set_defaults()
    assert env.os.environ["PJRT_DEVICE"] == device


def test_where_no_device_is_wanted_none_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setenv(env.NO_DEVICE, "1")
    monkeypatch.setattr(env, "check", lambda devices: pytest.fail("it asked for a device"))
    env.report()
    assert capsys.readouterr().out == ""
