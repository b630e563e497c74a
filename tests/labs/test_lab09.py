"""Lab 09: right answers pass however they are written, and a record cannot hold its result."""

import base64
import json
import subprocess
import sys
import zlib
from functools import partial

import ml_dtypes
import numpy as np
import pytest

from tests.labs.cells import (
    answer_from,
    cases_of,
    changed,
    names_of,
    verdict_of,
    wrong_entries,
)
from utils.course.catalog import ROOT
from utils.labs import check, judge, limit, observe_case
from utils.labs.grading import shown
from utils.labs.lab09 import norm, rows, sums
from utils.labs.lab09.observe import OBSERVERS
from utils.labs.packed import packed, unpacked
from utils.labs.replayed import farthest, generator

WRONG = wrong_entries("lab09")

ADD = """
@nki.jit
def add_rows(a, b):
    rows, columns = a.shape
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    for start in range(0, rows, nl.tile_size.pmax):
        size = min(nl.tile_size.pmax, rows - start)
        here = nl.ds(start, size)
        x = nl.ndarray((size, columns), dtype=a.dtype, buffer=nl.sbuf)
        y = nl.ndarray((size, columns), dtype=b.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=x, src=a[here])
        nisa.dma_copy(dst=y, src=b[here])
        nisa.tensor_tensor(dst=x, data1=x, data2=y, op=nl.add)
        nisa.dma_copy(dst=out[here], src=x)
    return out
"""

TRANSPOSE = """
@nki.jit
def transpose(x):
    rows, columns = x.shape
    out = nl.ndarray((columns, rows), dtype=x.dtype, buffer=nl.shared_hbm)
    for row in range(0, rows, 128):
        for column in range(0, columns, 128):
            high, wide = min(128, rows - row), min(128, columns - column)
            block = nl.ndarray((high, wide), dtype=x.dtype, buffer=nl.sbuf)
            turned = nl.ndarray((wide, high), dtype=x.dtype, buffer=nl.psum)
            result = nl.ndarray((wide, high), dtype=x.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=block, src=x[nl.ds(row, high), nl.ds(column, wide)])
            nisa.nc_transpose(dst=turned, data=block)
            nisa.tensor_copy(dst=result, src=turned)
            nisa.dma_copy(dst=out[nl.ds(column, wide), nl.ds(row, high)], src=result)
    return out
"""

SOFTMAX = """
@nki.jit
def softmax(x):
    rows, columns = x.shape
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for start in range(0, rows, nl.tile_size.pmax):
        size = min(nl.tile_size.pmax, rows - start)
        here = nl.ds(start, size)
        tile = nl.ndarray((size, columns), dtype=x.dtype, buffer=nl.sbuf)
        shifted = nl.ndarray((size, columns), dtype=nl.float32, buffer=nl.sbuf)
        lowest = nl.ndarray((size, 1), dtype=nl.float32, buffer=nl.sbuf)
        total = nl.ndarray((size, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[here])
        nisa.tensor_reduce(dst=lowest, op=nl.maximum, data=tile, axis=1, negate=True)
        nisa.activation_reduce(
            dst=shifted, op=nl.exp, data=tile, bias=lowest, reduce_op=nl.add, reduce_res=total
        )
        nisa.reciprocal(dst=total, data=total)
        nisa.tensor_scalar(dst=tile, data=shifted, op0=nl.multiply, operand0=total)
        nisa.dma_copy(dst=out[here], src=tile)
    return out
"""

NORM = """
@nki.jit
def rms_norm(x, weight, epsilon):
    rows, columns = x.shape
    pmax = nl.tile_size.pmax
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    weights = nl.ndarray((pmax, columns), dtype=nl.float32, buffer=nl.sbuf)
    offset = nl.ndarray((pmax, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=weights, src=weight.ap(pattern=[[0, pmax], [1, columns]]))
    nisa.memset(dst=offset, value=epsilon)
    for start in range(0, rows, pmax):
        size = min(pmax, rows - start)
        here = nl.ds(start, size)
        tile = nl.ndarray((size, columns), dtype=x.dtype, buffer=nl.sbuf)
        squares = nl.ndarray((size, columns), dtype=nl.float32, buffer=nl.sbuf)
        scale = nl.ndarray((size, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[here])
        nisa.activation_reduce(
            dst=squares, op=nl.square, data=tile, reduce_op=nl.add, reduce_res=scale
        )
        nisa.activation(
            dst=scale, op=nl.rsqrt, data=scale, scale=1 / columns, bias=offset[0:size]
        )
        nisa.scalar_tensor_tensor(
            dst=tile, data=tile, op0=nl.multiply, operand0=scale,
            op1=nl.multiply, operand1=weights[0:size],
        )
        nisa.dma_copy(dst=out[here], src=tile)
    return out
"""

