"""Grids of tiles and blocks (NKI 0.7) select what slices select, and move nothing."""

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.nki.nki_bench import issue, refuses
from utils.nki.simulator import launch
from utils.nki.simulator.arrays import Shape

ROWS, COLUMNS = st.integers(1, 300), st.integers(1, 40)


def by_tiles(x, tile_shape):
    """A copy of x, tile by tile."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    source, target = nl.tiles(x, tile_shape=tile_shape), nl.tiles(out, tile_shape=tile_shape)
    for place in np.ndindex(source.shape):
        part = source[place]
        tile = nl.ndarray(part.element_shape, dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile.data, src=part.data)
        nisa.dma_copy(dst=target[place].data, src=tile.data)
    return out


def by_blocks(x, tile_shape, block_shape):
    """A copy of x by blocks: each lies in one dense tile of SBUF, filled and emptied by tiles."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    sizes = {"tile_shape": tile_shape, "block_shape": block_shape}
    source, target = nl.blocks(x, **sizes), nl.blocks(out, **sizes)
    for place in np.ndindex(source.shape):
        part = source[place]
        more = {"element_shape": part.element_shape, "buffer": nl.sbuf, "dtype": x.dtype}
        held = nl.alloc_blocks(**sizes, **more)
        for into, of in ((held, part), (target[place], held)):
            into, of = nl.tiles(into), nl.tiles(of)
            assert into.shape == of.shape and into.element_shape == part.element_shape
            for inner in np.ndindex(of.shape):
                nisa.dma_copy(dst=into[inner].data, src=of[inner].data)
    return out


@settings(max_examples=25)
@given(ROWS, COLUMNS, st.integers(1, 128), st.integers(1, 24), st.integers(1, 3), st.integers(1, 3))
def test_a_walk_over_a_grid_is_complete(rows, columns, height, width, down, right) -> None:
    x = np.arange(rows * columns, dtype=np.float32).reshape(rows, columns)
    tile = height, width
    np.testing.assert_array_equal(nki.simulate(by_tiles)(x, tile), x)
    np.testing.assert_array_equal(nki.simulate(by_blocks)(x, tile, (down, right)), x)


def in_kernel(call, shape=(3, 300, 1000)):
    made = []
    launch.run(lambda x: made.append(call(x)), (Shape(shape),), {})
    return made[0]


def test_what_a_grid_says_of_itself() -> None:
    def call(x):
        grid = nl.tiles(x, tile_shape=(128, 256))
        blocks = nl.blocks(x, tile_shape=(128, 256), block_shape=(2, 3))
        return grid, grid[1], grid[1, 2, 3], grid[:, 0:2, -1], blocks

    grid, slab, tile, column, blocks = in_kernel(call)
    assert (grid.shape, grid.tile_shape, grid.element_shape) == (
        (3, 3, 4), (128, 256), (3, 300, 1000),
    )  # fmt: skip
    assert (slab.shape, slab.element_shape, slab.data.shape) == ((3, 4), (300, 1000), (300, 1000))
    assert (tile.shape, tile.element_shape, tile.is_remainder) == ((), (44, 232), True)
    assert tile.data.shape == (44, 232) and tile.data.offset == 300_000 + 256 * 1000 + 768
    assert (column.shape, column.element_shape) == ((3, 2), (3, 256, 232)) and column.is_remainder
    assert (blocks.shape, blocks.block_shape) == ((3, 2, 2), (2, 3))
    assert blocks.index_step_elements == (1, 256, 768)
    assert (
        isinstance(blocks, nl.NkiGrid) and blocks.dtype == "float32" and "hbm" in str(blocks.buffer)
    )
    assert nl.tiles is not None and "grid (3, 3, 4)" in repr(grid)


def test_a_dense_tile_on_chip_has_data_within_a_row_of_tiles() -> None:
    more = {"tile_shape": (128, 256), "buffer": nl.sbuf, "dtype": nl.bfloat16}
    held = in_kernel(lambda x: nl.alloc_tiles(element_shape=(300, 600), **more))
    assert held.source.shape == (128, 3 * 600) and held.shape == (3, 3)
    assert held[2, 1].data.shape == (44, 256) and held[2, 1].data.offset == 2 * 600 + 256
    assert held[1].is_data_representable and held[1].data.shape == (128, 600)
    assert not held.is_data_representable
    refuses(
        lambda: nl.alloc_tiles(element_shape=(300, 600), **more).data,
        "several rows of tiles", "grid[i, ...].data",
    )  # fmt: skip
    refuses(lambda: nl.alloc_tiles(element_shape=(2, 64, 64), **more), "on chip has 2 dimensions")


def test_wrong_grids_are_refused_in_words() -> None:
    def x():
        return nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)

    refuses(lambda: nl.tiles(x(), tile_shape=(128,)), "tile_shape is (128,)")
    refuses(lambda: nl.tiles(x(), tile_shape=(0, 4)), "positive integers")
    refuses(lambda: nl.tiles(x()), "tile_shape is None")
    refuses(lambda: nl.tiles("x", tile_shape=(1, 1)), "takes a tensor or a grid")
    refuses(lambda: nl.blocks(x(), tile_shape=(64, 64), block_shape=(2,)), "block_shape is (2,)")
    refuses(lambda: nl.tiles(x(), tile_shape=(64, 64))[2], "a Python int below 2")
    refuses(lambda: nl.tiles(x(), tile_shape=(64, 64))[0, 0, 0], "2 dimensions to index")
    refuses(lambda: nl.tiles(x(), tile_shape=(64, 64))[:, ::2], "neighbours")


def test_a_grid_issues_nothing() -> None:
    def call():
        grid = nl.tiles(nl.ndarray((128, 512), nl.float32), tile_shape=(64, 64))
        return nl.blocks(grid, block_shape=(1, 2))[0, 1].data

    program, view = issue(call)
    assert view.shape == (64, 128) and not program.instructions


@pytest.mark.parametrize("words", [6, 24])
def test_settings_of_the_compiler_are_taken(words) -> None:
    from nki.compiler import CompileConfig

    @nki.jit(compile_config=CompileConfig(dead_code_elim=bool(words)))
    def kernel(x):
        return x

    assert nki.simulate(kernel)(np.zeros((1, 2), np.float32)).shape == (1, 2)
