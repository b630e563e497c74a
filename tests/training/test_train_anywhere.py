"""The one script of lesson 15: the same losses on cpu and xla, a checkpoint that crosses devices,
no backend named outside the device layer, and the way it takes on the device `neuron` (simulated).
"""

import ast
import contextlib
import io
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from utils.audit import audit
from utils.course.catalog import ROOT
from utils.xla import devices, env, fresh, neuron_stub
from utils.xla.meter import Meter

SCRIPT = ROOT / "notebooks" / "scripts" / "train_anywhere.py"
CUDA = SCRIPT.with_name("char_gpt_cuda.py")
SMALL = ("--width", "16", "--context", "16", "--log-every", "4")


def train(*options: object) -> list[float]:
    script = runpy.run_path(str(SCRIPT))
    torch.set_num_threads(1)
    return script["train"](script["parse"]([*SMALL, *map(str, options)]))


def train_apart(*options: object) -> list[float]:
    return fresh.run(train, *options, environment={**fresh.FAST, "PJRT_DEVICE": "CPU"})


def count(*options: object) -> tuple[int, int, tuple]:
    with Meter() as m:
        train(*options)
    return m.executions, m.reads, m.fallbacks


@pytest.fixture(scope="module")
def on_the_cpu() -> list[float]:
    return train_apart("--device", "cpu", "--steps", "8")


def test_cpu_and_xla_train_to_the_same_losses(on_the_cpu) -> None:
    assert len(on_the_cpu) == 8 and on_the_cpu[-1] < on_the_cpu[0]
    assert train_apart("--device", "xla", "--steps", "8") == pytest.approx(on_the_cpu, abs=1e-5)


def test_on_xla_a_step_is_one_execution_and_a_log_is_one_read() -> None:
    result = fresh.run(count, "--device", "xla", "--steps", "8", environment=fresh.FAST)
    # Eight steps, and two times the four losses put side by side to be read at once.
    assert result == (10, 2, ())


def test_bf16_is_near_and_not_equal(on_the_cpu) -> None:
    mixed = train_apart("--device", "cpu", "--steps", "8", "--bf16")
    assert mixed == pytest.approx(on_the_cpu, abs=0.02)
    assert mixed != pytest.approx(on_the_cpu, abs=1e-5)


def test_a_checkpoint_crosses_devices(on_the_cpu, tmp_path: Path) -> None:
    first = train_apart("--device", "cpu", "--steps", "4", "--save", tmp_path)
    second = train_apart("--device", "xla", "--steps", "8", "--save", tmp_path)
    assert first == on_the_cpu[:4]
    assert second == pytest.approx(on_the_cpu[4:], abs=1e-5)
    assert train_apart("--device", "cpu", "--steps", "8", "--save", tmp_path) == []


def again(folder: Path) -> tuple[list[float], str, bool]:
    """The losses of a run that is done, what it prints, and whether its folder is as it was."""
    options = ("--device", "cpu", "--steps", "2", "--save", folder)
    train(*options)
    before = sorted(folder.rglob("*"))
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        losses = train(*options)
    return losses, printed.getvalue(), sorted(folder.rglob("*")) == before


def test_a_run_that_is_done_says_so_and_saves_nothing(tmp_path: Path) -> None:
    losses, printed, unchanged = fresh.run(again, tmp_path, environment=fresh.FAST)
    assert losses == [] and unchanged
    assert printed == f"{tmp_path} holds 2 steps already: give more as --steps\n"


def test_a_run_goes_on_with_the_options_it_began_with(tmp_path: Path) -> None:
    train_apart("--device", "cpu", "--steps", "2", "--save", tmp_path)
    with pytest.raises(fresh.Raised, match="holds a run with --rate 0.003, not 0.0001"):
        train_apart("--device", "cpu", "--steps", "4", "--rate", "1e-4", "--save", tmp_path)


@pytest.mark.parametrize("option", ["--steps", "--batch", "--context", "--log-every"])
def test_a_count_below_one_is_refused(option: str, capsys) -> None:
    with pytest.raises(SystemExit):
        train("--device", "cpu", option, "0")
    assert f"{option}: 0 is too few" in capsys.readouterr().err


