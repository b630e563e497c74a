"""The dry run finds what the script does, changes nothing, and ends whatever the script does."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from utils.cli.commands import dryrun as command
from utils.course.catalog import ROOT
from utils.xla.dryrun import Bounds, dry_run, dry_run_script

NIGHT = pytest.mark.exhaustive

SCRIPT = """\
import pathlib, sys
import torch
device = "cuda" if torch.cuda.is_available() else "cpu"
net = torch.nn.Linear(4, 4).to(device)
opt = torch.optim.SGD(net.parameters(), lr=0.1, fused=device == "cuda")
ones = torch.ones(2, 2, dtype=torch.int64).to(device)
pathlib.Path("left.txt").write_text("behind")
for i in range(100):
    x = torch.ones(2 + (i == 2), 4).to(device)
    opt.zero_grad()
    loss = net(x).sum() + torch.ones(2, 2, dtype=torch.int64, device=device).mm(ones).sum()
    if i == int(sys.argv[1]):
        torch.nonzero(x)
        raise KeyError("seven")
    loss.backward()
    opt.step()
    print(loss.item())
"""


def write(folder: Path, text: str = SCRIPT) -> Path:
    path = folder / "train.py"
    path.write_text(text)
    return path


def test_a_script_is_run_for_some_steps(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    out = tmp_path / "report.json"
    arguments = ["--steps", "4", "--json", str(out), str(write(tmp_path)), "--", "99"]
    assert command.main(arguments) == 0
    text = capsys.readouterr().out
    report = json.loads(out.read_text())
    assert sorted(os.listdir(tmp_path)) == ["report.json", "train.py"]
    assert [len(step["compiled"]) for step in report["steps"]] == [1, 0, 1, 0]
    assert len(report["graphs"]) == 2 and report["ended"] == "after 4 steps, as asked"
    (cause,) = report["steps"][2]["causes"]
    assert cause["where"].startswith("train.py:9:") and "(2, 4) became (3, 4)" in cause["what"]
    (read,) = report["reads"]
    assert read["where"] == "train.py:17: print(loss.item())"
    assert read["count"] >= 3
    refused = {row["code"] for row in report["unsupported"] if "train.py:11" in row["where"]}
    assert refused == {"NCC_EVRF035"}
    assert report["memory"]["peak_bytes"] > 0
    assert any("fused=True" in row["what"] for row in report["redirects"])
    seen = {(row["rule"], row["seen"]) for row in report["findings"]}
    assert ("item-in-loop", "confirmed") in seen
    assert "train.py:9" in text and "NCC_EVRF035" in text


def test_what_a_script_raises_is_told(tmp_path):
    report = dry_run_script(write(tmp_path), ["1"], steps=4)
    assert report.ended == "it raised KeyError: 'seven' at train.py:14"
    assert len(report.steps) >= 1
    assert [row["operator"] for row in report.fallbacks] in ([], ["aten::nonzero"])


RAISES = """\
import torch
net = torch.nn.Linear(4, 4).cuda()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(9):
    loss = net(torch.ones(2, 4).cuda()).sum()
    loss.backward()
    opt.step()
    print((loss * 2).item())
    if i == 2:
        raise ValueError("after the third step")
"""


def test_an_error_after_the_last_step_is_no_step(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert command.main(["--steps", "4", str(write(tmp_path, RAISES))]) == 1
    text = capsys.readouterr().out
    assert "it raised ValueError: after the third step at train.py:10" in text
    assert "\n3 steps, " in text and "\nValueError: after the third step" in text


EVALUATES = """\
import torch
from torch.utils.data import DataLoader
net = torch.nn.Linear(4, 4).cuda()
opt = torch.optim.Adam(net.parameters())
for i in range(3):
    net(torch.ones(2, 4).cuda()).sum().backward()
    opt.step()
    if i == 0:
        for batch in DataLoader([torch.ones(4)] * 10, 2):
            print(net(batch.cuda()).mean().item())
nobody_reads_this = net(torch.ones(3, 4).cuda()) * 3
"""


def test_an_evaluation_does_not_use_up_the_steps(tmp_path):
    report = dry_run_script(write(tmp_path, EVALUATES), steps=4)
    assert report.ended == "it ended itself"
    assert [step["trains"] for step in report.steps] == [True, *[False] * 5, True, True]
    # The optimizer's state makes the second training step another graph; nothing else is compiled.
    compiled = [step["number"] for step in report.steps if step["compiled"]]
    assert compiled == [1, 2, 7] and report.warmup_steps == 7 and report.recompiles == 1
    assert len(report.graphs) == 3 and not report.rest
    assert "8 steps (3 of training, 5 of evaluation), 3 graphs" in repr(report)
    assert "steps 3 to 6 (evaluation): 0 compiled" in repr(report)
    report = dry_run_script(tmp_path / "train.py", steps=2)
    assert report.ended == "after 2 steps, as asked" and len(report.steps) == 7


NUMBERS = """\
import torch
torch.accelerator.set_device_index(0)
assert torch.accelerator.current_device_index() == 0 and torch.accelerator.memory_allocated() == 0
assert torch.cuda.get_device_properties(0).total_memory > 0
net = torch.nn.DataParallel(torch.nn.Linear(4, 4)).to(0)
other = torch.nn.Linear(4, 4).to(device=torch.device(0), dtype=torch.float64)
assert other.weight.dtype == torch.float64 and other.weight.device.type == "xla"
opt = torch.optim.SGD(net.parameters(), lr=0.1)
with torch.cuda.device(0):
    assert torch.zeros(2, 3).device.type == "cpu" and torch.zeros(2, 3, device=0).shape == (2, 3)
