"""`nl.tile_size`: what fits into a tile of the target, and the names of the past for it."""

import os

from utils.nki.simulator import surface
from utils.nki.simulator.enums import nc_version
from utils.nki.simulator.program import active
from utils.nki.simulator.target import Target, chosen

FP32_BYTES = 4
BN_STATS_COLUMNS = 512
TRANSPOSE_VARIABLE = "NKI_DMA_TRANSPOSE_AS_PE_TRANSPOSE"


def _target() -> Target:
    core = active()
    return chosen() if core is None else core.program.target


class TileSize:
    """Sizes of tiles, in elements or in bytes, of the target that a kernel runs on.

    Outside a kernel, of the target that NEURON_PLATFORM_TARGET_OVERRIDE names.
    """

    @property
    def pmax(self) -> int:
        """Partitions of a tile."""
        return _target().partitions

    @property
    def gemm_stationary_fmax(self) -> int:
        """Columns of the stationary operand of a matmul."""
        return _target().stationary_columns

    @property
    def gemm_moving_fmax(self) -> int:
        """Columns of the moving operand of a matmul."""
        return _target().moving_columns

    @property
    def psum_bank_fmax(self) -> int:
        """FP32 elements of a partition in one bank of PSUM."""
        return _target().psum_bank_bytes // FP32_BYTES

    psum_fmax = psum_bank_fmax

    @property
    def psum_bank_fmax_bytes(self) -> int:
        """Bytes of a partition in one bank of PSUM."""
        return _target().psum_bank_bytes

    @property
    def psum_num_banks(self) -> int:
        """Banks of PSUM for the kernel; one less where DMA transposes use the Tensor Engine."""
        lowered = os.environ.get(TRANSPOSE_VARIABLE, "").lower() == "true"
        return _target().psum_banks - (lowered and _target().generation > 2)

    @property
    def bn_stats_fmax(self) -> int:
        """Columns of one bn_stats."""
        return BN_STATS_COLUMNS

    @property
    def sbuf_fmax_bytes(self) -> int:
        """Bytes of a partition of SBUF that a kernel may use."""
        return surface.section("usable_sbuf_bytes")[_target().version.name]

    total_available_sbuf_size = sbuf_fmax_bytes

    @property
    def sbuf_fmax(self) -> int:
        """FP32 elements of a partition of SBUF that a kernel may use."""
        return self.sbuf_fmax_bytes // FP32_BYTES

    @property
    def sbuf_size_bytes(self) -> int:
        """Bytes of SBUF over all partitions."""
        return _target().sbuf_bytes * _target().partitions

    @property
    def psum_min_align(self) -> int:
        """Bytes to which an address in PSUM is aligned."""
        return surface.section("alignment_bytes")["psum"]

    @property
    def sbuf_min_align(self) -> int:
        """Bytes to which an address in SBUF is aligned."""
        return surface.section("alignment_bytes")["sbuf"]


tile_size = TileSize()


def get_nc_version() -> nc_version:
    """The generation of NeuronCore that a kernel runs on."""
    return _target().version


def get_nc_sub_version() -> int:
    """The revision of the silicon within a generation; the first, 0."""
    return 0
