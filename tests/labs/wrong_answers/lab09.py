"""Wrong answers to lab 09 that a learner may well write, and what the card must say to each.

WRONG: (exercise id, what is wrong, source of the answer cell, text that the card must contain).
Most are a right answer with one change, so that the change shows what is tested.
"""

from tests.labs.cells import changed

ADD = """
@nki.jit
def add_rows(a, b):
    rows, columns = a.shape
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    for start in range(0, rows, nl.tile_size.pmax):
        size = min(nl.tile_size.pmax, rows - start)
        here = nl.ds(start, size)
        x = nl.ndarray((size, columns), dtype=a.dtype, buffer=nl.sbuf)
        y = nl.ndarray((size, columns), dtype=b.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=x, src=a[here])
        nisa.dma_copy(dst=y, src=b[here])
        nisa.tensor_tensor(dst=x, data1=x, data2=y, op=nl.add)
        nisa.dma_copy(dst=out[here], src=x)
    return out
"""

TRANSPOSE = """
@nki.jit
def transpose(x):
    rows, columns = x.shape
    out = nl.ndarray((columns, rows), dtype=x.dtype, buffer=nl.shared_hbm)
    for row in range(0, rows, 128):
        for column in range(0, columns, 128):
            high, wide = min(128, rows - row), min(128, columns - column)
            block = nl.ndarray((high, wide), dtype=x.dtype, buffer=nl.sbuf)
            turned = nl.ndarray((wide, high), dtype=x.dtype, buffer=nl.psum)
            result = nl.ndarray((wide, high), dtype=x.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=block, src=x[nl.ds(row, high), nl.ds(column, wide)])
            nisa.nc_transpose(dst=turned, data=block)
            nisa.tensor_copy(dst=result, src=turned)
            nisa.dma_copy(dst=out[nl.ds(column, wide), nl.ds(row, high)], src=result)
    return out
"""

SOFTMAX = """
@nki.jit
def softmax(x):
    rows, columns = x.shape
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for start in range(0, rows, nl.tile_size.pmax):
        size = min(nl.tile_size.pmax, rows - start)
        here = nl.ds(start, size)
        tile = nl.ndarray((size, columns), dtype=x.dtype, buffer=nl.sbuf)
        shifted = nl.ndarray((size, columns), dtype=nl.float32, buffer=nl.sbuf)
        lowest = nl.ndarray((size, 1), dtype=nl.float32, buffer=nl.sbuf)
        total = nl.ndarray((size, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[here])
        nisa.tensor_reduce(dst=lowest, op=nl.maximum, data=tile, axis=1, negate=True)
        nisa.activation_reduce(
            dst=shifted, op=nl.exp, data=tile, bias=lowest, reduce_op=nl.add, reduce_res=total
        )
        nisa.reciprocal(dst=total, data=total)
        nisa.tensor_scalar(dst=tile, data=shifted, op0=nl.multiply, operand0=total)
        nisa.dma_copy(dst=out[here], src=tile)
    return out
"""

NORM = """
@nki.jit
def rms_norm(x, weight, epsilon):
    rows, columns = x.shape
    pmax = nl.tile_size.pmax
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    weights = nl.ndarray((pmax, columns), dtype=nl.float32, buffer=nl.sbuf)
    offset = nl.ndarray((pmax, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=weights, src=weight.ap(pattern=[[0, pmax], [1, columns]]))
    nisa.memset(dst=offset, value=epsilon)
    for start in range(0, rows, pmax):
        size = min(pmax, rows - start)
        here = nl.ds(start, size)
        tile = nl.ndarray((size, columns), dtype=x.dtype, buffer=nl.sbuf)
        squares = nl.ndarray((size, columns), dtype=nl.float32, buffer=nl.sbuf)
        scale = nl.ndarray((size, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[here])
        nisa.activation_reduce(
            dst=squares, op=nl.square, data=tile, reduce_op=nl.add, reduce_res=scale
        )
        nisa.activation(
            dst=scale, op=nl.rsqrt, data=scale, scale=1 / columns, bias=offset[0:size]
        )
        nisa.scalar_tensor_tensor(
            dst=tile, data=tile, op0=nl.multiply, operand0=scale,
            op1=nl.multiply, operand1=weights[0:size],
        )
        nisa.dma_copy(dst=out[here], src=tile)
    return out
"""

