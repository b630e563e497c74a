"""One instruction at a time: tiles with given contents and layouts, run, and what came of it.

Tiles are filled and read through their storage, so no instruction but the one under test matters.
"""

import math
import warnings
from collections.abc import Callable
from typing import Any

import ml_dtypes
import nki.isa as nisa
import nki.language as nl
import numpy as np
import pytest
from hypothesis import strategies as st

from utils.chip.formats import round_to
from utils.nki.simulator import launch
from utils.nki.simulator.errors import DoubtfulKernel, NkiValidationError
from utils.nki.simulator.lint.source import MayNotCompile

FORMAT = {
    "float32": "fp32", "tfloat32": "tf32", "bfloat16": "bf16", "float16": "fp16",
    "float8_e4m3": "e4m3", "float8_e4m3fn": "e4m3fn", "float8_e5m2": "e5m2",
}  # fmt: skip
NUMPY = {
    "float32": np.float32, "tfloat32": np.float32, "bfloat16": ml_dtypes.bfloat16,
    "float16": np.float16, "float8_e4m3": ml_dtypes.float8_e4m3,
    "float8_e4m3fn": ml_dtypes.float8_e4m3fn, "float8_e5m2": ml_dtypes.float8_e5m2,
    **{f"{sign}int{bits}": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32)},
}  # fmt: skip
LAYOUTS = ("plain", "stepped", "permuted", "shifted", "psum")


def issue(call: Callable[[], Any], target: str = "trn2", **options: Any) -> Any:
    """(program, what `call` returned) of a kernel that is `call`; warnings are errors."""
    kept = []
    with warnings.catch_warnings():
        warnings.simplefilter("error", DoubtfulKernel)
        warnings.simplefilter("ignore", MayNotCompile)
        program = launch.run(lambda: kept.append(call()), (), {}, target=target, **options)
    return program, kept[0]


def rounds(values: Any, dtype: str) -> np.ndarray:
    """`values` as a tile of `dtype` holds them, by the course's own formats."""
    values = np.asarray(values)
    if dtype in FORMAT:
        return round_to(values.astype(np.float32), FORMAT[dtype]).astype(np.float32)
    limits = np.iinfo(dtype)
    whole = np.rint(np.nan_to_num(values.astype(np.float64), nan=0.0))
    return np.clip(whole, limits.min, limits.max).astype(dtype)


def put(values: np.ndarray, dtype: str, layout: str = "plain") -> Any:
    """A tile of that shape with these values, lying in memory as `layout` says."""
    shape = np.shape(values)
    view = empty(shape, dtype, layout)
    view.array()[...] = np.asarray(values).astype(NUMPY[dtype])
    return view


def empty(shape: tuple[int, ...], dtype: str, layout: str = "plain") -> Any:
    """A tile of that shape, nobody's values in it."""
    partitions, *free = shape
    region = nl.psum if layout == "psum" else nl.sbuf
    if layout == "stepped":
        wide = nl.ndarray((partitions, *free[:-1], 2 * free[-1]), dtype, buffer=region)
        return wide[..., 1::2]
    if layout == "permuted" and len(free) > 1:
        turned = nl.ndarray((partitions, *free[::-1]), dtype, buffer=region)
        return turned.permute((0, *range(len(free), 0, -1)))
    if layout == "shifted" and partitions <= 32:
        return nl.ndarray((64, *free), dtype, buffer=region)[32 : 32 + partitions]
    return nl.ndarray(shape, dtype, buffer=region)


def result_of(
    instruction: Callable[..., Any], dst: tuple[Any, ...], target: str = "trn2", **operands: Any
) -> np.ndarray:
    """What an instruction writes into a tile. dst: its shape, or what it holds before, type and
    layout; operands that are arrays: values, type and layout."""

    def tile(place: Any) -> Any:
        has_values = isinstance(place, tuple) and isinstance(place[0], np.ndarray)
        return put(*place) if has_values else place

    def call() -> Any:
        into = tile(dst) if isinstance(dst[0], np.ndarray) else empty(*dst)
        instruction(dst=into, **{name: tile(operand) for name, operand in operands.items()})
        return into

    return read(issue(call, target)[1])


def t(shape: tuple[int, ...] = (4, 8), type_: str = "float32", at: str = "plain") -> Any:
    """A small tile whose values do not matter."""
    return empty(shape, type_, at)


