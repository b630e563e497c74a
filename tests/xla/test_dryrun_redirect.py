"""What a script asks of other devices, or wants to start for each of them, is done here once."""

from pathlib import Path

import pytest

from utils.xla.dryrun import dry_run_script

NIGHT = pytest.mark.exhaustive


def write(folder: Path, text: str) -> Path:
    path = folder / "train.py"
    path.write_text(text)
    return path


OWN_MODULES = """\
import torch
import helper, utils
torch.set_default_device("cuda")
assert (utils.seven, helper.three) == (7, 3) and torch.ones(2).device.type == "xla"
torch.set_default_device("cpu")
net = torch.nn.GRU(4, 4).to("cuda")
opt = torch.optim.SGD(net.parameters(), 0.1)
for _ in range(9):
    net(torch.ones(3, 2, 4).to("cuda"))[0].sum().backward()
    opt.step()
"""


def test_the_modules_of_the_script_are_its_own(tmp_path, monkeypatch):
    script = write(tmp_path, OWN_MODULES)
    for name, text in (("utils/__init__.py", "seven = 7"), ("more/helper.py", "three = 3")):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(f"{text}\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COURSE_USER_PYTHONPATH", "more")
    assert dry_run_script(script, steps=2).ended == "after 2 steps, as asked"


NUMBERS = """\
import torch
class Own(torch.optim.Optimizer):
    def __init__(self, weights):
        super().__init__(weights, {})
    @torch.no_grad()
    def step(self):
        for weight in self.param_groups[0]["params"]:
            weight.sub_(weight.grad, alpha=0.1)
torch.accelerator.set_device_index(0)
assert torch.accelerator.current_device_index() == 0 and torch.accelerator.memory_allocated() == 0
assert torch.cuda.get_device_properties(0).total_memory > 0
net = torch.nn.DataParallel(torch.nn.Linear(4, 4)).to(0)
other = torch.nn.Linear(4, 4).to(device=torch.device(0), dtype=torch.float64)
assert other.weight.dtype == torch.float64 and other.weight.device.type == "xla"
opt = Own(net.parameters())
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
    assert {step["ended_by"] for step in report.steps} == {"optimizer.step()"}
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
