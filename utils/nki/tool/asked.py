"""What the command line says: a kernel of a file, shapes of arrays, arguments by name.

>>> shape_of("128x512:bfloat16")
Shape(shape=(128, 512), dtype='bfloat16')
>>> argument_of("tile=256"), argument_of("kind=fast")
(('tile', 256), ('kind', 'fast'))
"""

import ast
import importlib.util
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from utils.nki import simulator
from utils.nki.simulator.arrays import Shape
from utils.nki.simulator.dtypes import ALL, dtype_of
from utils.nki.simulator.launch import Kernel, jit
from utils.nki.tool.failures import Refused, author_errors


@dataclass(frozen=True)
class Asked:
    """A kernel and what it is called with. path, name: its file, and its name there."""

    path: Path
    name: str
    shapes: tuple[Shape, ...]
    arguments: dict[str, Any]
    cores: int = 1

    def kernel(self, constants: dict[str, Any] | None = None) -> tuple[Kernel, dict[str, Any]]:
        """The kernel, and its arguments by name. `constants` are arguments too, or names that the
        file sets at its top. Raises Refused, KernelFailed.
        """
        module = load(self.path)
        kernel = jit(function_of(module, self.path, self.name))[self.cores]
        names = kernel.function.__code__.co_varnames[: _parameters(kernel.function)]
        given = dict(self.arguments)
        for name, value in (constants or {}).items():
            if name in names:
                given[name] = value
            elif hasattr(module, name):
                setattr(module, name, value)
            else:
                raise Refused(
                    f"{name} is neither an argument of {self.name} ({', '.join(names)}) nor a name "
                    f"at the top of {self.path.name}"
                )
        return kernel, given


def _parameters(function: Callable[..., Any]) -> int:
    return function.__code__.co_argcount + function.__code__.co_kwonlyargcount


def place_of(text: str) -> tuple[Path, str]:
    """FILE::NAME as a file that is there and a name."""
    file, sign, name = text.rpartition("::")
    if not sign or not name.isidentifier():
        raise Refused(f"{text!r} names no kernel; write FILE::KERNEL, such as matmul.py::tiled")
    return existing(file), name


def existing(file: str | Path) -> Path:
    """A file that is there."""
    if not Path(file).is_file():
        raise Refused(f"there is no file {str(file)!r}")
    return Path(file).resolve()


def shape_of(text: str) -> Shape:
    """SIZExSIZE:TYPE as the shape of an array; without a type it is float32."""
    sizes, _, dtype = text.partition(":")
    if not re.fullmatch(r"[1-9]\d*(x[1-9]\d*)*", sizes):
        raise Refused(f"{text!r} is no shape; write sizes and a type, such as 128x512:bfloat16")
    if (dtype or "float32") not in ALL:
        raise Refused(f"{text!r}: {dtype!r} is no data type; there are {', '.join(ALL)}")
    return Shape(tuple(map(int, sizes.split("x"))), dtype or "float32")


def shape_text(shape: Shape) -> str:
    """The other way.

    >>> shape_text(Shape((4, 8)))
    '4x8:float32'
    """
    return f"{'x'.join(map(str, shape.shape))}:{shape.dtype}"


def argument_of(text: str) -> tuple[str, Any]:
    """NAME=VALUE; the value is a literal of Python, otherwise a text."""
    name, sign, value = text.partition("=")
    if not sign or not name.isidentifier():
        raise Refused(f"{text!r} is no argument; write NAME=VALUE, such as block=4")
    return name, literal(value)


def choices_of(text: str) -> tuple[str, tuple[Any, ...]]:
    """NAME=VALUE,VALUE with two values or more, each once.

    >>> choices_of("TILE=128,256")
    ('TILE', (128, 256))
    """
    name, _, rest = text.partition("=")
    values = [literal(item) for item in rest.split(",") if item]
    if not name.isidentifier() or not values or len(set(map(repr, values))) < len(values):
        raise Refused(f"{text!r} is no choice; write NAME=VALUE,VALUE with different values")
    return name, tuple(values)


def literal(text: str) -> Any:
    """A value as Python reads it, or the text."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def load(path: Path) -> ModuleType:
    """The module of a file, run anew. Raises Refused, or KernelFailed for what it raises."""
    simulator.use()
    try:
        ast.parse(path.read_text(encoding="utf-8"))
    except (SyntaxError, UnicodeDecodeError, ValueError) as error:
        line = getattr(error, "lineno", None)
        place = f"{path}:{line}" if line else str(path)
        raise Refused(f"{place} is not valid Python: {getattr(error, 'msg', error)}") from None
    name = f"_nki_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise Refused(f"{path} is no file of Python: its name ends in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and lint look a module up by its name
    sys.path.insert(0, str(path.parent))
    try:
        with author_errors():
            spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(path.parent))
    return module


def function_of(module: ModuleType, path: Path, name: str) -> Any:
    """A function of a file. Raises Refused with those that are there."""
    made = vars(module).get(name)
    if not callable(made):
        there = [key for key, value in vars(module).items() if isinstance(value, Kernel)]
        raise Refused(f"{path.name} has no {name}; its kernels: {', '.join(there) or 'none'}")
    return made


def made_arrays(shapes: Sequence[Shape], seed: int = 0) -> list[np.ndarray]:
    """Arrays of these shapes: normal numbers, or integers from 0 to 7; the same for a seed."""
    rng = np.random.default_rng(seed)
    results = []
    for shape in shapes:
        dtype = dtype_of(shape.dtype)
        is_float = dtype.kind == "float"
        values: np.ndarray = (
            rng.standard_normal(shape.shape) if is_float else rng.integers(0, 8, shape.shape)
        )
        results.append(values.astype(dtype.numpy))
    return results