def sbuf(array: Any) -> Any:
    """An argument of a kernel, copied to a tile."""
    tile = nl.ndarray(array.shape, dtype=array.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=array)
    return tile


def out(tile: Any, shape: tuple[int, ...] | None = None) -> Any:
    """A tile, copied to a result of the kernel."""
    made = nl.ndarray(shape or tile.shape, dtype=tile.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=made, src=tile)
    return made


def token(name: str) -> Any:
    """The operator of that name."""
    return getattr(nl, name)


def once(values: Any) -> np.ndarray:
    """FP64 rounded to FP32, as FP64 again."""
    with np.errstate(all="ignore"):
        return np.asarray(values, np.float64).astype(np.float32).astype(np.float64)


def read(tile: Any) -> np.ndarray:
    """The values of a tile; floats as FP32."""
    raw = tile.array()
    return raw.astype(np.float32) if tile.dtype.kind == "float" else raw.copy()


def same(result: np.ndarray, wanted: np.ndarray) -> None:
    """Equal bit for bit, but for the kinds of NaN and the sign of zero."""
    np.testing.assert_array_equal(result.reshape(np.shape(wanted)), wanted)


def cycles(call: Callable[[], Any], target: str = "trn2") -> tuple[str, float]:
    """(engine, cycles) of the last instruction that `call` issues."""
    program, _ = issue(call, target, values=False)
    last = program.instructions[-1]
    return last.engine.name, last.checked.cycles


def refuses(call: Callable[[], Any], *words: str, target: str = "trn2") -> None:
    """`call` breaks a rule; the message has these words, why, a fix, and the line."""
    with pytest.raises(NkiValidationError) as caught:
        issue(call, target, values=False)
    message = str(caught.value)
    assert all(part in message for part in ("\nWhy: ", "\nFix: ", "\nAt: ")), message
    for word in words:
        assert word.lower() in message.lower(), (word, message)


def breaks(kernel: Any, *words: str, arrays: tuple[Any, ...] = (), target: str = "trn2") -> str:
    """The kernel is refused with four parts and all the words, here and where only shapes exist."""
    texts = []
    for values in (True, False):
        with pytest.raises(NkiValidationError) as caught:
            launch.run(kernel, arrays, {}, values=values, target=target)
        texts.append(str(caught.value))
    for word in (*words, "\nWhy: ", "\nFix: ", f"\nAt: {kernel.__code__.co_filename}:"):
        assert word in texts[0], texts[0]
    assert texts[0] == texts[1]
    return texts[0]


def warns(call: Callable[[], Any], *words: str, target: str = "trn2", values: bool = True) -> None:
    """`call` runs, and says what is doubtful, every time it is run."""
    for _ in range(2):
        with pytest.warns(DoubtfulKernel) as caught:
            launch.run(lambda: call() and None, (), {}, target=target, values=values)
        message = "\n".join(str(item.message) for item in caught)
        for word in words:
            assert word in message, (word, message)


shapes = st.one_of(
    st.tuples(st.sampled_from((1, 3, 32, 64, 128)), st.integers(1, 24)),
    st.tuples(st.sampled_from((2, 32)), st.integers(1, 5), st.integers(1, 6)),
    st.tuples(st.just(4), st.integers(1, 3), st.integers(1, 4), st.integers(1, 3)),
)
layouts = st.sampled_from(LAYOUTS)
floats = st.sampled_from(("float32", "bfloat16", "float16", "float8_e4m3"))
types = st.sampled_from(("float32", "bfloat16", "float16", "tfloat32", "int32", "int8", "uint16"))
seeds = st.integers(0, 2**32 - 1)


def draw(seed: int, shape: tuple[int, ...], dtype: str, most: float = 4.0) -> np.ndarray:
    """Values that `dtype` holds exactly; floats of both signs up to about `most`."""
    rng = np.random.default_rng(seed)
    if dtype in FORMAT:
        return rounds(rng.uniform(-most, most, shape), dtype)
    limits = np.iinfo(dtype)
    low, high = max(limits.min, -100), min(limits.max, 100)
    return rng.integers(low, high + 1, shape).astype(dtype)


def rows_of(values: np.ndarray) -> np.ndarray:
    """(partitions, elements of a partition) as FP64 copies of FP32 values."""
    wide = np.asarray(values).astype(np.float32).astype(np.float64)
    return wide.reshape(wide.shape[0], math.prod(wide.shape[1:]))
