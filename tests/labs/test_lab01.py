"""Lab 01: right answers pass however they are written, wrong ones are told apart, what is expected
follows from the facts, and nothing an answer returns can break a check.
"""

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.labs.cells import (
    cases_of,
    names_of,
)
from utils.chip.roofline import bound, gemm
from utils.chip.topology import ring, torus
from utils.chip.training_memory import RECIPES
from utils.course import catalog
from utils.course.catalog import ROOT
from utils.labs import closed, decide, observe_case
from utils.labs.lab01 import fabrics, fitting, gemms, offers, ridges, sheets, tables
from utils.labs.lab01.observe import OBSERVERS
from utils.labs.values import TOLERANCE

GEMM_TIMES = """
def gemm_times(sheet, gemms):
    found = []
    for each in gemms:
        m, k, n, dtype = each["m"], each["k"], each["n"], each["dtype"]
        rate, bandwidth = sheet["chip_tflops"][dtype], sheet["hbm_tb_per_s"]
        if each["on"] == "core":
            rate, bandwidth = sheet["core_tflops"][dtype], bandwidth / sheet["cores"]
        computing = 2 * m * k * n / (rate * 1e12)
        moving = (m * k + k * n + m * n) * BYTES[dtype] / (bandwidth * 1e12)
        bound = "compute" if computing >= moving else "memory"
        found.append((max(computing, moving), bound))
    return found
"""

RIDGE = """
def ridge(sheet, level, memory, dtype):
    core = level == "core"
    tflops = sheet["core_tflops" if core else "chip_tflops"].get(dtype)
    if memory == "hbm":
        bandwidth = sheet["hbm_tb_per_s"] * 1e12 / (sheet["cores"] if core else 1)
    elif sheet["dma_engines"] is None:
        return None
    else:
        engines = sheet["dma_engines_per_core" if core else "dma_engines"]
        bandwidth = engines * sheet["dma_gb_per_s_per_engine"] * 1e9
    return None if tflops is None else tflops * 1e12 / bandwidth
"""

FIT = """
def fit(job):
    width = {"fp32": 4, "bf16": 2, None: 0}
    dtypes = job["dtypes"]
    weights, gradients = width[dtypes["weights"]], width[dtypes["gradients"]]
    optimizer = width[dtypes["master"]] + 2 * width[dtypes["moments"]]
    ways = job["cores"] // job["tensor_parallel"]
    here = job["parameters"] / job["tensor_parallel"]
    state = [
        here * (weights + gradients + optimizer),
        here * (weights + gradients + optimizer / ways),
        here * (weights + (gradients + optimizer) / ways),
        here * (weights + gradients + optimizer) / ways,
    ]
    room = (job["hbm_gib_per_chip"] / job["cores_per_chip"] - job["activation_gib"]) * 2**30
    stage = next((stage for stage, size in enumerate(state) if size <= room), None)
    return {"bytes": state, "stage": stage}
"""

WRONG_ROW = """
def wrong_row(tables):
    relations = [
        (["array_side", "array_side", "tensor_clock_ghz"], "core_tflops", 2e-3, 0.02),
        (["partitions"], "array_side", 1, 0.02),
        (["cores", "core_tflops"], "chip_tflops", 1, 0.08),
        (["chips", "chip_tflops"], "system_pflops", 1e-3, 0.02),
        (["cores", "chips"], "system_cores", 1, 0.02),
        (["chips", "hbm_gib"], "system_hbm_gib", 1, 0.02),
        (["cores", "core_hbm_gib"], "hbm_gib", 1, 0.02),
        (["chips", "hbm_tb_per_s"], "system_hbm_tb_per_s", 1, 0.02),
        (["ridge_flop_per_byte", "hbm_tb_per_s"], "chip_tflops", 1, 0.02),
        (["partitions", "sbuf_kib_per_partition"], "sbuf_mib_per_core", 1 / 1024, 0.02),
        (["cores", "sbuf_mib_per_core"], "sbuf_mib_per_chip", 1, 0.02),
    ]
    for name, table in tables.items():
        failing, holding = [], []
        for factors, product, unit, tolerance in relations:
            expected = unit * math.prod(table[row] for row in factors)
            holds = abs(table[product] - expected) <= tolerance * expected
            (holding if holds else failing).append({*factors, product})
        if failing:
            (row,) = set.intersection(*failing) - set().union(*holding)
            return name, row
    raise ValueError("no table contradicts itself")
"""

