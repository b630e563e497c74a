"""What an audit finds: findings, files that could not be read, and the report of both."""

from dataclasses import dataclass, field

from utils.audit.rules import RULES, SEVERITIES, Rule


@dataclass(frozen=True)
class Finding:
    """One place that will not port.

    `path` is relative with forward slashes, `line` and `column` count from 1; `cell` is the number
    of the code cell of a notebook, and `line` then counts within it. `text` is the source line, or
    its beginning. `severity` may be lower than the rule's, and `note` says why.
    """

    rule: str
    severity: str
    path: str
    line: int
    column: int
    text: str
    cell: int | None = None
    note: str = ""

    @property
    def about(self) -> Rule:
        return RULES[self.rule]

    @property
    def place(self) -> tuple[str, int, int, int, str]:
        return (self.path, self.cell or 0, self.line, self.column, self.rule)


@dataclass(frozen=True)
class Broken:
    """A file, or a cell of a notebook, that could not be read; `line` is 0 where none is known."""

    path: str
    line: int
    reason: str


@dataclass(frozen=True, repr=False)
class Report:
    """All findings in the order of path, line and column, and how many files were read."""

    findings: tuple[Finding, ...]
    broken: tuple[Broken, ...]
    files: int
    root: str = "."
    counts: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        counts = {severity: 0 for severity in reversed(SEVERITIES)}
        for each in self.findings:
            counts[each.severity] += 1
        object.__setattr__(self, "counts", counts)

    def at_least(self, level: str) -> tuple[Finding, ...]:
        """The findings of that severity and above."""
        if level not in SEVERITIES:
            raise ValueError(f"level {level!r} is none of {', '.join(SEVERITIES)}")
        wanted = SEVERITIES[SEVERITIES.index(level) :]
        return tuple(each for each in self.findings if each.severity in wanted)

    def clean(self, level: str = "warning") -> bool:
        """No finding at or above that severity, and nothing that could not be read."""
        return not self.at_least(level) and not self.broken

    def __repr__(self) -> str:
        from utils.audit.formats import table

        return table(self)

    def _repr_html_(self) -> str:
        from utils.audit.formats import to_html

        return to_html(self)
