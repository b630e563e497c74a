"""One NKI kernel and its check: the same file here, with AWS's tools and on a chip (lesson 09).

    python nki_gelu.py             in the simulator that `import nki` finds
    python nki_gelu.py --device    compiled and run on the chip of this machine

The course's simulator is found with PYTHONPATH=utils/nki/package.
"""

import sys

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np

SLOPE = 1.702


@nki.jit
def quick_gelu(x):
    """x * sigmoid(1.702 x). x: [rows, columns] in HBM."""
    rows, columns = x.shape
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for start in range(0, rows, nl.tile_size.pmax):
        size = min(nl.tile_size.pmax, rows - start)
        tile = nl.ndarray((size, columns), dtype=x.dtype, buffer=nl.sbuf)
        gate = nl.ndarray((size, columns), dtype=nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[nl.ds(start, size)])
        nisa.activation(dst=gate, op=nl.sigmoid, data=tile, scale=SLOPE)
        nisa.tensor_tensor(dst=tile, data1=tile, data2=gate, op=nl.multiply)
        nisa.dma_copy(dst=out[nl.ds(start, size)], src=tile)
    return out


def main() -> None:
    """Compare the kernel with NumPy in float64, in roundings of FP32."""
    x = np.random.default_rng(0).standard_normal((300, 512)).astype(np.float32)
    kernel = quick_gelu if "--device" in sys.argv else nki.simulate(quick_gelu)
    wide = x.astype(np.float64)
    reference = wide / (1 + np.exp(-SLOPE * wide))
    rounding = np.finfo(np.float32).eps / 2 * np.abs(reference).max()
    error = np.abs(kernel(x) - reference).max() / rounding
    print(f"nki {nki.__version__}: the largest error is {error:.1f} roundings of FP32")


if __name__ == "__main__":
    main()