CHOOSE = """
def choose(job, offers):
    gib = 2**30
    needed = job["parameters"] * job["bytes_per_parameter"] + job["activation_gib"] * gib
    rejected, prices, ask = {}, {}, []
    for offer in offers:
        name, price = offer["name"], offer[f"usd_per_hour_{job['market']}"]
        if needed > offer["hbm_gib"] * gib:
            rejected[name] = "memory"
        elif offer["network_gbps"] < 8 * job["network_gb_per_s"]:
            rejected[name] = "network"
        elif price is None:
            ask.append(name)
        else:
            prices[name] = price
    best = min(prices, key=prices.get, default=None)
    return {"instance": best, "usd_per_hour": prices.get(best), "ask": ask, "rejected": rejected}
"""

ALL_REDUCE_SECONDS = """
def all_reduce_seconds(elements, dtype, fabric):
    left = elements * BYTES[dtype]
    one_way = fabric["link_gb_per_s"] * 1e9 / 2
    latency = fabric["latency_us"] * 1e-6
    if fabric["kind"] == "switched":
        (chips,) = fabric["sizes"]
        return 2 * (latency + (chips - 1) / chips * left / one_way)
    seconds = 0.0
    for chips in fabric["sizes"]:
        left /= chips
        seconds += 2 * (chips - 1) * (latency + left / (one_way / len(fabric["sizes"])))
    return seconds
"""

RIGHT = {
    "ex1": GEMM_TIMES,
    "ex2": RIDGE,
    "ex3": FIT,
    "ex4": WRONG_ROW,
    "ex5": CHOOSE,
    "ex6": ALL_REDUCE_SECONDS,
}


EXERCISES = [f"lab01.{name}" for name in OBSERVERS]
SEEDS = ["public", "a private one"]


@pytest.fixture(scope="module")
def names() -> dict:
    return names_of("lab01")


# Right answers


