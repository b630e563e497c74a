"""Lab 10: right designs pass with room to each limit, flaws are what they are called."""

import json

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
from utils.labs import judge, observe_case
from utils.labs.lab10 import attention, convolution, fusion, products
from utils.labs.lab10.advice import profiles, truths
from utils.labs.lab10.observe import OBSERVERS
from utils.labs.lab10.reading import ACTIONS
from utils.labs.replayed import farthest
from utils.nki import simulator
from utils.nki.simulator.arrays import Shape
from utils.nki.simulator.profile import profile

WRONG = wrong_entries("lab10")

MATMUL = """
@nki.jit
def matmul(lhs_t, rhs):
    (depth, rows), columns = lhs_t.shape, rhs.shape[1]
    out = nl.ndarray((rows, columns), dtype=lhs_t.dtype, buffer=nl.shared_hbm)
    for m0 in range(0, rows, 512):
        lefts = []
        for k in range(0, depth, 128):
            tile = nl.ndarray((128, 512), dtype=lhs_t.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=tile, src=lhs_t[nl.ds(k, 128), nl.ds(m0, 512)])
            lefts.append(tile)
        for n in range(0, columns, 512):
            rights = []
            for k in range(0, depth, 128):
                tile = nl.ndarray((128, 512), dtype=rhs.dtype, buffer=nl.sbuf)
                nisa.dma_copy(dst=tile, src=rhs[nl.ds(k, 128), nl.ds(n, 512)])
                rights.append(tile)
            for m in range(0, 512, 128):
                total = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
                for k in range(len(lefts)):
                    nisa.nc_matmul(
                        dst=total, stationary=lefts[k][:, nl.ds(m, 128)], moving=rights[k]
                    )
                result = nl.ndarray((128, 512), dtype=out.dtype, buffer=nl.sbuf)
                nisa.tensor_copy(dst=result, src=total)
                nisa.dma_copy(dst=out[nl.ds(m0 + m, 128), nl.ds(n, 512)], src=result)
    return out
"""

FAST = """
@nki.jit
def fast_matmul(lhs_t, rhs):
    (depth, rows), columns = lhs_t.shape, rhs.shape[1]
    out = nl.ndarray((rows, columns), dtype=lhs_t.dtype, buffer=nl.shared_hbm)
    panels = []
    for m0 in range(0, rows, 512):
        lefts = []
        for k in range(0, depth, 128):
            tile = nl.ndarray((128, 512), dtype=lhs_t.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=tile, src=lhs_t[nl.ds(k, 128), nl.ds(m0, 512)])
            lefts.append(tile)
        for n in range(columns // 512):
            if m0 == 0:
                rights = []
                for k in range(0, depth, 128):
                    tile = nl.ndarray((128, 512), dtype=rhs.dtype, buffer=nl.sbuf)
                    nisa.dma_copy(dst=tile, src=rhs[nl.ds(k, 128), nl.ds(n * 512, 512)])
                    rights.append(tile)
                panels.append(rights)
            for m in range(0, 512, 128):
                total = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
                for k in range(len(lefts)):
                    nisa.nc_matmul(
                        dst=total, stationary=lefts[k][:, nl.ds(m, 128)], moving=panels[n][k]
                    )
                result = nl.ndarray((128, 512), dtype=out.dtype, buffer=nl.sbuf)
                nisa.tensor_copy(dst=result, src=total)
                nisa.dma_copy(dst=out[nl.ds(m0 + m, 128), nl.ds(n * 512, 512)], src=result)
    return out
"""

