"""Views of tensors against NumPy: every view reads and writes the elements that NumPy's would."""

import contextlib
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided

from utils.nki.simulator import dtypes
from utils.nki.simulator.enums import MemoryRegion
from utils.nki.simulator.errors import DoubtfulKernel, NkiValidationError
from utils.nki.simulator.launch import simulate
from utils.nki.simulator.program import Program
from utils.nki.simulator.target import target
from utils.nki.simulator.tensor import Tensor, whole

pytestmark = pytest.mark.filterwarnings("ignore::utils.nki.simulator.errors.DoubtfulKernel")

HBM, SBUF, PSUM = MemoryRegion.hbm, MemoryRegion.sbuf, MemoryRegion.psum
BUFFERS = st.sampled_from((HBM, SBUF, PSUM))
DTYPES = st.sampled_from([dtypes.float32, dtypes.bfloat16, dtypes.int8, dtypes.float8_e4m3])
SHAPES = st.lists(st.integers(1, 6), min_size=2, max_size=4).map(tuple)


def tensor(shape, buffer=SBUF, dtype=dtypes.float32) -> tuple[Tensor, np.ndarray]:
    """A tensor with counting bytes, and a NumPy array of the same."""
    program = Program(target("trn2"))
    storage = program.allocate(shape, dtype, buffer)
    storage.data[:] = np.arange(storage.data.size) % 113
    return whole(storage), storage.data.view(dtype.numpy).reshape(shape).copy()


def same(view: Tensor, expected: np.ndarray) -> None:
    assert view.shape == expected.shape
    assert view.raw().tobytes() == np.ascontiguousarray(expected).tobytes()


@contextlib.contextmanager
def refuses(*words: str):
    """A refusal of four parts that names all the words."""
    with pytest.raises(NkiValidationError) as caught:
        yield
    for word in (*words, "\nWhy: ", "\nFix: ", f"\nAt: {__file__}:"):
        assert word in str(caught.value), caught.value


def test_a_tensor_is_true_because_it_is_not_none():
    """Published kernels write `if bias:` of an argument that may be None."""
    bias, _ = tensor((4, 8))
    with pytest.warns(DoubtfulKernel, match="write tensor != None"):
        assert bias and True
    with refuses("a while asks for the numbers"):
        while bias:
            raise RuntimeError


# ---- indexing ------------------------------------------------------------------------------------


def key_for(draw, size: int):
    kind = draw(st.sampled_from(("int", "slice", "all", "range", "negative", "numpy")))
    if kind == "all":
        return slice(None)
    if kind == "int":
        return draw(st.integers(-size, size - 1))
    start = draw(st.integers(0, size - 1))
    stop = draw(st.integers(start + 1, size))
    step = draw(st.integers(1, 3))
    if kind == "range":
        return range(start, stop, step)
    if kind == "negative":
        return slice(start - size, stop - size if stop < size else None, step)
    if kind == "numpy":
        return slice(np.int64(start), np.int32(stop), np.int64(step))
    return slice(start, stop, step)


@given(st.data(), SHAPES, BUFFERS, DTYPES)
def test_indexing_is_that_of_numpy_and_keeps_the_partition(data, shape, buffer, dtype):
    t, array = tensor(shape, buffer, dtype)
    used = data.draw(st.integers(0, len(shape)))
    keys = [key_for(data.draw, n) for n in shape[:used]]
    plain = [slice(k.start, k.stop, k.step) if isinstance(k, range) else k for k in keys]
    if data.draw(st.booleans()):
        keys.append(Ellipsis)
    on_chip = buffer is not HBM
    if on_chip and plain and isinstance(plain[0], int):
        plain[0] = slice(plain[0] % shape[0], plain[0] % shape[0] + 1)
    expected = array[tuple(plain)]
    while expected.ndim < (2 if on_chip else 1):
        expected = expected[..., None]
    view = t[tuple(keys)]
    same(view, expected)
    if on_chip:
        first, last, start, end = view.box()
        assert 0 <= first < last <= shape[0]
        assert 0 <= start < end <= view.storage.row_bytes


@given(SHAPES, DTYPES, st.data())
def test_writing_through_a_view_changes_its_elements_only(shape, dtype, data):
    t, array = tensor(shape, SBUF, dtype)
    keys = tuple(key_for(data.draw, n) for n in shape)
    plain = tuple(slice(k.start, k.stop, k.step) if isinstance(k, range) else k for k in keys)
    view = t[keys]
    view.put(np.full(view.shape, 3.0, np.float32))
    array[plain] = np.asarray(3.0).astype(array.dtype)
    same(t, array)