OTHER_WAYS = {
    "ridge against intensity, tuples": (
        "lab01.ex1",
        """
def gemm_times(sheet, gemms):
    found = ()
    for g in gemms:
        core = g["on"] == "core"
        rate = 1e12 * sheet["core_tflops" if core else "chip_tflops"][g["dtype"]]
        share = 1e12 * sheet["hbm_tb_per_s"] / (sheet["cores"] if core else 1)
        flops = 2 * g["m"] * g["k"] * g["n"]
        moved = BYTES[g["dtype"]] * (g["k"] * (g["m"] + g["n"]) + g["m"] * g["n"])
        if flops / moved > rate / share:
            found += ((flops / rate, "compute"),)
        else:
            found += ([moved / share, "memory"],)
    return found
""",
    ),
    "numpy": (
        "lab01.ex3",
        """
def fit(job):
    import numpy as np

    width = {"fp32": 4, "bf16": 2, None: 0}
    of = {name: width[dtype] for name, dtype in job["dtypes"].items()}
    parts = np.array([of["weights"], of["gradients"], of["master"] + 2 * of["moments"]])
    ways = job["cores"] / job["tensor_parallel"]
    divided = np.array([[1, 1, 1], [1, 1, ways], [1, ways, ways], [ways, ways, ways]])
    state = job["parameters"] / job["tensor_parallel"] * (parts / divided).sum(axis=1)
    used = state + job["activation_gib"] * 2**30
    fits = np.flatnonzero(used <= job["hbm_gib_per_chip"] * 2**30 / job["cores_per_chip"])
    return {"stage": int(fits[0]) if len(fits) else None, "bytes": tuple(state)}
""",
    ),
    "only the rows of one relation after the other": (
        "lab01.ex4",
        RIGHT["ex4"].replace(
            "(row,) = set.intersection(*failing) - set().union(*holding)",
            "row = max(table, key=lambda r: (sum(r in f for f in failing)"
            " - 100 * any(r in h for h in holding)))",
        ),
    ),
    "sorted by price": (
        "lab01.ex5",
        """
def choose(job, offers):
    why = {}
    state = job["parameters"] * job["bytes_per_parameter"] / 2**30 + job["activation_gib"]
    for o in offers:
        if o["hbm_gib"] < state:
            why[o["name"]] = "memory"
        elif (o["network_gbps"] or -1) / 8 < job["network_gb_per_s"]:
            why[o["name"]] = "network"
    left = [(o["usd_per_hour_" + job["market"]], o["name"]) for o in offers if o["name"] not in why]
    known = sorted(pair for pair in left if pair[0] is not None)
    price, name = known[0] if known else (None, None)
    ask = tuple(n for p, n in left if p is None)
    return {"rejected": why, "ask": ask, "usd_per_hour": price, "instance": name}
""",
    ),
    "inputs changed in place": (
        "lab01.ex2",
        """
def ridge(sheet, level, memory, dtype):
    if level == "core":
        sheet["hbm_tb_per_s"] /= sheet["cores"]
        sheet["chip_tflops"] = sheet["core_tflops"]
        sheet["dma_engines"] = sheet["dma_engines_per_core"]
    if dtype not in sheet["chip_tflops"] or memory == "dma" and not sheet["dma_engines"]:
        return None
    dma = sheet["dma_engines"] and sheet["dma_engines"] * sheet["dma_gb_per_s_per_engine"] / 1e3
    return sheet["chip_tflops"].pop(dtype) / (dma if memory == "dma" else sheet["hbm_tb_per_s"])
""",
    ),
    "an array, and inputs changed in place": (
        "lab01.ex3",
        RIGHT["ex3"].replace('{"bytes": state', '{"bytes": __import__("numpy").array(state)')
        + '    job["dtypes"].clear()\n',
    ),
    "the relations of the notebook": (
        "lab01.ex4",
        """
def wrong_row(tables):
    def holds(table, factors, product):
        unit = {"core_tflops": 500, "system_pflops": 1000, "sbuf_mib_per_core": 1024}
        ratio = math.prod(table[row] for row in factors) / table[product] / unit.get(product, 1)
        return 0.93 < ratio < 1.01 if "core_tflops" in factors else 0.98 < ratio < 1.02

    for name, table in tables.items():
        held = {f: holds(table, f, p) for f, p in examples.RELATIONS}
        for row in table:
            own = {f for f, p in examples.RELATIONS if row in (*f, p)}
            if not all(held.values()) and own == {f for f in held if not held[f]}:
                return [name, row]
""",
    ),
    "a set to ask": ("lab01.ex5", RIGHT["ex5"].replace('"ask": ask', '"ask": set(ask)')),
    "sizes used up": (
        "lab01.ex6",
        RIGHT["ex6"]
        .replace("    seconds = 0.0", "    axes, seconds = len(fabric['sizes']), 0.0")
        .replace('for chips in fabric["sizes"]:', "while fabric['sizes']:")
        .replace(
            "        left /= chips", "        chips = fabric['sizes'].pop()\n        left /= chips"
        )
        .replace('one_way / len(fabric["sizes"])', "one_way / axes"),
    ),
    "axis by axis, there and back": (
        "lab01.ex6",
        """
def all_reduce_seconds(elements, dtype, fabric):
    size, sizes = BYTES[dtype] * elements, fabric["sizes"]
    n = math.prod(sizes)
    beta = 2e-9 / fabric["link_gb_per_s"]
    steps = 1 if fabric["kind"] == "switched" else sum(a - 1 for a in sizes)
    sent, before = 0, 1
    for a in sizes:
        sent += size * (a - 1) / a / before
        before *= a
    axes = len(sizes)
    return 2 * (steps * fabric["latency_us"] / 1e6 + axes * sent * beta)
""",
    ),
}


def test_the_course_is_open_again_after_an_answer_was_called() -> None:
    def uses(sheet, products):
        return bound(gemm(4, 4, 4), None, "bf16")

    seen = observe_case("lab01.ex1", uses, cases_of("lab01.ex1", "public")[0])
    assert "gemm belongs to the course" in seen["error"]
    assert gemm(4, 4, 4).flops == 128 and torus(4, 4).diameter == 4 and ring(3).degree == 2


def test_what_cannot_be_closed_is_named() -> None:
    with pytest.raises(ValueError, match="no module, function or class"):
        with closed.closed("lab01.ex1", "utils.chip.roofline.nothing"):
            pass


def test_classes_that_refer_to_each_other_are_closed_without_end() -> None:
    # torch gives every autograd function a class for its backward, and that one the way back.
    with closed.closed("lab05.ex4", "utils.training.precision"):
        pass


def test_a_block_that_raises_opens_what_it_closed() -> None:
    with pytest.raises(KeyError):
        with closed.closed("lab01.ex1", "utils.chip.topology.Topology", "utils.chip.topology.ring"):
            with pytest.raises(RuntimeError, match="write this one yourself"):
                _ = torus(4, 4).diameter
            raise KeyError
    assert ring(4).diameter == 2


