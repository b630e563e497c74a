"""`nki.profile`: what the result says of small kernels whose numbers are known."""

import dataclasses
import json
import linecache
import subprocess
import sys

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np
import pytest

from tests.nki.nki_bench import out, sbuf
from utils.course.catalog import ROOT
from utils.facts import figure
from utils.nki.kernels import matmul
from utils.nki.simulator.listing import LINES, list_instructions
from utils.nki.simulator.profile import ENGINES, Profile, profile_of
from utils.nki.simulator.timing.path import TRACKS

BF16 = 2
SIZE = 512


def array(rows: int, columns: int, dtype: str = "bfloat16") -> nki.Shape:
    return nki.Shape((rows, columns), dtype)


def tiled(**options: object) -> Profile:
    return nki.profile(matmul.tiled, **options)(array(SIZE, SIZE), array(SIZE, SIZE))


@nki.jit
def double(x):
    made = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_tensor(dst=tile, data1=tile, data2=tile, op=nl.add)
    nisa.dma_copy(dst=made, src=tile)
    return made


def test_bytes_and_their_ideal() -> None:
    result = tiled()
    matrix = SIZE * SIZE * BF16
    tiles_m, tiles_n = SIZE // 128, SIZE // 512
    assert result.hbm_read == (tiles_n + tiles_m) * matrix, "lhs for each column, rhs for each row"
    assert result.hbm_written == matrix
    assert result.measures.ideal_read == 2 * matrix and result.measures.ideal_written == matrix
    assert result.hbm_ratio == pytest.approx((tiles_n + tiles_m + 1) / 3)


def test_flop_mfu_and_the_roofline() -> None:
    result = tiled()
    assert result.flop == 2 * SIZE**3
    peak = figure("trainium2.core_rate.bf16_from_clock").to("FLOPS")
    assert result.mfu == pytest.approx(result.flop / peak / result.seconds)
    assert result.intensity == result.flop / (result.hbm_read + result.hbm_written)
    assert result.bound.bound == "memory" and 0 < result.bound.seconds < result.seconds
    assert nki.profile(double)(array(128, 64)).bound is None, "no products, no roofline"
    fp32 = nki.profile(matmul.tiled)(*(array(SIZE, SIZE, "float32") for _ in "ab"))
    assert fp32.measures.peak["float32"] == pytest.approx(peak / 4)


def test_transposes_are_no_flop() -> None:
    result = nki.profile(lambda x: out(nl.copy(nl.transpose(nl.load(x)))))(array(128, 128))
    assert result.flop == 0 and result.mfu == 0 and result.busy["tensor"] > 0


