"""How fast the simulator is: `python -m utils.nki.bench` prints two figures, as ratios.

    values   a BF16 matmul of 2048 x 2048 x 2048 in the simulator, over the same products of tiles
             in NumPy (float32): the goal is 3 at most
    shapes   small instructions per second where only shapes are known, over 100,000: for recording
             alone, and with the schedule; the goal is 1 at least

Times are processor time of this process, the best of a few runs. OPENBLAS_NUM_THREADS=1 keeps
NumPy's products on one core, as the rest of the simulator is: threads that wait take time as well.
"""

import time
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from utils.nki.kernels import matmul, tiles
from utils.nki.simulator import launch
from utils.nki.simulator.arrays import Shape
from utils.nki.simulator.timing import schedule, without_collecting

import nki  # isort: skip  (found once the kernels are imported)
import nki.isa as nisa  # isort: skip
import nki.language as nl  # isort: skip

SIZE = 2048
RUNS = 3
SMALL = 20_000
GOAL_PER_SECOND = 100_000
GOAL_RATIO = 3.0
ROWS = 128


@nki.jit
def small(x):
    """Many small instructions: 2 exp(x) of rows, a multiple of 128, and the sum of all, unused."""
    result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    total = nl.ndarray((ROWS, x.shape[1]), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=total, value=0.0)
    for i in range(0, x.shape[0], ROWS):
        tile = nl.ndarray((ROWS, x.shape[1]), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[i : i + ROWS])
        nisa.activation(dst=tile, op=nl.exp, data=tile)
        nisa.tensor_tensor(dst=total, data1=total, data2=tile, op=nl.add)
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=2.0)
        nisa.dma_copy(dst=result[i : i + ROWS], src=tile)
    return result


def main() -> None:
    """Print both figures."""
    for name, ratio in zip(("the first call", "later calls"), values_ratios(), strict=True):
        print(
            f"values: {ratio:.2f} times NumPy's products of tiles in {name} "
            f"(goal: {GOAL_RATIO:g} at most)"
        )
    record, both = shapes_per_second()
    for name, rate in (("recorded", record), ("recorded and scheduled", both)):
        share = rate / GOAL_PER_SECOND
        print(f"shapes: {rate:,.0f} instructions a second {name}, {share:.2f} of the goal")


def cpu_s(call: Callable[[], Any]) -> float:
    """Processor seconds of one run."""
    begun = time.process_time()
    call()
    return time.process_time() - begun


def best(call: Callable[[], Any]) -> float:
    """Processor seconds of the fastest of a few runs."""
    return min(cpu_s(call) for _ in range(RUNS))


def values_ratios() -> tuple[float, float]:
    """Time of the simulated product over that of NumPy's products of the same tiles: in the first
    call of this process, and in later ones."""
    random = np.random.default_rng(0)
    lhs_t, rhs = (random.standard_normal((SIZE, SIZE)).astype(ml_dtypes.bfloat16) for _ in range(2))

    def simulated() -> None:
        launch.run(matmul.blocked, (lhs_t, rhs), {"block_m": 4, "block_n": 2})

    left, right = lhs_t.astype(np.float32), rhs.astype(np.float32)
    result = np.zeros((SIZE, SIZE), np.float32)

    def products() -> None:
        for m in range(0, SIZE, tiles.M):
            for n in range(0, SIZE, tiles.N):
                total = result[m : m + tiles.M, n : n + tiles.N]
                for k in range(0, SIZE, tiles.K):
                    part = left[k : k + tiles.K, m : m + tiles.M]
                    total += part.T @ right[k : k + tiles.K, n : n + tiles.N]

    products()
    first = cpu_s(simulated)
    numpy = best(products)
    return first / numpy, best(simulated) / numpy


def shapes_per_second() -> tuple[float, float]:
    """Instructions per second that are recorded, and that are recorded and scheduled."""
    rows = SMALL // 5 * ROWS
    kept: list[Any] = []

    def record() -> None:
        with without_collecting():
            kept[:] = [launch.run(small, (Shape((rows, 64)),), {}, values=False)]

    recording = best(record)
    count = len(kept[0].instructions)
    both = recording + best(lambda: schedule(kept[0]))
    return count / recording, count / both


if __name__ == "__main__":
    main()
