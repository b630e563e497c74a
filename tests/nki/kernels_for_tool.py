"""Kernels that the tests of the command `nki` call, good ones and bad ones."""

import os
import time

import nki
import nki.isa as nisa
import nki.language as nl

FACTOR = 2.0
COUNTED = os.environ.get("TRIALS")
if COUNTED:  # one line for each process that runs this file
    with open(COUNTED, "a") as file:
        file.write("x\n")


@nki.jit
def scaled(x, width=128, factor=1.0):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for start in range(0, x.shape[1], width):
        tile = nl.ndarray((x.shape[0], width), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[:, start : start + width])
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=FACTOR * factor)
        nisa.dma_copy(dst=out[:, start : start + width], src=tile)
    return out


@nki.jit
def wide_is_wrong(x, width=128):
    return scaled(x, width, 1.5 if width > 256 else 1.0)


@nki.jit
def without_end(x):
    while True:
        pass


@nki.jit
def ends_the_process(x, how=0):
    print("a kernel that prints")
    if how == 1:
        os._exit(7)
    if how == 2:
        raise ZeroDivisionError("how is 2")
    time.sleep(0)
    return scaled(x)


def doubled(x):
    return FACTOR * x
