"""Parity: XLA is within the derived tolerances for every seed, and planted faults are not."""

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from utils.xla import env
from utils.xla.networks import TinyGPT, cnn, mlp, next_token_loss
from utils.xla.parity import ROOM, Compared, Parity, compare


@pytest.fixture(scope="module", autouse=True)
def _device_before_any_backward() -> None:
    env.set_defaults()
    import torch_xla

    torch_xla.device()


def gpt() -> nn.Module:
    return TinyGPT(25, width=32, heads=2, layers=1, context=16)


def case(name: str, seed: int) -> tuple:
    """What `compare` takes: how to make the model, a batch, the loss."""
    random = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, 10, (16,), generator=random)
    if name == "mlp":
        return mlp, (torch.randn(16, 32, generator=random), labels), cross_entropy
    if name == "cnn":
        return cnn, (torch.randn(16, 3, 8, 8, generator=random), labels), cross_entropy
    ids = torch.randint(0, 25, (8, 17), generator=random)
    return gpt, (ids[:, :-1], ids[:, 1:]), next_token_loss


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.exhaustive) for seed in (1, 2))]
)
@pytest.mark.parametrize("name", ["mlp", "cnn", "gpt"])
def test_xla_agrees_with_the_cpu_for_any_seed(name: str, seed: int) -> None:
    result = compare(*case(name, seed), seed=seed)
    assert result.outside == (), str(result)
    assert {key: len(curve) for key, curve in result.losses.items()} == {
        "float64": 20,
        "cpu": 20,
        "xla": 20,
    }
    assert result.losses["xla"][-1] < result.losses["xla"][0]
    # Derived, so never below what the CPU itself does, and never near the size of a mistake.
    for item in result.compared.values():
        assert ROOM * item.cpu <= item.tolerance < 1e-4


class LowPrecision(nn.Module):
    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        with torch.autocast("xla", dtype=torch.bfloat16):
            return self.model(inputs).float()


def with_other_eps(model: nn.Module) -> nn.Module:
    for module in model.modules():
        if isinstance(module, nn.LayerNorm | nn.BatchNorm2d):
            module.eps = 1e-4
    return model


def with_other_gelu(model: nn.Module) -> nn.Module:
    model[3] = nn.GELU(approximate="tanh")
    return model


def with_dropout(model: nn.Module) -> nn.Module:
    return nn.Sequential(model, nn.Dropout(0.1))


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("mlp", LowPrecision),
        ("gpt", LowPrecision),
        ("cnn", with_other_eps),
        ("gpt", with_other_eps),
        ("mlp", with_other_gelu),
        ("mlp", with_dropout),
    ],
)
def test_a_planted_fault_is_found(name: str, fault) -> None:
    result = compare(*case(name, 0), change=fault)
    assert result.outside == ("forward", "gradient", "curve"), str(result)


def test_a_gradient_that_is_zero_but_for_rounding_reads_as_a_large_difference() -> None:
    result = compare(*case("cnn", 0), steps=1)
    assert max(result.parameters, key=result.parameters.get) == "0.bias"
    assert (
        result.parameters["0.bias"]
        > 1e-2
        > max(item for name, item in result.parameters.items() if name != "0.bias")
    )
    assert result.gradient.within


def test_nan_is_outside() -> None:
    nan = Compared(cpu=1e-7, xla=float("nan"), tolerance=1e-6)
    good = Compared(cpu=1e-7, xla=1e-7, tolerance=1e-6)
    assert Parity(good, nan, good, {}, {}).outside == ("gradient",)
    assert compare(*case("mlp", 0), steps=2, change=spoil).outside


def spoil(model: nn.Module) -> nn.Module:
    with torch.no_grad():
        next(model.parameters()).fill_(float("nan"))
    return model


def test_bad_arguments_are_named() -> None:
    make, batch, loss = case("mlp", 0)
    with pytest.raises(ValueError, match="steps is 0"):
        compare(make, batch, loss, steps=0)
    there = tuple(item.to("xla") for item in batch)
    with pytest.raises(ValueError, match="on xla:0: give it on the cpu"):
        compare(make, there, loss)
