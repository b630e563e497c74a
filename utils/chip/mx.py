"""OCP Microscaling (MX): blocks of small numbers that share one power of two.

Source: OCP Microscaling Formats (MX) Specification, version 1.0, sections 5 and 6.3.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from utils.chip.formats import FORMATS, Format, format_of, round_to, widen

ELEMENTS = ("e4m3fn", "e5m2", "e3m2", "e2m3", "e2m1")
SCALE = FORMATS["e8m0"]
NAN_SCALE = SCALE.max_exponent + 1  # the exponent whose code is NaN


@dataclass(frozen=True, eq=False)
class MX:
    """Numbers in blocks: each is its element times two to the power of its block's scale.

    elements: values of the format `element`, float32, shape as what was quantised.
    scales: exponents, int16, one per block; NAN_SCALE marks a block that is NaN throughout.
    block: the size of a block along each axis, so each axis of scales is that much shorter.
    """

    scales: np.ndarray
    elements: np.ndarray
    element: Format
    block: tuple[int, ...]

    @property
    def scale_codes(self) -> np.ndarray:
        """The scales as stored, one byte of E8M0 each; shape as scales."""
        return (self.scales + SCALE.bias).astype(np.uint8)

    @property
    def element_codes(self) -> np.ndarray:
        """The elements as stored, one code each, not packed; shape as elements."""
        return self.element.encode(self.elements)

    @property
    def bits_per_value(self) -> float:
        """Storage with the share of the scale."""
        return self.element.bits + SCALE.bits / math.prod(self.block)

    def dequantise(self) -> np.ndarray:
        """The numbers themselves, float64 (a product may be below the range of FP32)."""
        factors = SCALE.decode(self.scale_codes)
        for axis, size in enumerate(self.block):
            factors = np.repeat(factors, size, axis=axis)
        return self.elements * factors


def quantise(x: Any, element: str | Format = "e4m3fn", block: int = 32, headroom: int = 0) -> MX:
    """x in blocks of `block` neighbours of a row, by the sample algorithm of the specification.

    The scale of a block is 2**(floor(log2(largest magnitude)) - emax), emax the exponent of the
    element format's largest number; an element is the value over the scale, rounded to nearest, at
    most the format's maximum. headroom doubles the scale that many times: with 0 a block's largest
    values may be cut off, with 1 they never are, which is what Trainium3's quantize_mx does.

    A block of zeros gets the smallest scale. A block with NaN or infinity, or too large for any
    scale, becomes NaN. ValueError: another element, or rows that are no multiple of block.

    >>> block = quantise([0.1, -2.0, 7.9, 0.0], "e2m1", block=4)
    >>> block.scales.tolist(), block.elements.tolist()
    ([0], [0.0, -2.0, 6.0, 0.0])
    """
    x = np.asarray(x)
    if not x.ndim:
        raise ValueError("one number is no block: give rows of them")
    return _quantise(x, element, (1,) * (x.ndim - 1) + (block,), headroom)


def quantise_tile(x: Any, element: str | Format = "e4m3fn", headroom: int = 1) -> MX:
    """A tile (partitions, free) in the blocks of Trainium3: 8 partitions by 4 neighbours.

    Scales have the shape (partitions / 8, free / 4). Source: NKI documentation, nisa.quantize_mx.
    """
    x = np.asarray(x)
    if x.ndim != 2:
        raise ValueError(f"a tile has partitions and a free axis, found shape {x.shape}")
    return _quantise(x, element, (8, 4), headroom)


def _quantise(x: np.ndarray, element: str | Format, sizes: tuple[int, ...], headroom: int) -> MX:
    form = format_of(element)
    if form.name not in ELEMENTS:
        raise ValueError(f"elements of MX blocks are {', '.join(ELEMENTS)}, found {form.name}")
    if any(size < 1 or length % size for length, size in zip(x.shape, sizes, strict=True)):
        raise ValueError(f"shape {x.shape} does not divide into blocks of {sizes}: pad it")
    wide, _ = widen(x)
    split = [n for length, size in zip(x.shape, sizes, strict=True) for n in (length // size, size)]
    blocks = wide.reshape(split)
    within = tuple(range(1, 2 * x.ndim, 2))
    largest = np.abs(blocks).max(axis=within, keepdims=True)
    _, exponents = np.frexp(np.where(np.isfinite(largest), largest, 0))  # largest = [1/2, 1) x 2**e
    scales = exponents - 1 - form.max_exponent + headroom
    scales = np.where(largest > 0, np.maximum(scales, SCALE.min_exponent), SCALE.min_exponent)
    lost = ~np.isfinite(largest) | (scales > SCALE.max_exponent)
    ratios = np.where(lost, 0, blocks) / np.ldexp(1.0, np.where(lost, 0, scales))
    return MX(
        np.where(lost, NAN_SCALE, scales).astype(np.int16).squeeze(within),
        round_to(ratios, form, saturate=True).astype(np.float32).reshape(x.shape),
        form,
        sizes,
    )
