"""Calling kernels: what comes in and goes out, and what stays as it was."""

import collections
import dataclasses
import io
import pdb
import time
import traceback
import warnings

import ml_dtypes
import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np
import pytest
import torch

from tests.nki.nki_bench import out, sbuf
from utils.nki.simulator import launch
from utils.nki.simulator.arrays import Shape
from utils.nki.simulator.errors import DoubtfulKernel, NkiValidationError
from utils.nki.simulator.program import active

X = np.random.default_rng(2).standard_normal((4, 8)).astype(np.float32)


def doubled(x):
    """A result of twice the argument, through SBUF."""
    tile = sbuf(x)
    nisa.tensor_scalar(tile, tile, op0=nl.multiply, operand0=2.0)
    return out(tile)


TYPES = ["float32", "float16", "bfloat16", "int32", "int8", "uint8", "bool"]


@pytest.mark.parametrize("dtype", [*TYPES, "float8_e5m2", "float8_e4m3fn"])
def test_torch_in_torch_out(dtype) -> None:
    x = (torch.arange(32).reshape(4, 8) % 2).to(getattr(torch, dtype))
    result = nki.simulate(out)(x)
    assert result.dtype == x.dtype and torch.equal(result.float(), x.float())


def test_torch_arguments_are_updated_and_views_and_gradients_are_fine() -> None:
    target = torch.zeros(8, 4, dtype=torch.bfloat16)
    source = torch.randn(4, 8, dtype=torch.bfloat16, requires_grad=True)

    def into(target, source):
        nisa.dma_copy(target, source)

    assert nki.simulate(into)(target.T, source) is None
    assert torch.equal(target.T, source.detach())


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16, np.float16, np.int32, bool])
def test_numpy_in_numpy_out(dtype) -> None:
    x = (np.arange(32).reshape(4, 8) % 2).astype(dtype)[:, ::-1]
    result = nki.simulate(out)(x)
    assert result.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(result, x)


def test_an_argument_that_is_written_is_updated_in_place() -> None:
    result, before = np.zeros((4, 8), np.float32), X.copy()

    def kernel(into, x):
        nisa.dma_copy(into[1:3], x[1:3])
        return into

    assert nki.simulate(kernel)(result, X) is result
    np.testing.assert_array_equal(result[1:3], X[1:3])
    assert (result[[0, 3]] == 0).all() and (before == X).all()
    fixed = result.copy()
    fixed.flags.writeable = False
    with pytest.raises(NkiValidationError, match="read-only"):
        nki.simulate(kernel)(fixed, X)


def test_one_array_twice_is_one_tensor() -> None:
    def kernel(a, b):
        assert a is b
        nisa.dma_copy(a[0:1], b[1:2])

    x = X.copy()
    nki.simulate(kernel)(x, b=x)
    np.testing.assert_array_equal(x[0], X[1])


Pair = collections.namedtuple("Pair", "first second")


@dataclasses.dataclass(frozen=True)
class Options:
    x: object
    times: int
    more: tuple = ()


class Settings(nl.NKIObject):
    x: object
    scale: float = 2.0


def test_shapes_and_addresses_as_the_documentation_asks_for_them() -> None:
    """Its kernels compare the shape of an argument with a list, and print where a tile lies."""

    def kernel(x):
        assert x.shape == [4, 8] and not x.shape != [4, 8] and x.shape == (4, 8) != [8, 4]
        placed = nl.ndarray((4, 8), nl.float32, buffer=nl.sbuf, address=(0, 1024))
        assert placed.address == (0, 1024) and nl.load(x).address == None  # noqa: E711
        return x

    assert nki.simulate(kernel)(np.ones((4, 8), np.float32)).shape == (4, 8)


def test_arrays_in_containers_and_objects() -> None:
    given = Options(X, 3, (X + 1, {"z": X + 2}))
    settings = Settings(X + 3)

    def kernel(options, settings, pair, many, named, *, also):
        tensors = [
            options.x, *options.more[:1], options.more[1]["z"], settings.x, pair.second, many[0],
            named["k"][0], also,
        ]  # fmt: skip
        assert options.times == 3 and settings.scale == 2.0 and pair.first == "text"
        return [doubled(tensor) for tensor in tensors]

    result = nki.simulate(kernel)(
        given, settings, Pair("text", X + 4), [X + 5], {"k": (X + 6,)}, also=X + 7
    )
    for i, item in enumerate(result):
        np.testing.assert_array_equal(item, (X + i) * 2)
    assert given.x is X and isinstance(settings.x, np.ndarray)  # the caller's objects stay