NORM = """
@nki.jit
def fused_norm(x, gate, weight, epsilon):
    rows, columns = x.shape
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    weights = nl.ndarray((128, columns), dtype=nl.float32, buffer=nl.sbuf)
    offset = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=weights, src=weight.ap(pattern=[[0, 128], [1, columns]]))
    nisa.memset(dst=offset, value=epsilon)
    for row in range(0, rows, 128):
        here = nl.ds(row, 128)
        left = nl.ndarray((128, columns), dtype=x.dtype, buffer=nl.sbuf)
        right = nl.ndarray((128, columns), dtype=x.dtype, buffer=nl.sbuf)
        squares = nl.ndarray((128, columns), dtype=nl.float32, buffer=nl.sbuf)
        scale = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(dst=right, src=gate[here])
        nisa.dma_copy(dst=left, src=x[here])
        nisa.activation(dst=right, op=nl.silu, data=right)
        nisa.tensor_tensor(
            dst=left, data1=left, data2=right, op=nl.multiply, engine=nisa.engine.gpsimd
        )
        nisa.activation_reduce(
            dst=squares, op=nl.square, data=left, reduce_op=nl.add, reduce_res=scale
        )
        nisa.activation(dst=scale, op=nl.rsqrt, data=scale, scale=1 / columns, bias=offset)
        nisa.scalar_tensor_tensor(
            dst=left, data=left, op0=nl.multiply, operand0=scale,
            op1=nl.multiply, operand1=weights,
        )
        nisa.dma_copy(dst=out[here], src=left)
    return out
"""

CONV = """
@nki.jit
def conv_pool(x, w, bias):
    (inputs, high, wide), outputs = x.shape, w.shape[3]
    across, down = wide - 2, high - 2
    out = nl.ndarray((outputs, down // 2, across // 2), dtype=x.dtype, buffer=nl.shared_hbm)
    taps = nl.ndarray((inputs, 9, outputs), dtype=w.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=taps, src=w.reshape((9, inputs, outputs)).permute((1, 0, 2)))
    column = nl.ndarray((outputs, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=column, src=bias.reshape((outputs, 1)))
    most = 512 // across // 2 * 2
    for first in range(0, down, most):
        rows = min(most, down - first)
        piece = nl.ndarray((inputs, rows + 2, wide), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=piece, src=x[:, nl.ds(first, rows + 2), :])
        total = nl.ndarray((outputs, rows, across), dtype=nl.float32, buffer=nl.psum)
        for tap in range(9):
            nisa.nc_matmul(
                dst=total, stationary=taps[:, tap, :],
                moving=piece[:, nl.ds(tap // 3, rows), nl.ds(tap % 3, across)],
            )
        sums = nl.ndarray((outputs, rows // 2, 2, across), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_copy(
            dst=sums.reshape((outputs, rows, across)), src=total, engine=nisa.engine.scalar
        )
        pair = nl.ndarray((outputs, rows // 2, across // 2, 2), dtype=nl.float32, buffer=nl.sbuf)
        best = nl.ndarray((outputs, rows // 2, across // 2), dtype=nl.float32, buffer=nl.sbuf)
        result = nl.ndarray(best.shape, dtype=x.dtype, buffer=nl.sbuf)
        nisa.tensor_tensor(
            dst=pair.reshape((outputs, rows // 2, across)), data1=sums[:, :, 0, :],
            data2=sums[:, :, 1, :], op=nl.maximum,
        )
        nisa.tensor_tensor(
            dst=best, data1=pair[:, :, :, 0], data2=pair[:, :, :, 1], op=nl.maximum
        )
        nisa.tensor_scalar(dst=result, data=best, op0=nl.add, operand0=column)
        nisa.dma_copy(dst=out[:, nl.ds(first // 2, rows // 2), :], src=result)
    return out
"""