# What an answer may return


class Odd(dict):
    def __repr__(self) -> str:
        raise RuntimeError("not to be shown")


def garbage() -> list:
    import torch

    tensor = torch.ones(6)
    deep = {"bytes": [[]] * 4, "stage": {}, "ask": [None, 3, tensor], "rejected": {1: tensor}}
    return [
        *(None, True, "text", b"bytes", float("nan"), float("inf"), 10**400, -1, 1j, tensor),
        *([], [[]] * 6, [[None, None]] * 6, [(1.0, "compute")] * 6, [(tensor, tensor)] * 6),
        *([(10**400, "x" * 10_000)] * 6, [1.0] * 100_000, range(6), ("a", "b"), (tensor, [])),
        *({}, Odd(), deep, {"bytes": tensor, "stage": None}, {"ask": "x", "rejected": [], 3: 4}),
        {"bytes": [float("nan")] * 4, "stage": 10**400},
        {"bytes": [0.0] * 4, "stage": True},
        {"ask": ["x" * 10_000] * 1000, "rejected": {"x" * 10_000 + str(k): k for k in range(99)}},
        {"ask": [], "rejected": {}, "instance": Odd(), "usd_per_hour": "0"},
    ]


@pytest.mark.parametrize("exercise_id", EXERCISES)
def test_no_returned_value_breaks_the_check(exercise_id: str) -> None:
    cases = cases_of(exercise_id, "first")
    for value in garbage():
        seen = [observe_case(exercise_id, lambda *_, value=value: value, case) for case in cases]
        assert all("facts" in each for each in seen), seen
        text = json.dumps(seen, allow_nan=False)
        assert len(text) < 20_000
        verdict = decide(exercise_id, cases, json.loads(text), 10.0)
        assert verdict.state == "tried" and verdict.points == 0, (value, verdict)
        assert any(each.message for each in verdict.criteria)


PLAIN = st.recursive(
    st.none() | st.integers() | st.floats() | st.text(max_size=3) | st.booleans(),
    lambda inner: (
        st.lists(inner, max_size=6)
        | st.tuples(inner, inner)
        | st.dictionaries(st.sampled_from("bytes stage ask rejected instance".split()), inner)
    ),
    max_leaves=12,
)


@given(PLAIN)
@settings(max_examples=60, deadline=None)
def test_no_plain_value_breaks_a_judgement(value: object) -> None:
    for exercise_id in EXERCISES:
        case = CASES[exercise_id]
        seen = observe_case(exercise_id, lambda *_: value, case)
        assert decide(exercise_id, [case], [json.loads(json.dumps(seen))], 10.0).state == "tried"


CASES = {exercise_id: cases_of(exercise_id, "first")[0] for exercise_id in EXERCISES}


# What is expected


@given(st.integers(0, 10**9))
@settings(max_examples=15, deadline=None)
def test_wrong_ways_lie_far_from_right_ones_or_are_the_same(seed: int) -> None:
    for case in cases_of("lab01.ex1", str(seed)):
        _apart([s for s, _ in gemms.truth(case)], [gemms.ways(case, e) for e in case["gemms"]])
    for case in cases_of("lab01.ex2", str(seed)):
        _apart(ridges.truth(case), [ridges.ways(case, *query) for query in case["queries"]])
    for case in cases_of("lab01.ex3", str(seed)):
        _apart(fitting.state(case), [fitting.ways(case, at) for at in fitting.STAGES])
    # The latency is little of a large message, and bandwidth little of a small one: all together.
    cases = cases_of("lab01.ex6", str(seed))
    rights = [right for case in cases for right in fabrics.truth(case)]
    _apart(rights, [fabrics.ways(case, each) for case in cases for each in case["fabrics"]])


def _apart(rights: list, ways: list) -> None:
    farthest: dict[str, float] = {}
    for right, known in zip(rights, ways, strict=True):
        for text, number in known:
            off = abs(number - right) / right
            text = text.partition(";")[0]  # what follows is about one dtype
            farthest[text] = max(off, farthest.get(text, 0.0))
    assert all(off < 1e-9 or off > 5 * TOLERANCE for off in farthest.values()), farthest