SUMS = """
@nki.jit
def column_sums(x):
    rows, columns = x.shape
    pmax, fmax = nl.tile_size.pmax, nl.tile_size.gemm_moving_fmax
    out = nl.ndarray((1, columns), dtype=nl.float32, buffer=nl.shared_hbm)
    ones = nl.ndarray((pmax, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=ones, value=1.0)
    for left in range(0, columns, fmax):
        wide = min(fmax, columns - left)
        total = nl.ndarray((1, wide), dtype=nl.float32, buffer=nl.psum)
        result = nl.ndarray((1, wide), dtype=nl.float32, buffer=nl.sbuf)
        for start in range(0, rows, pmax):
            size = min(pmax, rows - start)
            tile = nl.ndarray((size, wide), dtype=nl.float32, buffer=nl.sbuf)
            nisa.dma_copy(dst=tile, src=x[nl.ds(start, size), nl.ds(left, wide)])
            nisa.nc_matmul(dst=total, stationary=ones[0:size], moving=tile)
        nisa.tensor_copy(dst=result, src=total)
        nisa.dma_copy(dst=out[:, nl.ds(left, wide)], src=result)
    return out
"""

MENDED = """
def mended():
    def a(x):
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        for start in range(0, x.shape[0], 128):
            tile = nl.ndarray((128, x.shape[1]), dtype=x.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=tile, src=x[nl.ds(start, 128)])
            nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=2.0)
            nisa.dma_copy(dst=out[nl.ds(start, 128)], src=tile)
        return out

    def b(x, y):
        out = nl.ndarray((128, 256), dtype=nl.float32, buffer=nl.shared_hbm)
        x_tile = nl.ndarray((128, 128), dtype=x.dtype, buffer=nl.sbuf)
        y_tile = nl.ndarray((128, 256), dtype=y.dtype, buffer=nl.sbuf)
        product = nl.ndarray((128, 256), dtype=nl.float32, buffer=nl.psum)
        result = nl.ndarray((128, 256), dtype=nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(dst=x_tile, src=x)
        nisa.dma_copy(dst=y_tile, src=y)
        nisa.nc_matmul(dst=product, stationary=x_tile, moving=y_tile)
        nisa.tensor_copy(dst=result, src=product)
        nisa.dma_copy(dst=out, src=result)
        return out

    def c(x, y):
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
        row = nl.ndarray(x.shape, dtype=y.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x)
        nisa.dma_copy(dst=row, src=y.ap(pattern=[[0, 128], [1, 256]]))
        nisa.tensor_tensor(dst=tile, data1=tile, data2=row, op=nl.add)
        nisa.dma_copy(dst=out, src=tile)
        return out

    def d(x, y):
        out = nl.ndarray((128, 1024), dtype=nl.float32, buffer=nl.shared_hbm)
        x_tile = nl.ndarray((64, 128), dtype=x.dtype, buffer=nl.sbuf)
        y_tile = nl.ndarray((64, 1024), dtype=y.dtype, buffer=nl.sbuf)
        result = nl.ndarray((128, 1024), dtype=nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(dst=x_tile, src=x)
        nisa.dma_copy(dst=y_tile, src=y)
        for left in (0, 512):
            half = nl.ds(left, 512)
            product = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
            nisa.nc_matmul(dst=product, stationary=x_tile, moving=y_tile[:, half])
            nisa.tensor_copy(dst=result[:, half], src=product)
        nisa.dma_copy(dst=out, src=result)
        return out

    return {
        "a": ("partitions", a),
        "b": ("dma-psum", b),
        "c": ("broadcast", c),
        "d": ("columns", d),
    }
"""


