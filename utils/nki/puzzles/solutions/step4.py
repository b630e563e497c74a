"""Step 4, movement: halves that change places, neighbours, rows by number, two products at once."""

import nki
import nki.isa as nisa
import nki.language as nl

ROWS = 128
WIDE = 512


def tile(shape, dtype=nl.float32, buffer=nl.sbuf):
    """A new tile."""
    return nl.ndarray(shape, dtype=dtype, buffer=buffer)


def load(source):
    """A rectangle of HBM in a new tile of SBUF."""
    made = tile(source.shape, source.dtype)
    nisa.dma_copy(dst=made, src=source)
    return made


@nki.jit
def rope(x, cos, sin):
    """Rotary positions of x (m, n), whose row is two halves; cos, sin (m, n / 2)."""
    rows, size = x.shape
    half = size // 2
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for row in range(0, rows, ROWS):
        here = nl.ds(row, ROWS)
        data, cosine, sine = load(x[here, :]), load(cos[here, :]), load(sin[here, :])
        low, high = data[:, nl.ds(0, half)], data[:, nl.ds(half, half)]
        result, other = tile((ROWS, size)), tile((ROWS, size))
        for part, first, second, op, engine in (
            (nl.ds(0, half), low, high, nl.subtract, nisa.engine.vector),
            (nl.ds(half, half), high, low, nl.add, nisa.engine.gpsimd),
        ):
            nisa.tensor_tensor(
                dst=result[:, part], data1=first, data2=cosine, op=nl.multiply, engine=engine
            )
            nisa.tensor_tensor(
                dst=other[:, part], data1=second, data2=sine, op=nl.multiply, engine=engine
            )
            nisa.tensor_tensor(
                dst=result[:, part], data1=result[:, part], data2=other[:, part], op=op,
                engine=engine,
            )  # fmt: skip
        nisa.dma_copy(dst=out[here, :], src=result)
    return out


@nki.jit
def causal_conv(x, taps):
    """The sum over j of taps (m, 4)[:, j] x (m, n)[:, i - j], with zeros before the beginning."""
    rows, size = x.shape
    count = taps.shape[1]
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for row in range(0, rows, ROWS):
        here = nl.ds(row, ROWS)
        padded, factors = tile((ROWS, size + count - 1)), load(taps[here, :])
        nisa.memset(dst=padded[:, nl.ds(0, count - 1)], value=0.0)
        nisa.dma_copy(dst=padded[:, nl.ds(count - 1, size)], src=x[here, :])
        total = tile((ROWS, size))
        nisa.activation(
            dst=total, op=nl.copy, data=padded[:, nl.ds(count - 1, size)], scale=factors[:, 0:1]
        )
        for j in range(1, count):
            nisa.scalar_tensor_tensor(
                dst=total, data=padded[:, nl.ds(count - 1 - j, size)], op0=nl.multiply,
                operand0=factors[:, j : j + 1], op1=nl.add, operand1=total,
            )  # fmt: skip
        nisa.dma_copy(dst=out[here, :], src=total)
    return out


@nki.jit
def gather_rows(table, ids):
    """The rows of table (v, n) with the numbers ids (m, 1), as (m, n)."""
    rows, size = ids.shape[0], table.shape[1]
    out = nl.ndarray((rows, size), dtype=table.dtype, buffer=nl.shared_hbm)
    for row in range(0, rows, ROWS):
        numbers, result = load(ids[nl.ds(row, ROWS), :]), tile((ROWS, size), table.dtype)
        source = table.ap([[size, ROWS], [1, size]], vector_offset=numbers, indirect_dim=0)
        nisa.dma_copy(dst=result, src=source)
        nisa.dma_copy(dst=out[nl.ds(row, ROWS), :], src=result)
    return out


@nki.jit
def swiglu(x, gate, up):
    """silu(x.T @ gate) (x.T @ up) for x (k, m), gate and up (k, n): two products share x."""
    (depth, rows), columns = x.shape, gate.shape[1]
    out = nl.ndarray((rows, columns), dtype=x.dtype, buffer=nl.shared_hbm)
    lefts, gates, ups = [], [], []
    for k in range(0, depth, ROWS):
        here = nl.ds(k, ROWS)
        lefts.append(load(x[here, :]))
        gates.append(load(gate[here, :]))
        ups.append(load(up[here, :]))
    for m in range(0, rows, ROWS):
        result = tile((ROWS, columns), x.dtype)
        for n in range(0, columns, WIDE):
            width = min(WIDE, columns - n)
            part = nl.ds(n, width)
            totals = []
            for side in (gates, ups):
                total = tile((ROWS, width), buffer=nl.psum)
                for k in range(len(lefts)):
                    nisa.nc_matmul(
                        dst=total, stationary=lefts[k][:, nl.ds(m, ROWS)], moving=side[k][:, part]
                    )
                totals.append(total)
            active = tile((ROWS, width))
            nisa.activation(dst=active, op=nl.silu, data=totals[0])
            nisa.tensor_tensor(dst=result[:, part], data1=active, data2=totals[1], op=nl.multiply)
        nisa.dma_copy(dst=out[nl.ds(m, ROWS), :], src=result)
    return out
