"""Wrong answers to lab 10 that a learner may well write, and what the card must say to each.

WRONG: (exercise id, what is wrong, source of the answer cell, text that the card must contain).
Most are a right answer with one change, so that the change shows what is tested.
"""

from tests.labs.cells import changed

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

ADVISE = """
def advise(profiles):
    said = []
    for each in profiles:
        if each["between"] > 0.1:
            said.append("fuse")
        elif each["argument_loads"] > 1.5:
            said.append("block")
        elif max(each["moving"], each["mfu"]) > 0.75:
            said.append("stop")
        elif each["dma"] > 0.75:
            said.append("lengthen")
        elif max(each["vector"], each["scalar"], each["gpsimd"]) > 0.75:
            said.append("rebalance")
        else:
            said.append("rotate")
    return said
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

RIGHT = {
    "ex1": MATMUL,
    "ex2": FAST,
    "ex3": NORM,
    "ex4": CONV,
    "ex5": ADVISE,
    "ex6": ATTENTION,
}

NAIVE = """
@nki.jit
def matmul(lhs_t, rhs):
    (depth, rows), columns = lhs_t.shape, rhs.shape[1]
    out = nl.ndarray((rows, columns), dtype=lhs_t.dtype, buffer=nl.shared_hbm)
    for m in range(0, rows, 128):
        for n in range(0, columns, 512):
            total = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
            for k in range(0, depth, 128):
                left = nl.ndarray((128, 128), dtype=lhs_t.dtype, buffer=nl.sbuf)
                right = nl.ndarray((128, 512), dtype=rhs.dtype, buffer=nl.sbuf)
                nisa.dma_copy(dst=left, src=lhs_t[nl.ds(k, 128), nl.ds(m, 128)])
                nisa.dma_copy(dst=right, src=rhs[nl.ds(k, 128), nl.ds(n, 512)])
                nisa.nc_matmul(dst=total, stationary=left, moving=right)
            result = nl.ndarray((128, 512), dtype=out.dtype, buffer=nl.sbuf)
            nisa.tensor_copy(dst=result, src=total)
            nisa.dma_copy(dst=out[nl.ds(m, 128), nl.ds(n, 512)], src=result)
    return out
"""
TWO_ROWS = changed(
    MATMUL,
    ("range(0, rows, 512)", "range(0, rows, 256)"),
    (
        "(128, 512), dtype=lhs_t.dtype, buffer=nl.sbuf",
        "(128, 256), dtype=lhs_t.dtype, buffer=nl.sbuf",
    ),
    ("nl.ds(m0, 512)", "nl.ds(m0, 256)"),
    ("for m in range(0, 512, 128)", "for m in range(0, 256, 128)"),
)
NEW_PSUM = (
    "                for k in range(len(lefts)):\n",
    "                for k in range(len(lefts)):\n"
    "                    total = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)\n",
)
LOW_SUMS = (
    (
        "                total = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)\n",
        "                result = nl.ndarray((128, 512), dtype=out.dtype, buffer=nl.sbuf)\n"
        "                nisa.memset(dst=result, value=0.0)\n",
    ),
    (
        "                    nisa.nc_matmul(\n",
        "                    total = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)\n"
        "                    nisa.nc_matmul(\n",
    ),
    (
        "                result = nl.ndarray((128, 512), dtype=out.dtype, buffer=nl.sbuf)\n"
        "                nisa.tensor_copy(dst=result, src=total)\n",
        "",
    ),
)


def low_sums(source: str, panel: str) -> str:
    """Sums of each tile of K added up in BF16, in SBUF."""
    (total, memset), (before, again), (after, nothing) = LOW_SUMS
    source = changed(source, (after, nothing), (total, memset), (before, again))
    moving = f"moving={panel}\n                    )\n"
    added = (
        "                    nisa.tensor_tensor(\n"
        "                        dst=result, data1=result, data2=total, op=nl.add\n"
        "                    )\n"
    )
    return changed(source, (moving, moving + added))


LEFT_ONLY = """
@nki.jit
def fast_matmul(lhs_t, rhs):
    (depth, rows), columns = lhs_t.shape, rhs.shape[1]
    out = nl.ndarray((rows, columns), dtype=lhs_t.dtype, buffer=nl.shared_hbm)
    lefts = []
    for m in range(0, rows, 128):
        panel = []
        for k in range(0, depth, 128):
            tile = nl.ndarray((128, 128), dtype=lhs_t.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=tile, src=lhs_t[nl.ds(k, 128), nl.ds(m, 128)])
            panel.append(tile)
        lefts.append(panel)
    for n in range(0, columns, 512):
        rights = []
        for k in range(0, depth, 128):
            tile = nl.ndarray((128, 512), dtype=rhs.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=tile, src=rhs[nl.ds(k, 128), nl.ds(n, 512)])
            rights.append(tile)
        for m in range(len(lefts)):
            total = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
            for k in range(len(rights)):
                nisa.nc_matmul(dst=total, stationary=lefts[m][k], moving=rights[k])
            result = nl.ndarray((128, 512), dtype=out.dtype, buffer=nl.sbuf)
            nisa.tensor_copy(dst=result, src=total)
            nisa.dma_copy(dst=out[nl.ds(m * 128, 128), nl.ds(n, 512)], src=result)
    return out