def test_counts_and_engines() -> None:
    result = tiled()
    products = (SIZE // 128) * (SIZE // 128)
    assert result.counts["tensor", "nc_matmul"] == products
    assert result.counts["dma", "dma_copy"] == 2 * products + SIZE // 128
    assert set(result.utilisation) == set(ENGINES)
    assert all(0 <= share <= 1 for share in result.utilisation.values())
    assert result.busiest == "dma" and "DMA" in result.why
    for name in ENGINES:
        of = [e for e in result.intervals if e.engine == name and e.core == 0]
        if name != "dma":
            assert sum(e.end - e.start for e in of) == pytest.approx(result.busy[name])


def test_the_time_is_an_estimate_between_two_others() -> None:
    result = tiled()
    assert result.low < result.seconds < result.high
    assert result.high / result.seconds == pytest.approx(1 + result.uncertainty)
    assert result.target == "trn2" and tiled(target="trn1").target == "trn1"
    assert result.seconds == pytest.approx(max(step.end for step in result.critical_path))
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.schedule = None


def test_the_critical_path_covers_the_time_and_names_lines() -> None:
    result = nki.profile(double)(array(128, 64))
    path = result.critical_path
    assert [step.name for step in path] == ["dma_copy", "tensor_tensor", "dma_copy"]
    assert sum(step.seconds for step in path) == pytest.approx(result.seconds)
    assert [step.waited_for for step in path] == [
        "nothing", "the result of dma_copy on dma", "the result of tensor_tensor on vector",
    ]  # fmt: skip
    for step in path:
        assert step.file == __file__ and step.text == linecache.getline(__file__, step.line).strip()
    ends = [step.end for step in tiled().critical_path]
    assert ends == sorted(ends)


def test_lines_add_up() -> None:
    result = tiled()
    lines = result.lines()
    assert sum(line.instructions for line in lines) == len(result.program.instructions)
    assert sum(line.critical for line in lines) == pytest.approx(result.seconds)
    tensor = sum(line.busy.get("tensor", 0.0) for line in lines)
    assert tensor == pytest.approx(result.busy["tensor"])


def test_memories_fill_and_empty() -> None:
    result = nki.profile(double)(array(128, 64))
    times, levels = zip(*result.occupancy["sbuf"], strict=True)
    assert list(times) == sorted(times) and times[-1] <= result.seconds
    assert levels == (0, 64 * BF16, 0) and result.sbuf_peak == 64 * BF16 and result.psum_peak == 0
    target = result.program.target
    assert tiled().psum_peak % target.psum_bank_bytes == 0
    off, on = tiled(rotation=False), tiled()
    assert off.sbuf_peak <= on.sbuf_peak and off.psum_peak <= on.psum_peak
    assert off.seconds >= on.seconds


def test_the_trace_is_valid_and_complete() -> None:
    result = tiled()
    content = json.loads(result.trace_json())
    events = content["traceEvents"]
    names = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert names == dict(enumerate(TRACKS))
    complete = [e for e in events if e["ph"] == "X"]
    for event in complete:
        assert event["dur"] >= 0 and event["ts"] >= 0
        assert event["ts"] + event["dur"] <= result.seconds * 1e6 * (1 + 1e-9)
        assert {"name", "cat", "pid", "tid"} <= event.keys()
    issued = [e for e in complete if not e["name"].endswith("issue") and "line" in e["args"]]
    assert len(issued) == len(result.program.instructions)
    product = next(e for e in complete if e["name"] == "nc_matmul")
    assert (
        product["args"]["line"].startswith(matmul.tiles.__file__)
        and "(128, 512)" in product["args"]["dst"]
    )


def test_a_trace_is_saved(tmp_path) -> None:
    path = nki.profile(double)(array(128, 64)).save_trace(tmp_path / "kernel.json")
    assert json.loads(path.read_text())["displayTimeUnit"] == "ns"


def test_text_says_that_it_is_an_estimate() -> None:
    result = tiled()
    for text in (result.table(), result._repr_markdown_(), repr(result)):
        assert "estimate" in text and "trn2" in text and "MFU" in text


def test_arrays_give_shapes_and_values_on_request() -> None:
    x = np.ones((128, 64), np.float32)
    same = nki.profile(double)(x), nki.profile(double)(array(128, 64, dtype="float32"))
    assert same[0].seconds == same[1].seconds
    result = nki.profile(double, values=True)(x)
    assert (result.program.results == 2).all() and result.seconds == same[0].seconds


def test_a_recorded_program_can_be_profiled_again() -> None:
    result = tiled()
    again = profile_of(result.program, schedule="as written", warm_up=False)
    assert again.schedule.kind == "as written" and again.hbm_read == result.hbm_read


def test_long_names_and_the_longest_instruction() -> None:
    result = nki.profile(double)(array(128, 64))
    assert result.longest("tensor_tensor") >= result.busy["vector"]
    assert 0 < result.longest("dma_copy") < result.seconds
    assert result.longest("nc_matmul") == 0


def test_two_cores_share_the_work() -> None:
    @nki.jit
    def halves(x):
        made = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        rows = x.shape[0] // nl.num_programs(0)
        first = nl.program_id(0) * rows
        for row in range(first, first + rows, 128):
            nisa.dma_copy(dst=made[row : row + 128], src=sbuf(x[row : row + 128]))
        return made

    one, two = (nki.profile(halves[cores])(array(4096, 2048)) for cores in (1, 2))
    assert two.hbm_read == one.hbm_read == two.measures.ideal_read
    assert two.seconds < 0.6 * one.seconds
    assert {interval.core for interval in two.intervals} == {0, 1}


def test_what_is_kept_in_hbm_on_the_way_is_not_ideal() -> None:
    """Only arguments and what is returned count once; a scratch array is traffic."""

    @nki.jit
    def kernel(x, y):
        scratch = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.hbm)
        tile = sbuf(x)
        nisa.dma_copy(dst=scratch, src=tile)
        nisa.dma_copy(dst=tile, src=scratch)
        nisa.dma_copy(dst=tile, src=y)
        return out(tile)

    pair = [nki.Shape((128, 64), "float32")] * 2  # two arrays, although written once
    assert nki.profile(kernel)(*pair).hbm_ratio == 5 / 3


@pytest.mark.parametrize("into_a_source", [False, True])
def test_transfers_that_add_read_each_source_and_write_once(into_a_source: bool) -> None:
    @nki.jit
    def kernel(a, b):
        made = a if into_a_source else nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
        nisa.dma_compute(dst=made, srcs=[a, b], reduce_op=nl.add)
        return made

    profile = nki.profile(kernel)(*(array(128, 64, "float32") for _ in "ab"))
    size = 128 * 64 * 4
    assert (profile.hbm_read, profile.hbm_written, profile.hbm_ratio) == (2 * size, size, 1.0)


# ---- listings -----------------------------------------------------------------------------------


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
    program = list_instructions(doubled, x, turns=2)
    assert np.array_equal(program.results, 4 * x)
    assert len(program) == 7 and program.count("tensor_copy") == 3
    assert program.cycles("vector") > 0 == program.cycles("tensor")


def test_equal_neighbours_share_a_line() -> None:
    lines = str(list_instructions(doubled, np.ones((4, 8), np.float32), 1)).splitlines()
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
    program = list_instructions(turned, x)
    assert np.array_equal(program.results, x[::-1])
    (shuffle,) = [line for line in str(program).splitlines() if "nc_stream_shuffle" in line]
    assert shuffle.count("sbuf (32, 2)") == 2


def test_a_long_listing_says_how_much_is_left() -> None:
    lines = str(list_instructions(doubled, np.ones((4, 8), np.float32), 50)).splitlines()
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
