"""What every kernel does with on-chip memory: a new tile, one from HBM, one moved out of PSUM."""

import nki.isa as nisa
import nki.language as nl


def tile(shape, dtype=nl.float32, buffer=nl.sbuf):
    """A new tile, in SBUF or in PSUM."""
    return nl.ndarray(shape, dtype=dtype, buffer=buffer)


def load(source):
    """A rectangle of HBM in a new tile of SBUF, in its own data type."""
    loaded = tile(source.shape, source.dtype)
    nisa.dma_copy(dst=loaded, src=source)
    return loaded


def zeros(shape, buffer=nl.sbuf):
    """A tile of FP32 zeros."""
    made = tile(shape, buffer=buffer)
    nisa.memset(dst=made, value=0.0)
    return made


def evict(source, dtype, engine=nisa.engine.vector):
    """A copy in SBUF of a tile in PSUM, made by the Vector or the Scalar Engine."""
    copied = tile(source.shape, dtype)
    if engine == nisa.engine.scalar:
        nisa.activation(dst=copied, op=nl.copy, data=source)
    else:
        nisa.tensor_copy(dst=copied, src=source, engine=engine)
    return copied


def transpose(source, engine=nisa.engine.vector, dtype=None):
    """A tile (m, n) of SBUF as (n, m): the Tensor Engine turns it, `engine` moves it back."""
    turned = tile((source.shape[1], source.shape[0]), source.dtype, nl.psum)
    nisa.nc_transpose(dst=turned, data=source)
    return evict(turned, dtype or source.dtype, engine)