"""
NARROW = changed(
    FAST,
    (
        "(128, 512), dtype=nl.float32, buffer=nl.psum",
        "(128, 128), dtype=nl.float32, buffer=nl.psum",
    ),
    ("(128, 512), dtype=out.dtype", "(128, 128), dtype=out.dtype"),
    ("(128, 512), dtype=rhs.dtype", "(128, 128), dtype=rhs.dtype"),
    ("columns // 512", "columns // 128"),
    ("n * 512, 512", "n * 128, 128"),
    everywhere=True,
)
ONE_PLACE = """
@nki.jit
def fast_matmul(lhs_t, rhs):
    (depth, rows), columns = lhs_t.shape, rhs.shape[1]
    out = nl.ndarray((rows, columns), dtype=lhs_t.dtype, buffer=nl.shared_hbm)
    left = nl.ndarray((128, rows), dtype=lhs_t.dtype, buffer=nl.sbuf)
    right = nl.ndarray((128, 512), dtype=rhs.dtype, buffer=nl.sbuf)
    sums = []
    for m in range(0, rows, 128):
        row = []
        for n in range(0, columns, 512):
            tile = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
            nisa.memset(dst=tile, value=0.0)
            row.append(tile)
        sums.append(row)
    total = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
    for k in range(0, depth, 128):
        nisa.dma_copy(dst=left, src=lhs_t[nl.ds(k, 128)])
        for n in range(columns // 512):
            nisa.dma_copy(dst=right, src=rhs[nl.ds(k, 128), nl.ds(n * 512, 512)])
            for m in range(rows // 128):
                nisa.nc_matmul(
                    dst=total, stationary=left[:, nl.ds(m * 128, 128)], moving=right,
                    accumulate=False,
                )
                nisa.tensor_tensor(dst=sums[m][n], data1=sums[m][n], data2=total, op=nl.add)
    for m in range(rows // 128):
        for n in range(columns // 512):
            result = nl.ndarray((128, 512), dtype=out.dtype, buffer=nl.sbuf)
            nisa.tensor_copy(dst=result, src=sums[m][n])
            nisa.dma_copy(dst=out[nl.ds(m * 128, 128), nl.ds(n * 512, 512)], src=result)
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
VECTOR_SQUARES = changed(
    NORM,
    (
        "        nisa.activation_reduce(\n"
        "            dst=squares, op=nl.square, data=left, reduce_op=nl.add, reduce_res=scale\n"
        "        )\n",
        "        nisa.tensor_tensor(dst=squares, data1=left, data2=left, op=nl.multiply)\n"
        "        nisa.tensor_reduce(dst=scale, op=nl.add, data=squares, axis=1)\n",
    ),
    (", engine=nisa.engine.gpsimd", ""),
)
TWO_FACTORS = changed(
    NORM,
    (
        "        nisa.scalar_tensor_tensor(\n"
        "            dst=left, data=left, op0=nl.multiply, operand0=scale,\n"
        "            op1=nl.multiply, operand1=weights,\n"
        "        )\n",
        "        nisa.tensor_scalar(dst=left, data=left, op0=nl.multiply, operand0=scale)\n"
        "        nisa.tensor_tensor(dst=left, data1=left, data2=weights, op=nl.multiply)\n",
    ),
    (", engine=nisa.engine.gpsimd", ""),
)
SPILLED_NORM = changed(
    NORM,
    (
        "    for row in",
        "    product = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.hbm)\n    for row in",
    ),
    (
        "        nisa.activation_reduce(",
        "        nisa.dma_copy(dst=product[here], src=left)\n"
        "        nisa.dma_copy(dst=left, src=product[here])\n"
        "        nisa.activation_reduce(",
    ),
)
GIVEN = "        dst=total, stationary=taps[:, tap, :],"
OUTSIDE = changed(
    CONV,
    (
        "        total = nl.ndarray((outputs, rows, across), dtype=nl.float32, buffer=nl.psum)\n",
        "        sums = nl.ndarray((outputs, rows // 2, 2, across), dtype=nl.float32,"
        " buffer=nl.sbuf)\n"
        "        flat = sums.reshape((outputs, rows, across))\n"
        "        nisa.memset(dst=flat, value=0.0)\n",
    ),
    (
        "            nisa.nc_matmul(\n",
        "            total = nl.ndarray(\n"
        "                (outputs, rows, across), dtype=nl.float32, buffer=nl.psum\n"
        "            )\n"
        "            nisa.nc_matmul(\n",
    ),
    (
        "nl.ds(tap % 3, across)],\n            )\n",
        "nl.ds(tap % 3, across)],\n            )\n"
        "            nisa.tensor_tensor(dst=flat, data1=flat, data2=total, op=nl.add)\n",
    ),
    (
        "        sums = nl.ndarray((outputs, rows // 2, 2, across), dtype=nl.float32,"
        " buffer=nl.sbuf)\n        nisa.tensor_copy(\n"
        "            dst=sums.reshape((outputs, rows, across)), src=total,"
        " engine=nisa.engine.scalar\n        )\n",
        "",
    ),
)
FOR_EACH_TAP = changed(
    CONV,
    (
        "        piece = nl.ndarray((inputs, rows + 2, wide), dtype=x.dtype, buffer=nl.sbuf)\n"
        "        nisa.dma_copy(dst=piece, src=x[:, nl.ds(first, rows + 2), :])\n",
        "",
    ),
    (
        "            nisa.nc_matmul(\n",
        "            piece = nl.ndarray((inputs, rows, across), dtype=x.dtype, buffer=nl.sbuf)\n"
        "            nisa.dma_copy(\n"
        "                dst=piece,\n"
        "                src=x[:, nl.ds(first + tap // 3, rows), nl.ds(tap % 3, across)],\n"
        "            )\n"
        "            nisa.nc_matmul(\n",
    ),
    ("moving=piece[:, nl.ds(tap // 3, rows), nl.ds(tap % 3, across)]", "moving=piece"),
)
SPILLED_SCORES = changed(
    ROWS,
    (
        "    for row in range(0, size, 128):\n",
        "    between = nl.ndarray((size, size), dtype=nl.float32, buffer=nl.hbm)\n"
        "    for row in range(0, size, 128):\n",
    ),
    (
        "        shift = nl.ndarray(",
        "        spilled = nl.ndarray((128, size), dtype=nl.float32, buffer=nl.sbuf)\n"
        "        nisa.tensor_copy(dst=spilled, src=scores)\n"
        "        nisa.dma_copy(dst=between[nl.ds(row, 128)], src=spilled)\n"
        "        scores = nl.ndarray((128, size), dtype=nl.float32, buffer=nl.sbuf)\n"
        "        nisa.dma_copy(dst=scores, src=between[nl.ds(row, 128)])\n"
        "        shift = nl.ndarray(",
    ),
)
FIRST_PASS = ATTENTION[
    ATTENTION.index("        for part in range(0, 512, 128):\n            parts") : ATTENTION.index(
        "        # The scores again"
    )
]
NORM_SHIFT = changed(
    ATTENTION,
    (
        FIRST_PASS,
        "        squares = nl.ndarray((128, 512), dtype=nl.bfloat16, buffer=nl.sbuf)\n"
        "        length = nl.ndarray((1, 512), dtype=nl.float32, buffer=nl.psum)\n"
        "        here = queries[:, nl.ds(row, 512)]\n"
        "        nisa.tensor_tensor(dst=squares, data1=here, data2=here, op=nl.multiply)\n"
        "        nisa.nc_matmul(dst=length, stationary=ones, moving=squares)\n"
        "        # Scores of random keys, eight times as large, have this maximum, more or less.\n"
        "        nisa.activation(dst=shift, op=nl.sqrt, data=length, scale=(8 * 3.9) ** 2)\n",
    ),
    (
        "    nisa.memset(dst=minus, value=-1.0)\n",
        "    nisa.memset(dst=minus, value=-1.0)\n"
        "    ones = nl.ndarray((128, 1), dtype=nl.bfloat16, buffer=nl.sbuf)\n"
        "    nisa.memset(dst=ones, value=1.0)\n",
    ),
)
SLOW_ROWS = changed(
    ROWS,
    (
        "    for row in range(0, size, 128):\n",
        "    scores = nl.ndarray((128, size), dtype=nl.float32, buffer=nl.psum)\n"
        "    weighted = nl.ndarray((128, depth), dtype=nl.float32, buffer=nl.psum)\n"
        "    power = nl.ndarray((128, size), dtype=nl.bfloat16, buffer=nl.sbuf)\n"
        "    turned = nl.ndarray((128, 512), dtype=nl.bfloat16, buffer=nl.psum)\n"
        "    moved = nl.ndarray((128, 512), dtype=nl.bfloat16, buffer=nl.sbuf)\n"
        "    for row in range(0, size, 128):\n",
    ),
    ("        scores = nl.ndarray((128, size), dtype=nl.float32, buffer=nl.psum)\n", ""),
    ("        weighted = nl.ndarray((128, depth), dtype=nl.float32, buffer=nl.psum)\n", ""),
    ("        power = nl.ndarray((128, size), dtype=nl.bfloat16, buffer=nl.sbuf)\n", ""),
    ("            turned = nl.ndarray((128, 512), dtype=nl.bfloat16, buffer=nl.psum)\n", ""),
    ("            moved = nl.ndarray((128, 512), dtype=nl.bfloat16, buffer=nl.sbuf)\n", ""),
    (
        "moving=keys[:, nl.ds(key, 512)],\n",
        "moving=keys[:, nl.ds(key, 512)], accumulate=False,\n",
    ),
    ("// 128, :],\n", "// 128, :], accumulate=key + part > 0,\n"),
)

WRONG = [
    # Exercise 1
    ("lab10.ex1", "three loops", NAIVE, "Hoist the loads out of the innermost loop first"),
    ("lab10.ex1", "two rows of tiles at a time", TWO_ROWS, "Keep several rows of tiles (a block)"),
    (
        "lab10.ex1",
        "a new PSUM tile for each tile of K",
        changed(MATMUL, NEW_PSUM),
        "allocate the PSUM tile before the loop over K",
    ),
    ("lab10.ex1", "sums in BF16", low_sums(MATMUL, "rights[k]"), "keep partial sums in FP32"),
    (
        "lab10.ex1",
        "the first tile of K only",
        changed(MATMUL, ("for k in range(len(lefts)):", "for k in range(1):")),
        "the loop over K is missing",
    ),
    (
        "lab10.ex1",
        "tiles in the wrong place",
        changed(MATMUL, ("out[nl.ds(m0 + m, 128)", "out[nl.ds(m0, 128)")),
        "tile (m, n) of the result",
    ),
    (
        "lab10.ex1",
        "moving and stationary exchanged",
        changed(
            MATMUL,
            (
                "stationary=lefts[k][:, nl.ds(m, 128)], moving=rights[k]",
                "stationary=rights[k], moving=lefts[k][:, nl.ds(m, 128)]",
            ),
        ),
        "128",
    ),
    (
        "lab10.ex1",
        "the course's own kernel",
        """
from utils.nki.kernels import matmul as ours

@nki.jit
def matmul(lhs_t, rhs):
    return ours.blocked(lhs_t, rhs, block_m=4, block_n=1)
""",
        "belongs to the course",
    ),
    (
        "lab10.ex1",
        "NumPy",
        """
@nki.jit
def matmul(lhs_t, rhs):
    return np.asarray(lhs_t).T @ np.asarray(rhs)
""",
        "Python sees shapes and types only",
    ),
    (
        "lab10.ex1",
        "two cores",
        MATMUL + "\n\nmatmul = matmul[2]\n",
        "write it for one",
    ),
    (
        "lab10.ex1",
        "each product overwrites",
        changed(MATMUL, ("moving=rights[k]\n", "moving=rights[k], accumulate=False\n")),
        "leave out accumulate=False",
    ),
    # Exercise 2
    (
        "lab10.ex2",
        "exercise 1 again",
        changed(MATMUL, ("def matmul", "def fast_matmul")),
        "rhs 4 times",
    ),
    ("lab10.ex2", "three loops", changed(NAIVE, ("def matmul", "def fast_matmul")), "times"),
    ("lab10.ex2", "all of the left matrix before", LEFT_ONLY, "waits for its first product"),
    ("lab10.ex2", "one place for each tile", ONE_PLACE, "waits for a place in use"),
    (
        "lab10.ex2",
        "sums that leave PSUM after two products",
        SHORT_SUMS,
        "Vector Engine is busy",
    ),
    ("lab10.ex2", "narrow products", NARROW, "longer rows"),
    (
        "lab10.ex2",
        "sums in BF16",
        low_sums(FAST, "panels[n][k]"),
        "keep partial sums in FP32",
    ),
    (
        "lab10.ex2",
        "a panel kept from the wrong block",
        changed(FAST, ("moving=panels[n][k]", "moving=panels[0][k]")),
        "tile (m, n) of the result",
    ),
    (
        "lab10.ex2",
        "more than SBUF holds",
        changed(
            FAST,
            (
                "    panels = []\n",
                "    panels = []\n"
                "    whole = nl.ndarray((128, 16 * rows * 4), dtype=nl.float32, buffer=nl.sbuf)\n"
                "    nisa.memset(dst=whole, value=0.0)\n",
            ),
        ),
        "sbuf of trn2 has",
    ),
    # Exercise 3
    (
        "lab10.ex3",
        "the given kernel",
        """
from utils.labs.lab10 import given

def fused_norm(x, gate, weight, epsilon):
    return given.gated_norm(x, gate, weight, epsilon)
""",
        "belongs to the course",
    ),
    ("lab10.ex3", "through HBM once more", SPILLED_NORM, "nothing is stored but the result"),
    (
        "lab10.ex3",
        "the weight for every tile",
        changed(
            NORM,
            (
                "        nisa.dma_copy(dst=right",
                "        nisa.dma_copy(\n"
                "            dst=weights, src=weight.ap(pattern=[[0, 128], [1, columns]])\n"
                "        )\n"
                "        nisa.dma_copy(dst=right",
            ),
        ),
        "the weight is loaded before it",
    ),
    (
        "lab10.ex3",
        "squares on the Vector Engine too",
        VECTOR_SQUARES,
        "Vector Engine is busy",
    ),
    (
        "lab10.ex3",
        "two passes for two factors",
        TWO_FACTORS,
        "move some to an engine with room",
    ),
    (
        "lab10.ex3",
        "a tile in BF16",
        changed(
            NORM,
            (
                "right = nl.ndarray((128, columns), dtype=x.dtype, buffer=nl.sbuf)\n",
                "right = nl.ndarray((128, columns), dtype=x.dtype, buffer=nl.sbuf)\n"
                "        low = nl.ndarray((128, columns), dtype=nl.bfloat16, buffer=nl.sbuf)\n",
            ),
            ("dst=right, op=nl.silu", "dst=low, op=nl.silu"),
            ("data2=right", "data2=low"),
        ),
        "has fewer bits",
    ),
    (
        "lab10.ex3",
        "a sigmoid",
        changed(NORM, ("nl.silu", "nl.sigmoid")),
        "the gate is sigmoid",
    ),
    (
        "lab10.ex3",
        "the sum of squares",
        changed(NORM, ("scale=1 / columns, ", "")),
        "take their mean",
    ),
    (
        "lab10.ex3",
        "gated after the norm",
        changed(
            NORM,
            (
                "        nisa.tensor_tensor(\n"
                "            dst=left, data1=left, data2=right, op=nl.multiply,"
                " engine=nisa.engine.gpsimd\n        )\n",
                "",
            ),
            (
                "        nisa.dma_copy(dst=out[here]",
                "        nisa.tensor_tensor(dst=left, data1=left, data2=right, op=nl.multiply)\n"
                "        nisa.dma_copy(dst=out[here]",
            ),
        ),
        "gate first",
    ),
    (
        "lab10.ex3",
        "no epsilon",
        changed(NORM, ("value=epsilon", "value=0.0")),
        "epsilon is missing",
    ),
    (
        "lab10.ex3",
        "an epsilon of its own",
        changed(NORM, ("value=epsilon", "value=1e-6")),
        "not the one that is passed",
    ),
    (
        "lab10.ex3",
        "the mean over as many columns as in the timed case",
        changed(NORM, ("scale=1 / columns", "scale=1 / 2048")),
        "the number of its columns",
    ),
    (
        "lab10.ex3",
        "times the root",
        changed(NORM, ("op=nl.rsqrt", "op=nl.sqrt")),
        "divide by it",
    ),
    # Exercise 4
    ("lab10.ex4", "sums outside of PSUM", OUTSIDE, "Vector Engine is busy"),
    ("lab10.ex4", "a load for each tap", FOR_EACH_TAP, "nine shifted views"),
    (
        "lab10.ex4",
        "two rows at a time",
        changed(CONV, ("most = 512 // across // 2 * 2", "most = 2")),
        "the two rows around it once",
    ),
    (
        "lab10.ex4",
        "no bias",
        changed(CONV, ("operand0=column", "operand0=0.0")),
        "the bias is missing",
    ),
    (
        "lab10.ex4",
        "the taps reversed",
        changed(CONV, ("stationary=taps[:, tap, :]", "stationary=taps[:, 8 - tap, :]")),
        "the taps are reversed",
    ),
    (
        "lab10.ex4",
        "the mean",
        changed(
            CONV,
            ("op=nl.maximum", "op=nl.add"),
            (
                "nisa.tensor_scalar(dst=result, data=best, op0=nl.add, operand0=column)",
                "nisa.tensor_scalar(\n            dst=result, data=best, op0=nl.multiply,"
                " operand0=0.25,\n            op1=nl.add, operand1=column,\n        )",
            ),
            everywhere=True,
        ),
        "this is the mean",
    ),
    (
        "lab10.ex4",
        "pooled over rows only",
        changed(CONV, ("data2=pair[:, :, :, 1]", "data2=pair[:, :, :, 0]")),
        "compare the columns too",
    ),
    (
        "lab10.ex4",
        "a new PSUM tile for each tap",
        changed(
            CONV,
            (
                "            nisa.nc_matmul(\n",
                "            total = nl.ndarray(\n"
                "                (outputs, rows, across), dtype=nl.float32, buffer=nl.psum\n"
                "            )\n"
                "            nisa.nc_matmul(\n",
            ),
        ),
        "only the last tap",
    ),
    (
        "lab10.ex4",
        "more than a bank of PSUM",
        changed(CONV, ("most = 512 // across // 2 * 2", "most = down")),
        "512",
    ),
    (
        "lab10.ex4",
        "maxima in BF16",
        changed(
            CONV,
            (
                "sums = nl.ndarray((outputs, rows // 2, 2, across), dtype=nl.float32",
                "sums = nl.ndarray((outputs, rows // 2, 2, across), dtype=nl.bfloat16",
            ),
        ),
        "rounded to BF16",
    ),
    (
        "lab10.ex4",
        "rows and columns of the taps exchanged",
        changed(
            CONV,
            (
                "nl.ds(tap // 3, rows), nl.ds(tap % 3, across)",
                "nl.ds(tap % 3, rows), nl.ds(tap // 3, across)",
            ),
        ),
        "i and j are exchanged",
    ),
    (
        "lab10.ex4",
        "the smallest",
        changed(CONV, ("op=nl.maximum", "op=nl.minimum"), everywhere=True),
        "the smallest of each square",
    ),
    (
        "lab10.ex4",
        "a relu that nobody asked for",
        changed(
            CONV,
            ("operand0=column)", "operand0=column, op1=nl.maximum, operand1=0.0)"),
        ),
        "may be below 0",
    ),
    # Exercise 5
    (
        "lab10.ex5",
        "by the busiest engine",
        """
def advise(profiles):
    engines = ("tensor", "vector", "scalar", "gpsimd", "dma")
    said = []
    for each in profiles:
        busiest = max(engines, key=each.__getitem__)
        said.append({"dma": "block", "tensor": "stop"}.get(busiest, "rebalance"))
    return said
""",
        "is one, you say",
    ),
    (
        "lab10.ex5",
        "the same for all",
        "def advise(profiles):\n    return ['stop' for _ in profiles]\n",
        "argument_loads says how often",
    ),
    (
        "lab10.ex5",
        "intermediates not looked at",
        changed(ADVISE, ('each["between"] > 0.1', 'each["between"] > 0.9')),
        "neither of arguments nor of results",
    ),
    (
        "lab10.ex5",
        "busy taken for moving",
        changed(ADVISE, ('each["moving"], each["mfu"]', 'each["dma"], each["mfu"]')),
        "moving does not",
    ),
    (
        "lab10.ex5",
        "stopped before the traffic is looked at",
        changed(
            ADVISE,
            ('each["argument_loads"] > 1.5', 'each["argument_loads"] > 10'),
        ),
        "argument_loads says how often",
    ),
    (
        "lab10.ex5",
        "one word",
        "def advise(profiles):\n    return 'block'\n",
        "return a list of",
    ),
    (
        "lab10.ex5",
        "what the judge takes for right",
        """
from utils.labs.lab10 import advice

def advise(profiles):
    return advice.truths({"profiles": profiles})
""",
        "belongs to the course",
    ),
    (
        "lab10.ex5",
        "sentences",
        changed(ADVISE, ('"rotate"', '"use double buffers"')),
        "is none of ACTIONS",
    ),
    (
        "lab10.ex5",
        "engines that wait taken for full ones",
        changed(
            ADVISE,
            (
                'max(each["vector"], each["scalar"], each["gpsimd"]) > 0.75',
                'max(each["vector"], each["scalar"], each["gpsimd"]) > 0.1',
            ),
        ),
        "waits for a place in use",
    ),
    # Exercise 6
    (
        "lab10.ex6",
        "no maximum",
        changed(ROWS, ("bias=shift, ", "")),
        "subtract the row's maximum",
    ),
    (
        "lab10.ex6",
        "no scale",
        changed(ROWS, ("bias=shift, scale=depth**-0.5", "bias=shift"), ("-(depth**-0.5)", "-1.0")),
        "the scale is missing",
    ),
    (
        "lab10.ex6",
        "not divided",
        changed(ROWS, ("op0=nl.multiply, operand0=total)", "op0=nl.multiply, operand0=1.0)")),
        "not divided",
    ),
    (
        "lab10.ex6",
        "scores in BF16",
        changed(
            ROWS,
            (
                "        shift = nl.ndarray(",
                "        low = nl.ndarray((128, size), dtype=nl.bfloat16, buffer=nl.sbuf)\n"
                "        nisa.tensor_copy(dst=low, src=scores)\n"
                "        scores = low\n"
                "        shift = nl.ndarray(",
            ),
        ),
        "keep scores in FP32",
    ),
    ("lab10.ex6", "scores through HBM", SPILLED_SCORES, "both fit into SBUF"),
    ("lab10.ex6", "a row at once", ROWS, "critical path"),
    ("lab10.ex6", "one place for each tile", SLOW_ROWS, "a place in use"),
    (
        "lab10.ex6",
        "one maximum for all queries of a block",
        changed(
            ATTENTION,
            (
                "        # The scores again",
                "        high = nl.ndarray((1, 1), dtype=nl.float32, buffer=nl.sbuf)\n"
                "        nisa.tensor_reduce(dst=high, op=nl.maximum, data=shift, axis=1)\n"
                "        nisa.tensor_scalar(\n"
                "            dst=shift, data=shift, op0=nl.multiply, operand0=0.0,\n"
                "            op1=nl.add, operand1=high,\n"
                "        )\n"
                "        # The scores again",
            ),
        ),
        "the true one of each query",
    ),
    (
        "lab10.ex6",
        "divided by d",
        changed(ATTENTION, ("scale=depth**-0.5", "scale=1 / depth")),
        "the scale is applied twice",
    ),
    (
        "lab10.ex6",
        "queries and keys exchanged",
        changed(ROWS, ("src=q)", "src=k)"), ("dst=keys, src=k)", "dst=keys, src=q)")),
        "queries and keys are exchanged",
    ),
    (
        "lab10.ex6",
        "the maximum of half of the keys",
        changed(
            ATTENTION,
            (
                "            for key in range(0, size, 512):\n",
                "            for key in range(0, size - size // 1024 * 512, 512):\n",
            ),
            ("(128, size // 512)", "(128, size // 512 - size // 1024)"),
            ("data=scores, scale=depth**-0.5)", "data=scores, scale=depth**-0.5, bias=-65.0)"),
        ),
        "the true one of each query",
    ),
    (
        "lab10.ex6",
        "a shift by the length of a query",
        NORM_SHIFT,
        "the true one of each query",
    ),
    (
        "lab10.ex6",
        "the course's own kernel",
        """
from utils.nki.kernels.attention import flash_attention

def attention(q, k, v):
    return flash_attention(q, k, v)
""",
        "belongs to the course",
    ),
]
