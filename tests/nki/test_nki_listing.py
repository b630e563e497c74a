"""The text of a kernel's instructions: one line each, equal neighbours together, places that a
learner can find.
"""

import subprocess
import sys

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np

from tests.nki.nki_bench import out, sbuf
from utils.course.catalog import ROOT
from utils.nki.simulator.listing import LINES, listed


@nki.jit
def doubled(x, turns):
    tile = sbuf(x)
    for _ in range(turns):
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=2.0)
        nisa.tensor_copy(dst=tile, src=tile, engine=nisa.engine.vector)
    nisa.tensor_copy(dst=tile, src=tile, engine=nisa.engine.vector)
    return out(tile)


def test_a_listing_counts_and_computes() -> None:
    x = np.ones((4, 8), np.float32)
    program = listed(doubled, x, turns=2)
    assert np.array_equal(program.results, 4 * x)
    assert len(program) == 7 and program.count("tensor_copy") == 3
    assert program.cycles("vector") > 0 == program.cycles("tensor")


def test_equal_neighbours_share_a_line() -> None:
    lines = str(listed(doubled, np.ones((4, 8), np.float32), 1)).splitlines()
    assert [line.split("  ")[0] for line in lines] == ["engine", "dma", "vector", "vector", "dma"]
    assert "tensor_copy x 2" in lines[3] and lines[3].count("sbuf (4, 8)") == 2


def test_a_shuffle_reads_its_source_and_not_what_it_writes() -> None:
    @nki.jit
    def turned(x):
        tile = sbuf(x)
        other = nl.empty_like(tile)
        nisa.nc_stream_shuffle(dst=other, src=tile, shuffle_mask=[*range(31, -1, -1)])
        return out(other)

    x = np.arange(64, dtype=np.float32).reshape(32, 2)
    program = listed(turned, x)
    assert np.array_equal(program.results, x[::-1])
    (shuffle,) = [line for line in str(program).splitlines() if "nc_stream_shuffle" in line]
    assert shuffle.count("sbuf (32, 2)") == 2


def test_a_long_listing_says_how_much_is_left() -> None:
    lines = str(listed(doubled, np.ones((4, 8), np.float32), 50)).splitlines()
    assert len(lines) == LINES + 2 and lines[-1] == f"... and {102 - LINES} lines more"


def test_an_error_names_the_kernel_also_where_the_course_is_found_by_a_path_with_dots() -> None:
    code = (
        "import sys; sys.path.insert(0, '../')\n"
        "from utils.nki import simulator; simulator.use()\n"
        "import numpy as np, nki, nki.language as nl\n"
        "def wide(x):\n"
        "    nl.ndarray((129, 1), dtype=x.dtype, buffer=nl.sbuf)\n"
        "try: nki.simulate(wide)(np.ones((1, 1), np.float32))\n"
        "except AssertionError as error: print(error)\n"
    )
    path = ROOT / "notebooks"
    words = [sys.executable, "-c", f"exec(compile({code!r}, 'kernel.py', 'exec'))"]
    done = subprocess.run(words, cwd=path, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "At: kernel.py:5", done.stdout + done.stderr
