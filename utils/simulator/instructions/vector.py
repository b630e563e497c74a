"""The Vector Engine: copies, elementwise operations, reductions along the free axis."""

from utils.simulator.dtypes import narrow
from utils.simulator.enums import MemoryRegion, engine
from utils.simulator.instruction import Use, instruction
from utils.simulator.instructions.rules import FEWEST_CYCLES, elements, not_both_in_psum, same_size
from utils.simulator.operands import result, tile

engines = engine


def asked_or(default: engine):  # noqa: ANN201
    """The engine that the call names, else `default`."""

    def choose(use: Use) -> engine:
        asked = use.args["engine"]
        return default if asked is engines.unknown else asked

    return choose


@instruction(
    engine=asked_or(engine.vector),
    cost=elements("dst"),
    since="0.2",
    dst=result(),
    src=tile(),
    rules=(same_size("dst", "src"),),
)
def tensor_copy(dst, src, engine=engine.unknown):
    """Copy a tile on chip; a `dst` of another type converts. The usual way out of PSUM."""
    if src.dtype == dst.dtype:
        dst.put_raw(src.raw())
    else:
        dst.put(src.get())


@instruction(
    engine=asked_or(engine.vector),
    cost=elements("dst"),
    since="0.2",
    dst=result(),
)
def memset(dst, value, engine=engine.unknown):
    """Fill a tile with a number."""
    array = dst.array()
    array[...] = narrow(array.astype("float32") * 0 + value, dst.dtype, array.dtype)
    dst.storage.written = True


def cost_tensor_tensor(use: Use) -> float:
    inputs = (use.data1, use.data2)
    in_psum = any(each.buffer is MemoryRegion.psum for each in inputs)
    return max(FEWEST_CYCLES, use.dst.elements * (1 if in_psum else 2))


@instruction(
    engine=asked_or(engine.vector),
    cost=cost_tensor_tensor,
    since="0.2",
    dst=result(),
    data1=tile(),
    data2=tile(),
    rules=(same_size("data1", "data2", "dst"), not_both_in_psum("data1", "data2")),
)
def tensor_tensor(dst, data1, data2, op, engine=engine.unknown):
    """Combine two tiles element by element; nothing is broadcast."""
    dst.put(op.meaning(data1.get(), data2.get().reshape(data1.shape)))