x = torch.randn(2, 4)
assert x.to(torch.float64).device.type == x.to(torch.float64, True).device.type == "cpu"
assert x.new_zeros(2, device=0).device == x.to(0, torch.float16).device == x.to(0).device
assert x.cuda(0).device.type == torch.ones(2).to("cuda:0").device.type == "xla"
assert x.sum(0).shape == (4,) and x.repeat(2, 1).shape == (4, 4)
with torch.device("cuda"):
    assert torch.zeros(2).device.type == "xla"
for i in range(9):
    net(x.to(device=0)).sum().backward()
    opt.step()
"""


def test_a_number_in_the_place_of_a_device_is_the_xla_device(tmp_path):
    report = dry_run_script(write(tmp_path, NUMBERS), steps=2)
    assert report.ended == "after 2 steps, as asked", report.printed
    noted = {row["what"] for row in report.redirects}
    assert "device 0 is the XLA device" in noted
    assert "torch.accelerator.set_device_index() answers None" in noted


PROCESSES = """\
import os, sys
import torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
rank = int(os.environ.get("RANK", 0))
dist.init_process_group(backend="nccl", world_size=int(sys.argv[1]), rank=rank)
torch.cuda.set_device(rank)
net = DDP(torch.nn.Linear(4, 4).cuda(rank), device_ids=[rank])
opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
print(net(torch.ones(3, 4).cuda()).tanh().sum().item())
for i in range(9):
    loss = net(torch.ones(2, 4).cuda()).sum()
    loss.backward()
    opt.step()
    seen = torch.tensor([float(i)])
    dist.all_reduce(seen)
assert dist.get_world_size() == 1 and net.module.weight.grad is not None
"""


@pytest.mark.parametrize(
    ("ranks", "steps", "ended"),
    [
        ("1", 2, "after 2 steps, as asked"),
        pytest.param("8", 0, "it raised RuntimeError: the dry run is one process", marks=NIGHT),
    ],
)
def test_a_script_for_processes_runs_as_one_rank(tmp_path, ranks, steps, ended):
    report = dry_run_script(write(tmp_path, PROCESSES), [ranks], steps=2)
    assert report.ended.startswith(ended) and len(report.steps) == steps
    messages = {row["what"].split("(")[0].split(" of ")[0] for row in report.redirects}
    assert ({"init_process_group", "DistributedDataParallel"} <= messages) == (steps > 0)
    # What is evaluated once before the training is not why its second step compiles.
    kinds = {cause["kind"] for step in report.steps for cause in step["causes"]}
    assert kinds == ({"first step"} if steps else set())


SPAWNS = """\
import torch, torch_xla
import torch.multiprocessing as mp
import torch.distributed as dist
import torch_xla.distributed.xla_multiprocessing as xmp
def train(rank, ranks):
    dist.init_process_group("nccl", init_method="tcp://localhost:1", world_size=ranks, rank=rank)
    net = torch.nn.Linear(4, 4).cuda(rank)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    net(torch.ones(2, 4, device=rank)).sum().backward()
    opt.step()
    dist.destroy_process_group()
def serve(rank, queue):
    queue.put(rank + 5)
