"""What the compiler does, as rules: each changes what it should and nothing else."""

import warnings
from collections.abc import Callable
from typing import Any

import nki
import nki.isa as nisa
import nki.language as nl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from utils.nki.simulator import capacity, launch
from utils.nki.simulator.capacity import levels, usable_bytes
from utils.nki.simulator.enums import engine
from utils.nki.simulator.errors import NkiValidationError
from utils.nki.simulator.profile import Profile, profile, profile_of
from utils.nki.simulator.program import Program
from utils.nki.simulator.target import target
from utils.nki.simulator.timing.compiled import RULES, compile_program, spilled_bytes
from utils.nki.simulator.timing.constants import table
from utils.nki.validation.dialect import independent

ROWS = target("trn1").partitions
WIDE = 512


def record(kernel: Callable[..., Any], *shapes: tuple[int, ...]) -> Program:
    inputs = tuple(nki.Shape(shape, "float32") for shape in shapes)
    with warnings.catch_warnings(), capacity.spilling():
        warnings.simplefilter("ignore")
        return launch.run(nki.jit(kernel), inputs, {}, values=False, target="trn1")


def time_of(program: Program, *rules: str) -> Profile:
    return profile_of(program, as_compiled=rules)


def tile(columns: int = WIDE, rows: int = ROWS) -> Any:
    return nl.ndarray((rows, columns), dtype=nl.float32, buffer=nl.sbuf)


def loaded(source: Any) -> Any:
    made = nl.ndarray(source.shape, dtype=source.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=made, src=source)
    return made


def repeated(x):
    """Loads the same rows three times, and adds them up."""
    result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    total = tile()
    nisa.memset(dst=total, value=0.0)
    for _ in range(3):
        nisa.tensor_tensor(dst=total, data1=total, data2=loaded(x), op=nl.add)
    nisa.dma_copy(dst=result, src=total)
    return result


def crowded(x):
    """Squares of more tiles than SBUF holds, all of them needed at the end, first to last."""
    count = usable_bytes(target("trn1"), nl.sbuf) // (4 * x.shape[1]) + 4
    result = nl.ndarray((count, *x.shape), dtype=x.dtype, buffer=nl.shared_hbm)
    tiles = []
    for _ in range(count):
        made = tile(x.shape[1])
        nisa.memset(dst=made, value=2.0)
        tiles.append(made)
    for number, made in enumerate(tiles):
        nisa.dma_copy(dst=result[number], src=made)
    return result


def test_without_rules_nothing_changes_and_unknown_ones_are_named() -> None:
    program = record(repeated, (ROWS, WIDE))
    assert compile_program(program, ()) is program
    assert time_of(program).seconds == profile_of(program).seconds
    with pytest.raises(ValueError, match="no rule is 'magic'; there are 'merge', 'fold'"):
        compile_program(program, ["magic"])


def test_every_rule_says_what_it_does_and_what_suggests_it() -> None:
    for name, rule in RULES.items():
        assert rule.name == name and rule.says.endswith(".") and rule.source


def test_what_fits_is_loaded_once() -> None:
    program = record(repeated, (ROWS, WIDE))
    once = time_of(program, "hoist")
    assert profile_of(program).hbm_read == 3 * once.hbm_read == 3 * ROWS * WIDE * 4
    assert len(program.instructions) == len(once.program.instructions) + 2


def test_what_is_written_meanwhile_is_loaded_again() -> None:
    def kernel(x):
        place = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        for _ in range(3):
            nisa.dma_copy(dst=place, src=loaded(place))
        return place

    program = record(kernel, (ROWS, WIDE))
    assert time_of(program, "hoist").hbm_read == profile_of(program).hbm_read


def test_what_does_not_fit_is_loaded_again() -> None:
    columns = usable_bytes(target("trn1"), nl.sbuf) // 4 - WIDE

    def kernel(x):
        for _ in range(2):
            for part in range(2):
                nisa.memset(dst=tile(WIDE), value=0.0)
                loaded(x[part])

    program = record(kernel, (2, ROWS, columns))
    assert time_of(program, "hoist").hbm_read == profile_of(program).hbm_read


def names(program: Program) -> list[str]:
    return [item.checked.spec.name for item in program.instructions]


