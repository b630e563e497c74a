"""Training memory: against the figures that the papers and manuals print."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from utils.chip.training_memory import RECIPES, activation_bytes, training_bytes

DEGREE = st.integers(1, 512)
PARAMETERS = st.integers(10**6, 10**12)


@pytest.mark.parametrize(("zero", "gigabytes"), [(0, 120), (1, 31.4), (2, 16.6), (3, 1.9)])
def test_zero_stages_need_what_figure_1_of_the_paper_says(zero, gigabytes):
    """7.5 billion parameters, 64 devices, K = 12 (arXiv:1910.02054, figure 1)."""
    result = training_bytes(7.5e9, "mixed", data_parallel=64, zero=zero).total / 1e9
    assert round(result, 1) == gigabytes


@given(parameters=PARAMETERS, devices=DEGREE)
def test_bytes_per_parameter_are_those_of_megatron_cores_table(parameters, devices):
    """Its distributed optimizer shards what ZeRO stage 1 does, for two of our recipes."""
    table = {"mixed-fp32-gradients": (18, 6 + 12 / devices), "fp32": (16, 8 + 8 / devices)}
    for recipe, (whole, sharded) in table.items():
        assert training_bytes(parameters, recipe).total == whole * parameters
        result = training_bytes(parameters, recipe, devices, zero=1).total
        assert result == pytest.approx(sharded * parameters)


@given(parameters=PARAMETERS, recipe=st.sampled_from(sorted(RECIPES)), data=DEGREE, tensor=DEGREE)
def test_each_stage_shards_one_part_more(parameters, recipe, data, tensor):
    stages = [training_bytes(parameters, recipe, data, zero, tensor) for zero in range(4)]
    plain = training_bytes(parameters, recipe)
    assert stages[0].total == pytest.approx(plain.total / tensor)
    assert stages[3].total == pytest.approx(plain.total / tensor / data)
    parts = ("optimizer", "gradients", "weights")
    for (before, after), part in zip(itertools.pairwise(stages), parts, strict=True):
        assert after.total <= before.total
        assert getattr(after, part) == pytest.approx(getattr(before, part) / data)


def test_recipes_differ_by_what_they_leave_out():
    totals = {name: item.total for name, item in RECIPES.items()}
    assert totals["bf16"] < totals["bf16-sr"] < totals["mixed"] == totals["fp32"]
    assert totals["mixed"] - totals["bf16-sr"] == RECIPES["mixed"].master == 4
    assert totals["mixed-fp32-gradients"] - totals["mixed"] == 2


# Name: layers, heads, width (arXiv:2205.05198, table 3), 5 as/h, and the share of all that
# selective recomputation saves (section 5). Their length is 2048, on 8 tensor-parallel devices.
MODELS = {"GPT-3": (96, 96, 12288, 80, 0.70), "MT-NLG": (105, 128, 20480, 64, 0.65)}


@pytest.mark.parametrize("name", MODELS)
def test_activations_are_those_of_korthikanti_and_others(name):
    layers, heads, width, scores, saved = MODELS[name]
    sizes = {"layers": layers, "batch": 1, "length": 2048, "width": width, "heads": heads}
    unit = layers * 2048 * width  # s b h, of all layers

    def per_unit(*recompute, **options):
        return activation_bytes(**sizes, recompute=(*recompute, "none")[0], **options) / unit

    assert per_unit() == 34 + scores
    assert 1 - per_unit("selective") / per_unit() == pytest.approx(saved, abs=0.005)
    # Table 2, line by line.
    on_eight = {"tensor_parallel": 8}
    all_on_eight = on_eight | {"sequence_parallel": True}
    assert per_unit(**on_eight) == 10 + 24 / 8 + scores / 8
    assert per_unit(**all_on_eight) == (34 + scores) / 8
    assert per_unit("selective", **on_eight) == 10 + 24 / 8
    assert per_unit("selective", **all_on_eight) == 34 / 8
    assert per_unit("full", **all_on_eight) == 2


@given(batch=st.integers(1, 8), length=st.integers(1, 4096), tensor=st.integers(1, 16))
def test_recomputing_more_keeps_less(batch, length, tensor):
    none, selective, full = (
        activation_bytes(12, batch, length, 768, 12, recompute, tensor)
        for recompute in ("none", "selective", "full")
    )
    assert full < selective < none
    assert activation_bytes(24, batch, length, 768, 12, "none", tensor) == 2 * none
    assert activation_bytes(12, 2 * batch, length, 768, 12, "none", tensor) == 2 * none


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda: training_bytes(1e9, "fp16"), "'fp16' is not known; there are fp32, mixed"),
        (lambda: training_bytes(1e9, zero=4), "0 to 3, found 4"),
        (lambda: training_bytes(1e9, data_parallel=0), "1 or more"),
        (lambda: training_bytes(-1), "0 or more"),
        (lambda: activation_bytes(1, 1, 1, 1, 1, "all"), "'selective'"),
        (lambda: activation_bytes(0, 1, 1, 1, 1), "1 or more, found 0"),
    ],
)
def test_errors_say_what_is_allowed(ask, says):
    with pytest.raises(ValueError, match=says):
        ask()