ATTENTION = """
@nki.jit
def attention(q, k, v):
    depth, size = q.shape
    out = nl.ndarray((size, depth), dtype=q.dtype, buffer=nl.shared_hbm)
    queries = nl.ndarray(q.shape, dtype=q.dtype, buffer=nl.sbuf)
    keys = nl.ndarray(k.shape, dtype=k.dtype, buffer=nl.sbuf)
    values = nl.ndarray((128, size // 128, depth + 1), dtype=v.dtype, buffer=nl.sbuf)
    minus = nl.ndarray((1, 128), dtype=nl.bfloat16, buffer=nl.sbuf)
    nisa.dma_copy(dst=queries, src=q)
    nisa.dma_copy(dst=keys, src=k)
    nisa.dma_copy(
        dst=values[:, :, 0:depth], src=v.reshape((size // 128, 128, depth)).permute((1, 0, 2))
    )
    nisa.memset(dst=values[:, :, nl.ds(depth, 1)], value=1.0)
    nisa.memset(dst=minus, value=-1.0)
    for row in range(0, size, 512):
        # The maximum of each query, queries on the partitions; then as a row, in BF16.
        shift = nl.ndarray((1, 512), dtype=nl.bfloat16, buffer=nl.sbuf)
        for part in range(0, 512, 128):
            parts = nl.ndarray((128, size // 512), dtype=nl.float32, buffer=nl.sbuf)
            for key in range(0, size, 512):
                scores = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
                nisa.nc_matmul(
                    dst=scores, stationary=queries[:, nl.ds(row + part, 128)],
                    moving=keys[:, nl.ds(key, 512)],
                )
                nisa.tensor_reduce(
                    dst=parts[:, nl.ds(key // 512, 1)], op=nl.maximum, data=scores, axis=1
                )
            column = nl.ndarray((128, 1), dtype=nl.bfloat16, buffer=nl.sbuf)
            turned = nl.ndarray((1, 128), dtype=nl.bfloat16, buffer=nl.psum)
            nisa.tensor_reduce(dst=column, op=nl.maximum, data=parts, axis=1)
            nisa.nc_transpose(dst=turned, data=column)
            nisa.tensor_copy(dst=shift[:, nl.ds(part, 128)], src=turned)
        # The scores again, keys on the partitions, minus that maximum: a product with K = 1.
        powers = []
        for key in range(0, size, 128):
            scores = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
            nisa.nc_matmul(
                dst=scores, stationary=keys[:, nl.ds(key, 128)], moving=queries[:, nl.ds(row, 512)]
            )
            nisa.nc_matmul(dst=scores, stationary=minus, moving=shift)
            power = nl.ndarray((128, 512), dtype=nl.bfloat16, buffer=nl.sbuf)
            nisa.activation(dst=power, op=nl.exp, data=scores, scale=depth**-0.5)
            powers.append(power)
        # Times the values; the column of ones beside them makes the sum of the exponentials.
        for part in range(0, 512, 128):
            total = nl.ndarray((128, depth + 1), dtype=nl.float32, buffer=nl.psum)
            for index in range(len(powers)):
                nisa.nc_matmul(
                    dst=total, stationary=powers[index][:, nl.ds(part, 128)],
                    moving=values[:, index, :],
                )
            inverse = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
            result = nl.ndarray((128, depth), dtype=q.dtype, buffer=nl.sbuf)
            nisa.reciprocal(dst=inverse, data=total[:, nl.ds(depth, 1)])
            nisa.tensor_scalar(
                dst=result, data=total[:, 0:depth], op0=nl.multiply, operand0=inverse
            )
            nisa.dma_copy(dst=out[nl.ds(row + part, 128)], src=result)
    return out
"""

ROWS = """
@nki.jit
def attention(q, k, v):
    depth, size = q.shape
    out = nl.ndarray((size, depth), dtype=q.dtype, buffer=nl.shared_hbm)
    queries = nl.ndarray(q.shape, dtype=q.dtype, buffer=nl.sbuf)
    keys = nl.ndarray(k.shape, dtype=k.dtype, buffer=nl.sbuf)
    values = nl.ndarray((128, size // 128, depth), dtype=v.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=queries, src=q)
    nisa.dma_copy(dst=keys, src=k)
    nisa.dma_copy(dst=values, src=v.reshape((size // 128, 128, depth)).permute((1, 0, 2)))
    for row in range(0, size, 128):
        scores = nl.ndarray((128, size), dtype=nl.float32, buffer=nl.psum)
        for key in range(0, size, 512):
            nisa.nc_matmul(
                dst=scores[:, nl.ds(key, 512)], stationary=queries[:, nl.ds(row, 128)],
                moving=keys[:, nl.ds(key, 512)],
            )
        shift = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
        total = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
        power = nl.ndarray((128, size), dtype=nl.bfloat16, buffer=nl.sbuf)
        nisa.tensor_reduce(dst=shift, op=nl.maximum, data=scores, axis=1)
        nisa.tensor_scalar(dst=shift, data=shift, op0=nl.multiply, operand0=-(depth**-0.5))
        nisa.activation_reduce(
            dst=power, op=nl.exp, data=scores, bias=shift, scale=depth**-0.5,
            reduce_op=nl.add, reduce_res=total,
        )
        nisa.reciprocal(dst=total, data=total)
        weighted = nl.ndarray((128, depth), dtype=nl.float32, buffer=nl.psum)
        for key in range(0, size, 512):
            turned = nl.ndarray((128, 512), dtype=nl.bfloat16, buffer=nl.psum)
            moved = nl.ndarray((128, 512), dtype=nl.bfloat16, buffer=nl.sbuf)
            for part in range(0, 512, 128):
                nisa.nc_transpose(
                    dst=turned[:, nl.ds(part, 128)], data=power[:, nl.ds(key + part, 128)]
                )
            nisa.tensor_copy(dst=moved, src=turned)
            for part in range(0, 512, 128):
                nisa.nc_matmul(
                    dst=weighted, stationary=moved[:, nl.ds(part, 128)],
                    moving=values[:, (key + part) // 128, :],
                )
        result = nl.ndarray((128, depth), dtype=q.dtype, buffer=nl.sbuf)
        nisa.tensor_scalar(dst=result, data=weighted, op0=nl.multiply, operand0=total)
        nisa.dma_copy(dst=out[nl.ds(row, 128)], src=result)
    return out
"""

