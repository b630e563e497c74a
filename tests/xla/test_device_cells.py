"""Device cells: words where there is no device, a measurement where there is one, and never a
stopped notebook.
"""

import json
import os
import runpy
import sys
from pathlib import Path

import pytest

from utils.facts import fact
from utils.xla import defaults, device_cells, fresh
from utils.xla.device_cells import Place, on_device, place

NOTEBOOKS = defaults.ROOT / "notebooks"


def cell(device):
    """What a cell might measure; it is sent to other Pythons as text."""
    import torch

    return {"kind": device.kind, "sum": torch.ones(3, device=device.torch).sum().item()}


def leaving(device):
    raise SystemExit(3)


def ending(device):
    import os

    os.write(2, b"nrt_init failed\n")
    os._exit(7)


def noisy(device):
    import atexit

    print("Compiler status PASS", end="")
    atexit.register(print, "the runtime says good-bye")
    return "done"


def around(device):
    """The variables that a compiler and a runtime would see."""
    import os

    return {name: os.environ.get(name) for name in ("PATH", "PYTHONPATH", "PJRT_DEVICE")}


def failing(device):
    raise ValueError(f"no kernel for this operator on {device.kind}")


@pytest.fixture
def with_device(tmp_path, monkeypatch):
    """A machine with a Neuron device, and nothing that could use it."""
    file = tmp_path / "neuron0"
    file.touch()
    monkeypatch.setattr(device_cells, "DEVICE_FILE", file)
    monkeypatch.delenv(device_cells.VARIABLE, raising=False)
    return tmp_path


