"""What annotations say: the collectives that a divided training step needs, by kind, number and
bytes, before any compiler has seen it. And how far gradients may differ by rounding alone.

Bytes are those of the result on one device, as `Collective.bytes` counts them.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from utils.xla.spmd.layouts import Spec

BYTES = 4
"""Of a float32 number."""

SUMS_OF_THE_LOSS = 3
"""A mean cross entropy over a divided batch adds up the losses and counts the targets that are not
to be ignored; the gradient counts them once more.
"""


@dataclass(frozen=True)
class Step:
    """One training step of a GPT.

    shapes: of the parameters, by name.
    specs: how they are divided, see `utils.xla.spmd.layouts`; not named is not divided.
    axes: devices along each axis of the mesh, such as {"data": 2, "model": 2}.
    batch, length, width: of the activations, [batch, length, width] without division.
    pairs: of a matrix by columns and one by rows.
    """

    shapes: Mapping[str, tuple[int, ...]]
    specs: Mapping[str, Spec]
    axes: Mapping[str, int]
    batch: int
    length: int
    width: int
    pairs: int = 0

    def part(self, name: str, *kept_whole: str) -> float:
        """Bytes of a parameter on one device, or of its parts gathered over some axes."""
        divided = {axis for axis in self.specs.get(name, ()) if axis} - set(kept_whole)
        shares = math.prod(self.axes.get(axis, 1) for axis in divided)
        return BYTES * math.prod(self.shapes[name]) / shares

    def over_data(self, name: str) -> bool:
        """Whether a parameter is divided over the axis "data"."""
        return "data" in self.specs.get(name, ())


def collectives(step: Step, reduce_scatter: bool = False) -> dict[str, tuple[int, float]]:
    """Kind -> (number, bytes) of one step, in the form of `utils.xla.spmd.totals`.

    Each device has its part of the batch, so every gradient is a sum over the axis "data". A
    parameter that is divided over "data" itself is gathered before use, and, if it is the matrix
    of a product, again for the gradient of the product's input; its own gradient is needed in
    parts only. The table of positions is the exception: all devices look up the same rows, so each
    takes those that it has and the rows found are added up. A pair by columns and rows adds up one
    activation on the way forward and one on the way back. XLA's CPU compiler keeps to all this,
    except that with parameters divided over one of two axes it permutes parts as well.

    reduce_scatter: add up gradients of divided parameters in parts, as an accelerator does. XLA's
        CPU compiler adds up the whole and then takes its part.
    """
    results: dict[str, list[float]] = {}
    data, model = step.axes.get("data", 1), step.axes.get("model", 1)
    for name, shape in step.shapes.items() if data > 1 else ():
        gathered = step.part(name, "data")
        if not step.over_data(name):
            results.setdefault("all-reduce", []).append(gathered)
            continue
        if name == "positions.weight":
            results.setdefault("all-reduce", []).append(BYTES * step.length * step.width)
        else:
            product = len(shape) == 2 and name != "tokens.weight"
            results.setdefault("all-gather", []).extend([gathered] * (2 if product else 1))
        if reduce_scatter:
            results.setdefault("reduce-scatter", []).append(step.part(name))
        else:
            results.setdefault("all-reduce", []).append(gathered)
    if data > 1:
        results.setdefault("all-reduce", []).extend([BYTES] * SUMS_OF_THE_LOSS)
    if model > 1 and step.pairs:
        activation = BYTES * step.batch * step.length * step.width / data
        results.setdefault("all-reduce", []).extend([activation] * (2 * step.pairs))
    return {kind: (len(item), float(sum(item))) for kind, item in sorted(results.items())}


def additions(width: int, length: int, batch: int, layers: int, vocabulary: int) -> int:
    """Number of additions one after the other on the longest way from the input through the loss
    to a gradient of `utils.xla.networks.TinyGPT`, if every sum runs term by term.

    Forward a block adds over width in three products (qkv, project, up), over 4 x width in one
    (down), over width twice in each of two norms, and in the attention over a head's part of width
    (at most width), over length in the softmax and over length in the weighted values. Back, each
    product adds for the gradient of its input over its outputs, which are 9 x width in all, and
    norms and attention as before. The head adds over width and back over the vocabulary, as the
    softmax of the loss does; the mean of the loss and the gradient of a weight add over all tokens.

    >>> additions(width=64, length=32, batch=8, layers=2, vocabulary=96)
    4512
    """
    norms, attention = 4 * width, width + 2 * length
    forward = 3 * width + 4 * width + norms + attention
    back = 9 * width + norms + attention
    ends = 2 * width + 3 * vocabulary + 2 * batch * length
    return layers * (forward + back) + ends


SIGMAS = 4
"""Bounds of this many standard deviations are missed by 1 of 16,000 sums."""


def tolerance(additions: int) -> float:
    """How far two correct ways to add may be apart, relative to the size of what is added.

    A float32 addition errs by at most u = 2**-24 of its result. n of them in the worst case err by
    n * u. Roundings go up and down, though, and as independent ones add up like steps of a random
    walk: to about sqrt(n) * u (N. Higham and T. Mary, SIAM J. Sci. Comput. 41(5), 2019, A2815).
    Two results differ by sqrt(2) times that; `SIGMAS` is room.

    >>> f"{tolerance(4512):.1e}"
    '2.3e-05'
    """
    return SIGMAS * math.sqrt(2 * additions) * 2.0**-24
