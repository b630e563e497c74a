"""Pieces of HTML from the macros of `parts.html.j2`. Whatever is put in is escaped."""

from functools import cache
from pathlib import Path
from typing import Any

import jinja2


@cache
def _macros() -> Any:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
    )
    return environment.get_template("parts.html.j2").module


def part(macro: str, *values: object) -> str:
    """The HTML of one macro, with its values in the order of the macro's arguments.

    >>> part("alert", "x < 1")
    "<p class='tco-error' role='alert'>x &lt; 1</p>"
    """
    return str(getattr(_macros(), macro)(*values))
