"""`nki.profile`: what the result says of small kernels whose numbers are known."""

import dataclasses
import json
import linecache

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np
import pytest

from utils.facts import figure
from utils.nki.kernels import matmul
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
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_tensor(dst=tile, data1=tile, data2=tile, op=nl.add)
    nisa.dma_copy(dst=out, src=tile)
    return out


def test_bytes_and_their_ideal() -> None:
    found = tiled()
    matrix = SIZE * SIZE * BF16
    tiles_m, tiles_n = SIZE // 128, SIZE // 512
    assert found.hbm_read == (tiles_n + tiles_m) * matrix, "lhs for each column, rhs for each row"
    assert found.hbm_written == matrix
    assert found.measures.ideal_read == 2 * matrix and found.measures.ideal_written == matrix
    assert found.hbm_ratio == pytest.approx((tiles_n + tiles_m + 1) / 3)


def test_flop_mfu_and_the_roofline() -> None:
    found = tiled()
    assert found.flop == 2 * SIZE**3
    peak = figure("trainium2.core_rate.bf16_from_clock").to("FLOPS")
    assert found.mfu == pytest.approx(found.flop / peak / found.seconds)
    assert found.intensity == found.flop / (found.hbm_read + found.hbm_written)
    assert found.bound.bound == "memory" and 0 < found.bound.seconds < found.seconds
    assert nki.profile(double)(array(128, 64)).bound is None, "no products, no roofline"
    fp32 = nki.profile(matmul.tiled)(
        array(SIZE, SIZE, dtype="float32"), array(SIZE, SIZE, dtype="float32")
    )
    assert fp32.measures.peak["float32"] == pytest.approx(peak / 4)


def test_transposes_are_no_flop() -> None:
    @nki.jit
    def turn(x):
        out = nl.ndarray((128, 128), dtype=x.dtype, buffer=nl.shared_hbm)
        tile = nl.ndarray((128, 128), dtype=x.dtype, buffer=nl.sbuf)
        turned = nl.ndarray((128, 128), dtype=x.dtype, buffer=nl.psum)
        nisa.dma_copy(dst=tile, src=x)
        nisa.nc_transpose(dst=turned, data=tile)
        nisa.tensor_copy(dst=tile, src=turned)
        nisa.dma_copy(dst=out, src=tile)
        return out

    found = nki.profile(turn)(array(128, 128))
    assert found.flop == 0 and found.mfu == 0 and found.busy["tensor"] > 0