EXERCISES = [f"lab09.{name}" for name in OBSERVERS]

pytestmark = pytest.mark.usefixtures("xla_device")


@pytest.fixture(scope="module")
def names() -> dict:
    return names_of("lab09")


OTHER_WAYS = {
    "rows in another order": (
        "lab09.ex1",
        changed(
            ADD,
            (
                "range(0, rows, nl.tile_size.pmax)",
                "reversed(range(0, rows, nl.tile_size.pmax))",
            ),
        ),
    ),
    "fewer rows in a tile": (
        "lab09.ex1",
        changed(ADD, ("nl.tile_size.pmax", "96"), everywhere=True),
    ),
    "added by GpSimd": (
        "lab09.ex1",
        changed(ADD, ("op=nl.add)", "op=nl.add, engine=nisa.engine.gpsimd)")),
    ),
    "loads and stores of the language": (
        "lab09.ex1",
        """
@nki.jit
def add_rows(a, b):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    for start in range(0, a.shape[0], 128):
        here = nl.ds(start, min(128, a.shape[0] - start))
        nl.store(out[here], nl.add(nl.load(a[here]), nl.load(b[here])))
    return out
""",
    ),
    "evicted by the Scalar Engine": (
        "lab09.ex2",
        changed(TRANSPOSE, ("src=turned)", "src=turned, engine=nisa.engine.scalar)")),
    ),
    "maximum, then its negative": (
        "lab09.ex3",
        changed(
            SOFTMAX,
            (", negate=True", ""),
            (
                "        nisa.activation_reduce(",
                "        nisa.tensor_scalar(\n"
                "            dst=lowest, data=lowest, op0=nl.multiply, operand0=-1.0\n"
                "        )\n"
                "        nisa.activation_reduce(",
            ),
        ),
    ),
    "epsilon as a number": (
        "lab09.ex4",
        changed(NORM, ("bias=offset[0:size]", "bias=epsilon")),
    ),
    "blocks of 32 by the Vector Engine": (
        "lab09.ex2",
        """
@nki.jit
def transpose(x):
    rows, columns = x.shape
    out = nl.ndarray((columns, rows), dtype=x.dtype, buffer=nl.shared_hbm)
    for row in range(0, rows, 32):
        for column in range(0, columns, 32):
            block = nl.ndarray((32, 32), dtype=x.dtype, buffer=nl.sbuf)
            turned = nl.ndarray((32, 32), dtype=x.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=block, src=x[nl.ds(row, 32), nl.ds(column, 32)])
            nisa.nc_transpose(dst=turned, data=block, engine=nisa.engine.vector)
            nisa.dma_copy(dst=out[nl.ds(column, 32), nl.ds(row, 32)], src=turned)
    return out
""",
    ),
    "transposed by DMA": (
        "lab09.ex2",
        """
@nki.jit
def transpose(x):
    rows, columns = x.shape
    out = nl.ndarray((columns, rows), dtype=x.dtype, buffer=nl.shared_hbm)
    for row in range(0, rows, 128):
        for column in range(0, columns, 128):
            high, wide = min(128, rows - row), min(128, columns - column)
            tile = nl.ndarray((wide, high), dtype=x.dtype, buffer=nl.sbuf)
            nisa.dma_transpose(dst=tile, src=x[nl.ds(row, high), nl.ds(column, wide)])
            nisa.dma_copy(dst=out[nl.ds(column, wide), nl.ds(row, high)], src=tile)
    return out
""",
    ),
    "the last product by the Scalar Engine": (
        "lab09.ex3",
        changed(
            SOFTMAX,
            (
                "nisa.tensor_scalar(dst=tile, data=shifted, op0=nl.multiply, operand0=total)",
                "nisa.activation(dst=tile, op=nl.copy, data=shifted, scale=total)",
            ),
        ),
    ),
    "the weight spread by a product with ones": (
        "lab09.ex4",
        changed(
            NORM,
            (
                "    nisa.dma_copy(dst=weights, src=weight.ap(pattern=[[0, pmax], [1, columns]]))",
                "    row = nl.ndarray((1, columns), dtype=nl.float32, buffer=nl.sbuf)\n"
                "    ones = nl.ndarray((1, pmax), dtype=nl.float32, buffer=nl.sbuf)\n"
                "    spread = nl.ndarray((pmax, columns), dtype=nl.float32, buffer=nl.psum)\n"
                "    nisa.dma_copy(dst=row, src=weight.reshape((1, columns)))\n"
                "    nisa.memset(dst=ones, value=1.0)\n"
                "    nisa.nc_matmul(dst=spread, stationary=ones, moving=row)\n"
                "    nisa.tensor_copy(dst=weights, src=spread)",
            ),
        ),
    ),
    "the weight doubled within SBUF": (
        "lab09.ex4",
        changed(
            NORM,
            (
                "    nisa.dma_copy(dst=weights, src=weight.ap(pattern=[[0, pmax], [1, columns]]))",
                "    nisa.dma_copy(dst=weights[0:1], src=weight.reshape((1, columns)))\n"
                "    for done in (1, 2, 4, 8, 16, 32, 64):\n"
                "        nisa.dma_copy(dst=weights[done : 2 * done], src=weights[0:done])",
            ),
        ),
    ),
    "statistics of the squares": (
        "lab09.ex4",
        changed(
            NORM,
            (
                "        nisa.activation_reduce(\n"
                "            dst=squares, op=nl.square, data=tile, reduce_op=nl.add,"
                " reduce_res=scale\n"
                "        )\n",
                "        stats = nl.ndarray((size, 6), dtype=nl.float32, buffer=nl.sbuf)\n"
                "        both = nl.ndarray((size, 2), dtype=nl.float32, buffer=nl.sbuf)\n"
                "        nisa.activation(dst=squares, op=nl.square, data=tile)\n"
                "        nisa.bn_stats(dst=stats, data=squares)\n"
                "        nisa.bn_aggr(dst=both, data=stats)\n",
            ),
            ("data=scale, scale=1 / columns", "data=both[:, 0:1]"),
        ),
    ),
    "x is the stationary operand": (
        "lab09.ex5",
        """
@nki.jit
def column_sums(x):
    rows, columns = x.shape
    out = nl.ndarray((1, columns), dtype=nl.float32, buffer=nl.shared_hbm)
    ones = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=ones, value=0.0)
    nisa.tensor_scalar(dst=ones, data=ones, op0=nl.add, operand0=1.0)
    for left in range(0, columns, 128):
        wide = min(128, columns - left)
        total = nl.ndarray((wide, 1), dtype=nl.float32, buffer=nl.psum)
        result = nl.ndarray((wide, 1), dtype=nl.float32, buffer=nl.sbuf)
        for start in range(0, rows, 128):
            size = min(128, rows - start)
            tile = nl.ndarray((size, wide), dtype=nl.float32, buffer=nl.sbuf)
            nisa.dma_copy(dst=tile, src=x[nl.ds(start, size), nl.ds(left, wide)])
            nisa.nc_matmul(dst=total, stationary=tile, moving=ones[0:size])
        nisa.tensor_copy(dst=result, src=total)
        nisa.dma_copy(dst=out.reshape((columns, 1))[nl.ds(left, wide)], src=result)
    return out
""",
    ),
    "one PSUM tile of several banks": (
        "lab09.ex5",
        """
@nki.jit
def column_sums(x):
    rows, columns = x.shape
    out = nl.ndarray((1, columns), dtype=nl.float32, buffer=nl.shared_hbm)
    ones = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    total = nl.ndarray((1, columns), dtype=nl.float32, buffer=nl.psum)
    result = nl.ndarray((1, columns), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=ones, value=1.0)
    for start in range(0, rows, 128):
        size = min(128, rows - start)
        tile = nl.ndarray((size, columns), dtype=nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[nl.ds(start, size)])
        for left in range(0, columns, 512):
            here = nl.ds(left, min(512, columns - left))
            nisa.nc_matmul(dst=total[:, here], stationary=ones[0:size], moving=tile[:, here])
    nisa.tensor_copy(dst=result, src=total)
    nisa.dma_copy(dst=out, src=result)
    return out
""",
    ),
    "pairs are lists, and two banks are one too many": (
        "lab09.ex6",
        changed(
            MENDED, ('("columns", d)', '["bank", d]'), ('("partitions", a)', '["partitions", a]')
        ),
    ),
    "narrower products": (
        "lab09.ex5",
        changed(
            SUMS, ("fmax = nl.tile_size.pmax, nl.tile_size.gemm_moving_fmax", "fmax = 128, 512")
        ),
    ),
}


