"""The device layer: the same loop on cpu and xla, and clear words where a device is missing."""

import pytest
import torch

from utils.xla import devices, fresh, networks
from utils.xla.meter import Meter


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def _losses(device: devices.Device, steps: int = 3, autocast: bool = False) -> list[float]:
    torch.manual_seed(0)
    model = networks.mlp(features=8, hidden=16, classes=4).to(device.torch)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, y = torch.randn(6, 8), torch.arange(6) % 4
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        with device.autocast(autocast):
            out = model(x.to(device.torch))
        loss = torch.nn.functional.cross_entropy(out.float(), y.to(device.torch))
        loss.backward()
        optimizer.step()
        device.mark_step()
        losses.append(loss.detach())
    device.wait()
    return [item.item() for item in losses]


def test_the_same_loop_gives_the_same_losses_on_cpu_and_xla() -> None:
    on_xla = _losses(devices.get("xla"))
    assert on_xla == pytest.approx(_losses(devices.get("cpu")), abs=1e-5)


def _executions(steps: int) -> int:
    device = devices.get("xla")
    device.wait()
    with Meter() as meter:
        x = torch.ones(3, 5).to(device.torch)
        for _ in range(steps):
            x = x * 2
            device.mark_step()
    return meter.reading.executions


def test_a_step_is_one_execution_on_xla() -> None:
    # In a process of its own: what other tests have left on the device would run, too.
    assert fresh.run(_executions, 4) == 4


def test_autocast_multiplies_in_bf16_on_cpu() -> None:
    device = devices.get("cpu")
    with device.autocast():
        assert (torch.ones(4, 4) @ torch.ones(4, 4)).dtype == torch.bfloat16
    with device.autocast(enabled=False):
        assert (torch.ones(4, 4) @ torch.ones(4, 4)).dtype == torch.float32


def test_auto_takes_the_first_that_is_here() -> None:
    assert devices.get().kind == devices.available()[0]
    assert devices.available()[-1] == "cpu"


def test_a_missing_device_says_what_there_is(monkeypatch) -> None:
    monkeypatch.setattr(devices, "available", lambda: ("xla", "cpu"))
    with pytest.raises(devices.NoDevice, match="no device 'neuron'; it has xla, cpu.*Trainium2"):
        devices.get("neuron")


@pytest.mark.parametrize("kind", ["gpu", "xla:0", "CPU", ""])
def test_another_word_is_refused(kind: str) -> None:
    with pytest.raises(ValueError, match="choose cpu, xla, cuda, neuron or auto"):
        devices.get(kind)


def test_an_accelerator_is_found_by_torch_accelerator(monkeypatch) -> None:
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda: torch.device("cuda"))
    waited = []
    monkeypatch.setattr(torch.accelerator, "synchronize", lambda: waited.append(1))
    device = devices.get()
    assert device.kind == "cuda" and device.torch == torch.device("cuda")
    device.mark_step()
    assert not waited
    device.wait()
    assert waited == [1]


@pytest.mark.parametrize(
    ("kind", "backend"), [("cuda", "inductor"), ("neuron", "neuron"), ("cpu", None), ("xla", None)]
)
def test_each_kind_compiles_in_its_own_way(monkeypatch, kind: str, backend: str | None) -> None:
    asked = []
    monkeypatch.setattr(torch, "compile", lambda model, backend: asked.append(backend) or model)
    model = networks.mlp()
    assert devices.Device(kind).compiled(model) is model
    assert asked == ([backend] if backend else [])
