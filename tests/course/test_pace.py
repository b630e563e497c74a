"""How long lessons are: they may get shorter."""

import pytest

from utils.course import catalog
from utils.course.catalog import ROOT

MOST = {"words": 2220, "cells": 60, "asked": 10}
"""Of a lesson, as it can be read in an hour: `design` of the course, with a percent to spare."""
STILL_MORE = {
    "05": {"words": 2410},
}
"""Lessons that are too long yet: they may get shorter, and then leave this table."""


@pytest.mark.parametrize("item", catalog.lessons(ROOT), ids=lambda item: item.number)
def test_a_lesson_does_not_grow(item: catalog.Lesson) -> None:
    cells = catalog.read_notebook(item.path)["cells"]
    prose = [catalog.text(cell) for cell in cells if cell["cell_type"] == "markdown"]
    asking = [catalog.text(cell) for cell in cells if "predict" in catalog.tags(cell)]
    size = {
        "words": sum(len(text.split()) for text in prose),
        "cells": len(cells),
        "asked": sum(text.count("=None") for text in asking),
    }
    most = MOST | STILL_MORE.get(item.number, {})
    assert all(size[name] <= most[name] for name in size), (size, most)
    if item.number in STILL_MORE:
        assert any(size[name] > MOST[name] for name in size), "it leaves the table"