@pytest.mark.parametrize("seed", ["another"])
@pytest.mark.parametrize("way", OTHER_WAYS)
def test_right_answers_pass_however_they_are_written(way: str, seed: str, names: dict) -> None:
    exercise_id, source = OTHER_WAYS[way]
    verdict = verdict_of(exercise_id, answer_from(source, exercise_id, names), seed)
    assert verdict.points == 10.0, [c for c in verdict.criteria if not c.passed]


def test_a_result_written_down_beforehand_is_not_the_result(names: dict) -> None:
    """The inputs depend on everything that was recorded, a constant of the kernel included."""
    guess = """
@nki.jit
def column_sums(x):
    out = nl.ndarray((1, x.shape[1]), dtype=nl.float32, buffer=nl.shared_hbm)
    guess = nl.shared_constant(np.full((1, x.shape[1]), GUESS, np.float32))
    tile = nl.ndarray((1, x.shape[1]), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=guess)
    nisa.dma_copy(dst=out, src=tile)
    return out
"""
    case = cases_of("lab09.ex5", "public")[0]
    drawn = []
    for number in (1.0, 2.0):
        answer = answer_from(guess.replace("GUESS", str(number)), "lab09.ex5", names)
        facts = observe_case("lab09.ex5", answer, case)["facts"]
        drawn.append(generator(facts).standard_normal(4))
        assert not judge("lab09.ex5").judge(case, facts)[0].passed
    assert not np.array_equal(*drawn)


