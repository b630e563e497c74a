"""Does a model compute the same on XLA as on the CPU? Forward, gradients and a curve of losses.

No two float32 programs round alike, so "the same" needs a tolerance, and it is derived, not chosen:
the training runs on the CPU several times more, in ways that are all correct, and the largest error
of those runs against float64, times `ROOM`, is what XLA may be off by.
"""

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

ROOM = 4
"""The tolerance is this many times the largest error of a correct run. XLA orders sums by rules of
its own, so its error is one more draw beside those sampled, and two bits of room are given. The
mistakes of a migration are far larger: rounding one number to BF16 moves it by up to 2**-9, to
float32 by up to 2**-24.
"""

RUNS = 6
"""Correct runs sampled for a tolerance, beside the plain one."""


@dataclass(frozen=True)
class Compared:
    """One quantity. All three numbers are errors against float64, relative to its largest value.

    cpu: of CPU eager. xla: of XLA. tolerance: what XLA may have.
    """

    cpu: float
    xla: float
    tolerance: float

    @property
    def within(self) -> bool:
        """Whether XLA's error is within the tolerance."""
        return self.xla <= self.tolerance  # False for NaN, too


@dataclass(frozen=True)
class Parity:
    """What `compare` found.

    forward: the first output. gradient: all gradients of the first step, as one vector. curve: the
        losses of all steps.
    losses: the curves themselves: "float64", "cpu" and "xla".
    parameters: for each parameter the difference of its gradients on CPU and XLA, relative to the
        norm of this gradient alone. One that is zero but for rounding has a large one, and no
        meaning: see the conv bias before a BatchNorm.
    """

    forward: Compared
    gradient: Compared
    curve: Compared
    losses: dict[str, tuple[float, ...]]
    parameters: dict[str, float]

    @property
    def compared(self) -> dict[str, Compared]:
        """The three quantities by name."""
        return {"forward": self.forward, "gradient": self.gradient, "curve": self.curve}

    @property
    def outside(self) -> tuple[str, ...]:
        """What is not within its tolerance: none, if the two devices agree."""
        return tuple(name for name, item in self.compared.items() if not item.within)

    def __str__(self) -> str:
        """
        >>> same = Compared(cpu=1e-7, xla=2e-7, tolerance=8e-7)
        >>> print(Parity(same, same, Compared(1e-7, 3e-3, 8e-7), {}, {}))
        forward   CPU 1.0e-07   XLA 2.0e-07   tolerance 8.0e-07   within
        gradient  CPU 1.0e-07   XLA 2.0e-07   tolerance 8.0e-07   within
        curve     CPU 1.0e-07   XLA 3.0e-03   tolerance 8.0e-07   OUTSIDE
        """
        return "\n".join(
            f"{name:8}  CPU {item.cpu:.1e}   XLA {item.xla:.1e}   tolerance {item.tolerance:.1e}"
            f"   {'within' if item.within else 'OUTSIDE'}"
            for name, item in self.compared.items()
        )


def compare(
    make: Callable[[], nn.Module],
    batch: tuple[Tensor, Tensor],
    loss: Callable[[Tensor, Tensor], Tensor],
    steps: int = 20,
    rate: float = 0.1,
    seed: int = 0,
    change: Callable[[nn.Module], nn.Module] | None = None,
) -> Parity:
    """Train one model on CPU eager and on XLA from the same weights, by SGD, and compare.

    Args:
        make: makes the model, on the CPU; `seed` is set before.
        batch: inputs and targets [batch, ...], on the CPU; each step uses all of it.
        loss: of the model's output and the targets, a mean over the batch.
        steps: training steps, at least 1.
        rate: learning rate.
        change: made to XLA's copy only, before it moves to the device: plant a fault with it, and
            see that it is found.

    Raises:
        ValueError: for no steps, or a batch that is on a device already.

    The correct runs beside the plain one train on the rows in another order, and start from weights
    of which each is moved to one of its float32 neighbours, or stays. Their errors say what
    rounding alone does to this model, this batch and this number of steps.
    """
    import torch_xla

    if steps < 1:
        raise ValueError(f"steps is {steps}: at least 1 is needed for a forward and a gradient")
    if elsewhere := [str(item.device) for item in batch if item.device.type != "cpu"]:
        raise ValueError(f"the batch is on {elsewhere[0]}: give it on the cpu, compare moves it")
    device = torch_xla.device()  # first: a backward on the CPU before it would break those on XLA
    torch.manual_seed(seed)
    model = make()
    changed = (change or _same_model)(copy.deepcopy(model)).to(device)
    there = tuple(item.to(device) for item in batch)
    xla = _train(changed, there, loss, steps, rate, torch_xla.sync)
    with _one_thread():
        exact = _train(copy.deepcopy(model).double(), _double(batch), loss, steps, rate)
        plain = _train(copy.deepcopy(model), batch, loss, steps, rate)
        random = torch.Generator().manual_seed(seed)
        others = [_other_run(model, batch, loss, steps, rate, random) for _ in range(RUNS)]

    correct = [_errors(run, exact) for run in (plain, *others)]
    tolerances = [ROOM * max(errors) for errors in zip(*correct, strict=True)]
    forward, gradient, curve = map(Compared, correct[0], _errors(xla, exact), tolerances)
    losses = {"float64": exact.losses, "cpu": plain.losses, "xla": xla.losses}
    names = [name for name, _ in model.named_parameters()]
    pairs = zip(names, plain.gradients, xla.gradients, strict=True)
    own = {name: float((b - a).norm() / a.norm()) for name, a, b in pairs}
    return Parity(forward, gradient, curve, losses, own)


