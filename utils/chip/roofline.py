"""The roofline: what bounds a piece of work on a machine, compute or memory.

Williams, Waterman and Patterson, "Roofline: an insightful visual performance model for multicore
architectures", Communications of the ACM 52(4), 2009. It is a bound, not a forecast: nothing runs
faster, and how much slower it runs is not said.
"""

from dataclasses import dataclass

from utils.chip.hardware import Machine

BYTES = {
    "fp32": 4.0,
    "tf32": 4.0,
    "bf16": 2.0,
    "fp16": 2.0,
    "fp8": 1.0,
    "fp4": 0.5,
    "mxfp8": 1 + 1 / 32,
    "mxfp4": 0.5 + 1 / 32,
}
"""Bytes of one value in memory. A microscaling block of 32 values has one scale of 8 bits."""


@dataclass(frozen=True)
class Work:
    """FLOP to do and bytes to move between the cores and memory."""

    name: str
    flops: float
    bytes: float

    @property
    def intensity(self) -> float:
        """FLOP per byte."""
        return self.flops / self.bytes


def width_bytes(dtype: str) -> float:
    """Bytes of one value. Raises ValueError with the dtypes that are known."""
    if dtype not in BYTES:
        raise ValueError(f"dtype {dtype!r} is not known here; there are {', '.join(BYTES)}")
    return BYTES[dtype]


def _positive(**sizes: float) -> None:
    for name, size in sizes.items():
        if not size >= 1:
            raise ValueError(f"{name} is 1 or more, found {size}")


def gemm(m: int, k: int, n: int, dtype: str = "bf16") -> Work:
    """[m, k] times [k, n]: 2mkn FLOP; both are read once and the product is written once.

    All three matrices have that dtype; what stays on the chip, such as FP32 sums, is not moved.

    >>> gemm(512, 512, 512).flops
    268435456
    """
    _positive(m=m, k=k, n=n)
    moved = (m * k + k * n + m * n) * width_bytes(dtype)
    return Work(f"GEMM {m} x {k} x {n} {dtype}", 2 * m * k * n, moved)


def attention(
    batch: int, heads: int, length: int, head_width: int, dtype: str = "bf16", fused: bool = True
) -> Work:
    """Attention over q, k, v of [batch, heads, length, head_width] each, without a mask.

    Its two matrix products are counted, 4 batch heads length^2 head_width FLOP; the softmax between
    them is not. Fused, q, k and v are read and the result is written. Otherwise the [length,
    length] scores go through memory too: written, read by the softmax, written, read again.
    (Dao et al., "FlashAttention", NeurIPS 2022, section 3 and algorithm 0.)
    """
    _positive(batch=batch, heads=heads, length=length, head_width=head_width)
    rows = batch * heads * length
    values = 4 * rows * head_width + (0 if fused else 4 * rows * length)
    return Work(
        f"attention {batch} x {heads} x {length} x {head_width} {dtype}"
        + ("" if fused else " unfused"),
        4 * rows * length * head_width,
        values * width_bytes(dtype),
    )


def elementwise(
    elements: int, dtype: str = "bf16", inputs: int = 1, flops_per_element: float = 1
) -> Work:
    """One operator on each element: `inputs` tensors are read and one is written."""
    _positive(elements=elements, inputs=inputs)
    moved = (inputs + 1) * elements * width_bytes(dtype)
    return Work(f"elementwise {elements} {dtype}", flops_per_element * elements, moved)


def embedding(tokens: int, width: int, dtype: str = "bf16", rows: int = 1) -> Work:
    """`tokens` results of [width], each the sum of `rows` rows of a table.

    With rows=1 it only copies: 0 FLOP. The identifiers, 4 bytes each, are read too.
    """
    _positive(tokens=tokens, width=width, rows=rows)
    moved = (rows + 1) * tokens * width * width_bytes(dtype) + 4 * rows * tokens
    return Work(f"embedding {tokens} x {width} {dtype}", (rows - 1) * tokens * width, moved)


@dataclass(frozen=True)
class Estimate:
    """The least time that a piece of work can take, and why.

    seconds: that bound. bound: "compute" or "memory". intensity: of the work, FLOP per byte.
    flops_per_s: work done per second if the bound is reached. efficiency: that as a share of the
    machine's rate.
    """

    work: Work
    machine: Machine
    dtype: str
    memory: str
    seconds: float
    bound: str
    intensity: float
    flops_per_s: float
    efficiency: float


def bandwidth(machine: Machine, memory: str = "hbm") -> float:
    """Bytes per second that the cores get from memory: "hbm" as printed, or what the "dma" engines
    reach, if that is known.
    """
    if memory not in ("hbm", "dma"):
        raise ValueError(f"memory is 'hbm' or 'dma', found {memory!r}")
    if memory == "hbm":
        return machine.hbm_bytes_per_s
    if machine.dma_bytes_per_s is None:
        raise ValueError(f"{machine.name} has no rate of DMA engines here: use memory='hbm'")
    return machine.dma_bytes_per_s


def ridge(machine: Machine, dtype: str, memory: str = "hbm") -> float:
    """FLOP per byte from which on a machine is bound by compute."""
    return machine.rate(dtype) / bandwidth(machine, memory)


def bound(work: Work, machine: Machine, dtype: str, memory: str = "hbm") -> Estimate:
    """The longer of computing and moving, as if the two overlapped perfectly."""
    rate = machine.rate(dtype)
    computing, moving = work.flops / rate, work.bytes / bandwidth(machine, memory)
    seconds = max(computing, moving)
    return Estimate(
        work=work,
        machine=machine,
        dtype=dtype,
        memory=memory,
        seconds=seconds,
        bound="compute" if computing >= moving else "memory",
        intensity=work.intensity,
        flops_per_s=work.flops / seconds,
        efficiency=computing / seconds,
    )
