"""The page of puzzles: a cell's check judges the cell, and a task says all that its record has."""

import linecache
import sys

import pytest

from tests.show.pictures import keep_figures
from utils.nki import simulator
from utils.nki.puzzles import board, judging
from utils.nki.puzzles.catalog import puzzle, puzzles
from utils.nki.puzzles.observing import observe
from utils.nki.puzzles.recording import solution
from utils.show import puzzles as page
from utils.show.draw import tiles


def test_a_cell_is_judged_without_its_check_and_the_best_is_kept(
    monkeypatch, tmp_path, capsys
) -> None:
    monkeypatch.setenv(board.VARIABLE, str(tmp_path / "board.json"))
    monkeypatch.setattr(page, "judged", lambda item, text: judging.check(item, text, 3, observe))
    monkeypatch.setattr(sys, "path", sys.path[:])
    simulator.use()
    cell = tmp_path / "cell.py"

    def wording(kernel: str) -> str:
        cell.write_text(f'{kernel}\n\ncheck(\n    "copy"\n)\n')
        exec(compile(cell.read_text(), cell, "exec"), {"check": page.check})
        linecache.clearcache()
        return capsys.readouterr().out

    assert "copy is still the stub" in wording(puzzle("copy").stub()) and not board.read().bests
    assert "Stars: 3 of 3. Your best so far." in wording(solution(puzzle("copy")))
    assert "3 of 60 stars" in str(page.board())


def test_other_calls_stay_in_the_source() -> None:
    assert page.without_checks("check('copy')\nnki.check('copy')") == "\nnki.check('copy')"
    assert page.without_checks("def copy(x) return x") == "def copy(x) return x"


@pytest.mark.parametrize("item", puzzles(), ids=lambda item: item.id)
def test_the_picture_has_every_array_with_its_tiles(item, monkeypatch) -> None:
    drawn = keep_figures(monkeypatch, tiles)
    picture = tiles.puzzle_tiles(item)
    words = [text.get_text() for text in drawn[0].axes[0].texts]
    for array in (*item.arguments, item.result):
        assert array.name in words and f"{array.name} (" in picture.caption


def test_cuts_of_the_picture_are_those_of_the_tiles(monkeypatch) -> None:
    drawn = keep_figures(monkeypatch, tiles)
    tiles.puzzle_tiles(puzzle("transpose"))  # 4 x 4 tiles of both arrays
    assert [len(lines.get_segments()) for lines in drawn[0].axes[0].collections] == [3] * 4
