"""The data types of NKI: how they are stored, and the one rounding that every write does.

Arithmetic reads a tile, widens it to FP32, computes, and rounds once when it writes. Storage uses
ml_dtypes, whose casts round to the nearest even as the hardware does (AWS, NKI data types:
https://awsdocs-neuron.readthedocs-hosted.com/en/latest/nki/api/nki.api.shared.html).
"""

from typing import Any

import ml_dtypes
import numpy as np

from utils.nki.simulator.errors import refuse


class DType(str):
    """A data type of NKI; also a plain string, as in the official package.

    >>> bfloat16 == "bfloat16", bfloat16.itemsize
    (True, 2)
    """

    __slots__ = ("itemsize", "kind", "numpy", "packed")
    itemsize: int
    kind: str
    numpy: np.dtype
    packed: int

    def __new__(cls, name: str, storage: Any, kind: str, packed: int = 1) -> "DType":
        made = super().__new__(cls, name)
        made.numpy = np.dtype(storage)
        made.itemsize = made.numpy.itemsize
        made.kind = kind
        made.packed = packed
        return made

    def __repr__(self) -> str:
        return f"nl.{self}"

    def __reduce__(self) -> tuple[Any, ...]:
        return dtype_of, (str(self),)  # a copy or a pickle is the same type

    __hash__ = str.__hash__

    @property
    def is_float(self) -> bool:
        """Whether an element is one floating point number."""
        return self.kind == "float"

    @property
    def is_fp8(self) -> bool:
        """Whether an element is one FP8 number."""
        return self.startswith("float8_e") and self.packed == 1 and self != "float8_e8m0fnu"


bool_ = DType("bool", np.uint8, "int")
uint8 = DType("uint8", np.uint8, "int")
int8 = DType("int8", np.int8, "int")
uint16 = DType("uint16", np.uint16, "int")
int16 = DType("int16", np.int16, "int")
uint32 = DType("uint32", np.uint32, "int")
int32 = DType("int32", np.int32, "int")
int64 = DType("int64", np.int64, "int")
float8_e4m3 = DType("float8_e4m3", ml_dtypes.float8_e4m3, "float")
float8_e4m3fn = DType("float8_e4m3fn", ml_dtypes.float8_e4m3fn, "float")
float8_e5m2 = DType("float8_e5m2", ml_dtypes.float8_e5m2, "float")
float8_e8m0fnu = DType("float8_e8m0fnu", ml_dtypes.float8_e8m0fnu, "float")
float16 = DType("float16", np.float16, "float")
bfloat16 = DType("bfloat16", ml_dtypes.bfloat16, "float")
tfloat32 = DType("tfloat32", np.float32, "float")
float32 = DType("float32", np.float32, "float")
float8_e5m2_x4 = DType("float8_e5m2_x4", np.uint32, "packed", 4)
float8_e4m3fn_x4 = DType("float8_e4m3fn_x4", np.uint32, "packed", 4)
float4_e2m1fn_x4 = DType("float4_e2m1fn_x4", np.uint16, "packed", 4)

ALL = {
    str(item): item
    for item in (
        bool_, uint8, int8, uint16, int16, uint32, int32,
        float8_e4m3, float8_e4m3fn, float8_e5m2, float8_e8m0fnu,
        float16, bfloat16, tfloat32, float32,
        float8_e5m2_x4, float8_e4m3fn_x4, float4_e2m1fn_x4,
    )
}  # fmt: skip
SCALAR = {"int32": int32, "int64": int64}
"""Types of `nisa.scalar_load` and `scalar_store` (NKI 0.7); nothing computes with int64."""

_BY_NUMPY = {item.numpy: item for item in ALL.values() if item.packed == 1 and item != "tfloat32"}
_BY_NUMPY[np.dtype(np.uint8)] = uint8
_BY_NUMPY[np.dtype(bool)] = bool_


def dtype_of(asked: Any) -> DType:
    """The NKI type of a name, an NKI type, or a NumPy type.

    >>> dtype_of(np.float16), dtype_of("bfloat16")
    (nl.float16, nl.bfloat16)
    """
    if isinstance(asked, DType):
        return asked
    if isinstance(asked, str) and asked in ALL:
        return ALL[asked]
    if isinstance(asked, str) and asked in SCALAR:
        return SCALAR[asked]
    name = str(asked).removeprefix("torch.")
    if name in ALL:
        return ALL[name]
    try:
        return _BY_NUMPY[np.dtype(asked)]
    except (TypeError, KeyError):
        wide = {"float64": "float32", "int64": "int32"}.get(str(getattr(asked, "__name__", asked)))
        raise refuse(
            f"{asked} is no data type of a NeuronCore.",
            f"Its types are {', '.join(ALL)}.",
            f"convert the array first: x.astype(np.{wide or 'float32'})",
        ) from None


_TF32_DROPPED = 13
"""FP32 has 23 bits of mantissa, TF32 keeps 10."""


def widen(raw: np.ndarray) -> np.ndarray:
    """Stored values as FP32. Integers beyond 2^24 lose low bits here, as on the hardware."""
    return raw if raw.dtype == np.float32 else raw.astype(np.float32)


def narrow(values: np.ndarray, dtype: DType, storage: np.dtype) -> np.ndarray:
    """FP32 values as they are stored: one rounding to nearest even.

    Floats beyond the format's maximum become infinity, or NaN where the format has none. Integers
    saturate, and NaN becomes 0. A float whose `storage` is FP32 is not rounded (NKI_PRECISE_FP=0),
    unless it is TF32, which is stored so; `Storage.narrow` knows which of the two it is.
    """
    if values.dtype != np.float32:
        with np.errstate(over="ignore", invalid="ignore"):
            values = values.astype(np.float32)
    if dtype.kind == "float":
        if dtype == "tfloat32":
            return _tf32(values)
        if storage == np.float32:
            return values
        with np.errstate(over="ignore", invalid="ignore"):
            return values.astype(storage)
    limits = np.iinfo(storage)
    whole = np.rint(np.nan_to_num(values.astype(np.float64), nan=0.0))
    return np.clip(whole, limits.min, limits.max).astype(storage)


def wrap(whole: np.ndarray, storage: np.dtype) -> np.ndarray:
    """Exact integers (int64) as 32-bit arithmetic leaves them: the low bits."""
    return whole.astype(storage)


def bits_of(raw: np.ndarray) -> np.ndarray:
    """Stored integers as unsigned words of the same width."""
    return raw.view(np.dtype(f"u{raw.dtype.itemsize}"))


def _tf32(values: np.ndarray) -> np.ndarray:
    """Rounded to 10 bits of mantissa, to nearest even; overflow carries into infinity."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    half = np.uint32((1 << (_TF32_DROPPED - 1)) - 1) + ((bits >> _TF32_DROPPED) & np.uint32(1))
    kept = (bits + half) & np.uint32(0xFFFFFFFF << _TF32_DROPPED & 0xFFFFFFFF)
    return np.where(np.isfinite(values), kept.view(np.float32), values)


def sentinel(dtype: DType) -> float:
    """What memory holds that nobody wrote: NaN, or 4, as in the official simulator."""
    return float("nan") if dtype.kind == "float" else 4
