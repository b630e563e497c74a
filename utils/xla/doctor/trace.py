"""What one run of a step records: every operator on the XLA device, with its arguments and the line
of user code that asked for it.

torch's own dispatch mode sees the operators, including those of backward and of the optimizer; the
graph that is recorded is the same with and without it. What the doctor knows of operators by their
names stands here, too.
"""

import linecache
import math
import re
import sys
import sysconfig
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import TreeSpec, tree_flatten

from utils.xla.doctor.arguments import scalars, with_defaults

_LIBRARIES = tuple({sysconfig.get_path(name) for name in ("stdlib", "platlib", "purelib")})
_HERE = tuple(str(Path(__file__).parents[1] / name) for name in ("doctor", "dryrun"))
"""Instruments: their lines are never the user's."""
_CELL = re.compile(r"ipykernel_\d+|^<ipython-input|^<.*cell.*>$")
_SILENT = ("profiler", "prim")
"""Namespaces of operators that record nothing."""


# Operators by their names without overload, as `Call.name` gives them.
RESHAPES = {"view", "unsafe_view", "expand", "as_strided", "repeat", "zeros", "ones", "full"}
RESHAPES |= {"empty", "new_zeros", "new_ones", "new_empty", "slice_backward", "select_backward"}
RESHAPES |= {"embedding_dense_backward", "sum", "index_put", "unfold"}
"""Operators whose sizes follow from the shape of a tensor, as a rule."""
IGNORED = {"detach", "alias", "lift_fresh"}
VIEWS = {"t", "transpose", "permute", "view", "expand", "slice", "select", "unsqueeze", "squeeze"}
VIEWS |= {"propagate_xla_data", "as_strided", "split", "split_with_sizes", "unbind"}
"""Recorded again whenever a parameter has changed under its view: no branch by themselves."""
CREATE = {"zeros", "zeros_like", "ones", "full", "full_like", "empty", "empty_like"}
CREATE |= {"ones_like", "new_zeros", "to", "tensor", "scalar_tensor", "fill", "zero"}
DATA_DEPENDENT = {"nonzero", "masked_select", "unique2", "unique_dim", "unique_consecutive"}
DATA_DEPENDENT |= {"repeat_interleave", "bincount", "argwhere"}

WRITES = ("index_put", "index_put_impl_")


@dataclass(frozen=True)
class Where:
    """A line of source code. `file` is a name, not a path."""

    file: str
    line: int
    source: str

    def __str__(self) -> str:
        place = f"cell line {self.line}" if self.file == "cell" else f"{self.file}:{self.line}"
        return f"{place}: {self.source}" if self.source else place


@dataclass(frozen=True, repr=False)
class Spec:
    """What a graph knows of a tensor. `value` is set for a tensor of no dimensions on the host,
    because torch_xla treats it like a Python number.
    """

    shape: tuple[int, ...]
    dtype: torch.dtype
    device: str
    value: float | int | bool | complex | None = None

    def __repr__(self) -> str:
        of = "" if self.value is None else f" = {self.value!r}"
        return f"a tensor {self.shape} of {self.dtype} on {self.device}{of}"


@dataclass(frozen=True)
class Call:
    """One operator as it was recorded.

    leaves: its arguments, flattened, with a `Spec` in place of each tensor.
    scalars: for each leaf, whether it is a number that torch_xla may upload as an input.
    library: the line of the innermost file that is not the user's, such as "sgd.py:350".
    optimizer, backward, gradients: whether it ran inside `torch.optim`, inside of backward, and
        with gradients recorded.
    value: the number that it has read from the device.
    compiles, executions, reads: what it caused at once.
    fallbacks: the operators that it ran on the host.
    switched: the lines before it, since the last operator, that have changed a requires_grad.
    """

    operator: str
    target: Callable[..., Any]
    leaves: tuple[Any, ...]
    tree: TreeSpec
    scalars: tuple[bool, ...]
    results: tuple[Spec, ...]
    where: Where | None
    library: str
    optimizer: bool
    backward: bool
    gradients: bool
    value: float | int | bool | None = None
    compiles: int = 0
    executions: int = 0
    reads: int = 0
    fallbacks: tuple[str, ...] = ()
    switched: tuple[Where, ...] = ()

    @property
    def name(self) -> str:
        """The operator without its overload: "slice" of "aten.slice_copy.Tensor"."""
        return _bare(self.operator)

    @property
    def tensors(self) -> tuple[Spec, ...]:
        """Those of its arguments that are tensors."""
        return tuple(leaf for leaf in self.leaves if isinstance(leaf, Spec))