def test_results_of_every_kind() -> None:
    def kernel(x, factor=3, *, other=X):
        y = doubled(x)
        return {"pair": Pair(y, y[1:3, ::2]), "list": [x, None, factor], "one": Options(other, 1)}

    result = nki.simulate(kernel)(X)
    np.testing.assert_array_equal(result["pair"].second, 2 * X[1:3, ::2])
    assert result["list"][0] is X and result["list"][1:] == [None, 3] and result["one"].x is X
    assert nki.simulate(lambda x: None)(X) is None
    assert nki.simulate(lambda x: (doubled(x),))(X)[0].shape == (4, 8)
    shapes = launch.run(kernel, (Shape((4, 8)),), {}).results
    assert shapes["pair"].second == Shape((2, 4), nl.float32)


def test_results_that_cannot_be_returned() -> None:
    def kernel(buffer):
        return nl.ndarray((4, 8), dtype=nl.float32, buffer=buffer)

    for buffer in (nl.sbuf, nl.psum, nl.private_hbm):
        with pytest.raises(NkiValidationError, match="shared_hbm"):
            nki.simulate(kernel)(buffer)
    with pytest.warns(DoubtfulKernel, match="nl.hbm"):
        launch.run(kernel, (nl.hbm,), {}, values=False)

    def found_later(x):
        index = nl.zeros((1, 1), dtype=nl.int32)
        return x.select(0, index)

    with pytest.raises(NkiValidationError, match="found at run time"):
        nki.simulate(found_later)(X)


@pytest.mark.parametrize("wide, narrow", [("float64", "float32"), ("int64", "int32")])
def test_wide_types_are_refused_with_the_conversion(wide, narrow) -> None:
    for array in (np.zeros((2, 2), wide), torch.zeros(2, 2, dtype=getattr(torch, wide))):
        with pytest.raises(NkiValidationError, match=f"(?s){wide}.*convert.*{narrow}"):
            nki.simulate(doubled)(array)


@pytest.mark.parametrize("array", [np.float32(1).reshape(()), np.zeros((0, 4), np.float32)])
def test_arrays_that_are_no_tensors(array) -> None:
    with pytest.raises(NkiValidationError, match="shape"):
        nki.simulate(doubled)(array)


def test_plain_arguments_pass_through() -> None:
    given = (3, 2.5, "text", None, nl.add, nl.bfloat16, np.float32(2), range(3), len)

    def kernel(*values):
        assert all(a is b for a, b in zip(values, given, strict=True))

    nki.simulate(kernel)(*given)


def test_wrong_arguments_name_the_kernel() -> None:
    def scaled(x, *, factor=1):
        return doubled(x)

    with pytest.raises(TypeError, match=r"scaled\(x, \*, factor=1\): .*'x'"):
        nki.simulate(scaled)()
    with pytest.raises(TypeError, match="'by'"):
        nki.simulate(scaled)(X, by=2)


def test_kernels_call_kernels_but_do_not_simulate_them() -> None:
    inner = nki.jit(doubled)

    @nki.jit
    def outer(x):
        return inner(inner(x))

    np.testing.assert_array_equal(nki.simulate(outer)(X), 4 * X)
    with pytest.raises(NkiValidationError, match=r"inside a kernel(?s:.)*call the other kernel"):
        nki.simulate(lambda x: nki.simulate(inner)(X))(X)
    assert active() is None