SHORT_SUMS = """
@nki.jit
def fast_matmul(lhs_t, rhs):
    (depth, rows), columns = lhs_t.shape, rhs.shape[1]
    out = nl.ndarray((rows, columns), dtype=lhs_t.dtype, buffer=nl.shared_hbm)
    sums = {}
    for first in range(0, depth, 256):
        lefts, rights = [], []
        for k in range(first, first + 256, 128):
            left = nl.ndarray((128, rows), dtype=lhs_t.dtype, buffer=nl.sbuf)
            right = nl.ndarray((128, columns), dtype=rhs.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=left, src=lhs_t[nl.ds(k, 128)])
            nisa.dma_copy(dst=right, src=rhs[nl.ds(k, 128)])
            lefts.append(left)
            rights.append(right)
        for m in range(0, rows, 128):
            for n in range(0, columns, 512):
                total = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
                for k in range(len(lefts)):
                    nisa.nc_matmul(
                        dst=total, stationary=lefts[k][:, nl.ds(m, 128)],
                        moving=rights[k][:, nl.ds(n, 512)],
                    )
                if first == 0:
                    sums[m, n] = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
                    nisa.tensor_copy(dst=sums[m, n], src=total)
                else:
                    nisa.tensor_tensor(
                        dst=sums[m, n], data1=sums[m, n], data2=total, op=nl.add
                    )
    for m in range(0, rows, 128):
        for n in range(0, columns, 512):
            result = nl.ndarray((128, 512), dtype=out.dtype, buffer=nl.sbuf)
            nisa.tensor_copy(dst=result, src=sums[m, n])
            nisa.dma_copy(dst=out[nl.ds(m, 128), nl.ds(n, 512)], src=result)
    return out
"""


EXERCISES = [f"lab10.{name}" for name in OBSERVERS]
ROOM = 0.05
"""No right design of ours is nearer to a limit than this share of it."""

pytestmark = pytest.mark.usefixtures("xla_device")


@pytest.fixture(scope="module")
def names() -> dict:
    return names_of("lab10")