Kept = tuple[str, Where | None]
"""A result that is alive: the operator with its shape, and the line."""


def data_dependent(call: Call) -> bool:
    """Whether the shape of its result, or of something in it, is decided by values."""
    by_mask = call.name in ("index", *WRITES) and any(
        tensor.dtype is torch.bool for tensor in call.tensors[1:]
    )
    return by_mask or call.name in DATA_DEPENDENT


def uploaded(call: Call) -> bool:
    """Whether it moves a tensor from the host, which is then an input of the graph and no operator
    of it. (A number without dimensions may be a constant.)
    """
    moved = call.name == "to" and any(s.device == "cpu" and s.shape for s in call.tensors)
    return moved and any(result.device == "xla" for result in call.results)


@dataclass(frozen=True)
class Trace:
    """One run of a step: its batch, its operators, and at each step marker the results alive and
    the line. read: for a part of a step, what was read before it. cuts: for each read that ran a
    graph, how many of the calls came before it, and its line.
    """

    inputs: tuple[tuple[str, Any], ...]
    calls: tuple[Call, ...]
    kept: tuple[tuple["Kept", ...], ...]
    markers: tuple[Where | None, ...]
    read: tuple[Call, ...] = ()
    cuts: tuple[tuple[int, Where | None], ...] = ()

    def since_the_start(self, later: "Trace") -> "Trace":
        """What was recorded after the last read that `later` does not repeat: a program evaluates
        once before it trains, and that has graphs of its own.
        """
        again = {where for _, where in later.cuts}
        start = max((place for place, where in self.cuts if where not in again), default=0)
        return replace(self, calls=self.calls[start:])

    def without_the_tail(self, first: "Trace") -> "Trace":
        """Without what only a read after the step before has asked for, if `first` has none of it:
        before the first step was none.
        """
        result = self.since_the_start(first)
        left_out = self.calls[: len(self.calls) - len(result.calls)]
        lines = {call.where for call in first.calls}
        return self if any(call.where in lines for call in left_out) else result


def elements(leaf: Any) -> int:
    """Of a tensor; 0 for any other argument."""
    return math.prod(leaf.shape) if isinstance(leaf, Spec) else 0


def spec(value: Any) -> Any:
    """A `Spec` for a tensor, any other value as it is."""
    if not isinstance(value, torch.Tensor):
        return value
    number = None
    if value.device.type == "cpu" and value.dim() == 0:
        number = value.item()
        if value.dtype is torch.float32:
            number = float(f"{number:.7g}")  # 0.1, and not 0.10000000149011612
    return Spec(tuple(value.shape), value.dtype, value.device.type, number)


