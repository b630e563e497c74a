"""What the doctor says: steps, causes, and the diagnosis as text and as HTML."""

from dataclasses import dataclass

from utils.course.shown import columns, html_table


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
        results = [
            (str(c.step), c.kind, c.what, c.where and f"`{c.where.replace('`', '')}`", c.advice)
            for c in self.causes
        ]
        head = ("step", "cause", "what", "where", "what to write")
        return counts + (html_table(head, results, "Causes") if results else "")

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