def test_a_row_of_one_bank_is_spread_into_psum_and_read_there() -> None:
    def kernel(x, row):
        data = loaded(x)
        wide = nl.broadcast_to(loaded(row), x.shape)
        nisa.tensor_tensor(dst=tile(x.shape[1]), data1=data, data2=wide, op=nl.multiply)

    short = record(kernel, (ROWS, WIDE), (1, WIDE))
    assert short.count("nc_stream_shuffle") == 4 and short.instructions[-1].checked.cycles == 1024
    made = compile_program(short, ["broadcast"])
    assert names(made) == ["dma_copy", "dma_copy", "nc_matmul", "tensor_tensor"]
    assert made.instructions[-1].checked.cycles == WIDE, "one operand is in PSUM"
    assert time_of(short, "broadcast").hbm_read == profile_of(short).hbm_read
    long = compile_program(record(kernel, (ROWS, 2 * WIDE), (1, 2 * WIDE)), ["broadcast"])
    assert names(long)[2:] == 2 * ["nc_matmul", "activation"] + ["tensor_tensor"]


@pytest.mark.parametrize("banks, spread", [(6, "tensor_tensor"), (7, "activation")])
def test_a_row_is_copied_where_psum_is_full_or_its_tile_changes(banks: int, spread: str) -> None:
    def kernel(x, row):
        full = [nl.ndarray((ROWS, WIDE), dtype=nl.float32, buffer=nl.psum) for _ in range(banks)]
        for made in full:
            nisa.memset(dst=made, value=0.0)
        wide = nl.broadcast_to(loaded(row), x.shape)
        nisa.tensor_tensor(dst=tile(), data1=loaded(x), data2=wide, op=nl.multiply)
        if banks > 6:
            nisa.memset(dst=wide, value=0.0)
        for made in full:
            nisa.tensor_copy(dst=tile(), src=made)

    made = names(compile_program(record(kernel, (ROWS, WIDE), (1, WIDE)), ["broadcast"]))
    assert spread in made[made.index("nc_matmul") : made.index("nc_matmul") + 3]
    assert ("activation" in made) is (spread == "activation")


@pytest.mark.parametrize(
    "change, columns, times",
    [("nothing", WIDE, 1), ("input", WIDE, 3), ("result", WIDE, 3), ("nothing", 12288, 3)],
)
def test_what_is_computed_again_is_kept(change: str, columns: int, times: int) -> None:
    def kernel(x):
        data = loaded(x)
        for _ in range(3):
            result = tile(columns)
            nisa.tensor_tensor(dst=result, data1=data, data2=data, op=nl.multiply)
            other = tile(columns)
            nisa.tensor_tensor(dst=other, data1=result, data2=result, op=nl.subtract)
            nisa.tensor_tensor(dst=tile(columns), data1=other, data2=data, op=nl.multiply)
            if change != "nothing":
                nisa.memset(dst=data if change == "input" else result, value=0.0)

    made = compile_program(record(kernel, (ROWS, columns)), ["reuse"])
    products = [i for i in made.instructions if i.checked.spec.name == "tensor_tensor"]
    first = [i for i in products if i.args["data1"].storage is i.args["data2"].storage
             and i.args["op"] is nl.multiply]  # fmt: skip
    assert len(first) == times


@pytest.mark.parametrize("trips, merged", [(2, True), (128, True), (129, False), (1, False)])
def test_a_loop_over_short_rows_is_one_pass_if_they_fit_into_a_bank(trips, merged) -> None:
    taps = 4

    def kernel(x, weights):
        data, filters, sums = loaded(x), loaded(weights), tile(trips)
        for o in independent(trips):
            made = tile(taps)
            nisa.tensor_tensor(dst=made, data1=data[:, o : o + taps], data2=filters, op=nl.multiply)
            nisa.tensor_reduce(dst=sums[:, o : o + 1], data=made, op=nl.add, axis=1)
        nisa.tensor_copy(dst=tile(trips), src=sums)

    program = record(kernel, (ROWS, trips + taps), (ROWS, taps))
    made = compile_program(program, ["merge"])
    assert made.count("tensor_tensor") == made.count("tensor_reduce") == (1 if merged else trips)
    if merged:
        assert names(made)[2:] == ["tensor_tensor", "tensor_reduce", "tensor_copy"]
        product, total = made.instructions[2:4]
        assert product.args["data1"].shape == (ROWS, trips, taps)
        assert total.args["dst"].elements == trips
        cycles = [max(64, 2 * trips * taps), max(64, trips * taps)]
        assert [product.checked.cycles, total.checked.cycles] == cycles
        assert time_of(program, "merge").seconds < profile_of(program).seconds or trips < 3


