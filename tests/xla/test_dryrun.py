"""The dry run finds what the script does, changes nothing, and ends whatever the script does."""

import json
import os
import signal
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


NO_STEP = """\
import os
import torch
try:
    import beside
except ImportError:
    print("as python does it")
print(torch.ones(2).cuda().sum().item())
if "early" not in os.sys.argv:
    os.environ["LOCAL_RANK"]
"""


@pytest.mark.parametrize(
    "arguments, expected",
    [
        (["early"], ["A step ends at torch_xla.sync()", "\nas python does it\n"]),
        ([], ["it raised KeyError: 'LOCAL_RANK' at train.py:9 (torchrun sets this: start the dry"]),
    ],
    ids=["ends", "raises"],
)
def test_a_script_without_a_step_is_no_success(tmp_path, monkeypatch, capsys, arguments, expected):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "beside.py").write_text("")
    (tmp_path / "scripts").mkdir()
    path = write(tmp_path / "scripts", NO_STEP)
    assert command.main([str(path), "--", *arguments]) == 1
    text = capsys.readouterr().out
    assert "\n0 steps ended; 1 graphs compiled before the first step\n" in text
    assert all(words in text for words in expected)
    if not arguments:
        # The user's file and lines, and none of this program's.
        frames = [line for line in text.splitlines() if line.startswith("  File")]
        assert frames[0] == f'  File "{path}", line 9, in <module>'
        assert not any("dryrun" in frame for frame in frames)


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


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGHUP,
        pytest.param(signal.SIGTERM, marks=NIGHT),
        pytest.param(signal.SIGINT, marks=NIGHT),
    ],
)
def test_a_command_that_is_ended_leaves_nothing(tmp_path, number):
    path, room = write(tmp_path, "import time\ntime.sleep(60)"), tmp_path / "room"
    room.mkdir()
    words = [sys.executable, str(ROOT / "course.py"), "--inside", "dryrun", str(path)]
    environment = {**os.environ, "TMPDIR": str(room)}
    process = subprocess.Popen(
        words, env=environment, cwd=ROOT, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    deadline = time.monotonic() + 60
    while not list(room.glob("dryrun-*/output.txt")):
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.1)
    process.send_signal(number)
    said = process.communicate(timeout=30)[1]
    assert process.returncode == 128 + number
    assert said == f"dry run: ended by {number.name}; the script was stopped and its copy removed\n"
    assert not list(room.iterdir())


@pytest.mark.exhaustive
def test_a_script_that_is_stopped_says_where_it_hangs(tmp_path):
    path = write(tmp_path, "import time\nwhile True:\n    time.sleep(1)\n")
    report = dry_run_script(path, bounds=Bounds(seconds=25))
    assert report.ended == "stopped: it had too much time, at train.py:3: time.sleep(1)"
    assert 'train.py", line 3' in report.printed
