"""What the tests of grading share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import utils.labs
from tests.labs import hostile


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A whole course with lab 99, whose cases and judges can be imported."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        labs = [*utils.labs.__path__, str(hostile.REPOSITORY / "tests" / "labs")]
        monkeypatch.setattr(utils.labs, "__path__", labs)
        yield hostile.build_course(tmp_path_factory.mktemp("course") / "course")