@pytest.mark.parametrize("exercise_id", EXERCISES)
def test_what_is_observed_is_plain_and_small(exercise_id: str, names: dict) -> None:
    answer = names[OBSERVERS[exercise_id.partition(".")[2]].answer]
    for case in cases_of(exercise_id, "public"):
        assert len(json.dumps(observe_case(exercise_id, answer, case))) < 2**18


def test_a_record_that_was_tampered_with_is_refused(names: dict) -> None:
    case = cases_of("lab09.ex1", "public")[0]
    facts = observe_case("lab09.ex1", names["add_rows"], case)["facts"]
    whole, secret = unpacked(facts["program"]), "Hidden714"
    spoiled = [{}, None, [], {"instructions": 3}, whole | {"kernel": 7}, whole | {"format": secret}]
    assert judge("lab09.ex1").judge(case, facts | {"program": packed(whole)})[0].passed
    for spoil in [*spoiled, *map(packed, spoiled), packed(whole)[:-9], "{}", "\ud800"]:
        criteria = judge("lab09.ex1").judge(case, facts | {"program": spoil})
        assert not any(each.passed for each in criteria)
        assert criteria[0].message == "the record of the kernel is not a valid program"
        assert secret not in shown.measured(criteria[0].measured)


def test_a_record_with_more_results_than_one_is_refused(names: dict) -> None:
    """They would count as bytes that have to be moved."""
    case = cases_of("lab09.ex1", "public")[0]
    facts = observe_case("lab09.ex1", names["add_rows"], case)["facts"]
    whole = unpacked(facts["program"])
    for result in ({"tuple": [whole["results"]] * 2}, {"tuple": []}, None):
        forged = facts | {"program": packed(whole | {"results": result})}
        criteria = judge("lab09.ex1").judge(case, forged)
        assert not any(each.passed for each in criteria)
        assert criteria[0].message.startswith("the record of the kernel")


LARGE = "nl.ndarray((2**15, 2**13), dtype=a.dtype, buffer=nl.shared_hbm)"


@pytest.mark.parametrize(
    "large",
    [
        f"dst={LARGE}, src=a.ap(pattern=[[0, 2**15], [0, 2**13]])",
        "dst=out.ap(pattern=[[0, 2**28], [0, 1]]), src=b.ap(pattern=[[0, 2**28]])",
    ],
)
def test_a_record_cannot_fill_the_memory_of_a_judge(large: str, names: dict) -> None:
    source = f"""
@nki.jit
def add_rows(a, b):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=a)
    nisa.dma_copy({large})
    return out
"""
    case = cases_of("lab09.ex1", "public")[0]
    seen = observe_case("lab09.ex1", answer_from(source, "lab09.ex1", names), case)
    criteria = judge("lab09.ex1").judge(case, seen["facts"])
    assert "far more bytes" in criteria[0].message


