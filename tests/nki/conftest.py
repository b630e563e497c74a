"""Makes `import nki` find the course's simulator, before any test of this folder is imported."""

from pathlib import Path

import pytest

from utils.nki import simulator

simulator.use()

IGNORED = "ignore::utils.nki.simulator.lint.source.MayNotCompile"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Kernels of tests may say in Python what no compiler takes."""
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.filterwarnings(IGNORED))
