"""What recording and scheduling cost, counted in calls of Python functions and never in time."""

import sys
from collections.abc import Callable
from typing import Any

import nki.isa as nisa
import nki.language as nl
import numpy as np
import pytest

from utils.nki import bench
from utils.nki.kernels import matmul
from utils.nki.simulator import launch
from utils.nki.simulator.arrays import Shape
from utils.nki.simulator.errors import NkiValidationError
from utils.nki.simulator.program import Program
from utils.nki.simulator.timing import schedule

CALLS_TO_RECORD = 30
CALLS_TO_SCHEDULE = 30


def calls(work: Callable[[], Any]) -> int:
    """How many Python functions are called."""
    count = 0

    def counted(_frame: Any, event: str, _argument: Any) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(counted)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def record(kernel: Any, *shapes: tuple[int, ...]) -> Program:
    return launch.run(kernel, tuple(Shape(shape, "bfloat16") for shape in shapes), {}, values=False)


SIZES = {
    "small": (bench.small, [((128 * n, 64),) for n in (40, 80, 120)]),
    "matmul": (matmul.tiled, [((128 * n, 256), (128 * n, 1024)) for n in (8, 16, 24)]),
}


@pytest.mark.parametrize("name", SIZES)
def test_an_instruction_costs_the_same_in_a_long_kernel(name) -> None:
    """From the first length to the second as from the second to the third, and not much."""
    kernel, sizes = SIZES[name]
    programs = [record(kernel, *size) for size in sizes]  # what is looked up once, is
    for program in programs:
        schedule(program)
    counts = [len(item.instructions) for item in programs]
    more = counts[1] - counts[0]
    assert more == counts[2] - counts[1]
    for work, limit in ((lambda i: record(kernel, *sizes[i]), CALLS_TO_RECORD),
                        (lambda i: schedule(programs[i]), CALLS_TO_SCHEDULE)):  # fmt: skip
        first, second, third = (calls(lambda i=i, work=work: work(i)) for i in range(3))
        assert (second - first) / more <= limit
        assert third - second == pytest.approx(second - first, rel=0.1)


def test_numbers_that_are_equal_but_of_other_types_are_other_calls() -> None:
    def kernel(x, number):
        tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x)
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.bitwise_and, operand0=number)
        return x

    x = np.ones((4, 4), np.int32)
    launch.run(kernel, (x, 7), {})
    with pytest.raises(NkiValidationError):
        launch.run(kernel, (x, 7.0), {})


def test_memory_of_a_simulated_kernel_is_free_when_its_results_are_there() -> None:
    """Without a search for circles: the program of a call is not kept by itself."""
    import gc
    import weakref

    seen: list[Any] = []

    def kernel(a, b):
        total = nl.ndarray((4, 4), dtype=nl.float32, buffer=nl.psum)
        tiles = [nl.ndarray(entry.shape, dtype=entry.dtype, buffer=nl.sbuf) for entry in (a, b)]
        for tile, item in zip(tiles, (a, b), strict=True):
            nisa.dma_copy(dst=tile, src=item)
        nisa.nc_matmul(dst=total, stationary=tiles[0], moving=tiles[1])
        out = nl.ndarray((4, 4), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_copy(dst=out, src=total)
        result = nl.ndarray((4, 4), dtype=nl.float32, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=result, src=out)
        seen.append(weakref.ref(total.array()))
        return result

    ones = np.ones((4, 4), np.float32)
    was = gc.isenabled()
    gc.disable()
    try:
        launch.simulate(kernel)(ones, ones)
        assert seen[0]() is None
    finally:
        if was:
            gc.enable()