@pytest.mark.parametrize(
    "buffer, trips, sums", [("psum", 258, 65), ("psum", 257, 65), ("sbuf", 258, 258)]
)
def test_four_sums_of_a_longer_loop_are_one_where_it_uses_psum(buffer, trips, sums) -> None:
    taps = 4

    def kernel(x, weights):
        data, totals = loaded(x), tile(trips)
        filters = nl.ndarray(weights.shape, dtype=nl.float32, buffer=getattr(nl, buffer))
        nisa.tensor_copy(dst=filters, src=loaded(weights))
        for o in independent(trips):
            made, total = tile(taps), tile(1)
            nisa.tensor_tensor(dst=made, data1=data[:, o : o + taps], data2=filters, op=nl.multiply)
            nisa.tensor_reduce(dst=total, data=made, op=nl.add, axis=1)
            nisa.tensor_scalar(dst=totals[:, o : o + 1], data=total, op0=nl.add, operand0=1.0)

    made = compile_program(record(kernel, (ROWS, trips + taps), (ROWS, taps)), ["merge"])
    assert made.count("tensor_tensor") == made.count("tensor_scalar") == trips
    assert made.count("tensor_reduce") == sums
    if sums < trips:
        body = made.instructions[3:12]
        expected = ["tensor_tensor"] * 4 + ["tensor_reduce"] + ["tensor_scalar"] * 4
        assert names(made)[3:12] == expected
        total = body[4]
        assert total.args["data"].shape == (ROWS, 4, taps) and total.args["dst"].elements == 4
        for place, (product, more) in enumerate(zip(body[:4], body[5:], strict=True)):
            assert product.args["dst"].storage is total.args["data"].storage
            assert product.args["dst"].offset == place * taps
            assert more.args["data"].storage is total.args["dst"].storage
            assert more.args["data"].offset == place


@pytest.mark.parametrize("carried", ["accumulated", "shifted", "uneven"])
def test_a_loop_whose_iterations_depend_on_each_other_stays(carried: str) -> None:
    def kernel(x):
        data, total = loaded(x), tile(16)
        for o in independent(4):
            at = {"accumulated": 0, "shifted": o + 1, "uneven": o * o}[carried]
            read = total[:, o : o + 1] if carried == "shifted" else data[:, o : o + 1]
            nisa.tensor_scalar(dst=total[:, at : at + 1], data=read, op0=nl.add, operand0=1.0)

    program = record(kernel, (ROWS, 16))
    assert compile_program(program, ["merge"]).count("tensor_scalar") == 4


@pytest.mark.parametrize("more", ["nothing", "read", "part", "between"])
def test_a_result_that_is_only_copied_is_written_where_its_copy_goes(more: str) -> None:
    def kernel(x):
        result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        data, made, place = loaded(x), tile(), tile()
        nisa.activation(dst=made, op=nl.exp, data=data)
        if more == "read":
            nisa.tensor_tensor(dst=tile(), data1=made, data2=data, op=nl.add)
        if more == "between":
            nisa.memset(dst=place, value=0.0)
        part = slice(1, None) if more == "part" else slice(None)
        nisa.tensor_copy(dst=place[:, part], src=made[:, part])
        nisa.dma_copy(dst=result, src=place)
        return result

    made = compile_program(record(kernel, (ROWS, WIDE)), ["fold"])
    assert ("tensor_copy" in names(made)) is (more != "nothing")
    if more == "nothing":
        assert names(made) == ["dma_copy", "activation", "dma_copy"]
        written, stored = made.instructions[1:]
        assert written.args["dst"].storage is stored.args["src"].storage