@pytest.mark.parametrize(("index", "words"), [
    (np.s_[0:128, 0:513], ("slice 0:513", "512", "min(513, 512)")),
    (np.s_[5, 512], ("512", "-512 to 511")),
    (np.s_[5, -513], ("-513", "-512 to 511")),
    (np.s_[0:0, :], ("0:0", "128 elements")),
    (np.s_[0, 0, 0], ("2 dimensions", "indexed with 3")),
    (np.s_[..., ...], ("at most 2 indices",)),
    (np.s_[:, ::-1], ("steps are integers of 1 or more",)),
    (np.s_[1.5, :], ("1.5", "128 elements")),
    (np.s_[True, :], ("True",)),
    (np.s_["a", :], ("'a'",)),
])  # fmt: skip
def test_indices_outside_are_named(index, words):
    t, _ = tensor((128, 512))
    with refuses(*words):
        t[index]


def test_a_tensor_is_no_index():
    t, _ = tensor((4, 4))
    with refuses("run time", "scalar_offset=index"):
        t[0, t]


# ---- other views ---------------------------------------------------------------------------------


@given(st.data(), SHAPES, BUFFERS)
def test_chains_of_views_are_those_of_numpy(data, shape, buffer):
    view, expected = tensor(shape, buffer, dtypes.bfloat16)
    on_chip = buffer is not HBM
    for _ in range(data.draw(st.integers(1, 4))):
        free = st.integers(1 if on_chip else 0, view.ndim - 1)
        kind = data.draw(st.sampled_from(("permute", "expand", "split", "flatten", "step", "one")))
        dim = data.draw(free)
        if kind == "permute":
            rest = list(range(1, view.ndim)) if on_chip else list(range(view.ndim))
            order = ([0] if on_chip else []) + data.draw(st.permutations(rest))
            view, expected = view.permute(tuple(order)), expected.transpose(order)
        elif kind == "expand" and view.ndim < 6:
            view, expected = view.expand_dim(dim), np.expand_dims(expected, dim)
            size = data.draw(st.integers(1, 3))
            target_shape = (*expected.shape[:dim], size, *expected.shape[dim + 1 :])
            view, expected = view.broadcast(dim, size), np.broadcast_to(expected, target_shape)
        elif kind == "split" and view.shape[dim] % 2 == 0:
            sizes = (*view.shape[:dim], 2, view.shape[dim] // 2, *view.shape[dim + 1 :])
            view, expected = view.reshape_dim(dim, (2, -1)), expected.reshape(sizes)
        elif kind == "flatten":
            merged = (*view.shape[:dim], -1)
            try:
                view = view.flatten_dims(dim, view.ndim - 1)
            except NkiValidationError:
                with pytest.raises(ValueError, match="copy"):
                    np.reshape(expected, merged, copy=False)
            else:
                expected = expected.reshape(merged)
        elif kind == "step":
            step = data.draw(st.integers(1, 3))
            index = (slice(None),) * dim + (slice(None, None, step),)
            view, expected = view.slice(dim, 0, view.shape[dim], step), expected[index]
        elif kind == "one" and view.ndim > 2:
            index = data.draw(st.integers(0, view.shape[dim] - 1))
            view = view.select(dim, index)
            expected = expected[(slice(None),) * dim + (index,)]
    same(view, expected)
    assert view.size == expected.size
    if buffer is HBM:
        assert view.is_contiguous() == expected.flags.c_contiguous


@given(st.integers(1, 4), st.integers(1, 4), st.integers(1, 4), st.data())
def test_rearrange_is_split_transpose_and_merge(b, h, w, data):
    t, array = tensor((b, h * w), HBM)
    order = data.draw(st.permutations(("b", "h", "w")))
    view = t.rearrange(("b", ("h", "w")), (tuple(order[:1]), order[1], order[2]), {"h": h})
    expected = array.reshape(b, h, w).transpose(["bhw".index(name) for name in order])
    same(view, expected)


@given(SHAPES, st.data())
def test_reshape_keeps_the_order_of_elements_and_the_partition(shape, data):
    t, array = tensor(shape, PSUM)
    free = array.size // shape[0]
    split = data.draw(st.sampled_from([n for n in range(1, free + 1) if free % n == 0]))
    view = t.reshape((shape[0], split, -1))
    same(view, array.reshape(shape[0], split, free // split))
    assert view.partition_step == 1
    same(t.reshape(shape[0], free), array.reshape(shape[0], free))
    if shape[0] > 1:
        with refuses(f"{shape[0]} partitions would become 1"):
            t.reshape((1, -1))


def test_views_that_need_a_copy_or_move_partitions_are_refused():
    t, _ = tensor((4, 6, 8))
    for doing, words in (
        (lambda: t.permute((0, 2, 1)).reshape((4, 48)), ("reshape", "(4, 48)", "tensor_copy")),
        (lambda: t.permute((1, 0, 2)), ("permute of the partition dimension",)),
        (lambda: t.permute((0, 1, 1)), ("dimensions 0 to 2",)),
        (lambda: t.expand_dim(0), ("expand_dim of the partition",)),
        (lambda: t.broadcast(0, 2), ("broadcast of the partition",)),
        (lambda: t.broadcast(1, 2), ("size is 6, not 1",)),
        (lambda: t[:, 0:1].broadcast(1, 0), ("to 0 elements",)),
        (lambda: t.squeeze_dim(2), ("size is 8, not 1",)),
        (lambda: t.reshape_dim(1, (4, 2)), ("6 elements", "(4, 2)")),
        (lambda: t.reshape_dim(0, (2, 2)), ("reshape_dim of the partition",)),
        (lambda: t.reshape((4, 47)), ("192 elements", "(4, 47)")),
        (lambda: t.select(3, 0), ("dimension 3", "0 to 2")),
        (lambda: t.rearrange(("a", "b"), ("a", "b")), ("names 2 dimensions",)),
        (lambda: t.rearrange(("a", "b", "c"), ("a", "b", "d")), ("'d'",)),
        (lambda: t.slice(1, 2, 7), ("slice 2:7", "6 elements")),
    ):
        with refuses(*words):
            doing()


# ---- access patterns -----------------------------------------------------------------------------


@st.composite
def patterns(draw, row: int, partitions: int | None):
    """A pattern inside of the storage, and its offset."""
    pairs, left = [], row - 1
    first = draw(st.integers(0, left))
    left -= first
    for _ in range(draw(st.integers(1, 3))):
        stride = draw(st.integers(0, 5))
        count = draw(st.integers(1, min(4, left // stride + 1 if stride else 4)))
        left -= stride * (count - 1)
        pairs.append([stride, count])
    if partitions is not None:
        start = draw(st.integers(0, partitions - 1))
        pairs = [[row, draw(st.integers(1, partitions - start))], *pairs]
        first += start * row
    return pairs, first


@given(st.data(), SHAPES, BUFFERS, DTYPES)
def test_patterns_are_strides_over_the_storage(data, shape, buffer, dtype):
    t, array = tensor(shape, buffer, dtype)
    pairs, offset = data.draw(patterns(t.row, None if buffer is HBM else shape[0]))
    item = array.itemsize
    expected = as_strided(
        array.reshape(-1)[offset:],
        [count for _, count in pairs],
        [stride * item for stride, _ in pairs],
    )
    view = t.ap(pairs, offset=offset)
    same(view, expected)
    assert view.get_pattern() == pairs
    assert view.ap(pairs).offset == offset


def test_a_pattern_on_a_view_begins_there_and_is_doubted():
    t, _ = tensor((4, 8), HBM)
    inner = t[1:3, 2:4]
    with pytest.warns(DoubtfulKernel, match=r"element 10 of its tensor(.|\n)*offset=13"):
        assert inner.ap([[8, 2], [1, 2]], offset=3).offset == 13
    with pytest.warns(DoubtfulKernel, match="element 10"):
        assert inner.ap([[8, 2], [1, 2]]).offset == 10
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert t[:2, :3].ap([[8, 2], [1, 2]], offset=3).offset == 3


@given(st.sampled_from(sorted(dtypes.ALL)), st.sampled_from(sorted(dtypes.ALL)), BUFFERS)
def test_bytes_read_as_another_type(of, to, buffer):
    t, array = tensor((4, 8), buffer, dtypes.ALL[of])
    new = dtypes.ALL[to]
    expected = array.view(new.numpy)
    same(t.view(new), expected)
    row = expected.shape[1]
    same(t.ap([[row, 4], [1, row]], dtype=to), expected)
    assert t.view(new).view(t.dtype).offset == t.offset


@pytest.mark.parametrize(("pattern", "offset", "words"), [
    ([[64, 8], [1, 32]], 0, ("[64, 8]", "must be 32")),
    ([[0, 8], [1, 32]], 0, ("[0, 8]", "must be 32")),
    ([[32, 17], [1, 32]], 0, ("17 partitions from partition 0", "has 16")),
    ([[32, 2], [1, 32]], 480, ("2 partitions from partition 15", "at most 1")),
    ([[32, 16], [1, 33]], 0, ("element 32", "has 32", "at most 31")),
    ([[32, 15], [2, 16]], 2, ("element 32", "has 32")),
    ([[32, 16], [-1, 4]], 8, ("[-1, 4]", "[[32, 16], [1, 32]]")),
    ([[32, 16], [1, 0]], 0, ("[1, 0]",)), ([[32, 16], 4], 0, ("pairs [stride, count]",)),
    ([], 0, ("pairs [stride, count]",)), ([[32, 16], [1, 1.5]], 0, ("1.5",)),
    ([[32, 16]], 1.5, ("offset=1.5",)), ([[32, 16]], -1, ("from partition -1",)),
])  # fmt: skip
def test_patterns_outside_of_a_tile_are_refused(pattern, offset, words):
    t, _ = tensor((16, 32))
    with refuses(*words):
        t.ap(pattern, offset=offset).raw()


def test_patterns_outside_of_a_tensor_in_hbm_are_refused():
    t, _ = tensor((16, 32), HBM)
    assert t.ap([[1, 512]]).shape == (512,)
    assert t.ap([[0, 128], [1, 32]]).shape == (128, 32)
    with refuses("elements 480 to 512", "0 to 511"):
        t.ap([[32, 2], [1, 1]], offset=480)[0].raw()
    with refuses("elements -1 to 510"):
        t.ap([[1, 512]], offset=-1).raw()
    with refuses("2 bytes in a partition", "multiple of 4"):
        tensor((3, 1), SBUF, dtypes.bfloat16)[0].ap([[1, 3], [1, 1]], dtype="float32")
    with refuses("byte 2", "multiple of 4"):
        tensor((2, 4), SBUF, dtypes.bfloat16)[0][:, 1:3].ap([[2, 2], [1, 1]], dtype="float32")


def test_views_of_strided_bytes_as_another_type_are_refused():
    t, _ = tensor((16, 32))
    assert t[:, 0::2].view("int32").strides == (32, 2)
    assert t[:, 3:4].view("int8").shape == (16, 4)
    with refuses("strides (32, 2)", "int8"):
        t[:, 0::2].view("int8")
    narrow, _ = tensor((16, 6), dtype=dtypes.int8)
    with refuses("multiple of 4 bytes", "it has 6"):
        narrow.view("float32")


# ---- what a kernel may ask -----------------------------------------------------------------------


@settings(max_examples=20)
@given(SHAPES, BUFFERS)
def test_whole_tensors_are_contiguous(shape, buffer):
    t, _ = tensor(shape, buffer)
    assert t.is_contiguous()
    assert (t.ndim, t.size, len(t)) == (len(shape), int(np.prod(shape)), shape[0])
    assert not t.is_indirect()


def test_numbers_of_a_tensor_are_not_known_to_python():
    t, _ = tensor((4, 4))
    for doing in (int, float, np.asarray, lambda x: range(x)):
        with refuses("compiled before there are numbers"):
            doing(t)
    assert (t == None) is False  # noqa: E711 (the language forbids `is`)
    assert (t != None) is True  # noqa: E711


def test_the_key_tells_layouts_apart_that_only_the_row_distinguishes():
    wide, _ = tensor((4, 8))
    narrow, _ = tensor((4, 4))
    every, second = wide[0:2], narrow[0:4:2]
    assert every.strides[0] == second.strides[0]
    assert every[:, 0:4].key != second.key
    assert (every.partition_step, second.partition_step) == (1, 2)


@pytest.mark.parametrize("symbol", ["+", "*", "@", "<", "//"])
def test_operators_of_python_are_refused_with_the_instruction_to_write(symbol: str) -> None:
    source = f"def kernel(x):\n    return x {symbol} x\n"
    names: dict = {}
    exec(source, names)
    with pytest.raises(NkiValidationError, match="tensors have no operators") as error:
        simulate(names["kernel"])(np.zeros((4, 4), np.float32))
    assert ("nc_matmul" if symbol == "@" else "tensor_tensor") in str(error.value)
    with pytest.raises(NkiValidationError, match="tensor_scalar"):
        simulate(lambda x: 2 * x)(np.zeros((4, 4), np.float32))
