"""What a report says, as text: nothing here knows of pages.

Every number that comes out of the model is called an estimate; every input keeps its source.
"""

import datetime
import html
from dataclasses import dataclass

from utils.cost.tco.inputs import Input
from utils.facts.tables import markdown
from utils.show.draw.picture import Picture


@dataclass(frozen=True)
class Table:
    """A table in words. caption: what it shows. head: one text per column. rows: as many each."""

    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Section:
    """A heading with what stands below it: a sentence, a table, points; any of them may be empty.

    most: points that a page of limited length shows; it says how many follow elsewhere.
    """

    title: str
    text: str = ""
    table: Table | None = None
    points: tuple[str, ...] = ()
    most: int = 5


@dataclass(frozen=True)
class Given:
    """One input of the model, as data and in words.

    name, value, believed: in words. page: the name of the page that it was read from; address: of
    that page. Both are empty where there is none.
    """

    path: str
    input: Input
    name: str
    value: str
    believed: str
    page: str
    address: str

    @property
    def shared(self) -> bool:
        """Whether it is the same for all options."""
        return "." not in self.path

    @property
    def origin(self) -> str:
        """The source, or the word assumption, and what the value rests on."""
        item = self.input
        when = f", {item.date}" if item.date else ""
        source = ", ".join(dict.fromkeys(filter(None, (self.page, item.source))))
        known = f"{source} ({item.status}{when})" if source else "Assumption"
        return f"{known}: {item.note}" if item.note else known


@dataclass(frozen=True)
class Line:
    """One line of the cost of an option. amount: per run or month, at the best guesses."""

    option: str
    name: str
    amount: float
    about: str


@dataclass(frozen=True, repr=False)
class Report:
    """The content of a report.

    name: for files, without an ending. per: "run" or "month". verdict: "yes", "no" or "open" of
    the costs alone, or the verdict of the decision; headline: the same in words. question, answer:
    one sentence each; the answer has the interval and the probability. costs: both options side by
    side. decides: the inputs that matter most. break_evens, measure, warnings: sentences. decided,
    pilot: what the decision rule and the pilot say, empty without them. lines: the cost line by
    line, of which `amounts` are the numbers. given: every input. method: how the estimates were
    made.
    """

    name: str
    title: str
    about: str
    date: datetime.date
    currency: str
    per: str
    verdict: str
    headline: str
    question: str
    answer: str
    costs: Table
    decides: Table
    break_evens: tuple[str, ...]
    measure: tuple[str, ...]
    warnings: tuple[str, ...]
    decided: tuple[Section, ...]
    pilot: tuple[Section, ...]
    lines: Table
    amounts: tuple[Line, ...]
    given: tuple[Given, ...]
    method: str
    figures: tuple[Picture, ...]

    def __repr__(self) -> str:
        return f"{self.question}\n{self.headline}\n{self.answer}"

    def _repr_markdown_(self) -> str:
        """Question, answer and sections; the inputs and figures stay in the other forms."""
        parts = [f"*{self.question}*", f"**{self.headline}**", self.answer]
        for section in self.sections:
            parts += [f"**{section.title}**", section.text]
            if table := section.table:
                parts += [f"{table.caption}:", markdown(table.head, table.rows)]
            parts.append("\n".join(f"- {point}" for point in section.points))
        return html.escape("\n\n".join(filter(None, parts)), quote=False)

    @property
    def sections(self) -> tuple[Section, ...]:
        """What follows the answer, in the order of reading."""
        warnings = self.warnings or ("The comparison raised no warning.",)
        sections = (
            Section("What it costs", table=self.costs),
            *self.decided,
            Section("What decides the costs", table=self.decides),
            Section("Where the cheaper option changes", points=self.break_evens, most=3),
            Section("What to find out next", points=self.measure, most=4),
            Section("Before you rely on this", points=warnings),
            *self.pilot,
        )
        return tuple(
            section
            for section in sections
            if section.text or section.points or (section.table and section.table.rows)
        )

    @property
    def sources(self) -> tuple[tuple[str, str], ...]:
        """Name and address of every page that an input was read from."""
        return tuple(sorted({(item.page, item.address) for item in self.given if item.address}))

    @property
    def appendix(self) -> Table:
        """Every input."""
        return Table(
            "Every input of the model, with its best guess, the range believed to hold it, and"
            " where it comes from",
            ("Input", "Best guess", "Believed range", "Source or assumption"),
            tuple((item.name, item.value, item.believed, item.origin) for item in self.given),
        )
