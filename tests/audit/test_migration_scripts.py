"""The two scripts of lesson 02: the CUDA one stops here for a clear reason and is right apart from
its device; the XLA one trains to the same losses; the audit tells them apart.
"""

import contextlib
import functools
import io
import os
import re
import runpy
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest
import torch

from utils.audit import audit
from utils.course.catalog import ROOT
from utils.xla import env, fresh
from utils.xla.meter import Meter

CUDA = ROOT / "notebooks" / "scripts" / "char_gpt_cuda.py"
XLA = ROOT / "notebooks" / "scripts" / "char_gpt_xla.py"
SMALL = ("--width", "32", "--workers", "0", "--log-every", "1")


@pytest.fixture(scope="module", autouse=True)
def _device_before_any_backward() -> Iterator[None]:
    env.set_defaults()
    import torch_xla

    torch_xla.device()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def run(*command: object) -> subprocess.CompletedProcess[str]:
    """A script as a learner starts it, with no GPU to be seen."""
    env.set_defaults()
    settings = {**os.environ, "PJRT_DEVICE": "CPU", "CUDA_VISIBLE_DEVICES": ""}
    settings["OMP_NUM_THREADS"] = "1"  # threads gain nothing for so small a model
    arguments = [sys.executable, *map(str, command)]
    return subprocess.run(arguments, env=settings, capture_output=True, text=True, timeout=240)


def run_forked(*command: object, **environment: str) -> str:
    """What a script prints, like `run`, in a process that need not import torch_xla once more.
    Raises Raised with what it says when it exits.
    """

    def printed(script: str, *arguments: str) -> str:
        sys.argv = [script, *arguments]
        with contextlib.redirect_stdout(io.StringIO()) as out:
            try:
                runpy.run_path(script, run_name="__main__")
            except SystemExit as end:
                if end.code:
                    raise RuntimeError(end.code) from None
        return out.getvalue()

    return fresh.run(
        printed, *map(str, command), environment={"OMP_NUM_THREADS": "1", **environment}
    )


def losses(printed: str) -> list[float]:
    return [float(item) for item in re.findall(r"loss ([0-9.]+)$", printed, re.M)]


def cuda_script_on_the_cpu() -> types.ModuleType:
    """The CUDA script with "cpu" for "cuda": what is left of it is what the XLA one must equal."""
    source = CUDA.read_text(encoding="utf-8")
    for cuda, cpu in (
        ('torch.device("cuda", local_rank)', 'torch.device("cpu")'),
        ('"cuda"', '"cpu"'),
        ("pin_memory=True", "pin_memory=False"),
    ):
        assert cuda in source
        source = source.replace(cuda, cpu)
    module = types.ModuleType("char_gpt_cpu")
    module.__file__ = str(CUDA)
    exec(compile(source, str(CUDA), "exec"), module.__dict__)
    return module


@functools.cache
def train_on_the_cpu(*options: str) -> list[float]:
    module = cuda_script_on_the_cpu()
    with (
        mock.patch("torch.cuda.set_device"),
        mock.patch("torch.cuda.synchronize"),
        mock.patch("torch.compile", lambda model: model),
    ):
        return module.train(module.parse([*SMALL, *options]))


def test_without_a_gpu_the_cuda_script_stops_and_says_why() -> None:
    done = run(CUDA, "--steps", "3", *SMALL)
    assert done.returncode != 0 and losses(done.stdout) == []
    assert re.search(r"NVIDIA|CUDA", done.stderr.splitlines()[-1])


def test_the_xla_script_trains_to_the_losses_of_cpu_eager(tmp_path: Path) -> None:
    done = run(XLA, "--steps", "3", "--full-precision", *SMALL, "--save", tmp_path / "gpt.pt")
    assert done.returncode == 0, done.stderr
    assert losses(done.stdout) == pytest.approx(
        train_on_the_cpu("--steps", "3", "--full-precision"), abs=1e-4
    )
    saved = torch.load(tmp_path / "gpt.pt", map_location="cpu")
    assert {item.device.type for item in saved["model"].values()} == {"cpu"}


def test_mixed_precision_is_near_and_not_equal() -> None:
    mixed = losses(run_forked(XLA, "--steps", "3", *SMALL))
    full = train_on_the_cpu("--steps", "3", "--full-precision")
    assert mixed == pytest.approx(full, abs=0.02)
    assert mixed != pytest.approx(full, abs=1e-4)


def test_a_checkpoint_crosses_devices(tmp_path: Path) -> None:
    plain = ("--steps", "3", "--full-precision")
    train_on_the_cpu(*plain, "--save", str(tmp_path / "gpt.pt"))
    there = losses(run_forked(XLA, *plain, *SMALL, "--resume", tmp_path / "gpt.pt"))
    here = train_on_the_cpu(*plain, "--resume", str(tmp_path / "gpt.pt"))
    assert there == pytest.approx(here, abs=1e-4)


def test_a_checkpoint_of_a_fused_optimizer_costs_the_port_nothing(tmp_path: Path) -> None:
    """Loaded with fused=True, AdamW's step counters would move to the device and be read there."""
    plain = ("--steps", "3", "--full-precision")
    train_on_the_cpu(*plain, "--save", str(tmp_path / "gpt.pt"))
    saved = torch.load(tmp_path / "gpt.pt")
    assert saved["optimizer"]["param_groups"][0]["fused"] is True
    port = runpy.run_path(str(XLA))
    options = port["parse"]([*plain, *SMALL, "--resume", str(tmp_path / "gpt.pt")])
    with Meter() as m:
        port["train"](options)
    assert (m.executions, m.reads, m.fallbacks) == (3, 3, ())  # reads: each step is logged


COPIES = "2 processes, 1 connected: each would train alone"


def test_copies_that_would_train_alone_are_refused() -> None:
    # In the environment in which torchrun starts the first of two.
    world = {"WORLD_SIZE": "2", "RANK": "0", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "2"}
    with pytest.raises(fresh.Raised, match=COPIES):
        run_forked(XLA, "--steps", "3", *SMALL, **world)


@pytest.mark.exhaustive
def test_torchrun_says_of_copies_that_each_would_train_alone() -> None:
    launcher = ("-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2")
    done = run(*launcher, XLA, "--steps", "3", *SMALL)
    assert done.returncode != 0
    assert COPIES in done.stderr
    assert losses(done.stdout) == []


def test_the_audit_finds_the_cuda_script_and_clears_the_xla_one() -> None:
    result = audit(CUDA, target="xla")
    assert result.broken == () and result.counts["error"] >= 7
    rules = {finding.rule for finding in result.findings}
    assert rules >= {"cuda-device", "nccl", "fused-optimizer", "cuda-autocast", "grad-scaler"}
    clean = audit(XLA, target="xla")
    assert clean.files == 1 and clean.clean("warning"), clean