@contextmanager
def _one_thread() -> Iterator[None]:
    # Threads gain nothing for models this small, on a busy machine they wait for each other, and
    # how many there are decides how sums are split.
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@dataclass(frozen=True)
class _Run:
    """What one training gave, in float64 on the CPU: first output and gradients, all losses."""

    output: Tensor
    gradients: list[Tensor]
    losses: tuple[float, ...]


def _train(
    model: nn.Module,
    batch: tuple[Tensor, Tensor],
    loss: Callable[[Tensor, Tensor], Tensor],
    steps: int,
    rate: float,
    mark: Callable[[], None] = lambda: None,
) -> _Run:
    inputs, targets = batch
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    losses: list[Tensor] = []
    for step in range(steps):
        optimizer.zero_grad()
        output = model(inputs)
        losses.append(loss(output, targets))
        losses[-1].backward()
        gradients = [parameter.grad for parameter in model.parameters()]
        optimizer.step()
        mark()  # output and gradients are alive in every step, so every step is the same graph
        if step == 0:
            first = (
                output.detach().cpu().double(),
                [gradient.cpu().double() for gradient in gradients],
            )
    return _Run(*first, tuple(item.item() for item in losses))


def _errors(run: _Run, exact: _Run) -> tuple[float, float, float]:
    """Largest error of output, gradients and losses, each over the largest exact value."""

    def flat(item: _Run) -> tuple[Tensor, Tensor, Tensor]:
        gradients = torch.cat([one.flatten() for one in item.gradients])
        return item.output.flatten(), gradients, torch.tensor(item.losses, dtype=torch.float64)

    output, gradients, losses = (
        float((a - b).abs().max() / b.abs().max())
        for a, b in zip(flat(run), flat(exact), strict=True)
    )
    return output, gradients, losses


def _other_run(
    model: nn.Module,
    batch: tuple[Tensor, Tensor],
    loss: Callable[[Tensor, Tensor], Tensor],
    steps: int,
    rate: float,
    random: torch.Generator,
) -> _Run:
    """As correct as the plain one: other order of the rows, weights one rounding away."""
    order = torch.randperm(len(batch[0]), generator=random)
    rows = tuple(item[order] for item in batch)
    run = _train(_nudge(copy.deepcopy(model), random), rows, loss, steps, rate)
    # An output belongs to its row: back into the order of the batch.
    return _Run(run.output[order.argsort()], run.gradients, run.losses)


def _nudge(model: nn.Module, random: torch.Generator) -> nn.Module:
    """The model with each weight one float32 up, one down, or as it is."""
    with torch.no_grad():
        for parameter in model.parameters():
            way = torch.randint(-1, 2, parameter.shape, generator=random)
            end = torch.where(way == 0, parameter, way * float("inf"))
            parameter.copy_(torch.nextafter(parameter, end))
    return model


def _double(batch: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    return tuple(item.double() if item.is_floating_point() else item for item in batch)


def _same_model(model: nn.Module) -> nn.Module:
    return model