EVERYTHING_FIRST = """
@nki.jit
def fast_matmul(lhs_t, rhs):
    (depth, rows), columns = lhs_t.shape, rhs.shape[1]
    out = nl.ndarray((rows, columns), dtype=lhs_t.dtype, buffer=nl.shared_hbm)
    lefts, rights = [], []
    for k in range(0, depth, 128):
        left = nl.ndarray((128, rows), dtype=lhs_t.dtype, buffer=nl.sbuf)
        right = nl.ndarray((128, columns), dtype=rhs.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=left, src=lhs_t[nl.ds(k, 128)])
        nisa.dma_copy(dst=right, src=rhs[nl.ds(k, 128)])
        lefts.append(left)
        rights.append(right)
    for m in range(0, rows, 128):
        for n in range(0, columns, 512):
            total = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
            for k in range(len(lefts)):
                nisa.nc_matmul(
                    dst=total, stationary=lefts[k][:, nl.ds(m, 128)],
                    moving=rights[k][:, nl.ds(n, 512)],
                )
            result = nl.ndarray((128, 512), dtype=out.dtype, buffer=nl.sbuf)
            nisa.tensor_copy(dst=result, src=total, engine=nisa.engine.scalar)
            nisa.dma_copy(dst=out[nl.ds(m, 128), nl.ds(n, 512)], src=result)
    return out
"""
SUMS_IN_SBUF = changed(
    SHORT_SUMS,
    ("range(0, depth, 256)", "range(0, depth, 512)"),
    ("range(first, first + 256, 128)", "range(first, min(first + 512, depth), 128)"),
)
SCORES_TWICE = changed(
    ROWS,
    (
        "        scores = nl.ndarray((128, size), dtype=nl.float32, buffer=nl.psum)\n",
        "        maxima = nl.ndarray((128, size // 512), dtype=nl.float32, buffer=nl.sbuf)\n"
        "        sums = nl.ndarray((128, size // 512), dtype=nl.float32, buffer=nl.sbuf)\n",
    ),
    (
        "            nisa.nc_matmul(\n                dst=scores[:, nl.ds(key, 512)], stationary",
        "            scores = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)\n"
        "            nisa.nc_matmul(\n"
        "                dst=scores, stationary",
    ),
    (
        "                moving=keys[:, nl.ds(key, 512)],\n            )\n",
        "                moving=keys[:, nl.ds(key, 512)],\n            )\n"
        "            nisa.tensor_reduce(\n"
        "                dst=maxima[:, nl.ds(key // 512, 1)], op=nl.maximum, data=scores, axis=1\n"
        "            )\n",
    ),
    (
        "op=nl.maximum, data=scores, axis=1)\n        nisa.tensor_scalar",
        "op=nl.maximum, data=maxima, axis=1)\n        nisa.tensor_scalar",
    ),
    ("        power = nl.ndarray((128, size), dtype=nl.bfloat16, buffer=nl.sbuf)\n", ""),
    (
        "        nisa.activation_reduce(\n"
        "            dst=power, op=nl.exp, data=scores, bias=shift, scale=depth**-0.5,\n"
        "            reduce_op=nl.add, reduce_res=total,\n"
        "        )\n"
        "        nisa.reciprocal(dst=total, data=total)\n",
        "",
    ),
    (
        "            turned = nl.ndarray(",
        "            scores = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)\n"
        "            power = nl.ndarray((128, 512), dtype=nl.bfloat16, buffer=nl.sbuf)\n"
        "            nisa.nc_matmul(\n"
        "                dst=scores, stationary=queries[:, nl.ds(row, 128)],\n"
        "                moving=keys[:, nl.ds(key, 512)],\n"
        "            )\n"
        "            nisa.activation_reduce(\n"
        "                dst=power, op=nl.exp, data=scores, bias=shift, scale=depth**-0.5,\n"
        "                reduce_op=nl.add, reduce_res=sums[:, nl.ds(key // 512, 1)],\n"
        "            )\n"
        "            turned = nl.ndarray(",
    ),
    ("power[:, nl.ds(key + part, 128)]", "power[:, nl.ds(part, 128)]"),
    (
        "            nisa.tensor_copy(dst=moved, src=turned)\n",
        "            by = nisa.engine.scalar if key // 512 % 2 else nisa.engine.vector\n"
        "            nisa.tensor_copy(dst=moved, src=turned, engine=by)\n",
    ),
    (
        "        result = nl.ndarray(",
        "        nisa.tensor_reduce(dst=total, op=nl.add, data=sums, axis=1)\n"
        "        nisa.reciprocal(dst=total, data=total)\n"
        "        result = nl.ndarray(",
    ),
)
POOL = CONV[CONV.index("        sums = nl.ndarray") : CONV.index("        result = nl.ndarray")]

