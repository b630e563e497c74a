"""Mamba's selective scan, from the first version of the tutorial to tiles of the sequence.

For every channel c and state s, with inputs delta, u (batch, channels, sequence), A (channels,
states) and B, C (batch, states, sequence), all FP32:

    h[t] = exp(delta[t] A) h[t-1] + delta[t] u[t] B[t]        y[t] = sum over s of C[t] h[t]

Channels lie on the partitions, the sequence along them. The recurrence is one instruction of the
Vector Engine, which bounds every version. What the versions change is how often delta and u are
loaded, where the row of B or C that all channels share is spread over the partitions, and how much
of the sequence lies on chip.

`states_outer`, `channels_outer`, `sequence_tiled` and `channels_outer_reloading` reproduce the
versions 1 to 3 of AWS's tutorial (nki/guides/tutorials/fused_mamba), `LADDER` the eight steps of a
published search (ucb-bar/autocomp, examples/trn-tutorial/3_mamba_trace.py). The instructions are
those that the published profiles show, where these differ from the source: the compiler takes
delta u out of the loop over states as soon as delta and u are loaded outside of it, and it spreads
a row with a product on the Tensor Engine. A row of one PSUM bank stays there, where the Vector
Engine reads it at the full rate; a longer one is copied to SBUF by the Scalar Engine.
"""

import nki
import nki.isa as nisa
import nki.language as nl

from utils.nki.kernels.onchip import load, tile, zeros

CHANNELS = nl.tile_size.pmax
BANK = nl.tile_size.psum_fmax


def spread(row, ones, in_psum):
    """A row (1, n) on every partition, (128, n): ones (1, 128), transposed, times the row."""
    size = row.shape[1]
    wide = None if in_psum else tile((CHANNELS, size))
    for start in range(0, size, BANK):
        part = nl.ds(start, min(BANK, size - start))
        product = tile((CHANNELS, min(BANK, size - start)), buffer=nl.psum)
        nisa.nc_matmul(dst=product, stationary=ones, moving=row[:, part])
        if in_psum:
            return product
        nisa.activation(dst=wide[:, part], op=nl.copy, data=product)
    return wide


def product_of(delta, u):
    """delta u, (128, n)."""
    product = tile(delta.shape)
    nisa.tensor_tensor(dst=product, data1=delta, data2=u, op=nl.multiply)
    return product


def column_of_ones():
    """What spreads a row over partitions by a product."""
    ones = tile((1, CHANNELS))
    nisa.memset(dst=ones, value=1.0)
    return ones


def driven_by(product, b):
    """What comes into the state at each position, delta u B, (128, n)."""
    driven = tile(product.shape)
    nisa.tensor_tensor(dst=driven, data1=product, data2=b, op=nl.multiply)
    return driven


def scan_of(delta, driven, decay, initial=0.0):
    """The states, (128, n); decay and initial are columns (128, 1)."""
    factor, scan = tile(delta.shape), tile(delta.shape)
    nisa.activation(dst=factor, op=nl.exp, data=delta, scale=decay)
    nisa.tensor_tensor_scan(
        dst=scan, data0=factor, data1=driven, initial=initial, op0=nl.multiply, op1=nl.add
    )
    return scan


def add_share(total, scan, c):
    """Adds one state's share of the output to total, (128, n)."""
    share = tile(scan.shape)
    nisa.tensor_tensor(dst=share, data1=scan, data2=c, op=nl.multiply)
    nisa.tensor_tensor(dst=total, data1=total, data2=share, op=nl.add)


