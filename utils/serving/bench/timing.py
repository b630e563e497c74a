"""Times of one call after the other: the first ones apart, each waited for to its end."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from utils.serving.bench.quantiles import Summary, summary

Clock = Callable[[], float]
"""Seconds from any moment. The default everywhere is that of this machine."""

CLOCK: Clock = time.perf_counter
"""On Linux it counts from the start of the machine, so that processes can compare moments."""


class Waited(Protocol):
    """What a measurement needs of a device: `utils.xla.devices.Device` has it."""

    def mark_step(self) -> None: ...

    def wait(self) -> None: ...


@dataclass(frozen=True)
class Samples:
    """Times of calls in seconds, in the order in which they were made.

    warmup_s: the calls that were made first and do not count; the first of them compiles.
    seconds: those that count.
    """

    warmup_s: tuple[float, ...]
    seconds: tuple[float, ...]

    @property
    def first_s(self) -> float:
        """The very first call, with what is done only once: tracing, compiling, allocating."""
        return self.warmup_s[0]

    @property
    def summary(self) -> Summary:
        return summary(self.seconds)


def measure(
    step: Callable[[], Any],
    device: Waited,
    warmup: int = 3,
    repeats: int = 50,
    clock: Clock = CLOCK,
) -> Samples:
    """Time calls of `step`, each from an idle device until its work is done.

    Args:
        step: one call of what is measured; what it returns stays alive until the device is done.
        device: of `utils.xla.devices.get`.
        warmup: calls before those that count, at least 1, since the first compiles.
        repeats: calls that count, at least 1.

    Raises: ValueError for fewer.
    """
    for name, value in (("warmup", warmup), ("repeats", repeats)):
        if value < 1:
            raise ValueError(
                f"{name} is {value}, but at least 1 is needed: the first call compiles and must not"
                " be among the samples"
            )
    device.wait()  # what was pending before is no part of the first call
    times = [timed(step, device, clock) for _ in range(warmup + repeats)]
    return Samples(tuple(times[:warmup]), tuple(times[warmup:]))


def timed(step: Callable[[], Any], device: Waited, clock: Clock = CLOCK) -> float:
    """Seconds of one call, until the device has done all of it."""
    begin = clock()
    kept = step()
    device.mark_step()
    device.wait()
    seconds = clock() - begin
    del kept  # a lazy device drops a result that nobody holds, and computes nothing
    return seconds