@dataclass
class Recorder:
    """Records while its with-block is open. `runner` is the code below which no line is the
    user's.
    """

    runner: Any
    calls: list[Call] = field(default_factory=list)
    kept: list[tuple[Kept, ...]] = field(default_factory=list)
    markers: list[Where | None] = field(default_factory=list)

    def __enter__(self) -> "Recorder":
        import torch_xla

        self._thread = threading.get_ident()
        self._results: list[tuple[Kept, Any]] = []
        self._switched: list[Where] = []
        self._modes = (_Constructors(self), _Operators(self))
        self._marker = torch_xla._XLAC._xla_step_marker
        entered = []
        try:
            for mode in self._modes:
                mode.__enter__()
                entered.append(mode)
        except BaseException:
            for mode in reversed(entered):
                mode.__exit__(None, None, None)
            raise
        # A step marker is a function of the compiled module and leaves no trace in a mode.
        torch_xla._XLAC._xla_step_marker = self._before_marker
        return self

    def __exit__(self, *error: Any) -> None:
        import torch_xla

        torch_xla._XLAC._xla_step_marker = self._marker
        for mode in reversed(self._modes):
            mode.__exit__(*error)

    def mark(self) -> None:
        """Note which results are alive: those are what the graph returns."""
        self.kept.append(tuple(label for label, result in self._results if not result.expired()))
        self._results.clear()

    def _before_marker(self, *args: Any, **kwargs: Any) -> Any:
        self.mark()
        self.markers.append(self._lines(sys._getframe(1))[0])
        return self._marker(*args, **kwargs)

    def run(self, target: Callable[..., Any], args: Any, kwargs: Any, overload: Any) -> Any:
        """Call an operator and note it down."""
        before = _counts()
        out = target(*args, **kwargs)
        args, kwargs = with_defaults(overload, args, kwargs)
        leaves, tree = tree_flatten((args, kwargs))
        made = [entry for entry in tree_flatten(out)[0] if isinstance(entry, torch.Tensor)]
        results = [spec(entry) for entry in made]
        leaves = tuple(spec(leaf) for leaf in leaves)
        on_xla = any(isinstance(e, Spec) and e.device == "xla" for e in (*leaves, *results))
        if not on_xla or str(target).split(".")[0] in _SILENT:
            return out
        operator = str(target) if overload is not None else "torch.tensor"
        where, library, backward = self._place()
        for item in made:
            label = f"{_bare(operator)} {tuple(item.shape)}"
            # A weak reference of C++: one of Python's would end with the object that is seen here.
            self._results.append(((label, where), torch._C._WeakTensorRef(item)))
        switched, self._switched = tuple(self._switched), []
        self.calls.append(
            Call(
                operator=operator,
                target=target,
                leaves=leaves,
                tree=tree,
                scalars=scalars(overload, args, kwargs),
                results=tuple(results),
                where=where,
                library=library,
                optimizer="torch/optim/" in library,
                backward=backward,
                gradients=torch.is_grad_enabled(),
                value=out if isinstance(out, int | float) else None,
                switched=switched,
                **_since(before),
            )
        )
        return out

    def switch(self) -> None:
        """Note the line that changes a requires_grad."""
        where = self._lines(sys._getframe(2))[0]
        self._switched += [where] if where else []

    def _place(self) -> tuple[Where | None, str, bool]:
        """The user's line, the line in a library, and whether this is backward: that runs in a
        thread of its own, whose caller waits in the line with `backward()`.
        """
        frame, backward = sys._getframe(2), threading.get_ident() != self._thread
        user, library = self._lines(frame)
        if backward and user is None:
            user, _ = self._lines(sys._current_frames().get(self._thread))
        return user, library, backward

    def _lines(self, frame: FrameType | None) -> tuple[Where | None, str]:
        library = ""
        while frame is not None and frame.f_code is not self.runner:
            file = frame.f_code.co_filename
            if file.startswith(_HERE):
                pass
            elif file.startswith(_LIBRARIES) or file.startswith("<frozen"):
                inner = "/torch/optim/" in file and "/torch/optim/" not in library
                if inner or (not library and "torch/utils/_python_dispatch" not in file):
                    library = f"{file}:{frame.f_lineno}"
            else:
                source = linecache.getline(file, frame.f_lineno).strip()
                name = "cell" if _CELL.search(file) else Path(file).name
                return Where(name, frame.f_lineno, source), library
            frame = frame.f_back
        return None, library


class _Operators(TorchDispatchMode):
    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self.recorder = recorder

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self.recorder.run(func, args, kwargs or {}, func)


class _Constructors(TorchFunctionMode):
    """`torch.tensor(0.5, device=...)` reaches the operators without its number, and requires_grad
    does not at all.
    """

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self.recorder = recorder

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is torch.tensor and args and isinstance(args[0], int | float):
            return self.recorder.run(func, args, kwargs, None)
        if func in _SWITCHES and args[0].requires_grad != (*args[1:], *kwargs.values(), True)[0]:
            self.recorder.switch()
        return func(*args, **kwargs)


_SWITCHES = (torch.Tensor.requires_grad_, torch.Tensor.requires_grad.__set__)


def _bare(operator: str) -> str:
    return operator.split(".")[1].removesuffix("_copy").removeprefix("_")


def pending() -> bool:
    """Whether anything on the device is recorded and not computed yet."""
    import torch_xla

    waiting = torch_xla._XLAC._check_device_tensor_need_materialization(str(torch_xla.device()))
    return any(waiting)


def _counts() -> dict[str, int]:
    import torch_xla.debug.metrics as metrics

    names = [n for n in metrics.counter_names() if n.startswith("aten::") or n in _LAUNCHES]
    return {name: metrics.counter_value(name) for name in names}


_LAUNCHES = ("UncachedCompile", "CachedCompile")


def _since(before: dict[str, int]) -> dict[str, Any]:
    after = _counts()
    more = {name: count - before.get(name, 0) for name, count in after.items()}
    fallbacks = (name for name, count in more.items() if name.startswith("aten::") and count > 0)
    return {
        "compiles": more.get("UncachedCompile", 0),
        "executions": sum(more.get(name, 0) for name in _LAUNCHES),
        "reads": more.get("aten::_local_scalar_dense", 0),
        "fallbacks": tuple(n for n in fallbacks if n != "aten::_local_scalar_dense"),
    }