def test_a_call_without_simulate_says_so_once(monkeypatch) -> None:
    launch._announce.cache_clear()
    kernel = nki.jit(doubled)
    with pytest.warns(UserWarning, match="no Neuron device"):
        np.testing.assert_array_equal(kernel(X), 2 * X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kernel(X)
        launch._announce.cache_clear()
        monkeypatch.setenv("NKI_SIMULATOR", "1")
        kernel(torch.from_numpy(X))


def test_jit_keeps_the_function_and_takes_options() -> None:
    @nki.jit(platform_target="trn2")
    def named(x):
        "Text."
        return doubled(x)

    assert named.__name__ == "named" and named.__doc__ == "Text." and nki.jit(named) is named
    np.testing.assert_array_equal(nki.simulate(named)(X), 2 * X)


def test_the_target_is_read_at_each_call(monkeypatch) -> None:
    seen = []

    def kernel():
        seen.append(nisa.get_nc_version().name)

    for name in ("trn1", "gen3", "trn3", "", "gen4"):
        monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", name)
        launch.run(kernel, (), {})
    assert seen == ["gen2", "gen3", "gen4", "gen3", "gen4"]
    launch.run(kernel, (), {}, target="trn1")
    assert seen[-1] == "gen2"
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", "trn9")
    with pytest.raises(ValueError, match="trn1, inf2"):
        nki.simulate(kernel)()


def test_without_precise_types_floats_keep_32_bits(monkeypatch) -> None:
    def kernel(x):
        made = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
        nisa.dma_copy(made, nl.load(x, dtype=nl.bfloat16))
        return made

    rounded = nki.simulate(kernel)(X)
    monkeypatch.setenv("NKI_PRECISE_FP", "0")
    np.testing.assert_array_equal(nki.simulate(kernel)(X), X)
    np.testing.assert_array_equal(rounded, X.astype(ml_dtypes.bfloat16).astype(np.float32))


def test_an_error_leaves_nothing_behind() -> None:
    for error in (ValueError, KeyboardInterrupt, SystemExit):

        def kernel(x, error=error):
            with np.errstate(all="ignore"):
                nisa.dma_copy(x[0:1], x[1:2])
                raise error("stop")

        before, settings = X.copy(), np.geterr()
        with pytest.raises(error, match="stop") as result:
            nki.simulate(kernel)(X)
        assert active() is None and np.geterr() == settings
        np.testing.assert_array_equal(X, before)  # arguments change when a kernel has ended
        assert "raise error" in "".join(traceback.format_exception(result.value))
    np.testing.assert_array_equal(nki.simulate(doubled)(X), 2 * X)


def test_print_shows_tiles_and_device_print_their_numbers(capsys) -> None:
    def kernel(x):
        tile = nl.ndarray((1, 2), dtype=nl.float32, buffer=nl.sbuf, name="t")
        nisa.dma_copy(tile, x[0:1, 0:2])
        print(tile)
        nl.device_print("numbers", tile)

    nki.simulate(kernel)(np.full((1, 2), 2.5, np.float32))
    shown = capsys.readouterr().out
    assert "<sbuf t (1, 2) float32>" in shown and "numbers" in shown and "2.5" in shown


def test_breakpoint_stops_inside_the_kernel(monkeypatch) -> None:
    text = io.StringIO()
    debugger = pdb.Pdb(
        stdin=io.StringIO("p tile.shape\nc\n"), stdout=text, readrc=False, nosigint=True
    )
    debugger.use_rawinput = False
    monkeypatch.setattr("sys.breakpointhook", debugger.set_trace)

    def kernel(x):
        tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
        breakpoint()
        nisa.dma_copy(tile, x)

    nki.simulate(kernel)(X)
    assert "(4, 8)" in text.getvalue() and active() is None


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_long_simulation_says_how_far_it_is(monkeypatch) -> None:
    monkeypatch.setattr(launch, "SILENT_S", 0.02)
    monkeypatch.setattr(launch, "EVERY_S", 0.02)
    monkeypatch.delenv("COURSE_STRICT", raising=False)

    def shown(stream) -> str:
        monkeypatch.setattr("sys.stderr", stream)
        nki.simulate(lambda: time.sleep(0.15))()
        return stream.getvalue()

    text = shown(Terminal())
    assert "instructions in" in text and text.endswith("\r") and "\n" not in text
    assert shown(io.StringIO()) == ""
    monkeypatch.setenv("COURSE_STRICT", "1")
    assert shown(Terminal()) == ""


def test_shapes_anywhere_mean_no_numbers() -> None:
    def kernel(options):
        return doubled(options.x)

    program = launch.run(kernel, (Options(Shape((4, 8), "bfloat16"), 1),), {})
    assert not program.values and program.results == Shape((4, 8), nl.bfloat16)
    assert program.count("dma_copy") == 2
    large = launch.run(lambda x: x, (Shape((2**20, 2**12)),), {})
    assert large.results.shape == (2**20, 2**12)


def test_an_error_names_the_line_of_a_kernel_typed_into_a_shell() -> None:
    source = (
        "def kernel(x):\n"
        "    tile = nl.ndarray((128, 8), nl.float32, buffer=nl.sbuf)\n"
        "    nisa.tensor_copy(tile, tile[0:64, :])"
    )
    names = {"__name__": "__main__", "nl": nl, "nisa": nisa}
    exec(compile(source, "<ipython-input-1-0>", "exec"), names)
    with pytest.raises(NkiValidationError, match=r"At: <ipython-input-1-0>:3$"):
        nki.simulate(names["kernel"])(np.zeros((1, 1), np.float32))
