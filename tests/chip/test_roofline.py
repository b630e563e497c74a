"""The roofline: formulas, the documented ridge, and what a bound must obey."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from utils.chip.hardware import machine
from utils.chip.roofline import (
    BYTES,
    Work,
    attention,
    bandwidth,
    bound,
    elementwise,
    embedding,
    gemm,
    ridge,
)
from utils.facts import Unknown, figure

SIZE = st.integers(1, 5000)
CORE = machine("trainium2", "core")
AMOUNT = st.floats(1, 1e18)


def test_the_ridge_of_a_trainium1_core_is_the_documented_one():
    documented = figure("trainium1.ridge_bf16").to("FLOP/B")
    assert ridge(machine("trainium1", "core"), "bf16") == pytest.approx(documented, rel=0.015)


def test_a_chip_has_the_ridge_of_its_core_where_its_total_is_their_sum():
    chip, core = machine("trainium3"), machine("trainium3", "core")
    assert ridge(chip, "mxfp8") == pytest.approx(ridge(core, "mxfp8"), rel=0.01)
    assert ridge(chip, "bf16") > 1.05 * ridge(core, "bf16")


@given(m=SIZE, k=SIZE, n=SIZE, dtype=st.sampled_from(sorted(BYTES)))
def test_a_product_moves_each_matrix_once(m, k, n, dtype):
    work = gemm(m, k, n, dtype)
    assert work.flops == 2 * m * k * n
    assert work.bytes == pytest.approx(BYTES[dtype] * (m * k + k * n + m * n))
    assert work.intensity == pytest.approx(gemm(n, k, m, dtype).intensity)
    assert work.intensity <= 2 * min(m, k, n) / BYTES[dtype] * (1 + 1e-12)


@given(n=SIZE)
def test_the_intensity_of_a_square_product_is_a_third_of_its_side_in_bf16(n):
    assert gemm(n, n, n).intensity == pytest.approx(n / 3)


@given(batch=SIZE, heads=SIZE, length=SIZE, width=SIZE)
def test_fused_attention_has_the_intensity_of_half_its_length(batch, heads, length, width):
    fused = attention(batch, heads, length, width)
    apart = attention(batch, heads, length, width, fused=False)
    assert fused.intensity == pytest.approx(length / 2)
    assert apart.flops == fused.flops
    scores = batch * heads * length * length
    assert apart.bytes - fused.bytes == pytest.approx(4 * 2 * scores)
    assert apart.intensity < min(fused.intensity, width / 2)


def test_attention_is_its_two_products():
    q_by_k, scores_by_v = gemm(96, 32, 96), gemm(96, 96, 32)
    assert attention(1, 1, 96, 32).flops == q_by_k.flops + scores_by_v.flops


@given(n=SIZE, inputs=st.integers(1, 4))
def test_elementwise_work_is_bound_by_memory_everywhere(n, inputs):
    work = elementwise(n, "bf16", inputs)
    assert work.bytes == 2 * n * (inputs + 1)
    assert work.intensity <= 0.25
    for key in ("trainium1", "trainium2", "trainium3", "h100"):
        assert bound(work, machine(key), "bf16").bound == "memory"


@given(tokens=SIZE, width=SIZE)
def test_an_embedding_copies(tokens, width):
    work = embedding(tokens, width)
    assert (work.flops, work.intensity) == (0, 0)
    assert work.bytes == 2 * 2 * tokens * width + 4 * tokens
    estimate = bound(work, CORE, "bf16")
    assert (estimate.bound, estimate.efficiency, estimate.flops_per_s) == ("memory", 0, 0)
    bag = embedding(tokens, width, rows=3)
    assert bag.flops == 2 * tokens * width
    assert bag.bytes == 3 * (2 * tokens * width + 4 * tokens) + 2 * tokens * width


@given(flops=AMOUNT, moved=AMOUNT, memory=st.sampled_from(["hbm", "dma"]))
def test_a_bound_is_the_longer_of_both_and_the_lower_of_both_roofs(flops, moved, memory):
    estimate = bound(Work("any", flops, moved), CORE, "bf16", memory)
    rate, bytes_per_s = CORE.rate("bf16"), bandwidth(CORE, memory)
    assert estimate.seconds == max(flops / rate, moved / bytes_per_s)
    roof = min(rate, estimate.intensity * bytes_per_s)
    assert estimate.flops_per_s == pytest.approx(roof)
    assert estimate.efficiency == pytest.approx(roof / rate)
    over = estimate.intensity - ridge(CORE, "bf16", memory)
    if abs(over) > 1e-9 * estimate.intensity:
        assert (estimate.bound == "compute") == (over > 0)


@given(moved=AMOUNT, beyond=st.floats(1.001, 2))
def test_the_ridge_parts_memory_from_compute(moved, beyond):
    at = ridge(CORE, "bf16")
    assert bound(Work("above", beyond * at * moved, moved), CORE, "bf16").bound == "compute"
    assert bound(Work("below", at * moved / beyond, moved), CORE, "bf16").bound == "memory"


@given(flops=AMOUNT, moved=AMOUNT, factor=st.floats(1, 100))
def test_more_work_never_takes_less_time(flops, moved, factor):
    least = bound(Work("any", flops, moved), CORE, "bf16").seconds
    assert bound(Work("more", factor * flops, moved), CORE, "bf16").seconds >= least
    assert bound(Work("more", flops, factor * moved), CORE, "bf16").seconds >= least


@pytest.mark.parametrize(
    ("ask", "error", "says"),
    [
        (lambda: gemm(0, 1, 1), ValueError, "m is 1 or more, found 0"),
        (lambda: gemm(1, 1, 1, "float"), ValueError, "bf16"),
        (lambda: elementwise(4, inputs=0), ValueError, "inputs"),
        (lambda: ridge(machine("h100"), "bf16", "dma"), ValueError, "memory='hbm'"),
        (lambda: ridge(CORE, "bf16", "cache"), ValueError, "'dma'"),
        (lambda: bound(gemm(1, 1, 1), CORE, "mxfp4"), Unknown, "fp8"),
    ],
)
def test_errors_say_what_is_allowed(ask, error, says):
    with pytest.raises(error, match=says):
        ask()