def other_python(path: Path, prelude: str = "") -> Path:
    """A Python beside this one, which runs `prelude` before what it is given."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        f"#!{sys.executable}\nimport os, sys\n"
        f"program = {prelude!r} + sys.argv[2]\n"
        f"os.execv({sys.executable!r}, [{sys.executable!r}, '-c', program])\n"
    )
    path.chmod(0o755)
    return path


STUB = (
    f"import sys; sys.path.insert(0, {str(defaults.ROOT)!r})\n"
    "from utils.xla import neuron_stub; stub = neuron_stub.install(); stub.__enter__()\n"
)
NO_TORCH = (
    f"import sys, types; sys.path.insert(0, {str(defaults.ROOT)!r})\n"
    "sys.modules['torch'] = types.SimpleNamespace(accelerator=types.SimpleNamespace(\n"
    "    is_available=lambda: True, current_accelerator=lambda: types.SimpleNamespace(\n"
    "        type='neuron')))\n"
)
"""For cells that compute nothing: loading torch takes seconds."""


@pytest.fixture
def stub(with_device, monkeypatch):
    """The other Python, with the stub of TorchNeuron."""
    python = other_python(with_device / "env" / "bin" / "python", STUB)
    monkeypatch.setenv(device_cells.VARIABLE, str(python))
    return python


@pytest.fixture
def without_torch(with_device, monkeypatch):
    """The other Python, with a torch that only names the device."""
    python = other_python(with_device / "env" / "bin" / "python", NO_TORCH)
    monkeypatch.setenv(device_cells.VARIABLE, str(python))
    return python


def test_without_a_device_it_says_what_it_would_show(capsys, monkeypatch) -> None:
    monkeypatch.setattr(device_cells, "DEVICE_FILE", Path("no such file"))
    assert place() is None
    assert on_device("the sum of three ones", quoted="3 (a book, 1900-01-01)")(cell) is cell
    assert capsys.readouterr().out == (
        "no Neuron device here. On one, this cell shows the sum of three ones\n"
        "quoted: 3 (a book, 1900-01-01)\n"
    )


def test_a_fact_is_quoted_with_its_date_and_long_lines_are_folded(capsys, monkeypatch) -> None:
    monkeypatch.setattr(device_cells, "DEVICE_FILE", Path("no such file"))
    text = fact("torchneuron-versions")
    on_device("the versions", quoted=text)(cell)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= device_cells.WIDTH and lines[-1].startswith("  ")
    quoted = " ".join(" ".join(lines[1:]).split())
    assert quoted == f"quoted: {text.text} ({text.status}, {text.date})"


def test_a_device_without_torchneuron_says_what_to_set(with_device, capsys) -> None:
    with pytest.raises(LookupError, match="set COURSE_NEURON_PYTHON"):
        place(with_device)
    on_device("the sum")(cell)
    assert capsys.readouterr().out.startswith("not run: this machine has a Neuron device, and no ")


def test_the_newest_image_is_found_and_a_named_python_wins(with_device, monkeypatch) -> None:
    for version in ("pytorch_2_9", "torch_neuronx_2_13_0", "torch_neuronx_2_14_0"):
        newest = other_python(with_device / f"aws_neuronx_venv_{version}" / "bin" / "python")
        assert place(with_device) == Place(newest)
    named = other_python(with_device / "mine" / "python")
    monkeypatch.setenv(device_cells.VARIABLE, str(named))
    assert place(with_device) == Place(named)
    monkeypatch.setenv(device_cells.VARIABLE, str(with_device / "no such file"))
    with pytest.raises(LookupError, match="no such file"):
        place(with_device)


def test_it_measures_in_the_other_python_with_the_stub(stub, capsys) -> None:
    on_device("the sum of three ones", quoted="3")(cell)
    text = capsys.readouterr().out.splitlines()
    assert text == ["measured on a Neuron device, as 'neuron': the sum of three ones"] + [
        "  kind: neuron",
        "  sum: 3.0",
        "quoted: 3",
    ]


def test_an_error_on_the_device_is_shown_and_stops_nothing(without_torch, capsys) -> None:
    on_device("nothing")(failing)
    out = " ".join(capsys.readouterr().out.split())
    assert "failed: RuntimeError: ValueError: no kernel for this operator on neuron" in out


def test_a_kernel_that_has_the_device_runs_it_itself(with_device, monkeypatch, capsys) -> None:
    monkeypatch.setattr(defaults, "neuron_through", lambda: "xla")
    assert place(with_device) == Place()
    on_device("the sum")(cell)  # on XLA's CPU, which stands in for the device
    assert capsys.readouterr().out.splitlines() == [
        "measured on a Neuron device, as 'xla': the sum",
        "  kind: xla",
        "  sum: 3.0",
    ]


def test_the_source_that_is_sent_has_no_decorator() -> None:
    @on_device("nothing", quoted="")
    def decorated(device):
        return 1

    assert device_cells.source(decorated) == "def decorated(device):\n    return 1"


def printed(function, capsys) -> str:
    on_device("something")(function)
    return capsys.readouterr().out


def test_it_runs_as_in_an_activated_environment(without_torch, monkeypatch, capsys) -> None:
    """The compiler is a program beside that Python, and is looked for on the PATH."""
    monkeypatch.setenv("PYTHONPATH", "/of/the/course")
    monkeypatch.setenv("PJRT_DEVICE", "CPU")
    out = printed(around, capsys)
    assert f"PATH:{without_torch.parent}{os.pathsep}" in "".join(out.split())
    assert "PYTHONPATH: None" in out and "PJRT_DEVICE: None" in out


def test_what_compiler_and_runtime_print_does_not_hide_the_result(without_torch, capsys) -> None:
    assert printed(noisy, capsys).splitlines()[1:] == ["  done"]


@pytest.mark.parametrize(
    ("function", "words"), [(leaving, "SystemExit: 3"), (ending, "ended with 7: nrt_init failed")]
)
def test_a_process_that_leaves_says_how(without_torch, capsys, function, words) -> None:
    out = " ".join(printed(function, capsys).replace(str(without_torch), "").split())
    assert f"this cell failed: RuntimeError: {words}" in out


def test_it_is_stopped_in_the_end_and_says_so(without_torch, monkeypatch, capsys) -> None:
    monkeypatch.setattr(device_cells, "SECONDS", 0.01)
    assert "failed: TimeoutError: it was stopped after 0.01 s" in printed(cell, capsys)


def test_the_environment_can_be_named_by_its_folder_or_from_home(
    without_torch, monkeypatch
) -> None:
    for named in (without_torch.parents[1], "~/env/bin/python"):
        monkeypatch.setenv("HOME", str(without_torch.parents[2]))
        monkeypatch.setenv(device_cells.VARIABLE, str(named))
        assert place() == Place(without_torch)
    folder = without_torch.parent  # but of no environment
    monkeypatch.setenv(device_cells.VARIABLE, str(folder))
    with pytest.raises(LookupError, match="bin: set COURSE_NEURON_PYTHON"):
        place()


def test_the_newest_is_the_highest_version_not_the_last_name(with_device) -> None:
    for version in ("2_9_0", "2_14_0", "2_13_0"):
        other_python(with_device / f"aws_neuronx_venv_torch_neuronx_{version}" / "bin" / "python")
    assert "2_14_0" in str(place(with_device).python)


def test_a_long_error_keeps_its_ends() -> None:
    shown = device_cells._short("first" + "x" * 5000 + "last")
    assert len(shown) < 1000 and shown.startswith("first") and shown.endswith("last")


def cells_of_the_lessons():
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        for item in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            if "device-only" in item["metadata"].get("tags", ()):
                name = f"{path.stem[:2]}-{item['id']}"
                yield pytest.param(name, "".join(item["source"]), id=name)


def run_cell(source: str, folder: Path) -> None:
    """As a notebook does, with the names of its first cells."""
    file = Path(folder, "cell.py")  # a file, so that the function's source can be read
    file.write_text(source)
    os.chdir(NOTEBOOKS)
    runpy.run_path(str(file), {"on_device": on_device, "fact": fact})


@pytest.mark.parametrize(("name", "source"), list(cells_of_the_lessons()))
def test_every_cell_stands_alone_in_another_python(
    stub, tmp_path, monkeypatch, capsys, name, source
) -> None:
    """Simulated, by the stub: no name of the notebook is missing, and plain JSON comes back."""
    monkeypatch.chdir(NOTEBOOKS)
    run_cell(source, tmp_path)
    out = capsys.readouterr().out
    if name.startswith("09"):
        assert "failed: RuntimeError: ModuleNotFoundError: No module named 'nki'" in out
    else:
        assert out.startswith("measured on a Neuron device, as 'neuron': "), out


def compiles_between_waits(source: str, folder: str) -> list[int]:
    """Run a cell on XLA's CPU in place of the device: what is compiled between its waits."""
    import torch_xla.debug.metrics as metrics

    from utils.xla import devices

    counts, wait = [], devices.Device.wait

    def waiting(device):
        wait(device)
        counts.append((metrics.metric_data("CompileTime") or (0,))[0])

    devices.Device.wait = waiting
    device_cells.DEVICE_FILE, defaults.neuron_through = Path("/dev/null"), lambda: "xla"
    run_cell(source, Path(folder))
    return [after - before for before, after in zip(counts, counts[1:], strict=False)]


