"""A report as a PDF on A4: a first page that is complete by itself, then all that stands behind."""

import datetime
from typing import TYPE_CHECKING

from utils.show.report.content import Report, Section, Table
from utils.show.report.wording import day, shorten

if TYPE_CHECKING:
    from utils.show.report.paper import Paper

FITS = ((1.0, 9), (0.95, 9), (0.9, 9), (0.95, 4), (0.9, 4), (0.9, 3), (0.85, 3), (0.85, 2),
        (0.8, 2), (0.8, 1))  # fmt: skip
"""Size of the first page's text, and points per section: the first pair that fits is taken."""
LONGEST = {"title": 110, "about": 330, "headline": 160, "cell": 70, "point": 300}
"""Characters of a text that the first page shows; the pages behind it show all."""


def to_pdf(report: Report) -> bytes:
    """The document. The same report gives the same bytes: the file bears its day, at midnight."""
    from utils.show.report.paper import END, Paper  # late: fpdf2 is slow to load

    foot = shorten(f"{report.title}: estimates of a model, {day(report.date)}", 90)
    trial = Paper(foot)
    trial.set_auto_page_break(False)
    for fit in FITS:
        trial.add_page()
        _first(trial, report, *fit)
        if trial.get_y() <= END:
            break

    paper = Paper(foot)
    midnight = datetime.datetime.combine(report.date, datetime.time(), datetime.UTC)
    paper.set_creation_date(midnight)
    paper.set_title(shorten(f"{report.title}: {report.headline}", 200))
    paper.set_subject(shorten(report.question, 200))
    paper.set_creator("Trainium course: cost report")
    paper.add_page()
    paper.set_auto_page_break(False)
    _first(paper, report, *fit)
    paper.set_auto_page_break(True, 297 - END)
    paper.scale = 1.0
    paper.add_page()
    _behind(paper, report, fit[1])
    return bytes(paper.output())


def _first(paper: "Paper", report: Report, scale: float, most: int) -> None:
    # late: fpdf2 is slow to load
    from utils.show.report.paper import INK, LINE, MARK, SIDE, SOFT, TINT, WIDTH

    paper.scale = scale
    paper.type(7.5, SOFT)
    paper.cell(WIDTH / 2, 4, "Cost report: an estimate, not an offer")
    paper.cell(WIDTH / 2, 4, day(report.date), align="R", new_x="LMARGIN", new_y="NEXT")
    paper.set_draw_color(*LINE)
    paper.line(SIDE, paper.get_y() + 0.5, SIDE + WIDTH, paper.get_y() + 0.5)
    paper.gap(3)
    paper.type(15, bold=True)
    paper.text_line(shorten(report.title, LONGEST["title"]), leading=1.15)
    paper.gap(1)
    paper.type(8, SOFT)
    paper.text_line(shorten(report.about, LONGEST["about"]))
    paper.gap(2.5)

    # The box is drawn before its text, so its height is found by writing the text off the page.
    def box() -> None:
        for text, size, color, bold in (
            (report.question, 8.5, SOFT, False),
            (shorten(report.headline, LONGEST["headline"]), 12.5, INK, True),
            (report.answer, 8.8, INK, False),
        ):
            paper.type(size, color, bold)
            paper.set_x(SIDE + 5)
            paper.text_line(text, WIDTH - 9, 1.35)
            paper.gap(0.8)

    top = paper.get_y()
    with paper.offset_rendering():
        box()
        bottom = paper.get_y()
    paper.set_fill_color(*TINT)
    paper.rect(SIDE, top, WIDTH, bottom - top + 3.5, style="F")
    paper.set_fill_color(*MARK)
    paper.rect(SIDE, top, 1.5, bottom - top + 3.5, style="F")
    paper.set_y(top + 2)
    box()
    paper.gap(1.5)

    for section in report.sections:
        _section(paper, section, most)


def _section(paper: "Paper", section: Section, most: int) -> None:
    shown = section.points[: min(most, section.most)]
    of = f"{len(shown)} of {len(section.points)}; all are" if shown else "all steps are"
    paper.heading(
        section.title, f"{of} on the pages behind" if len(shown) < len(section.points) else ""
    )
    if section.text:
        paper.type(8)
        paper.text_line(section.text)
        paper.gap(0.6)
    if section.table:
        short = [tuple(shorten(c, LONGEST["cell"]) for c in row) for row in section.table.rows]
        widths = (31, 34, 35) if len(section.table.head) == 3 else (34, 18, 24, 24)
        paper.rows(Table(section.table.caption, section.table.head, tuple(short)), widths)
    paper.points([shorten(item, LONGEST["point"]) for item in shown])


def _behind(paper: "Paper", report: Report, most: int) -> None:
    paper.heading("Where the money goes, and what moves it")
    for picture in report.figures:
        paper.picture(picture, 138)
    paper.heading("The cost, line by line")
    paper.rows(report.lines, (14, 18, 18, 50), 7.5, total=True)
    for section in report.sections:
        if len(section.points) > min(most, section.most):
            paper.heading(f"{section.title}: all")
            paper.points(section.points, 7.5)
    paper.heading("All inputs")
    paper.rows(report.appendix, (28, 15, 20, 37), 6.8)
    if report.sources:
        paper.heading("Where the quoted inputs were read")
        texts = [f"{page}: {address}" for page, address in report.sources]
        paper.points(texts, 6.8, [address for _, address in report.sources])
    paper.heading("How the estimates were made")
    paper.type(7.5)
    paper.text_line(report.method)