SUMS = """
@nki.jit
def column_sums(x):
    rows, columns = x.shape
    pmax, fmax = nl.tile_size.pmax, nl.tile_size.gemm_moving_fmax
    out = nl.ndarray((1, columns), dtype=nl.float32, buffer=nl.shared_hbm)
    ones = nl.ndarray((pmax, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=ones, value=1.0)
    for left in range(0, columns, fmax):
        wide = min(fmax, columns - left)
        total = nl.ndarray((1, wide), dtype=nl.float32, buffer=nl.psum)
        result = nl.ndarray((1, wide), dtype=nl.float32, buffer=nl.sbuf)
        for start in range(0, rows, pmax):
            size = min(pmax, rows - start)
            tile = nl.ndarray((size, wide), dtype=nl.float32, buffer=nl.sbuf)
            nisa.dma_copy(dst=tile, src=x[nl.ds(start, size), nl.ds(left, wide)])
            nisa.nc_matmul(dst=total, stationary=ones[0:size], moving=tile)
        nisa.tensor_copy(dst=result, src=total)
        nisa.dma_copy(dst=out[:, nl.ds(left, wide)], src=result)
    return out
"""

MENDED = """
def mended():
    def a(x):
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        for start in range(0, x.shape[0], 128):
            tile = nl.ndarray((128, x.shape[1]), dtype=x.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=tile, src=x[nl.ds(start, 128)])
            nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=2.0)
            nisa.dma_copy(dst=out[nl.ds(start, 128)], src=tile)
        return out

    def b(x, y):
        out = nl.ndarray((128, 256), dtype=nl.float32, buffer=nl.shared_hbm)
        x_tile = nl.ndarray((128, 128), dtype=x.dtype, buffer=nl.sbuf)
        y_tile = nl.ndarray((128, 256), dtype=y.dtype, buffer=nl.sbuf)
        product = nl.ndarray((128, 256), dtype=nl.float32, buffer=nl.psum)
        result = nl.ndarray((128, 256), dtype=nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(dst=x_tile, src=x)
        nisa.dma_copy(dst=y_tile, src=y)
        nisa.nc_matmul(dst=product, stationary=x_tile, moving=y_tile)
        nisa.tensor_copy(dst=result, src=product)
        nisa.dma_copy(dst=out, src=result)
        return out

    def c(x, y):
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
        row = nl.ndarray(x.shape, dtype=y.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x)
        nisa.dma_copy(dst=row, src=y.ap(pattern=[[0, 128], [1, 256]]))
        nisa.tensor_tensor(dst=tile, data1=tile, data2=row, op=nl.add)
        nisa.dma_copy(dst=out, src=tile)
        return out

    def d(x, y):
        out = nl.ndarray((128, 1024), dtype=nl.float32, buffer=nl.shared_hbm)
        x_tile = nl.ndarray((64, 128), dtype=x.dtype, buffer=nl.sbuf)
        y_tile = nl.ndarray((64, 1024), dtype=y.dtype, buffer=nl.sbuf)
        result = nl.ndarray((128, 1024), dtype=nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(dst=x_tile, src=x)
        nisa.dma_copy(dst=y_tile, src=y)
        for left in (0, 512):
            half = nl.ds(left, 512)
            product = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
            nisa.nc_matmul(dst=product, stationary=x_tile, moving=y_tile[:, half])
            nisa.tensor_copy(dst=result[:, half], src=product)
        nisa.dma_copy(dst=out, src=result)
        return out

    return {
        "a": ("partitions", a),
        "b": ("dma-psum", b),
        "c": ("broadcast", c),
        "d": ("columns", d),
    }
"""

