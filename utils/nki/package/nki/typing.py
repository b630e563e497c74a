"""nki.typing: annotations of a kernel's parameters, such as `x: nt.tensor[128, 512]`."""

from typing import Any

from utils.nki.simulator import surface as _surface


class tensor:  # noqa: N801 (NKI's own spelling)
    """The annotation of a tensor; `tensor[rows, columns]` says its shape to the reader."""

    shape: tuple[Any, ...] = ()

    def __class_getitem__(cls, shape: Any) -> type:
        sizes = shape if isinstance(shape, tuple) else (shape,)
        return type("tensor", (cls,), {"shape": sizes})


def __getattr__(name: str) -> object:
    return _surface.outside(__name__, name)