def test_a_packed_record_unpacks_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("utils.labs.packed.MOST_BYTES", 1000)
    assert unpacked(packed("a" * 900)) == "a" * 900
    with pytest.raises(ValueError, match="more than 1000 bytes"):
        unpacked(packed("a" * 1100))
    nested = base64.b85encode(zlib.compress(b"[" * 900)).decode()
    with pytest.raises(ValueError, match="not a packed record"):
        unpacked(nested)


def test_a_kernel_that_does_not_end_is_stopped_once(
    names: dict, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("utils.labs.limit.SECONDS", 0.1)
    monkeypatch.setattr("utils.labs.limit.within", partial(limit.within, seconds=0.1), raising=True)
    answer = answer_from("def add_rows(a, b):\n    while True:\n        pass", "lab09.ex1", names)
    verdict = check.run("lab09.ex1", answer, 6.0, "public")
    assert verdict.state == "error" and "does each of its loops end?" in verdict.error


def test_judges_need_no_kernel_to_have_run(names: dict) -> None:
    """At grading they run in a process that has imported nothing of NKI."""
    seen = []
    for exercise_id in EXERCISES:
        answer = names[OBSERVERS[exercise_id.partition(".")[2]].answer]
        case = cases_of(exercise_id, "public")[0]
        seen.append([exercise_id, case, observe_case(exercise_id, answer, case)["facts"]])
    code = """
import json, sys
from utils.labs import judge
for exercise_id, case, facts in json.load(sys.stdin):
    failed = [c for c in judge(exercise_id).judge(case, facts) if not c.passed]
    assert not failed, failed
assert "nki" not in sys.modules
"""
    subprocess.run(
        [sys.executable, "-c", code], input=json.dumps(seen), text=True, cwd=ROOT, check=True
    )


def test_a_message_keeps_the_names_of_instructions(names: dict) -> None:
    """The report hides every text of an observation; the record is one text that nobody says."""
    for exercise_id, _, source, _ in WRONG:
        case = cases_of(exercise_id, "public")[-1]
        seen = observe_case(exercise_id, answer_from(source, exercise_id, names), case)
        for each in judge(exercise_id).judge(case, seen["facts"]) if "facts" in seen else ():
            if "still fails" not in each.message:
                assert shown.message(each.message, [seen]) == shown.rounded(each.message)
            assert shown.known(each.measured), each.measured


def test_tolerances_hold_what_they_say() -> None:
    """A second rounding to BF16 is outside for some rows; any order of an FP32 sum is inside."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((700, 300)).astype(np.float32)
    right = x.astype(np.float64).sum(axis=0)
    forward = np.zeros(300, np.float32)
    for row in x:
        forward += row
    assert farthest(forward, right) < sums.TOLERANCE / 2
    assert farthest(x[::-1].sum(axis=0), right) < sums.TOLERANCE / 2
    assert farthest(x.astype(ml_dtypes.bfloat16).astype(np.float32).sum(axis=0), right) > 1e-4

    e = np.exp(x - x.max(axis=1, keepdims=True))
    good = e / e.sum(axis=1, keepdims=True)
    exact = rows.softmax(x)
    assert farthest(good, exact) < rows.TOLERANCE / 2
    low = e.astype(ml_dtypes.bfloat16).astype(np.float32) / e.sum(axis=1, keepdims=True)
    assert farthest(low, exact) > 100 * rows.TOLERANCE
    once, twice = (each.astype(ml_dtypes.bfloat16) for each in (good, low))
    assert farthest(once, exact, rounded=True) < rows.TOLERANCE / 2
    assert farthest(twice, exact, rounded=True) > 100 * rows.TOLERANCE

    weight = np.ones(300, np.float32)
    scale = 1 / np.sqrt((x * x).mean(axis=1, keepdims=True) + np.float32(1e-5))
    assert farthest(x * scale, norm.rms_norm(x, weight, 1e-5)) < rows.TOLERANCE / 2
