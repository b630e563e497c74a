"""How long lessons may be."""

import pytest

from utils.course import catalog
from utils.course.catalog import ROOT

MOST = {"words": 2200, "cells": 60, "asked": 10}
"""Of a lesson, as it can be read in an hour: `design` of the course."""


@pytest.mark.parametrize("item", catalog.lessons(ROOT), ids=lambda item: item.number)
def test_a_lesson_can_be_read_in_an_hour(item: catalog.Lesson) -> None:
    cells = catalog.read_notebook(item.path)["cells"]
    prose = [catalog.text(cell) for cell in cells if cell["cell_type"] == "markdown"]
    asking = [catalog.text(cell) for cell in cells if "predict" in catalog.tags(cell)]
    size = {
        "words": sum(len(text.split()) for text in prose),
        "cells": len(cells),
        "asked": sum(text.count("=None") for text in asking),
    }
    assert all(size[name] <= MOST[name] for name in size), (size, MOST)