if __name__ == "__main__":
    mp.spawn(train, (4,), 4)
    mp.start_processes(train, args=(4,), nprocs=4, join=False).join()
    xmp.spawn(train, args=(4,))
    torch_xla.launch(train, args=(4,))
    processes = [mp.get_context("spawn").Process(target=train, args=(r, 2)) for r in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    fork = mp.get_context("fork")
    queue = fork.Queue()
    fork.Process(target=serve, args=(0, queue)).start()
    assert queue.get(timeout=20) == 5
"""


def test_what_starts_processes_runs_its_first_rank_here(tmp_path):
    report = dry_run_script(write(tmp_path, SPAWNS), steps=9)
    assert report.ended == "it ended itself", report.printed
    assert [step["trains"] for step in report.steps] == [True] * 5
    noted = {row["what"] for row in report.redirects}
    assert "init_process_group('nccl') makes a group of one rank instead of 4, on Gloo" in noted
    assert "Process of rank 1 is not started: the dry run is rank 0 alone" in noted
    assert "Process starts serve(): what happens in it is not seen" in noted


HOSTILE = """\
import os, sys
import torch, helper
if "loaders" in sys.argv:
    rows = [torch.ones(4) for _ in range(8)]
    batches = torch.utils.data.DataLoader(rows, 2, num_workers=2)
else:
    batches = [torch.ones(2, 4)] * 4
try:
    input()
except EOFError:
    print("nobody answers")
try:
    import tkinter
    tkinter.Tk()
except Exception:
    print("no window")
try:
    open(os.path.join(os.environ["BESIDE"], "left.txt"), "w").write("behind")
except OSError:
    print("no file")
assert os.environ["WORLD_SIZE"] == "1"
for step, x in enumerate(batches):
    if step == 2:
        {end}
    y = helper.doubled(x.cuda())
    y.sum().backward()
    helper.optimizer.step()
"""
HELPER = """\
import torch
net = torch.nn.Linear(4, 4).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
def doubled(x):
    y = net(x)
    print(float(y[0, 0]), float(y[1, 1]))
    return y * 2
def never(x):
    return x.cuda()
"""


@pytest.mark.parametrize(
    "end, ended",
    [
        ("os._exit(3)", "it ended its process with os._exit or the like, with status 3"),
        pytest.param("os.kill(os.getpid(), 11)", "it died of SIGSEGV", marks=NIGHT),
        pytest.param("sys.exit(0)", "it ended itself", marks=NIGHT),
        pytest.param("sys.exit('no')", "it left with 'no'", marks=NIGHT),
    ],
)
def test_it_ends_and_reports_whatever_the_script_does(tmp_path, monkeypatch, end, ended):
    for name, value in (("BESIDE", str(tmp_path)), ("WORLD_SIZE", "1"), ("RANK", "0")):
        monkeypatch.setenv(name, value)
    folder = tmp_path / "repository" / "scripts"
    folder.mkdir(parents=True)
    (folder / "helper.py").write_text(HELPER)
    path = write(folder, HOSTILE.replace("{end}", end))
    report = dry_run_script(path, ["loaders"], steps=4, folder=folder.parent)
    assert report.ended == ended and len(report.steps) == 2
    assert "nobody answers" in report.printed and "no window" in report.printed
    assert sorted(os.listdir(tmp_path)) == ["repository"] or "not protected" in report.bounds
    # The second of two values that a line reads comes from a graph of its own.
    asked = [graph["asked"] for graph in report.graphs if "print" in graph["asked"]]
    assert asked == ["helper.py:6: print(float(y[0, 0]), float(y[1, 1]))"] * len(asked) != []
    seen = {(f["path"], f["line"]): f["seen"] for f in report.findings if "cuda" in f["rule"]}
    assert seen["scripts/helper.py", 2] == "confirmed"
    assert seen["scripts/helper.py", 9] == "not seen"
    assert any("num_workers is 0" in row["what"] for row in report.redirects)


@pytest.mark.exhaustive
def test_a_second_run_with_other_arguments_says_what_is_compiled_already(tmp_path):
    text = SCRIPT.replace(".to(device)", "", 1).replace(
        "Linear(4, 4)", "Linear(4, 4, device=device)"
    )
    report = dry_run_script(write(tmp_path, text), ["99"], steps=2, other=["1"])
    assert len(report.setup) == 1  # the weights are drawn on the device
    assert report.again["arguments"] == ["1"]
    assert 1 <= report.again["known"] <= report.again["graphs"]
    assert report.warmup_steps == 1 and "compiled already" in repr(report)


@pytest.mark.exhaustive
def test_a_function_is_stepped_and_asks_for_the_same_graphs_again():
    def step(n):
        import torch
        import torch_xla

        x = torch.ones(n).to(torch_xla.device())
        return (x * 2).sum().item()

    report = dry_run(step, 3, steps=3, twice=True)
    assert report.same_graphs and len(report.steps) == 3 and report.recompiles == 0


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["missing.py"], "there is no script 'missing.py'"),
        (["--steps", "0", __file__], "steps is 0, and must be from 1 to 64"),
        (["--seconds", "0", __file__], "seconds is 0.0, and must be more than 0"),
    ],
)
def test_what_cannot_be_done_is_said(arguments, words, capsys):
    assert command.main(arguments) == 2
    assert words in capsys.readouterr().err


@pytest.mark.exhaustive
def test_a_command_that_is_ended_leaves_nothing(tmp_path):
    path, room = write(tmp_path, "import time\ntime.sleep(60)"), tmp_path / "room"
    room.mkdir()
    words = [sys.executable, str(ROOT / "course.py"), "--inside", "dryrun", str(path)]
    process = subprocess.Popen(words, env={**os.environ, "TMPDIR": str(room)}, cwd=ROOT)
    deadline = time.monotonic() + 60
    while not list(room.glob("dryrun-*/output.txt")):
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.1)
    process.terminate()
    assert process.wait(30) == 143
    assert not list(room.iterdir())


@pytest.mark.exhaustive
def test_a_script_that_is_stopped_says_where_it_hangs(tmp_path):
    path = write(tmp_path, "import time\nwhile True:\n    time.sleep(1)\n")
    report = dry_run_script(path, bounds=Bounds(seconds=25))
    assert report.ended == "stopped: it had too much time, at train.py:3: time.sleep(1)"
    assert 'train.py", line 3' in report.printed
