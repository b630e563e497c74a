"""nki.dtype: the data types, which published kernels also name in annotations."""

from utils.nki.simulator import dtypes as _dtypes

globals().update(
    {("bool_" if name == "bool" else name): item for name, item in _dtypes.ALL.items()}
)
__all__ = sorted("bool_" if name == "bool" else name for name in _dtypes.ALL)