OTHER_WAYS = {
    "columns of tiles outside": (
        "lab10.ex1",
        """
@nki.jit
def matmul(lhs_t, rhs):
    (depth, rows), columns = lhs_t.shape, rhs.shape[1]
    out = nl.ndarray((rows, columns), dtype=lhs_t.dtype, buffer=nl.shared_hbm)
    for n in range(0, columns, 512):
        rights = []
        for k in range(0, depth, 128):
            rights.append(nl.load(rhs[nl.ds(k, 128), nl.ds(n, 512)]))
        for m in range(0, rows, 128):
            total = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
            for k in range(0, depth, 128):
                left = nl.load(lhs_t[nl.ds(k, 128), nl.ds(m, 128)])
                nisa.nc_matmul(dst=total, stationary=left, moving=rights[k // 128])
            result = nl.ndarray((128, 512), dtype=out.dtype, buffer=nl.sbuf)
            nisa.activation(dst=result, op=nl.copy, data=total)
            nl.store(out[nl.ds(m, 128), nl.ds(n, 512)], result)
    return out
""",
    ),
    "exercise 2 for exercise 1": ("lab10.ex1", changed(FAST, ("def fast_matmul", "def matmul"))),
    "everything before the first product": ("lab10.ex2", EVERYTHING_FIRST),
    "K in blocks, sums in SBUF": ("lab10.ex2", SUMS_IN_SBUF),
    "a place of its own for the product": (
        "lab10.ex3",
        changed(
            NORM,
            (
                "        nisa.tensor_tensor(\n            dst=left, data1=left,",
                "        h = nl.ndarray((128, columns), dtype=nl.float32, buffer=nl.sbuf)\n"
                "        nisa.tensor_tensor(\n            dst=h, data1=left,",
            ),
            ("op=nl.square, data=left", "op=nl.square, data=h"),
            ("dst=left, data=left, op0", "dst=left, data=h, op0"),
        ),
    ),
    "one factor by the Scalar Engine": (
        "lab10.ex3",
        changed(
            NORM,
            (
                "        nisa.scalar_tensor_tensor(\n"
                "            dst=left, data=left, op0=nl.multiply, operand0=scale,\n"
                "            op1=nl.multiply, operand1=weights,\n"
                "        )\n",
                "        nisa.activation(dst=right, op=nl.copy, data=left, scale=scale)\n"
                "        nisa.tensor_tensor(\n"
                "            dst=left, data1=right, data2=weights, op=nl.multiply\n"
                "        )\n",
            ),
        ),
    ),
    "all of x before": (
        "lab10.ex4",
        changed(
            CONV,
            (
                "    most = 512",
                "    whole = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)\n"
                "    nisa.dma_copy(dst=whole, src=x)\n"
                "    most = 512",
            ),
            (
                "        piece = nl.ndarray((inputs, rows + 2, wide), dtype=x.dtype,"
                " buffer=nl.sbuf)\n"
                "        nisa.dma_copy(dst=piece, src=x[:, nl.ds(first, rows + 2), :])\n",
                "        piece = whole[:, nl.ds(first, rows + 2), :]\n",
            ),
        ),
    ),
    "one reduction over both": (
        "lab10.ex4",
        changed(
            CONV,
            (
                POOL,
                "        best = nl.ndarray((outputs, rows // 2, across // 2), dtype=nl.float32,"
                " buffer=nl.sbuf)\n"
                "        squares = total.reshape((outputs, rows // 2, 2, across // 2, 2))\n"
                "        nisa.tensor_reduce(\n"
                "            dst=best, op=nl.maximum, data=squares.permute((0, 1, 3, 2, 4)),"
                " axis=(3, 4)\n        )\n",
            ),
            (
                CONV[
                    CONV.index("        nisa.tensor_tensor(\n") : CONV.index(
                        "        nisa.tensor_scalar("
                    )
                ],
                "",
            ),
        ),
    ),
    "scores twice, queries on the partitions": ("lab10.ex6", SCORES_TWICE),
    "blocks of 256 queries": (
        "lab10.ex6",
        changed(
            ATTENTION,
            ("for row in range(0, size, 512)", "for row in range(0, size, 256)"),
            ("for part in range(0, 512, 128)", "for part in range(0, 256, 128)"),
            ("nl.ndarray((1, 512)", "nl.ndarray((1, 256)"),
            ("moving=queries[:, nl.ds(row, 512)]", "moving=queries[:, nl.ds(row, 256)]"),
            (
                "        for key in range(0, size, 128):\n"
                "            scores = nl.ndarray((128, 512)",
                "        for key in range(0, size, 128):\n"
                "            scores = nl.ndarray((128, 256)",
            ),
            ("power = nl.ndarray((128, 512)", "power = nl.ndarray((128, 256)"),
            everywhere=True,
        ),
    ),
}