@nki.jit
def states_outer(delta, u, A, B, C, rows_in_channel_loop=False):
    """Version 1: delta and u come from HBM again for every state. Steps 0 and 1 of the ladder."""
    batches, channels, size = delta.shape
    states = A.shape[1]
    output = nl.ndarray(delta.shape, dtype=delta.dtype, buffer=nl.shared_hbm)
    ones = column_of_ones()
    for batch in range(batches):
        totals = []
        for _ in range(channels // CHANNELS):
            totals.append(zeros((CHANNELS, size)))
        for state in range(states):
            here = slice(state, state + 1)
            if not rows_in_channel_loop:
                b = spread(load(B[batch, here, :]), ones, size <= BANK)
                c = spread(load(C[batch, here, :]), ones, size <= BANK)
            for index in range(len(totals)):
                channel = nl.ds(index * CHANNELS, CHANNELS)
                if rows_in_channel_loop:
                    b = spread(load(B[batch, here, :]), ones, size <= BANK)
                    c = spread(load(C[batch, here, :]), ones, size <= BANK)
                delta_tile = load(delta[batch, channel, :])
                decay = load(A[channel, here])
                product = product_of(delta_tile, load(u[batch, channel, :]))
                add_share(totals[index], scan_of(delta_tile, driven_by(product, b), decay), c)
        for index in range(len(totals)):
            here = nl.ds(index * CHANNELS, CHANNELS)
            nisa.dma_copy(dst=output[batch, here, :], src=totals[index])
    return output


@nki.jit
def channels_outer(delta, u, A, B, C, decays_at_once=False):
    """Version 2: delta and u are loaded once. Steps 2 and 3 of the ladder."""
    batches, channels, size = delta.shape
    states = A.shape[1]
    output = nl.ndarray(delta.shape, dtype=delta.dtype, buffer=nl.shared_hbm)
    ones = column_of_ones()
    for batch in range(batches):
        for start in range(0, channels, CHANNELS):
            channel = nl.ds(start, CHANNELS)
            delta_tile = load(delta[batch, channel, :])
            product = product_of(delta_tile, load(u[batch, channel, :]))
            decays = load(A[channel, :]) if decays_at_once else None
            total = zeros((CHANNELS, size))
            for state in range(states):
                here = slice(state, state + 1)
                decay = decays[:, here] if decays_at_once else load(A[channel, here])
                b = spread(load(B[batch, here, :]), ones, size <= BANK)
                c = spread(load(C[batch, here, :]), ones, size <= BANK)
                add_share(total, scan_of(delta_tile, driven_by(product, b), decay), c)
            nisa.dma_copy(dst=output[batch, channel, :], src=total)
    return output


@nki.jit
def channels_outer_reloading(delta, u, A, B, C):
    """Version 2 where a tile of the whole sequence leaves no room in SBUF.

    The published profile of sequence 8192 shows it: delta is loaded again for every state, and
    delta u, which was written to HBM, too; nothing is loaded ahead, so the engines take turns.
    """
    batches, channels, size = delta.shape
    output = nl.ndarray(delta.shape, dtype=delta.dtype, buffer=nl.shared_hbm)
    products = nl.ndarray(delta.shape, dtype=delta.dtype, buffer=nl.hbm)
    ones = column_of_ones()
    for batch in range(batches):
        for start in range(0, channels, CHANNELS):
            channel = nl.ds(start, CHANNELS)
            product = product_of(load(delta[batch, channel, :]), load(u[batch, channel, :]))
            nisa.dma_copy(dst=products[batch, channel, :], src=product)
            total = zeros((CHANNELS, size))
            for state in range(A.shape[1]):
                here = slice(state, state + 1)
                b = spread(load(B[batch, here, :]), ones, in_psum=False)
                driven = driven_by(load(products[batch, channel, :]), b)
                delta_tile = load(delta[batch, channel, :])
                scan = scan_of(delta_tile, driven, load(A[channel, here]))
                c = spread(load(C[batch, here, :]), ones, in_psum=False)
                add_share(total, scan, c)
            nisa.dma_copy(dst=output[batch, channel, :], src=total)
    return output


@nki.jit
def sequence_tiled(delta, u, A, B, C, width=BANK):
    """Version 3: the sequence in tiles of one PSUM bank, the scan carried from tile to tile."""
    batches, channels, size = delta.shape
    output = nl.ndarray(delta.shape, dtype=delta.dtype, buffer=nl.shared_hbm)
    ones = column_of_ones()
    for batch in range(batches):
        for start in range(0, channels, CHANNELS):
            channel = nl.ds(start, CHANNELS)
            delta_tile = load(delta[batch, channel, :])
            product = product_of(delta_tile, load(u[batch, channel, :]))
            total = zeros((CHANNELS, size))
            for state in range(A.shape[1]):
                here = slice(state, state + 1)
                decay = load(A[channel, here])
                carried = zeros((CHANNELS, 1))
                for first in range(0, size, width):
                    part = nl.ds(first, width)
                    b = spread(load(B[batch, here, part]), ones, in_psum=True)
                    c = spread(load(C[batch, here, part]), ones, in_psum=True)
                    driven = driven_by(product[:, part], b)
                    scan = scan_of(delta_tile[:, part], driven, decay, carried)
                    add_share(total[:, part], scan, c)
                    carried = tile((CHANNELS, 1))
                    nisa.tensor_copy(dst=carried, src=scan[:, nl.ds(width - 1, 1)])
            nisa.dma_copy(dst=output[batch, channel, :], src=total)
    return output


@nki.jit
def chunked(delta, u, A, B, C, rows_in_psum=False, ping_pong=False, load_chunks=False):
    """Steps 4 to 7 of the ladder: the sequence outside of the states, the sum over states in PSUM.

    ping_pong: two buffers for the rows of B and C, the next state's loaded ahead of the work.
    rows_in_psum: the spread rows are read from PSUM, not copied to SBUF first.
    load_chunks: delta and u are loaded chunk by chunk.
    """
    batches, channels, size = delta.shape
    states = A.shape[1]
    width = min(size, BANK)
    output = nl.ndarray(delta.shape, dtype=delta.dtype, buffer=nl.shared_hbm)
    ones = column_of_ones()
    for batch in range(batches):
        for start in range(0, channels, CHANNELS):
            channel = nl.ds(start, CHANNELS)
            if not load_chunks:
                delta_all = load(delta[batch, channel, :])
                product_all = product_of(delta_all, load(u[batch, channel, :]))
            decays = load(A[channel, :])
            carried = zeros((CHANNELS, states))
            for first in range(0, size, width):
                part = nl.ds(first, width)
                if load_chunks:
                    delta_part = load(delta[batch, channel, part])
                    product = product_of(delta_part, load(u[batch, channel, part]))
                else:
                    delta_part, product = delta_all[:, part], product_all[:, part]
                total = zeros((CHANNELS, width), buffer=nl.psum)
                if ping_pong:
                    buffers = (row_pair(width), row_pair(width))
                    load_rows(buffers[0], B, C, batch, 0, part)
                for state in range(states):
                    if ping_pong:
                        rows = buffers[state % 2]
                        if state + 1 < states:
                            load_rows(buffers[1 - state % 2], B, C, batch, state + 1, part)
                    else:
                        rows = row_pair(width)
                        load_rows(rows, B, C, batch, state, part)
                    b = spread(rows[0], ones, rows_in_psum)
                    c = spread(rows[1], ones, rows_in_psum)
                    here = nl.ds(state, 1)
                    driven = driven_by(product, b)
                    scan = scan_of(delta_part, driven, decays[:, here], carried[:, here])
                    add_share(total, scan, c)
                    nisa.tensor_copy(dst=carried[:, here], src=scan[:, nl.ds(width - 1, 1)])
                finished = tile((CHANNELS, width))
                nisa.tensor_copy(dst=finished, src=total, engine=nisa.engine.vector)
                nisa.dma_copy(dst=output[batch, channel, part], src=finished)
    return output


def row_pair(width):
    """Room for a row of B and one of C."""
    return tile((1, width)), tile((1, width))


def load_rows(rows, B, C, batch, state, part):
    """The rows of B and C of one state, into a `row_pair`."""
    nisa.dma_copy(dst=rows[0], src=B[batch, slice(state, state + 1), part])
    nisa.dma_copy(dst=rows[1], src=C[batch, slice(state, state + 1), part])


# The published ladder: a kernel and its options for every step, in order.
LADDER: tuple[tuple[object, dict[str, object]], ...] = (
    (states_outer, {"rows_in_channel_loop": True}),
    (states_outer, {}),
    (channels_outer, {}),
    (channels_outer, {"decays_at_once": True}),
    (chunked, {}),
    (chunked, {"ping_pong": True}),
    (chunked, {"ping_pong": True, "rows_in_psum": True}),
    (chunked, {"ping_pong": True, "rows_in_psum": True, "load_chunks": True}),
)
