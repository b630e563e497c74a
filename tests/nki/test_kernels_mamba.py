"""Every version of the selective scan computes the recurrence."""

import nki
import numpy as np
import pytest

from utils.nki.kernels import mamba
from utils.nki.simulator.profile import profile

STATES = 2
VERSIONS = (*mamba.LADDER, (mamba.sequence_tiled, {}), (mamba.channels_outer_reloading, {}))


def arguments(batches: int, channels: int, size: int) -> tuple[np.ndarray, ...]:
    """delta, u, A, B, C as the published harness draws them, FP32."""
    draw = np.random.default_rng(0).random
    delta, u = draw((2, batches, channels, size), np.float32)
    B, C = draw((2, batches, STATES, size), np.float32)
    return delta, u, -draw((channels, STATES), np.float32), B, C


def recurrence(delta, u, A, B, C):
    """y (batches, channels, size), one position after the other, in FP64."""
    delta, u, A, B, C = (array.astype(np.float64) for array in (delta, u, A, B, C))
    state = np.zeros((*delta.shape[:2], A.shape[1]))
    outputs = []
    for t in range(delta.shape[2]):
        now = delta[:, :, t, None]
        state = np.exp(now * A) * state + now * u[:, :, t, None] * B[:, None, :, t]
        outputs.append((state * C[:, None, :, t]).sum(-1))
    return np.stack(outputs, axis=-1)


@pytest.mark.parametrize("size", [512, 1024])
@pytest.mark.parametrize("version", VERSIONS, ids=lambda version: version[0].__name__)
def test_a_version_computes_the_recurrence(version, size):
    kernel, options = version
    inputs = arguments(1, 256, size)
    result = nki.simulate(kernel)(*inputs, **options)
    assert result.dtype == np.float32
    np.testing.assert_allclose(result, recurrence(*inputs), rtol=1e-5)


@pytest.mark.parametrize("version", VERSIONS[-3:], ids=lambda version: version[0].__name__)
def test_batches_do_not_mix(version):
    kernel, options = version
    inputs = arguments(2, 128, 512)
    result = nki.simulate(kernel)(*inputs, **options)
    np.testing.assert_allclose(result, recurrence(*inputs), rtol=1e-5)


def test_what_the_versions_load():
    """Version 1 brings delta and u in for every state, version 2 once."""
    wide, column, row = (nki.Shape(item) for item in ((1, 256, 512), (256, 16), (1, 16, 512)))
    every, once = (
        profile(kernel, target="trn1")(wide, wide, column, row, row).hbm_read
        for kernel in (mamba.states_outer, mamba.channels_outer)
    )
    tensor, rows, columns = 4 * 256 * 512, 2 * 4 * 16 * 512, 4 * 256 * 16
    assert every == 2 * 16 * tensor + rows + columns
    assert once == 2 * tensor + 2 * rows + columns