@pytest.mark.parametrize("way", OTHER_WAYS)
def test_right_answers_pass_however_they_are_written(way: str, names: dict) -> None:
    exercise_id, source = OTHER_WAYS[way]
    verdict = verdict_of(exercise_id, answer_from(source, exercise_id, names), "another")
    assert verdict.points == 10.0, (verdict.error, [c for c in verdict.criteria if not c.passed])


def test_no_right_design_is_near_a_limit(names: dict, monkeypatch: pytest.MonkeyPatch) -> None:
    """All still pass where each limit is a twentieth stricter."""
    monkeypatch.setattr(products, "GOOD_MFU", products.GOOD_MFU * (1 + ROOM))
    monkeypatch.setattr(fusion, "BALANCED", fusion.BALANCED * (1 + ROOM))
    monkeypatch.setattr(convolution, "SLOWER", convolution.SLOWER * (1 - ROOM))
    steps = {
        name: (limit * (1 - ROOM), weight) for name, (limit, weight) in attention.STEPS.items()
    }
    monkeypatch.setattr(attention, "STEPS", steps)
    right = [(f"lab10.{ex}", names[OBSERVERS[ex].answer]) for ex in ("ex2", "ex3", "ex4", "ex6")]
    right += [
        (exercise_id, answer_from(source, exercise_id, names))
        for exercise_id, source in OTHER_WAYS.values()
        if exercise_id != "lab10.ex1"
    ]
    for exercise_id, answer in right:
        case = cases_of(exercise_id, "public")[-1]
        facts = observe_case(exercise_id, answer, case)["facts"]
        criteria = judge(exercise_id).judge(case, facts)
        assert all(each.passed for each in criteria), (exercise_id, criteria)


SLOW = {
    "all of the left matrix before": ("MFU, good", "GOOD_MFU", 1 - ROOM),
    "narrow products": ("MFU, good", "GOOD_MFU", 1 - ROOM),
    "sums that leave PSUM after two products": ("MFU, good", "GOOD_MFU", 1 - ROOM),
    "squares on the Vector Engine too": ("speed, fused", "FUSED", 1 - ROOM),
    "two passes for two factors": ("speed, balanced", "BALANCED", 1 - ROOM),
    "sums outside of PSUM": ("over the bound", "SLOWER", 1 + ROOM),
    "a row at once": ("overlapped", "STEPS", 1 + ROOM),
}


