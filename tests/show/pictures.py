"""Look at a figure as matplotlib has it, instead of at the file that it becomes."""

from types import ModuleType
from typing import Any

import pytest

from utils.show.draw.picture import Picture


def keep_figures(monkeypatch: pytest.MonkeyPatch, *modules: ModuleType) -> list[Any]:
    """The matplotlib figures that these modules of `utils.show.draw` finish from now on."""
    figures: list[Any] = []

    def keep(figure: Any, caption: str, diagram: bool = False) -> Picture:
        figure.draw_without_rendering()
        figures.append(figure)
        return Picture(b"", caption)

    for module in modules:
        monkeypatch.setattr(module, "finish", keep)
    return figures