def test_copies_and_scales_go_to_the_scalar_engine_unless_an_engine_is_asked_for() -> None:
    def kernel(x):
        data = loaded(x)
        nisa.tensor_copy(dst=tile(), src=data)
        nisa.tensor_scalar(dst=tile(), data=data, op0=nl.multiply, operand0=2.0)
        nisa.tensor_scalar(dst=tile(), data=data, op0=nl.maximum, operand0=2.0)
        nisa.tensor_copy(dst=tile(), src=data, engine=nisa.engine.vector)
        nisa.tensor_tensor(dst=tile(), data1=data, data2=data, op=nl.add)

    made = compile_program(record(kernel, (ROWS, WIDE)), ["engines"])
    scalar = [i.engine is engine.scalar for i in made.instructions]
    assert scalar == [False, True, True, False, False, False]


def test_a_reciprocal_takes_fewer_cycles() -> None:
    def kernel(x):
        nisa.reciprocal(dst=tile(), data=loaded(x))

    program = record(kernel, (ROWS, WIDE))
    made = compile_program(program, ["elementwise"])
    assert made.instructions[-1].checked.cycles == table()["compiled_reciprocal"]["value"] * WIDE
    assert program.instructions[-1].checked.cycles == 8 * WIDE, "the program stays as it is"


def test_what_does_not_fit_is_saved_and_brought_back() -> None:
    columns = 4096
    with pytest.raises(NkiValidationError, match="its live tiles take"):
        profile(nki.jit(crowded), target="trn1")(nki.Shape((ROWS, columns), "float32"))
    program = record(crowded, (ROWS, columns))
    limit = usable_bytes(program.target, nl.sbuf)
    made = compile_program(program, ["spill"])
    assert levels(program).max() > limit >= levels(made).max()
    both = spilled_bytes(made)
    result = time_of(program, "spill")
    assert both > 0 and both % (2 * ROWS * columns * 4) == 0, "whole tiles, out and in"
    assert result.hbm_read == both / 2
    assert result.hbm_written == profile_of(program).hbm_written + both / 2


def test_a_kernel_that_fits_is_not_spilled() -> None:
    program = record(repeated, (ROWS, WIDE))
    made = compile_program(program, ["spill"])
    assert len(made.instructions) == len(program.instructions) and spilled_bytes(made) == 0


def test_both_estimates_are_shown() -> None:
    shape = nki.Shape((ROWS, WIDE), "float32")
    result = profile(nki.jit(repeated), target="trn1", as_compiled=True)(shape)
    plain = profile(nki.jit(repeated), target="trn1")(shape)
    assert plain.as_written is plain and result.as_compiled is result
    assert plain.as_compiled.seconds == result.seconds
    assert result.as_written is not None and result.as_written.seconds == plain.seconds
    assert "as written" in repr(result) and "by merge, fold, broadcast, reuse" in repr(result)
    assert "as written" not in repr(plain)
    some = profile(nki.jit(repeated), target="trn1", as_compiled={"spill", "engines", "hoist"})
    assert some(shape).rules == ("hoist", "engines", "spill")
    many = profile(nki.jit(crowded), target="trn1", as_compiled=["spill"])
    assert "does not fit into SBUF" in repr(many(nki.Shape((ROWS, 4096), "float32")))


@settings(max_examples=15)
@given(
    loads=st.lists(st.integers(0, 3), min_size=1, max_size=12),
    columns=st.sampled_from([128, 4096, 16384]),
)
def test_more_is_read_only_where_something_is_spilled(loads: list[int], columns: int) -> None:
    def kernel(x):
        result = nl.ndarray((ROWS, columns), dtype=x.dtype, buffer=nl.shared_hbm)
        total = tile(columns)
        nisa.memset(dst=total, value=0.0)
        for part in loads:
            data = loaded(x[part])
            square = tile(columns)
            nisa.tensor_tensor(dst=square, data1=data, data2=data, op=nl.multiply)
            nisa.tensor_tensor(dst=total, data1=total, data2=square, op=nl.add)
        nisa.dma_copy(dst=result, src=total)
        return result

    program = record(kernel, (4, ROWS, columns))
    fits = levels(program).max() <= usable_bytes(program.target, nl.sbuf)
    result = profile_of(program, as_compiled=True)
    if fits:
        assert spilled_bytes(result.program) == 0
        assert result.hbm_read <= profile_of(program).hbm_read
    assert levels(result.program).max() <= max(usable_bytes(program.target, nl.sbuf), 0)
    assert time_of(program).seconds == profile_of(program).seconds
