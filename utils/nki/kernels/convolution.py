"""A depthwise convolution of one dimension, one output position at a time.

The smallest instructions there can be: a product and a sum of three columns for each position, so
that what counts is how often the Vector Engine can begin one. Measured on a Trainium1
(ucb-bar/autocomp, examples/trn-advanced/4_conv1d_trace.py, the innermost candidate).
"""

import nki
import nki.isa as nisa
import nki.language as nl

from utils.nki.kernels.onchip import load, tile, zeros

CHANNELS = nl.tile_size.pmax


@nki.jit
def depthwise(images, filters):
    """images (batch, channels, n) padded by one zero on both sides, filters (channels, 3), FP32.

    Result (batch, channels, n): the position's neighbours times the channel's filter.
    """
    batch, channels, size = images.shape
    taps = filters.shape[1]
    output = nl.ndarray(images.shape, dtype=images.dtype, buffer=nl.shared_hbm)
    for image in range(batch):
        for start in range(0, channels, CHANNELS):
            here = nl.ds(start, CHANNELS)
            padded = zeros((CHANNELS, size + taps - 1))
            nisa.dma_copy(dst=padded[:, nl.ds(taps // 2, size)], src=images[image, here, :])
            weights, result = load(filters[here, :]), tile((CHANNELS, size), images.dtype)
            for position in range(size):
                product = tile((CHANNELS, taps))
                window = padded[:, nl.ds(position, taps)]
                nisa.tensor_tensor(dst=product, data1=window, data2=weights, op=nl.multiply)
                nisa.tensor_reduce(
                    dst=result[:, nl.ds(position, 1)], op=nl.add, data=product, axis=1
                )
            nisa.dma_copy(dst=output[image, here, :], src=result)
    return output