def test_counts_and_engines() -> None:
    found = tiled()
    products = (SIZE // 128) * (SIZE // 128)
    assert found.counts["tensor", "nc_matmul"] == products
    assert found.counts["dma", "dma_copy"] == 2 * products + SIZE // 128
    assert set(found.utilisation) == set(ENGINES)
    assert all(0 <= share <= 1 for share in found.utilisation.values())
    assert found.busiest == "dma" and "DMA" in found.why
    for name in ENGINES:
        of = [each for each in found.intervals if each.engine == name and each.core == 0]
        if name != "dma":
            assert sum(e.end - e.start for e in of) == pytest.approx(found.busy[name])


def test_the_time_is_an_estimate_between_two_others() -> None:
    found = tiled()
    assert found.low < found.seconds < found.high
    assert found.high / found.seconds == pytest.approx(1 + found.uncertainty)
    assert found.target == "trn2" and tiled(target="trn1").target == "trn1"
    assert found.seconds == pytest.approx(max(step.end for step in found.critical_path))
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.schedule = None


def test_the_critical_path_covers_the_time_and_names_lines() -> None:
    found = nki.profile(double)(array(128, 64))
    path = found.critical_path
    assert [step.name for step in path] == ["dma_copy", "tensor_tensor", "dma_copy"]
    assert sum(step.seconds for step in path) == pytest.approx(found.seconds)
    assert [step.waited_for for step in path] == [
        "nothing", "the result of dma_copy on dma", "the result of tensor_tensor on vector",
    ]  # fmt: skip
    for step in path:
        assert step.file == __file__ and step.text == linecache.getline(__file__, step.line).strip()
    ends = [step.end for step in tiled().critical_path]
    assert ends == sorted(ends)


def test_lines_add_up() -> None:
    found = tiled()
    lines = found.lines()
    assert sum(each.instructions for each in lines) == len(found.program.instructions)
    assert sum(each.critical for each in lines) == pytest.approx(found.seconds)
    tensor = sum(each.busy.get("tensor", 0.0) for each in lines)
    assert tensor == pytest.approx(found.busy["tensor"])


def test_memories_fill_and_empty() -> None:
    found = nki.profile(double)(array(128, 64))
    times, levels = zip(*found.occupancy["sbuf"], strict=True)
    assert list(times) == sorted(times) and times[-1] <= found.seconds
    assert levels == (0, 64 * BF16, 0) and found.sbuf_peak == 64 * BF16 and found.psum_peak == 0
    target = found.program.target
    assert tiled().psum_peak % target.psum_bank_bytes == 0
    off, on = tiled(rotation=False), tiled()
    assert off.sbuf_peak <= on.sbuf_peak and off.psum_peak <= on.psum_peak
    assert off.seconds >= on.seconds


def test_the_trace_is_valid_and_complete() -> None:
    found = tiled()
    content = json.loads(found.trace_json())
    events = content["traceEvents"]
    names = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert names == dict(enumerate(TRACKS))
    complete = [e for e in events if e["ph"] == "X"]
    for event in complete:
        assert event["dur"] >= 0 and event["ts"] >= 0
        assert event["ts"] + event["dur"] <= found.seconds * 1e6 * (1 + 1e-9)
        assert {"name", "cat", "pid", "tid"} <= event.keys()
    issued = [e for e in complete if not e["name"].endswith("issue") and "line" in e["args"]]
    assert len(issued) == len(found.program.instructions)
    product = next(e for e in complete if e["name"] == "nc_matmul")
    assert (
        product["args"]["line"].startswith(matmul.tiles.__file__)
        and "(128, 512)" in product["args"]["dst"]
    )


def test_a_trace_is_saved(tmp_path) -> None:
    path = nki.profile(double)(array(128, 64)).save_trace(tmp_path / "kernel.json")
    assert json.loads(path.read_text())["displayTimeUnit"] == "ns"


def test_text_says_that_it_is_an_estimate() -> None:
    found = tiled()
    for text in (found.table(), found._repr_markdown_(), repr(found)):
        assert "estimate" in text and "trn2" in text and "MFU" in text


def test_arrays_give_shapes_and_values_on_request() -> None:
    x = np.ones((128, 64), np.float32)
    same = nki.profile(double)(x), nki.profile(double)(array(128, 64, dtype="float32"))
    assert same[0].seconds == same[1].seconds
    found = nki.profile(double, values=True)(x)
    assert (found.program.results == 2).all() and found.seconds == same[0].seconds


def test_a_recorded_program_can_be_profiled_again() -> None:
    found = tiled()
    again = profile_of(found.program, schedule="as written", warm_up=False)
    assert again.schedule.kind == "as written" and again.hbm_read == found.hbm_read


def test_long_names_and_the_longest_instruction() -> None:
    found = nki.profile(double)(array(128, 64))
    assert found.longest("tensor_tensor") >= found.busy["vector"]
    assert 0 < found.longest("dma_copy") < found.seconds
    assert found.longest("nc_matmul") == 0


def test_two_cores_share_the_work() -> None:
    @nki.jit
    def halves(x):
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        rows = x.shape[0] // nl.num_programs(0)
        first = nl.program_id(0) * rows
        for row in range(first, first + rows, 128):
            tile = nl.ndarray((128, x.shape[1]), dtype=x.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=tile, src=x[row : row + 128])
            nisa.dma_copy(dst=out[row : row + 128], src=tile)
        return out

    one, two = (nki.profile(halves[cores])(array(4096, 2048)) for cores in (1, 2))
    assert two.hbm_read == one.hbm_read == two.measures.ideal_read
    assert two.seconds < 0.6 * one.seconds
    assert {each.core for each in two.intervals} == {0, 1}


def test_what_is_kept_in_hbm_on_the_way_is_not_ideal() -> None:
    """Only arguments and what is returned count once; a scratch array is traffic."""

    @nki.jit
    def kernel(x, y):
        scratch = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.hbm)
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x)
        nisa.dma_copy(dst=scratch, src=tile)
        nisa.dma_copy(dst=tile, src=scratch)
        nisa.dma_copy(dst=tile, src=y)
        nisa.dma_copy(dst=out, src=tile)
        return out

    pair = [nki.Shape((128, 64), "float32")] * 2  # two arrays, although written once
    assert nki.profile(kernel)(*pair).hbm_ratio == 5 / 3


@pytest.mark.parametrize("into_a_source", [False, True])
def test_transfers_that_add_read_each_source_and_write_once(into_a_source: bool) -> None:
    @nki.jit
    def kernel(a, b):
        out = a
        if not into_a_source:
            out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
        nisa.dma_compute(dst=out, srcs=[a, b], reduce_op=nl.add)
        return out

    shape = nki.Shape((128, 64), "float32"), nki.Shape((128, 64), "float32")
    profile = nki.profile(kernel)(*shape)
    size = 128 * 64 * 4
    assert (profile.hbm_read, profile.hbm_written, profile.hbm_ratio) == (2 * size, size, 1.0)