@given(st.integers(0, 10**9))
@settings(max_examples=15, deadline=None)
def test_six_products_have_both_bounds_and_no_close_call(seed: int) -> None:
    for case in cases_of("lab01.ex1", str(seed)):
        found = gemms.truth(case)
        assert len(found) == gemms.COUNT
        assert {each for _, each in found} == {"compute", "memory"}
        if case["sheet"]["core_tflops"]:
            assert {each["on"] for each in case["gemms"]} == {"core", "chip"}


@given(st.integers(0, 10**9))
@settings(max_examples=15, deadline=None)
def test_jobs_need_every_stage_and_every_recipe(seed: int) -> None:
    cases = cases_of("lab01.ex3", str(seed))
    assert {fitting.stage(case) for case in cases} == {0, 1, 2, 3, None}
    assert {case["recipe"] for case in cases} == set(fitting.RECIPE_DTYPES)
    for case in cases:
        assert fitting.state(case) == sorted(fitting.state(case), reverse=True)


def test_the_dtypes_of_a_recipe_are_its_bytes() -> None:
    assert set(fitting.RECIPE_DTYPES) == set(RECIPES)
    for name, dtypes in fitting.RECIPE_DTYPES.items():
        width = {part: fitting.BYTES[dtype] for part, dtype in dtypes.items()}
        each = RECIPES[name]
        parts = (each.weights, each.gradients, each.master, each.moments)
        assert parts == (*list(width.values())[:3], 2 * width["moments"])


def test_documented_tables_contradict_nothing() -> None:
    for system in sheets.SYSTEMS:
        assert tables.broken(sheets.table_of(system)) == set(), system


@given(st.integers(0, 10**9))
@settings(max_examples=20, deadline=None)
def test_every_wrong_row_is_found_by_what_fails_and_what_holds(seed: int) -> None:
    imagined = tables.imagined_table(random.Random(seed))
    assert tables.broken(imagined) == set()
    for system in (*sheets.SYSTEMS, tables.IMAGINED):
        table = imagined if system == tables.IMAGINED else sheets.table_of(system)
        for row, kinds in tables.errors(system, table).items():
            for value in kinds.values():
                case = {"tables": {system: {**table, row: value}}}
                assert tables.wrong_in(case) == (system, row)
    for case in cases_of("lab01.ex4", str(seed)):
        assert len(case["tables"]) == 4 and tables.wrong_in(case)


def test_no_case_tells_which_row_is_wrong() -> None:
    for case in cases_of("lab01.ex4", "public"):
        assert list(case) == ["tables"]


@given(st.integers(0, 10**9))
@settings(max_examples=10, deadline=None)
def test_jobs_meet_known_prices_unknown_ones_and_none(seed: int) -> None:
    found = [offers.truth(case) for case in cases_of("lab01.ex5", str(seed))]
    assert any(each["ask"] and each["instance"] for each in found)
    assert any(each["ask"] and each["instance"] is None for each in found)
    assert any(len(each["rejected"]) == 7 for each in found)
    assert {why for each in found for why in each["rejected"].values()} == {"memory", "network"}


def test_every_offer_says_its_network() -> None:
    assert all(sheets.offer(name)["network_gbps"] > 0 for name in offers.NAMES)


def test_one_job_of_six_is_cheapest_by_the_hour_and_not_by_the_gib() -> None:
    for seed in SEEDS:
        case = cases_of("lab01.ex5", seed)[4]
        right = offers.truth(case)
        assert right["instance"] not in (None, offers.cheapest_per_gib(case, right))


# What a report shows, and who sees what


def test_the_notebook_says_the_numbers_that_are_judged() -> None:
    lab = catalog.lab("lab01")
    assert sum(each.minutes for each in lab.exercises) == lab.minutes
    (path,) = catalog.lab_notebooks(ROOT, "lab01")
    text = {c["id"]: catalog.text(c) for c in catalog.read_notebook(path)["cells"]}
    assert f"{lab.minutes} min · {lab.points:g} points" in text["title"]
    assert f"within {TOLERANCE:.1%}" in text["objectives"]
    assert len(cases_of("lab01.ex3", "public")) == 7 and "seven jobs" in text["ex3-task"]
    assert len(cases_of("lab01.ex4", "public")) == 8 and "eight sets" in text["ex4-task"]
    assert len(cases_of("lab01.ex5", "public")) == 6 and "six jobs" in text["ex5-task"]
    widest = max(tolerance for *_, tolerance in tables.RELATIONS.values())
    assert widest == 0.08 and "0.08" in text["ex4-hints"]