RIGHT = {"ex1": ADD, "ex2": TRANSPOSE, "ex3": SOFTMAX, "ex4": NORM, "ex5": SUMS, "ex6": MENDED}


LOOP = "    for start in range(0, rows, nl.tile_size.pmax):"

WRONG = [
    # Exercise 1
    (
        "lab09.ex1",
        "one tile for all rows",
        """
@nki.jit
def add_rows(a, b):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    x = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    y = nl.ndarray(b.shape, dtype=b.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=x, src=a)
    nisa.dma_copy(dst=y, src=b)
    nisa.tensor_tensor(dst=x, data1=x, data2=y, op=nl.add)
    nisa.dma_copy(dst=out, src=x)
    return out
""",
        "at most 128",
    ),
    (
        "lab09.ex1",
        "the last slice ends behind the array",
        changed(ADD, ("min(nl.tile_size.pmax, rows - start)", "nl.tile_size.pmax")),
        "a partial last tile is not cut off",
    ),
    (
        "lab09.ex1",
        "whole tiles only",
        changed(ADD, ("range(0, rows, nl.tile_size.pmax)", "range(0, rows // 128 * 128, 128)")),
        "the last tile has fewer rows",
    ),
    (
        "lab09.ex1",
        "one tile only",
        changed(ADD, (LOOP, "    for start in (0,):")),
        "loop over all tiles of rows",
    ),
    (
        "lab09.ex1",
        "loads for nothing",
        changed(
            ADD,
            (
                "        nisa.dma_copy(dst=y,",
                "        nisa.dma_copy(dst=y, src=a[here])\n        nisa.dma_copy(dst=y,",
            ),
        ),
        "stored more than once",
    ),
    (
        "lab09.ex1",
        "nothing returned",
        changed(ADD, ("    return out", "    return None")),
        "returned nothing",
    ),
    (
        "lab09.ex1",
        "a tile returned",
        changed(ADD, ("    return out", "    return x")),
        "which is in sbuf",
    ),
    (
        "lab09.ex1",
        "computed on HBM",
        """
@nki.jit
def add_rows(a, b):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.tensor_tensor(dst=out, data1=a, data2=b, op=nl.add)
    return out
""",
        "HBM is reached by DMA",
    ),
    (
        "lab09.ex1",
        "computed in NumPy",
        """
@nki.jit
def add_rows(a, b):
    return np.asarray(a) + np.asarray(b)
""",
        "Python sees shapes and types only",
    ),
    (
        "lab09.ex1",
        "the course's own kernel",
        """
from utils.nki.kernels import pointwise

@nki.jit
def add_rows(a, b):
    return pointwise.silu_multiply(a, b)
""",
        "belongs to the course",
    ),
    (
        "lab09.ex1",
        "always FP32",
        changed(ADD, ("nl.ndarray(a.shape, dtype=a.dtype", "nl.ndarray(a.shape, dtype=nl.float32")),
        "allocate it with dtype=bfloat16",
    ),
    (
        "lab09.ex1",
        "private memory",
        changed(ADD, ("nl.shared_hbm", "nl.hbm")),
        "use buffer=nl.shared_hbm",
    ),
    (
        "lab09.ex1",
        "written over an argument",
        changed(
            ADD,
            ("    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)\n", ""),
            ("out", "a"),
            everywhere=True,
        ),
        "write into a new array",
    ),
    (
        "lab09.ex1",
        "tiles in BF16",
        changed(ADD, ("columns), dtype=a.dtype", "columns), dtype=nl.bfloat16")),
        "rounded to fewer bits",
    ),
    (
        "lab09.ex1",
        "the first rows of b for every tile",
        changed(ADD, ("src=b[here]", "src=b[0:size]")),
        "rows of its own",
    ),
    (
        "lab09.ex1",
        "stored before it is added",
        changed(
            ADD,
            ("        nisa.tensor_tensor(dst=x, data1=x, data2=y, op=nl.add)\n", ""),
            (
                "src=x)\n    return",
                "src=x)\n"
                "        nisa.tensor_tensor(dst=x, data1=x, data2=y, op=nl.add)\n"
                "    return",
            ),
        ),
        "the result is a, without the other one",
    ),
    (
        "lab09.ex1",
        "an element in each instruction",
        """
@nki.jit
def add_rows(a, b):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    for row in range(a.shape[0]):
        for column in range(a.shape[1]):
            x = nl.ndarray((1, 1), dtype=a.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=x, src=a[nl.ds(row, 1), nl.ds(column, 1)])
            nisa.dma_copy(dst=out[nl.ds(row, 1), nl.ds(column, 1)], src=x)
    return out
""",
        "too many to be judged",
    ),
    # Exercise 2
    (
        "lab09.ex2",
        "one descriptor for each element",
        """
@nki.jit
def transpose(x):
    rows, columns = x.shape
    out = nl.ndarray((columns, rows), dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=x.permute((1, 0)))
    return out
""",
        "a descriptor of its own",
    ),
    (
        "lab09.ex2",
        "blocks stay in place",
        changed(
            TRANSPOSE,
            ("out[nl.ds(column, wide), nl.ds(row, high)]", "out[nl.ds(0, wide), nl.ds(0, high)]"),
        ),
        "which block of the result",
    ),
    (
        "lab09.ex2",
        "stored straight from PSUM",
        changed(TRANSPOSE, ("src=result)", "src=turned)")),
        "PSUM",
    ),
    (
        "lab09.ex2",
        "only copied",
        """
@nki.jit
def transpose(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=x)
    return out
""",
        "which block of the result",
    ),
    (
        "lab09.ex2",
        "turned in SBUF",
        changed(TRANSPOSE, ("buffer=nl.psum", "buffer=nl.sbuf")),
        "PSUM",
    ),
    (
        "lab09.ex2",
        "a column of SBUF for each row of the result",
        """
@nki.jit
def transpose(x):
    rows, columns = x.shape
    out = nl.ndarray((columns, rows), dtype=x.dtype, buffer=nl.shared_hbm)
    for row in range(0, rows, 128):
        size = min(128, rows - row)
        tile = nl.ndarray((size, columns), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[nl.ds(row, size)])
        for column in range(columns):
            place = out[nl.ds(column, 1), nl.ds(row, size)].reshape((size, 1))
            nisa.dma_copy(dst=place, src=tile[:, nl.ds(column, 1)])
    return out
""",
        "in HBM and in SBUF",
    ),
    (
        "lab09.ex2",
        "rounded on the way",
        changed(
            TRANSPOSE,
            (
                "result = nl.ndarray((wide, high), dtype=x.dtype",
                "result = nl.ndarray((wide, high), dtype=nl.bfloat16",
            ),
        ),
        "rounded to fewer bits",
    ),
    # Exercise 3
    (
        "lab09.ex3",
        "no maximum",
        changed(SOFTMAX, ("bias=lowest, ", "")),
        "subtract the row's maximum",
    ),
    (
        "lab09.ex3",
        "exponentials in the type of x",
        changed(
            SOFTMAX,
            (
                "shifted = nl.ndarray((size, columns), dtype=nl.float32",
                "shifted = nl.ndarray((size, columns), dtype=x.dtype",
            ),
        ),
        "rounded to BF16",
    ),
    (
        "lab09.ex3",
        "not divided",
        changed(SOFTMAX, ("operand0=total", "operand0=1.0")),
        "do not sum to 1",
    ),
    (
        "lab09.ex3",
        "multiplied by the sum",
        changed(SOFTMAX, ("        nisa.reciprocal(dst=total, data=total)\n", "")),
        "do not sum to 1",
    ),
    (
        "lab09.ex3",
        "a separate subtraction",
        changed(
            SOFTMAX,
            (
                "        nisa.activation_reduce(",
                "        nisa.tensor_scalar(dst=shifted, data=tile, op0=nl.add, operand0=lowest)\n"
                "        nisa.activation_reduce(",
            ),
            ("data=tile, bias=lowest, ", "data=shifted, "),
        ),
        "more often than needed",
    ),
    (
        "lab09.ex3",
        "stored and loaded on the way",
        changed(
            SOFTMAX,
            (
                "        nisa.reciprocal(",
                "        nisa.dma_copy(dst=out[here], src=shifted)\n"
                "        nisa.dma_copy(dst=shifted, src=out[here])\n"
                "        nisa.reciprocal(",
            ),
        ),
        "keep it in SBUF",
    ),
    (
        "lab09.ex3",
        "a column in tensor_tensor",
        changed(
            SOFTMAX,
            (
                "nisa.tensor_scalar(dst=tile, data=shifted, op0=nl.multiply, operand0=total)",
                "nisa.tensor_tensor(dst=tile, data1=shifted, data2=total, op=nl.multiply)",
            ),
        ),
        "nisa.tensor_scalar",
    ),
    (
        "lab09.ex3",
        "ready made",
        """
@nki.jit
def softmax(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for start in range(0, x.shape[0], 128):
        here = nl.ds(start, min(128, x.shape[0] - start))
        nl.store(out[here], nl.softmax(nl.load(x[here])))
    return out
""",
        "belongs to the course",
    ),
    (
        "lab09.ex3",
        "the minimum",
        changed(SOFTMAX, ("nl.maximum", "nl.minimum")),
        "subtract the row's maximum",
    ),
    (
        "lab09.ex3",
        "the logarithm of the sum in the exponent",
        changed(
            SOFTMAX,
            (
                "        nisa.reciprocal(dst=total, data=total)\n"
                "        nisa.tensor_scalar("
                "dst=tile, data=shifted, op0=nl.multiply, operand0=total)\n",
                "        nisa.activation(dst=total, op=nl.log, data=total)\n"
                "        nisa.tensor_tensor(dst=total, data1=lowest, data2=total, op=nl.subtract)\n"
                "        nisa.activation(dst=tile, op=nl.exp, data=tile, bias=total)\n",
            ),
        ),
        "divide afterwards",
    ),
    # Exercise 4
    (
        "lab09.ex4",
        "sum of squares",
        changed(NORM, ("scale=1 / columns, ", "")),
        "take their mean",
    ),
    (
        "lab09.ex4",
        "no epsilon",
        changed(NORM, ("value=epsilon", "value=0.0")),
        "epsilon is missing",
    ),
    (
        "lab09.ex4",
        "no weight",
        changed(
            NORM,
            (
                "nisa.dma_copy(dst=weights, src=weight.ap(pattern=[[0, pmax], [1, columns]]))",
                "nisa.memset(dst=weights, value=1.0)",
            ),
        ),
        "the weight is not in the result",
    ),
    (
        "lab09.ex4",
        "the weight for every tile",
        changed(
            NORM,
            (
                "        tile = nl.ndarray(",
                "        nisa.dma_copy(\n"
                "            dst=weights, src=weight.ap(pattern=[[0, pmax], [1, columns]])\n"
                "        )\n"
                "        tile = nl.ndarray(",
            ),
        ),
        "once, before the loop",
    ),
    (
        "lab09.ex4",
        "the weight in one partition",
        changed(
            NORM,
            ("nl.ndarray((pmax, columns)", "nl.ndarray((1, columns)"),
            ("[[0, pmax], [1, columns]]", "[[0, 1], [1, columns]]"),
            ("weights[0:size]", "weights"),
        ),
        "shapes",
    ),
    (
        "lab09.ex4",
        "epsilon outside of the root",
        changed(
            NORM,
            (", bias=offset[0:size]", ""),
            (
                "        nisa.scalar_tensor_tensor(",
                "        nisa.tensor_scalar(\n"
                "            dst=scale, data=scale, op0=nl.add, operand0=epsilon\n"
                "        )\n"
                "        nisa.scalar_tensor_tensor(",
            ),
        ),
        "outside of the root",
    ),
    (
        "lab09.ex4",
        "epsilon in the sum",
        changed(
            NORM,
            (
                "        nisa.activation(\n",
                "        nisa.tensor_scalar(\n"
                "            dst=scale, data=scale, op0=nl.add, operand0=epsilon\n"
                "        )\n"
                "        nisa.activation(\n",
            ),
            (", bias=offset[0:size]", ""),
        ),
        "added to the sum of squares",
    ),
    (
        "lab09.ex4",
        "two roundings",
        changed(
            NORM,
            (
                "        nisa.scalar_tensor_tensor(\n"
                "            dst=tile, data=tile, op0=nl.multiply, operand0=scale,\n"
                "            op1=nl.multiply, operand1=weights[0:size],\n"
                "        )",
                "        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=scale)\n"
                "        nisa.tensor_tensor(\n"
                "            dst=tile, data1=tile, data2=weights[0:size], op=nl.multiply\n"
                "        )",
            ),
        ),
        "rounded to fewer bits",
    ),
    (
        "lab09.ex4",
        "the variance",
        changed(
            NORM,
            (
                "        nisa.activation_reduce(\n"
                "            dst=squares, op=nl.square, data=tile, reduce_op=nl.add,"
                " reduce_res=scale\n"
                "        )\n",
                "        stats = nl.ndarray((size, 6), dtype=nl.float32, buffer=nl.sbuf)\n"
                "        both = nl.ndarray((size, 2), dtype=nl.float32, buffer=nl.sbuf)\n"
                "        nisa.bn_stats(dst=stats, data=tile)\n"
                "        nisa.bn_aggr(dst=both, data=stats)\n",
            ),
            ("data=scale, scale=1 / columns", "data=both[:, 1:2]"),
        ),
        "the squares as they are",
    ),
    (
        "lab09.ex4",
        "multiplied by the root",
        changed(NORM, ("nl.rsqrt", "nl.sqrt")),
        "multiplies by the root",
    ),
    (
        "lab09.ex4",
        "x loaded twice",
        changed(
            NORM,
            (
                "        nisa.activation_reduce(",
                "        nisa.dma_copy(dst=tile, src=x[here])\n        nisa.activation_reduce(",
            ),
        ),
        "x is loaded more than once",
    ),
    # Exercise 5
    (
        "lab09.ex5",
        "reduced along axis 0",
        """
@nki.jit
def column_sums(x):
    rows, columns = x.shape
    out = nl.ndarray((1, columns), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray((128, columns), dtype=nl.float32, buffer=nl.sbuf)
    total = nl.ndarray((1, columns), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x[0:128])
    nisa.tensor_reduce(dst=total, op=nl.add, data=tile, axis=0)
    nisa.dma_copy(dst=out, src=total)
    return out
""",
        "partition",
    ),
    (
        "lab09.ex5",
        "a new PSUM tile for each tile of rows",
        changed(
            SUMS,
            (
                "            nisa.nc_matmul(",
                "            total = nl.ndarray((1, wide), dtype=nl.float32, buffer=nl.psum)\n"
                "            nisa.nc_matmul(",
            ),
        ),
        "only the last tile of rows",
    ),
    (
        "lab09.ex5",
        "whole tiles only",
        changed(SUMS, ("range(0, rows, pmax)", "range(0, rows // pmax * pmax, pmax)")),
        "the last tile of rows is missing",
    ),
    (
        "lab09.ex5",
        "added outside of PSUM",
        changed(
            SUMS,
            ("buffer=nl.psum)\n", "buffer=nl.psum)\n        first = True\n"),
            (
                "            nisa.nc_matmul(dst=total, stationary=ones[0:size], moving=tile)\n"
                "        nisa.tensor_copy(dst=result, src=total)",
                "            part = nl.ndarray((1, wide), dtype=nl.float32, buffer=nl.psum)\n"
                "            nisa.nc_matmul(dst=part, stationary=ones[0:size], moving=tile)\n"
                "            if first:\n"
                "                nisa.tensor_copy(dst=result, src=part)\n"
                "            else:\n"
                "                nisa.tensor_tensor(\n"
                "                    dst=result, data1=result, data2=part, op=nl.add\n"
                "                )\n"
                "            first = False",
            ),
        ),
        "add up in one PSUM tile",
    ),
    (
        "lab09.ex5",
        "too many columns at once",
        changed(SUMS, ("nl.tile_size.gemm_moving_fmax", "1024")),
        "512",
    ),
    (
        "lab09.ex5",
        "one PSUM tile for all blocks",
        changed(
            SUMS,
            (
                "    for left in range(",
                "    all_blocks = nl.ndarray((1, fmax), dtype=nl.float32, buffer=nl.psum)\n"
                "    for left in range(",
            ),
            (
                "nl.ndarray((1, wide), dtype=nl.float32, buffer=nl.psum)",
                "all_blocks[:, 0:wide]",
            ),
        ),
        "a PSUM tile for each block",
    ),
    (
        "lab09.ex5",
        "rows added by the Vector Engine",
        """
@nki.jit
def column_sums(x):
    rows, columns = x.shape
    out = nl.ndarray((1, columns), dtype=nl.float32, buffer=nl.shared_hbm)
    ones = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    rest = nl.ndarray((128, columns), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=ones, value=1.0)
    nisa.memset(dst=rest, value=0.0)
    for start in range(0, rows, 128):
        size = min(128, rows - start)
        tile = nl.ndarray((size, columns), dtype=nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[nl.ds(start, size)])
        nisa.tensor_tensor(dst=rest[0:size], data1=rest[0:size], data2=tile, op=nl.add)
    for left in range(0, columns, 512):
        wide = min(512, columns - left)
        here = nl.ds(left, wide)
        total = nl.ndarray((1, wide), dtype=nl.float32, buffer=nl.psum)
        result = nl.ndarray((1, wide), dtype=nl.float32, buffer=nl.sbuf)
        nisa.nc_matmul(dst=total, stationary=ones, moving=rest[:, here])
        nisa.tensor_copy(dst=result, src=total)
        nisa.dma_copy(dst=out[:, here], src=result)
    return out
""",
        "before they come to the Tensor Engine",
    ),
    # Exercise 6
    ("lab09.ex6", "no dict", "def mended():\n    return []\n", "return a dict of four"),
    (
        "lab09.ex6",
        "a wrong rule",
        changed(MENDED, ('"c": ("broadcast", c)', '"c": ("start", c)')),
        "does not break the rule you name",
    ),
    (
        "lab09.ex6",
        "no rule of the list",
        changed(MENDED, ('"b": ("dma-psum", b)', '"b": ("psum", b)')),
        "none of the list",
    ),
    (
        "lab09.ex6",
        "not mended",
        changed(
            MENDED,
            (
                "src=result)\n        return out\n\n    def c",
                "src=product)\n        return out\n\n    def c",
            ),
        ),
        "still fails",
    ),
    (
        "lab09.ex6",
        "mended by leaving out half",
        changed(MENDED, ("for left in (0, 512):", "for left in (0,):")),
        "kernel d",
    ),
    (
        "lab09.ex6",
        "a product in another type",
        changed(
            MENDED,
            (
                "out = nl.ndarray((128, 256), dtype=nl.float32",
                "out = nl.ndarray((128, 256), dtype=nl.bfloat16",
            ),
        ),
        "that of the given one is float32",
    ),
    (
        "lab09.ex6",
        "a rule without a kernel",
        changed(MENDED, ('"a": ("partitions", a)', '"a": "partitions"')),
        "give the rule and the mended kernel",
    ),
]
