"""What attention takes at least on one core, and a table of kernels against that. Judges nothing.

The bound is the most work that one engine cannot avoid: the two products at the Tensor Engine's
peak, an exponential for each score on the Scalar Engine, the arguments and the result moved once.
Maxima, transposes and latencies come on top, so no kernel reaches it.
"""

from collections.abc import Callable
from typing import Any

from utils.course.shown import Shown, columns, html_table

DEPTH = 128
"""Elements of a query."""
SIZE = 2048
"""Positions for which kernels are compared."""

Sizes = tuple[tuple[tuple[int, int], str], ...]


def attention_sizes(size: int = SIZE) -> Sizes:
    """Shape and type of q and k, (128, size), and of v, (size, 128)."""
    return ((DEPTH, size), "bfloat16"), ((DEPTH, size), "bfloat16"), ((size, DEPTH), "bfloat16")


def attention_bound(size: int = SIZE) -> dict[str, float]:
    """Seconds that each engine needs at least for one head of `size` positions on Trainium2."""
    from utils.chip import roofline
    from utils.chip.hardware import machine
    from utils.nki.simulator.enums import engine
    from utils.nki.simulator.target import target

    core, chip = machine("trainium2", "core"), target("trn2")
    work = roofline.attention(1, 1, size, DEPTH)
    assert core.dma_bytes_per_s is not None
    return {
        "tensor": work.flops / core.rate("bf16"),
        "scalar": size * size / chip.partitions / chip.clocks[engine.scalar],
        "dma": work.bytes / core.dma_bytes_per_s,
    }


def over_bound(seconds: float, size: int = SIZE) -> float:
    """An estimated time over the largest bound."""
    return seconds / max(attention_bound(size).values())


def leaderboard(**kernels: Callable[..., Any]) -> Shown:
    """A table of attention kernels, fastest first, with the course's own and the bound.

    kernels: a name for the table to a kernel of q, k and v as in exercise 6. Only time is looked
    at: whether the results are right is what the check says.
    """
    from utils.nki import simulator

    simulator.use()
    from utils.nki.kernels.attention import flash_attention
    from utils.nki.simulator.arrays import Shape
    from utils.nki.simulator.profile import profile

    sizes = [Shape(*attention_size) for attention_size in attention_sizes()]
    bound = max(attention_bound().values())
    results = []
    for name, kernel in {**kernels, "the course's flash attention": flash_attention}.items():
        try:
            item = profile(kernel, target="trn2")(*sizes)
            results.append((item.seconds, name, item.busiest))
        except NotImplementedError:
            results.append((float("inf"), f"{name}: not attempted", ""))
        except Exception as error:  # noqa: BLE001  a kernel that fails is a row of the table
            results.append((float("inf"), f"{name}: {type(error).__name__}", ""))
    rows = [("the bound", f"{bound * 1e6:.1f} µs", "1", "tensor, scalar")]
    for seconds, name, busiest in sorted(results):
        known = seconds < float("inf")
        rows.append((
            name,
            f"about {seconds * 1e6:.1f} µs" if known else "",
            f"{seconds / bound:.2f}" if known else "",
            busiest,
        ))  # fmt: skip
    heads = ("kernel", "estimate", "over the bound", "busiest")
    title = f"attention of one head, {SIZE} positions, on one core of Trainium2"
    return Shown("\n".join([title, *columns([heads, *rows])]), html_table(heads, rows, title))
