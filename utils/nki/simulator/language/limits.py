"""`nl.tile_size`: what fits into a tile of the target, and the names of the past for it."""

import os

from utils.nki.simulator import surface
from utils.nki.simulator.enums import nc_version
from utils.nki.simulator.program import active
from utils.nki.simulator.target import Target, choose

FP32_BYTES = 4
BN_STATS_COLUMNS = 512
TRANSPOSE_VARIABLE = "NKI_DMA_TRANSPOSE_AS_PE_TRANSPOSE"


def _target() -> Target:
    core = active()
    return choose() if core is None else core.program.target


def _sizes(target: Target) -> dict[str, int]:
    """The attributes of `nl.tile_size`, in elements or in bytes of a partition."""
    sbuf_bytes = surface.section("usable_sbuf_bytes")[target.version.name]
    alignment = surface.section("alignment_bytes")
    # One bank less for the kernel where DMA transposes use the Tensor Engine.
    lowered = os.environ.get(TRANSPOSE_VARIABLE, "").lower() == "true" and target.generation > 2
    return {
        "pmax": target.partitions,
        "gemm_stationary_fmax": target.stationary_columns,
        "gemm_moving_fmax": target.moving_columns,
        "psum_bank_fmax": target.psum_bank_bytes // FP32_BYTES,
        "psum_fmax": target.psum_bank_bytes // FP32_BYTES,
        "psum_bank_fmax_bytes": target.psum_bank_bytes,
        "psum_num_banks": target.psum_banks - lowered,
        "psum_min_align": alignment["psum"],
        "bn_stats_fmax": BN_STATS_COLUMNS,
        "sbuf_fmax": sbuf_bytes // FP32_BYTES,
        "sbuf_fmax_bytes": sbuf_bytes,  # that a kernel may use
        "total_available_sbuf_size": sbuf_bytes,
        "sbuf_size_bytes": target.sbuf_bytes * target.partitions,  # of all partitions
        "sbuf_min_align": alignment["sbuf"],
    }


class TileSize:
    """Sizes of tiles of the target that a kernel runs on; outside a kernel, of the target that
    NEURON_PLATFORM_TARGET_OVERRIDE names."""

    def __getattr__(self, name: str) -> int:
        sizes = _sizes(_target())
        if name not in sizes:
            raise AttributeError(f"nl.tile_size has no {name!r}; it has {', '.join(sizes)}")
        return sizes[name]


tile_size = TileSize()


def get_nc_version() -> nc_version:
    """The generation of NeuronCore that a kernel runs on."""
    return _target().version


def get_nc_sub_version() -> int:
    """The revision of the silicon within a generation; the first, 0."""
    return 0
