"""Estimates: the kernel of a measurement, traced from shapes alone and timed by the model."""

import functools
import importlib
import math
from collections.abc import Callable
from typing import Any

from utils.nki_validation.measurements import Measurement, chosen
from utils.nki_validation.report import Estimate
from utils.simulator.arrays import Shape
from utils.simulator.dtypes import dtype_of
from utils.simulator.profile import profile

SECONDS = {"ms": 1e-3, "us": 1e-6, "ns": 1e-9}
REPEATS = 16


def estimate(it: Measurement) -> Estimate:
    """What the timing model gives for the quantity that was measured."""
    profile = _profile(it)
    value = QUANTITIES[it.quantity](it, profile)
    active = {name: 100 * share for name, share in profile.utilisation.items()}
    return Estimate(value, profile.busiest, active)


def _profile(it: Measurement, **more: Any) -> Any:
    arguments = tuple(sorted({**it.arguments, **more}.items()))
    return _profiled(it.kernel, arguments, tuple(it.shapes()), it.target, it.schedule)


@functools.lru_cache(maxsize=64)
def _profiled(name: str, arguments: tuple, shapes: tuple, target: str, schedule: str) -> Any:
    inputs = [Shape(*each) for each in shapes]
    return profile(kernel_of(name), target=target, schedule=schedule)(*inputs, **dict(arguments))


def kernel_of(name: str) -> Any:
    """The kernel that a measurement names, such as "matmul.tiled" of utils/kernels."""
    module, _, function = name.partition(".")
    return getattr(importlib.import_module(f"utils.kernels.{module}"), function)


def _seconds(it: Measurement, profile: Any) -> float:
    return profile.seconds / SECONDS[it.unit]


def _mfu(it: Measurement, profile: Any) -> float:
    return 100 * profile.mfu


def _longest(name: str) -> Callable[[Measurement, Any], float]:
    def duration(it: Measurement, profile: Any) -> float:
        return profile.longest(name) / SECONDS[it.unit]

    return duration


def _more_seconds(it: Measurement) -> float:
    """What one more repetition adds, once the first have filled every queue."""
    few, many = (_profile(it, times=times).seconds for times in (REPEATS, 2 * REPEATS))
    return (many - few) / REPEATS


def _repeat(it: Measurement, profile: Any) -> float:
    return _more_seconds(it) / SECONDS[it.unit]


def _rate(it: Measurement, profile: Any) -> float:
    best = max(_bytes_per_second(each) for each in chosen(it.ladder))
    return 100 * _bytes_per_second(it) / best


def _bytes_per_second(it: Measurement) -> float:
    (shape, dtype), *_ = it.shapes()
    return math.prod(shape) * dtype_of(dtype).itemsize / _more_seconds(it)


QUANTITIES: dict[str, Callable[[Measurement, Any], float]] = {
    "seconds": _seconds,
    "mfu": _mfu,
    "activation": _longest("activation"),
    "dma": _longest("dma_copy"),
    "repeat": _repeat,
    "rate": _rate,
}
