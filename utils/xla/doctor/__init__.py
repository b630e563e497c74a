"""The compile doctor: says why a step was compiled again, and where.

It runs the step once for each batch, notes every operator with its arguments and its line, and
explains each compile by what differs from an earlier run. The counts are those of
`utils.xla.meter`.
"""

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Any

from utils.course.shown import columns, html_table

_MOST = 64
"""Batches that are looked at, at most."""


@dataclass(frozen=True)
class Step:
    """One run of the step: `number` counts from 1; the counts are those of `meter.Reading`."""

    number: int
    compiles: int
    executions: int
    reads: int
    fallbacks: tuple[tuple[str, int], ...]
    graph_nodes: tuple[int, ...]


@dataclass(frozen=True)
class Cause:
    """Why a step was compiled again, or what else it should not do.

    kind: "shape", "dtype", "constant", "branch", "data-dependent", "first step", "kept" (other
        results are alive at the step marker) and "unknown" explain a compile. "read" and "fallback"
        run the graph in the middle of the step; "nothing ran" says that it never runs.
    where: the line of user code, such as "train.py:7: y = x[:n]"; "" where it is not known.
    """

    step: int
    kind: str
    what: str
    where: str
    advice: str


@dataclass(frozen=True, repr=False)
class Diagnosis:
    """What `diagnose` has found. Its repr is a short report."""

    steps: tuple[Step, ...]
    causes: tuple[Cause, ...]

    def of(self, step: int) -> tuple[Cause, ...]:
        """The causes of one step."""
        return tuple(cause for cause in self.causes if cause.step == step)

    def __repr__(self) -> str:
        lines = [_summary(self), *columns([_HEAD, *self._rows()], indent="")]
        for cause in self.causes:
            lines.append(f"step {cause.step}, {cause.kind}: {cause.what}")
            lines += [f"  at {cause.where}"] if cause.where else []
            lines.append(f"  write: {cause.advice}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        counts = html_table(_HEAD, self._rows(), _summary(self))
        found = [
            (str(c.step), c.kind, c.what, c.where and f"`{c.where.replace('`', '')}`", c.advice)
            for c in self.causes
        ]
        head = ("step", "cause", "what", "where", "what to write")
        return counts + (html_table(head, found, "Causes") if found else "")

    def _rows(self) -> list[tuple[str, ...]]:
        return [
            (
                str(step.number),
                str(step.compiles),
                str(step.executions),
                str(step.reads),
                ", ".join(dict.fromkeys(c.kind for c in self.of(step.number)))
                or ("first graph" if step.compiles and step.number == 1 else ""),
            )
            for step in self.steps
        ]


_HEAD = ("step", "compiles", "executions", "reads", "why")


def _summary(diagnosis: Diagnosis) -> str:
    again = sum(step.compiles for step in diagnosis.steps[1:])
    steps = len(diagnosis.steps)
    return (
        f"{steps} step{'s' if steps > 1 else ''}, {diagnosis.steps[0].compiles} compiled in the"
        f" first, {again} after it"
    )


def diagnose(step: Callable[..., Any], batches: Iterable[Any], *, warmup: int = 0) -> Diagnosis:
    """Run `step` once for each batch, and say why it was compiled again.

    Args:
        step: called as `step(*batch)` for a tuple or a list if it takes that many arguments, else
            as `step(batch)`. It records one step on the XLA device and may pass step markers
            itself; what it leaves pending is run after it.
        batches: a few batches, at most 64. Whatever the step does to a model, it does.
        warmup: how often the first batch is run before, uncounted: with 2, what only the first
            steps of an optimizer do is out of the way.

    Raises:
        TypeError: `step` cannot be called, or the batches are one tensor.
        ValueError: there are no batches, or more than 64, or warmup is negative.

    An error of the step itself is passed on, with a note that names the batch.

    >>> import torch, torch_xla
    >>> x = torch.ones(6, 50).to(torch_xla.device())
    >>> diagnose(lambda x, n: x[:, :n] * 2.5, [(x, 10), (x, 10), (x, 20)]).causes[0].what
    'stop of a slice: 10 became 20'
    """
    given = _checked(step, batches, warmup)
    from utils.xla.doctor import watch

    return watch.run(step, given, warmup)


def _checked(step: Any, batches: Any, warmup: int) -> list[Any]:
    if not callable(step):
        raise TypeError(
            f"step is {type(step).__name__}, and must be a function that records one step"
        )
    if not isinstance(batches, Iterable) or isinstance(batches, str | dict) or _is_tensor(batches):
        raise TypeError(
            f"batches is one {type(batches).__name__}: give a list of batches, such as"
            " [(x1, y1), (x2, y2)]"
        )
    if not isinstance(warmup, int) or warmup < 0:
        raise ValueError(f"warmup is {warmup!r}, and must be a number of runs, 0 or more")
    given = list(islice(batches, _MOST + 1))
    if not given:
        raise ValueError("there are no batches: give at least two, so that there is a second step")
    if len(given) > _MOST:
        raise ValueError(f"there are more than {_MOST} batches: give the few that you wonder about")
    return given


def _is_tensor(value: Any) -> bool:
    return hasattr(value, "dtype") and hasattr(value, "shape")


def arguments(step: Callable[..., Any], batch: Any) -> tuple[tuple[str, ...], tuple[Any, ...]]:
    """The names and the values that the step is called with."""
    whole = (batch,)
    values = tuple(batch) if isinstance(batch, tuple | list) else whole
    bound = _bound(step, values)
    if bound is None and (bound := _bound(step, whole)):
        values = whole
    if bound is None:
        return tuple(str(place + 1) for place in range(len(values))), values
    names: list[str] = []
    for name, value in bound.arguments.items():
        many = bound.signature.parameters[name].kind is inspect.Parameter.VAR_POSITIONAL
        names += [f"{name}[{place}]" for place in range(len(value))] if many else [name]
    return tuple(names), values


def _bound(step: Callable[..., Any], values: tuple[Any, ...]) -> inspect.BoundArguments | None:
    try:
        # A module's own call takes anything: its forward names the arguments.
        return inspect.signature(getattr(step, "forward", step)).bind(*values)
    except (TypeError, ValueError):  # other arguments, or a callable without a signature
        return None
