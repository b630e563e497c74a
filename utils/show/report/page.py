"""A report as one HTML page that needs nothing else: no script, no network, prints on A4."""

import base64
from functools import cache
from pathlib import Path

import jinja2

from utils.show.report.content import Report
from utils.show.report.wording import day, no_break

TEMPLATE = "page.html.j2"


@cache
def _template() -> jinja2.Template:
    folder = jinja2.FileSystemLoader(Path(__file__).parent)
    # Titles, names and sources are whatever somebody wrote: they are always escaped.
    environment = jinja2.Environment(
        loader=folder, autoescape=True, undefined=jinja2.StrictUndefined,
        trim_blocks=True, lstrip_blocks=True, finalize=_finished,
    )  # fmt: skip
    return environment.get_template(TEMPLATE)


def _finished(value: object) -> object:
    return no_break(value) if type(value) is str else value


def to_html(report: Report) -> str:
    """The page: all sections, both figures as data, every input with its source."""
    pictures = [(figure, base64.b64encode(figure.png).decode("ascii")) for figure in report.figures]
    return _template().render(report=report, day=day(report.date), pictures=pictures)
