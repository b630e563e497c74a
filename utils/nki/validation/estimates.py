"""Estimates: the kernel of a measurement, traced from shapes alone and timed by the model."""

import functools
import importlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from utils.nki.simulator.arrays import Shape
from utils.nki.simulator.dtypes import dtype_of
from utils.nki.simulator.profile import profile
from utils.nki.validation.measurements import Measurement, select
from utils.nki.validation.report import Estimate

SECONDS = {"ms": 1e-3, "us": 1e-6, "ns": 1e-9}
REPEATS = 16


@dataclass(frozen=True)
class Figures:
    """What is kept of a profile, which itself holds every instruction.

    seconds; mfu and active as shares; activation and dma in seconds, the longest of their kind;
    read and written in bytes of HBM.
    """

    seconds: float
    mfu: float
    activation: float
    dma: float
    busiest: str
    active: dict[str, float]
    read: int
    written: int


def estimate(it: Measurement) -> Estimate:
    """What the timing model gives for the quantity that was measured."""
    result = figures_of(it)
    value = QUANTITIES[it.quantity](it)
    active = {name: 100 * share for name, share in result.active.items()}
    return Estimate(value, result.busiest, active)


def figures_of(it: Measurement, **more: Any) -> Figures:
    """The figures of a measurement's kernel; `more` are further arguments of the kernel."""
    arguments = tuple(sorted({**it.arguments, **more}.items()))
    return _figures(it.kernel, arguments, tuple(it.shapes()), it.target, it.schedule)


@functools.cache
def _figures(name: str, arguments: tuple, shapes: tuple, target: str, schedule: str) -> Figures:
    inputs = [Shape(*shape) for shape in shapes]
    kernel = profile(kernel_of(name), target=target, schedule=schedule)
    result = kernel(*inputs, **dict(arguments))
    return Figures(
        seconds=result.seconds,
        mfu=result.mfu,
        activation=result.longest("activation"),
        dma=result.longest("dma_copy"),
        busiest=result.busiest,
        active=result.utilisation,
        read=result.hbm_read,
        written=result.hbm_written,
    )


def kernel_of(name: str) -> Any:
    """The kernel that a measurement names, such as "matmul.tiled" of utils/nki/kernels."""
    module, _, function = name.partition(".")
    return getattr(importlib.import_module(f"utils.nki.kernels.{module}"), function)


def _in_seconds(it: Measurement) -> float:
    seconds = _repeat(it) if it.quantity == "repeat" else getattr(figures_of(it), it.quantity)
    return seconds / SECONDS[it.unit]


def _mfu(it: Measurement) -> float:
    return 100 * figures_of(it).mfu


def _repeat(it: Measurement) -> float:
    """Seconds that one more repetition adds, once the first have filled every queue."""
    few, many = (figures_of(it, times=times).seconds for times in (REPEATS, 2 * REPEATS))
    return (many - few) / REPEATS


def _rate(it: Measurement) -> float:
    best = max(_bytes_per_second(item) for item in select(it.ladder))
    return 100 * _bytes_per_second(it) / best


def _bytes_per_second(it: Measurement) -> float:
    (shape, dtype), *_ = it.shapes()
    return math.prod(shape) * dtype_of(dtype).itemsize / _repeat(it)


QUANTITIES: dict[str, Callable[[Measurement], float]] = {
    "seconds": _in_seconds,
    "activation": _in_seconds,
    "dma": _in_seconds,
    "repeat": _in_seconds,
    "mfu": _mfu,
    "rate": _rate,
}
