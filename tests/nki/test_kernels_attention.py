"""Attention, normalisations and elementwise kernels against NumPy."""

import ml_dtypes
import nki
import numpy as np
import pytest

from utils.nki.kernels import (
    attention,
    attention_ladder,
    attention_small_head,
    convolution,
    norm_quant,
    norms,
    pointwise,
)
from utils.nki.simulator.profile import profile

BF16 = ml_dtypes.bfloat16


def draw(*shape: int, dtype: type = np.float32) -> np.ndarray:
    """Numbers from -1 to 1, the same for the same shape."""
    return (2 * np.random.default_rng(len(shape)).random(shape) - 1).astype(dtype)


def head(size: int, dtype: type = np.float32) -> list[np.ndarray]:
    """q, k, v (128, size)."""
    draw = np.random.default_rng(1).random
    return [(2 * draw((128, size)) - 1).astype(dtype) for _ in range(3)]


def attend(q, k, v, scale=1.0, causal=False):
    """softmax(scale q.T k) v for q, k (d, n) and v (n, d), in FP64."""
    q, k, v = (array.astype(np.float64) for array in (q, k, v))
    scores = scale * (q.T @ k)
    if causal:
        scores = np.where(np.tril(np.ones(scores.shape, bool)), scores, -np.inf)
    return softmax(scores) @ v


def softmax(x):
    powers = np.exp(x.astype(np.float64) - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


@pytest.mark.parametrize("step", range(len(attention_ladder.LADDER)))
def test_a_step_of_the_ladder_computes_attention(step):
    kernel, options = attention_ladder.LADDER[step]
    q, k, v = head(512)
    result = nki.simulate(kernel)(q, k, v, **options)
    # FP32 to step 1, products with ten bits to step 3, then BF16, in step 8 of the scores too.
    tolerance = 1e-5 if step < 2 else 2e-3 if step < 4 else 3e-2 if step == 8 else 1e-2
    np.testing.assert_allclose(result, attend(q, k, v.T), atol=tolerance)


@pytest.mark.parametrize("options", attention_small_head.LADDER)
def test_attention_of_a_small_head(options):
    q, k, v = (draw(256, 64) * factor for factor in (1, 2, 3))
    result = nki.simulate(attention_small_head.attention)(q, k, v, **options)
    np.testing.assert_allclose(result, attend(q.T, k.T, v, 0.125), atol=2e-2)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("block", [512, 1024])
def test_flash_attention(causal, block):
    q, k, v = head(1024, BF16)
    v = np.ascontiguousarray(v.T)
    result = nki.simulate(attention.flash_attention)(q, k, v, causal=causal, block=block)
    assert result.dtype == BF16
    expected = attend(q, k, v, 128**-0.5, causal)
    np.testing.assert_allclose(result.astype(np.float64), expected, atol=1e-2)


def test_flash_attention_stands_large_scores():
    q, k, v = head(1024)
    v = np.ascontiguousarray(v.T)
    result = nki.simulate(attention.flash_attention)(q, k, v, scale=30.0, block=512)
    np.testing.assert_allclose(result, attend(q, k, v, 30.0), atol=1e-3)


@pytest.mark.parametrize("kernel", [norms.softmax, norms.softmax_in_three_passes])
def test_softmax(kernel):
    x = 50 * draw(256, 640)
    np.testing.assert_allclose(nki.simulate(kernel)(x), softmax(x), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("kernel", [norms.rmsnorm_matmul, norms.rmsnorm_then_matmul])
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 1e-5), (BF16, 2e-2)])
def test_rmsnorm_before_a_product(kernel, dtype, tolerance):
    x, w = 3 * draw(256, 384, dtype=dtype), draw(384, 640, dtype=dtype)
    exact = x.astype(np.float64)
    normal = exact / np.sqrt((exact**2).mean(-1, keepdims=True) + 1e-6)
    expected = normal @ w.astype(np.float64)
    result = nki.simulate(kernel)(x, w).astype(np.float64)
    np.testing.assert_allclose(result, expected, atol=tolerance * np.abs(expected).max())


@pytest.mark.parametrize("kernel", [pointwise.silu, pointwise.silu_from_exp])
def test_silu(kernel):
    x = 5 * draw(128, 2, 1024)
    expected = x.astype(np.float64) / (1 + np.exp(-x.astype(np.float64)))
    np.testing.assert_allclose(nki.simulate(kernel)(x), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kernel", [pointwise.silu_multiply, pointwise.silu_then_multiply])
def test_gated_silu(kernel):
    gate, up = 5 * draw(256, 300), draw(256, 300) - 0.5
    expected = gate / (1 + np.exp(-gate.astype(np.float64))) * up
    np.testing.assert_allclose(nki.simulate(kernel)(gate, up), expected, rtol=1e-5, atol=1e-6)


def test_rope():
    x, cos, sin = draw(128, 1024), draw(64, 1024), draw(64, 1024) + 1
    upper, lower = x[:64], x[64:]
    expected = np.concatenate([upper * cos - lower * sin, lower * cos + upper * sin])
    result = nki.simulate(pointwise.rope)(x, cos, sin)
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("rows", [80, 200])
def test_rmsnorm_to_fp8(rows):
    x, gain = 3 * draw(rows, 1024), 1 + draw(1, 1024)
    values, factors = nki.simulate(norm_quant.rmsnorm_quantized)(x.astype(BF16), gain.astype(BF16))
    expected = x / np.sqrt((x**2).mean(-1, keepdims=True)) * gain
    assert values.shape == x.shape and factors.shape == (rows, 1)
    result = values.astype(np.float32) * factors
    # Three bits after the leading one, of numbers up to the largest of the row.
    np.testing.assert_allclose(result, expected, rtol=2**-3, atol=np.abs(expected).max() / 200)


def test_depthwise_convolution():
    images, filters = draw(2, 128, 32), draw(128, 3)
    padded = np.pad(images, ((0, 0), (0, 0), (1, 1)))
    expected = sum(padded[:, :, i : i + 32] * filters[:, i, None] for i in range(3))
    result = nki.simulate(convolution.depthwise)(images, filters)
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)


MATRIX = nki.Shape((256, 1024))
HALF = nki.Shape((256, 1024), "bfloat16")
WEIGHTS = nki.Shape((1024, 512), "bfloat16")


@pytest.mark.parametrize(("fused", "unfused", "inputs", "saved"), [
    (norms.softmax, norms.softmax_in_three_passes, (MATRIX,), 4 * 4 * 256 * 1024),
    (pointwise.silu_multiply, pointwise.silu_then_multiply, (HALF, HALF), 2 * 2 * 256 * 1024),
    (norms.rmsnorm_matmul, norms.rmsnorm_then_matmul, (HALF, WEIGHTS), 2 * 2 * 256 * 1024),
])  # fmt: skip
def test_fusing_saves_the_transfers_of_what_lies_between(fused, unfused, inputs, saved):
    one, two = (profile(kernel)(*inputs) for kernel in (fused, unfused))
    assert two.hbm_read + two.hbm_written - one.hbm_read - one.hbm_written == saved
    assert one.seconds < two.seconds


@pytest.mark.parametrize("causal", [False, True])
def test_attention_moves_only_its_inputs_and_its_result(causal):
    size = 2048
    head = [nki.Shape((128, size), "bfloat16")] * 2 + [nki.Shape((size, 128), "bfloat16")]
    result = profile(attention.flash_attention)(*head, causal=causal)
    assert (result.hbm_read, result.hbm_written) == (3 * 2 * 128 * size, 2 * 128 * size)