@pytest.mark.parametrize(
    ("name", "expected"), [("03-s8-device", [1, 0]), ("15-s3-device", [1, 0, 0, 0, 1, 0, 0])]
)
def test_a_cell_that_times_a_warm_call_compiles_nothing_in_it(tmp_path, name, expected) -> None:
    (source,) = (
        cells_of_the_lesson.values[1]
        for cells_of_the_lesson in cells_of_the_lessons()
        if cells_of_the_lesson.values[0] == name
    )
    settings = {**fresh.FAST, "PJRT_DEVICE": "CPU"}
    counts = fresh.run(compiles_between_waits, source, str(tmp_path), environment=settings)
    assert counts == expected


def test_the_simulator_is_not_taken_for_a_chip(tmp_path, monkeypatch, capsys) -> None:
    """A kernel that has the device itself may have loaded the course's `nki`."""
    from utils.nki import simulator

    monkeypatch.setattr(device_cells, "place", Place)
    monkeypatch.setattr(defaults, "neuron_through", lambda: "xla")
    monkeypatch.syspath_prepend(str(simulator.PACKAGE))
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", "trn2")
    monkeypatch.chdir(NOTEBOOKS)
    (source,) = (s for n, s in (p.values for p in cells_of_the_lessons()) if n.startswith("09"))
    run_cell(source, tmp_path)
    assert "failed: RuntimeError: this kernel has loaded the course's" in capsys.readouterr().out