def test_another_package_called_utils_is_not_taken(tmp_path: Path) -> None:
    """Environments of others hold one now and then."""
    (tmp_path / "utils.py").write_text("raise ImportError('not the utils of the course')")
    program = (
        f"import sys, runpy; sys.path.insert(1, {str(tmp_path)!r}); runpy.run_path({str(SCRIPT)!r})"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path.parent, check=False)
    assert done.returncode == 0


def test_the_order_of_texts_depends_on_the_seed_alone() -> None:
    script = runpy.run_path(str(SCRIPT))
    short, long = (
        script["batches"](script["parse"](["--steps", steps]))[1] for steps in ("3", "50")
    )
    for (x, y), (others, targets) in zip(short, long, strict=False):
        assert torch.equal(x, others) and torch.equal(y, targets)


def test_a_device_that_is_missing_is_named(monkeypatch) -> None:
    monkeypatch.setattr(devices, "available", lambda: ("cpu",))
    with pytest.raises(devices.NoDevice, match="no device 'neuron'"):
        train("--device", "neuron")


def test_the_audit_finds_nothing_in_it_and_much_in_the_cuda_script() -> None:
    result = audit(SCRIPT, target="xla")
    assert result.files == 1 and result.findings == () and result.broken == ()
    assert len(audit(CUDA, target="xla").findings) == 16


def named_backends(path: Path) -> set[str]:
    """Modules of backends that a file imports, and device names that it writes out."""
    results: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            results |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            results.add((node.module or "").partition(".")[0])
        elif isinstance(node, ast.Constant) and node.value in ("xla", "cuda", "neuron"):
            results.add(node.value)
        elif isinstance(node, ast.Attribute) and node.attr in ("cuda", "xla", "accelerator"):
            results.add(node.attr)
    return results & {"torch_xla", "torch_neuronx", "accelerator", "xla", "cuda", "neuron"}


def test_only_the_device_layer_names_a_backend() -> None:
    assert named_backends(SCRIPT) == set()
    assert named_backends(Path(devices.__file__)) == {
        "torch_xla", "xla", "cuda", "neuron", "accelerator",
    }  # fmt: skip
    assert named_backends(CUDA) == {"cuda"}


def test_simulated_neuron_takes_its_own_way_through_the_layer() -> None:
    calls = neuron_stub.run(
        SCRIPT, *SMALL, "--device", "neuron", "--steps", "3", "--bf16", "--compile"
    )
    assert calls.moved > 6  # the weights, and three times inputs and targets
    assert calls.autocast == [("neuron", "torch.bfloat16")] * 3
    assert (calls.compiled, calls.waited, calls.imported) == (["neuron"], 2, [])
    assert calls.printed.splitlines()[-1].endswith("compiling included, on neuron")


def test_with_torchneuron_auto_chooses_it() -> None:
    calls = neuron_stub.run(SCRIPT, *SMALL, "--steps", "2")
    assert calls.printed.splitlines()[-1].endswith("compiling included, on neuron")


def test_a_script_that_fails_under_the_stub_says_why(tmp_path: Path) -> None:
    script = tmp_path / "fails.py"
    script.write_text("import torch\ntorch.ones(2).to('neuron') @ torch.ones(3)\n")
    with pytest.raises(RuntimeError, match="fails.py failed under the stub.*size"):
        neuron_stub.run(script)


@pytest.mark.parametrize(
    ("code", "fails"),
    [("", False), ("3", True), pytest.param("0", False, marks=pytest.mark.exhaustive)],
)
def test_a_script_may_leave(code: str, fails: bool, tmp_path: Path) -> None:
    script = tmp_path / "leaves.py"
    script.write_text(f"import sys\nprint('bye')\nsys.exit({code})\n")
    if fails:
        with pytest.raises(RuntimeError, match="leaves.py failed under the stub"):
            neuron_stub.run(script)
    else:
        assert neuron_stub.run(script).printed == "bye\n"


BLOCKED = "torch_xla cloudpickle yaml scipy pandas matplotlib IPython ipywidgets networkx".split()


def test_it_needs_nothing_but_torch_and_numpy_there() -> None:
    """An environment of AWS's image holds these two, and not what the course installs."""
    program = (
        "import sys, runpy\n"
        f"sys.modules.update(dict.fromkeys({BLOCKED!r}))\n"  # None makes an import fail
        f"runpy.run_path({str(SCRIPT)!r})\n"
        "from utils.xla import device_cells\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=env.ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-600:]