@pytest.mark.parametrize("what", SLOW)
def test_what_is_too_slow_is_so_by_a_margin(
    what: str, names: dict, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, limit, factor = SLOW[what]
    (exercise_id, source), *_ = [(w[0], w[2]) for w in WRONG if w[1] == what]
    (module,) = [m for m in (products, fusion, convolution, attention) if hasattr(m, limit)]
    known = getattr(module, limit)
    easier = (
        {key: (value * factor, weight) for key, (value, weight) in known.items()}
        if isinstance(known, dict)
        else known * factor
    )
    monkeypatch.setattr(module, limit, easier)
    case = cases_of(exercise_id, "public")[-1]
    facts = observe_case(exercise_id, answer_from(source, exercise_id, names), case)["facts"]
    criteria = {each.name: each for each in judge(exercise_id).judge(case, facts)}
    assert criteria["values"].passed and not criteria[name].passed


def test_what_mends_a_variant_is_what_it_is_called_after() -> None:
    """Without its flaw each kernel is faster by half and more; those without one are the same."""
    simulator.use()
    from utils.labs.lab10.variants import variants

    assert {each.action for each in variants()} == set(ACTIONS)
    for each in variants():
        shapes = [Shape(*shape) for shape in each.shapes]
        gain = (
            profile(each.kernel, target="trn2")(*shapes).seconds
            / profile(each.mended, target="trn2")(*shapes).seconds
        )
        assert gain == 1.0 if each.action == "stop" else gain > 1.4, (each.action, gain)


@pytest.mark.parametrize("seed", range(5))
def test_each_kind_of_profile_is_asked_twice(seed: int) -> None:
    (case,) = cases_of("lab10.ex5", seed)
    assert sorted(truths(case)) == sorted([*ACTIONS, *ACTIONS])
    assert not any(numbers in case["profiles"] for _, numbers in profiles())


@pytest.mark.parametrize("exercise_id", EXERCISES)
def test_what_is_observed_is_plain_and_small(exercise_id: str, names: dict) -> None:
    answer = names[OBSERVERS[exercise_id.partition(".")[2]].answer]
    for case in cases_of(exercise_id, "public"):
        assert len(json.dumps(observe_case(exercise_id, answer, case))) < 2**18


def test_a_record_without_work_wins_nothing_for_speed(names: dict) -> None:
    """A kernel that stores what it likes is fast, and wrong."""
    source = """
@nki.jit
def fast_matmul(lhs_t, rhs):
    shape = (lhs_t.shape[1], rhs.shape[1])
    out = nl.ndarray(shape, dtype=lhs_t.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((128, shape[1]), dtype=lhs_t.dtype, buffer=nl.sbuf)
    nisa.memset(dst=tile, value=0.0)
    for m in range(0, shape[0], 128):
        nisa.dma_copy(dst=out[nl.ds(m, 128)], src=tile)
    return out
"""
    verdict = verdict_of("lab10.ex2", answer_from(source, "lab10.ex2", names), "public")
    assert verdict.points == 0.0


def test_tolerances_hold_what_they_say() -> None:
    """Any order of an FP32 sum is inside; a second rounding to BF16 is outside."""
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((2048, 64)).astype(ml_dtypes.bfloat16) for _ in "ab")
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    right = wide_a.T @ wide_b
    forward = np.zeros((64, 64), np.float32)
    for k in range(2048):
        forward += np.outer(a[k].astype(np.float32), b[k].astype(np.float32))
    assert farthest(forward, right) < products.TOLERANCE / 2
    once = forward.astype(ml_dtypes.bfloat16)
    assert farthest(once, right, rounded=True) < products.TOLERANCE / 2
    half = (wide_a[:1024].T @ wide_b[:1024]).astype(ml_dtypes.bfloat16).astype(np.float64)
    twice = (half + wide_a[1024:].T @ wide_b[1024:]).astype(ml_dtypes.bfloat16)
    assert farthest(twice, right, rounded=True) > 50 * products.TOLERANCE

    x, gate = (rng.standard_normal((128, 512)).astype(np.float32) for _ in "xg")
    weight = np.ones(512, np.float32)
    exact = fusion.gated_norm(x, gate, weight, 1e-5)
    active = gate / (1 + np.exp(-gate))
    h = x * active
    ours = h / np.sqrt((h * h).mean(axis=1, keepdims=True) + np.float32(1e-5))
    assert farthest(ours, exact) < fusion.TOLERANCE / 2
    low = x * active.astype(ml_dtypes.bfloat16).astype(np.float32)
    theirs = low / np.sqrt((low * low).mean(axis=1, keepdims=True) + np.float32(1e-5))
    assert farthest(theirs, exact) > 20 * fusion.TOLERANCE


def test_large_scores_leave_no_shift_but_the_maximum() -> None:
    """Half of the keys, whichever, miss a maximum by more than exp has room for in FP32, on both
    sides of 1 together; and queries of one length have maxima that far apart."""
    rng = np.random.default_rng(0)
    q, k = (rng.standard_normal((128, 512)).astype(ml_dtypes.bfloat16) for _ in "qk")
    q, k = (each.astype(np.float64) for each in attention.uneven(q, k, rng))
    scores = q.T @ k / 128**0.5
    largest = scores.max(axis=1)
    room = 2 * np.log(float(np.finfo(np.float32).max))
    assert 0.9 * attention.LARGE < scores.max() < 1.02 * attention.LARGE
    for half in (slice(0, None, 2), slice(1, None, 2), slice(0, 256), slice(256, None)):
        assert (largest - scores[:, half].max(axis=1)).max() > room
    order = np.argsort(np.linalg.norm(q, axis=0))
    assert abs(np.diff(largest[order])).max() > room


def test_matmul_of_the_lab_moves_what_its_example_says(names: dict) -> None:
    shapes = Shape((1024, 1024), "bfloat16"), Shape((1024, 1024), "bfloat16")
    assert profile(answer_from(MATMUL, "lab10.ex1", names))(*shapes).hbm_ratio == pytest.approx(
        4 / 3
    )
