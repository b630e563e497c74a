"""Collectives and memory of compiled programs: of written texts, and of what is compiled here."""

import os
from multiprocessing import util
from pathlib import Path

import pytest

from utils.xla import fresh, spmd

HEADER = "HloModule m, is_scheduled=true, num_partitions=8\n\n"


def entry(*lines: str, before: str = "") -> str:
    body = "\n".join(f"  {line}" for line in lines)
    return f"{HEADER}{before}ENTRY %main (p: f32[4,8]) -> f32[4,8] {{\n{body}\n}}\n"


def one(*lines: str, before: str = "") -> spmd.Collective:
    (result,) = spmd.collectives(entry(*lines, before=before))
    return result


P = "%p = f32[4,8]{1,0} parameter(0)"


def test_an_all_reduce_has_the_bytes_of_its_result():
    result = one(
        P,
        "ROOT %r = f32[4,8]{1,0} all-reduce(%p), replica_groups={{0,1},{2,3}}, to_apply=%a",
        before="%a (x: f32[], y: f32[]) -> f32[] {\n  ROOT %x = f32[] parameter(0)\n}\n",
    )
    assert (result.kind, result.bytes, result.operand_bytes) == ("all-reduce", 128, 128)
    assert result.groups == ((0, 1), (2, 3)) and result.shapes == ((4, 8),)


@pytest.mark.parametrize(
    ("result", "kind", "operand", "size"),
    [
        ("f32[16,8]", "all-gather", 128, 512),
        ("f32[1,8]", "reduce-scatter", 128, 32),
        ("bf16[4,8]", "all-to-all", 128, 64),
        ("pred[4,8]", "collective-broadcast", 128, 32),
        ("s4[4,8]", "ragged-all-to-all", 128, 16),
    ],
)  # fmt: skip
def test_operand_and_result_are_told_apart(result, kind, operand, size):
    match_ = one(P, f"ROOT %r = {result}{{1,0}} {kind}(%p), replica_groups={{{{0,1,2,3}}}}")
    assert (match_.kind, match_.operand_bytes, match_.bytes) == (kind, operand, size)


def test_a_tuple_carries_several_arrays_in_one_collective():
    result = one(
        P,
        "%q = bf16[3]{0} parameter(1)",
        "ROOT %r = (f32[4,8]{1,0}, bf16[3]{0}) all-reduce(%p, %q), replica_groups={{0,1}}",
    )
    assert result.bytes == result.operand_bytes == 128 + 6 and result.shapes == ((4, 8), (3,))


@pytest.mark.parametrize(
    ("kind", "type_", "size"),
    [
        ("all-reduce", "f32[4,8]{1,0}", 128),
        ("all-gather", "(f32[4,8]{1,0}, f32[16,8]{1,0})", 512),
        ("collective-permute", "(f32[4,8]{1,0}, f32[4,8]{1,0}, u32[], u32[])", 128),
    ],
)
def test_a_start_and_its_done_are_one_collective(kind, type_, size):
    result = type_.strip("()").split("}, ")[-1].split(", u32")[0] if "," in type_ else type_
    match_ = one(
        P,
        f"%s = {type_} {kind}-start(%p), replica_groups={{{{0,1,2,3}}}}",
        f"ROOT %d = {result} {kind}-done(%s)",
    )
    assert (match_.kind, match_.bytes, match_.operand_bytes) == (kind, size, 128)


def test_a_start_of_several_arrays_counts_what_comes_out():
    result = one(
        P,
        "%q = f32[2]{0} parameter(1)",
        "%s = ((f32[4,8]{1,0}, f32[2]{0}), (f32[16,8]{1,0}, f32[8]{0})) all-gather-start(%p, %q),"
        " replica_groups=[2,4]<=[8], dimensions={0}",
        "ROOT %d = (f32[16,8]{1,0}, f32[8]{0}) all-gather-done(%s)",
    )
    assert result.bytes == 512 + 32 and result.operand_bytes == 128 + 8
    assert result.groups == ((0, 1, 2, 3), (4, 5, 6, 7))


def test_a_collective_in_an_asynchronous_call_counts_once():
    wrapped = (
        "%wrapped (q: f32[4,8]) -> f32[1,8] {\n"
        "  %q = f32[4,8]{1,0} parameter(0)\n"
        "  ROOT %r = f32[1,8]{1,0} reduce-scatter(%q), replica_groups=[2,4]<=[4,2]T(1,0),"
        " dimensions={0}\n}\n"
    )
    result = one(
        P,
        "%s = ((f32[4,8]{1,0}), f32[1,8]{1,0}, u32[]) async-start(%p), calls=%wrapped",
        "%u = ((f32[4,8]{1,0}), f32[1,8]{1,0}, u32[]) async-update(%s), calls=%wrapped",
        "ROOT %d = f32[1,8]{1,0} async-done(%u), calls=%wrapped",
        before=wrapped,
    )
    assert (result.kind, result.bytes, result.times) == ("reduce-scatter", 32, 1)
    assert result.groups == ((0, 2, 4, 6), (1, 3, 5, 7))


def test_the_body_of_a_loop_counts_as_often_as_the_text_says():
    body = (
        "%body (q: f32[4,8]) -> f32[4,8] {\n"
        "  %q = f32[4,8]{1,0} parameter(0)\n"
        "  ROOT %r = f32[4,8]{1,0} collective-permute(%q), source_target_pairs={{0,1},{1,0}}\n}\n"
    )
    loop = "ROOT %w = f32[4,8]{1,0} while(%p), condition=%c, body=%body"
    known = loop + ', backend_config={"known_trip_count":{"n":"3"}}'
    before = body + "%c (q: f32[4,8]) -> pred[] {\n  ROOT %t = pred[] constant(true)\n}\n"
    thrice = one(P, known, before=before)
    assert (thrice.times, thrice.groups) == (3, ((0, 1), (1, 0)))
    assert spmd.totals([thrice]) == {"collective-permute": (3, 384)}
    assert one(P, loop, before=before).times == 1


def test_no_named_group_is_one_group_of_all():
    assert one(P, "ROOT %r = f32[4,8]{1,0} all-reduce(%p), replica_groups={}").groups == (
        tuple(range(8)),
    )


@pytest.mark.parametrize(
    ("written", "groups"),
    [
        ("[2,4]<=[8]", ((0, 1, 2, 3), (4, 5, 6, 7))),
        ("[4,2]<=[2,4]T(1,0)", ((0, 4), (1, 5), (2, 6), (3, 7))),
        ("mesh['x'=2,'y'=4] {'y'}", ((0, 1, 2, 3), (4, 5, 6, 7))),
        ("mesh['x'=2,'y'=4] {'x'}", ((0, 4), (1, 5), (2, 6), (3, 7))),
        ("mesh['x'=2,'y'=2,'z'=2] {'x','z'}", ((0, 1, 4, 5), (2, 3, 6, 7))),
    ],
)
def test_groups_are_read_in_every_form(written, groups):
    line = f"ROOT %r = f32[4,8]{{1,0}} all-reduce(%p), channel_id=1, replica_groups={written}, x=1"
    assert one(P, line).groups == groups


def test_groups_in_an_unknown_form_are_an_error_and_not_a_guess():
    with pytest.raises(ValueError, match="unknown"):
        one(P, "ROOT %r = f32[4,8]{1,0} all-reduce(%p), replica_groups=@mesh{'x'}")


def test_a_start_that_wraps_its_operands_in_a_tuple_and_an_update():
    result = one(
        P,
        "%s = ((f32[4,8]{1,0}), f32[2,8]{1,0}) reduce-scatter-start(f32[4,8]{1,0} %p),"
        ' replica_groups={{0,1}}, dimensions={0}, backend_config={"is_sync":true}',
        "%u = ((f32[4,8]{1,0}), f32[2,8]{1,0}) reduce-scatter-update(%s)",
        "ROOT %d = f32[2,8]{1,0} reduce-scatter-done(%u)",
    )
    assert (result.kind, result.operand_bytes, result.bytes) == ("reduce-scatter", 128, 64)


def test_a_text_that_is_no_hlo_says_so():
    with pytest.raises(ValueError, match="no HLO text"):
        spmd.collectives("module @m {}")


def test_totals_add_up_by_kind():
    text = entry(
        P,
        "%r = f32[4,8]{1,0} all-reduce(%p), replica_groups={{0,1,2,3}}",
        "%g = f32[16,8]{1,0} all-gather(%r), replica_groups={{0,1,2,3}}, dimensions={0}",
        "ROOT %s = f32[] all-reduce(%r), replica_groups={{0,1,2,3}}",
    )
    assert spmd.totals(spmd.collectives(text)) == {"all-reduce": (2, 132), "all-gather": (1, 512)}


REPORT = """BufferAssignment:
allocation 0: size 256, parameter 0, shape |f32[16,4]| at ShapeIndex {}, maybe-live-out:
 value: <7 param.1 @0> (size=256,offset=0): f32[16,4]{1,0}
allocation 1: size 128, parameter 1, shape |f32[2,16]| at ShapeIndex {}:
allocation 2: size 16, output shape is |(f32[], f32[16,4])|, maybe-live-out:
allocation 3: size 4, maybe-live-out:
allocation 4: size 4, constant:
allocation 5: size 4, thread-local:
allocation 11: size 68, preallocated-temp:

Total bytes used: 480 (480B)
"""


def test_memory_is_read_by_its_parts_and_they_add_up():
    result = spmd.memory(REPORT)
    assert result == spmd.Memory(384, 256, 4, 68, 24) and result.peak_bytes == 480


def test_memory_that_does_not_add_up_is_an_error():
    with pytest.raises(ValueError, match="add up to 480"):
        spmd.memory(REPORT.replace("used: 480", "used: 481"))
    with pytest.raises(ValueError, match="no buffer assignment"):
        spmd.memory("")


# What is compiled here. Functions that run in a process of their own import there.


def product(rows: int = 8) -> dict:
    import numpy
    import torch
    import torch_xla
    import torch_xla.distributed.spmd as xs

    mesh = xs.Mesh(numpy.arange(4), (4,), ("data",))
    x = torch.ones(rows, 16).to(torch_xla.device())
    w = torch.ones(16, 4).to(torch_xla.device())
    xs.mark_sharding(x, mesh, ("data", None))
    seen = []
    for _ in range(2):
        with spmd.Compiled() as program:
            total = (x @ w).sum()
            torch_xla.sync()
        seen.append((program.collectives, program.memory, [m.name for m in program.modules]))
    folder = spmd.session._folder
    return {"total": total.item(), "seen": seen, "left": os.listdir(folder), "folder": folder}


def test_an_equal_graph_is_seen_again_and_the_folder_is_removed():
    result = spmd.run(product)
    (collectives, memory, names), again = result["seen"]
    assert (collectives, memory, names) == again
    assert result["total"] == 8 * 16 * 4 and len(names) == 1
    (reduce,) = collectives
    assert (reduce.kind, reduce.bytes, reduce.groups) == ("all-reduce", 4, ((0, 1, 2, 3),))
    assert memory.arguments_bytes == 16 * 4 * 4 + 2 * 16 * 4 and memory.outputs_bytes == 4
    assert result["left"] == [] and not Path(result["folder"]).exists()


def starts_twice() -> tuple:
    import torch_xla.runtime as xr

    numbers = spmd.start(2), spmd.start(2), xr.global_runtime_device_count()
    with pytest.raises(RuntimeError, match="has 2 devices and 4 are asked for"):
        spmd.start(4)
    util._run_finalizers()  # what the end of a process does
    return numbers, spmd.session._folder.exists()


def starts_too_late() -> None:
    import torch_xla

    torch_xla.device()
    spmd.start(4)


def compiles_nothing() -> None:
    with spmd.Compiled() as program:
        with pytest.raises(RuntimeError, match="nothing is collected yet"):
            program.collectives  # noqa: B018
    program.collectives  # noqa: B018


def test_starting_again_changes_nothing():
    assert fresh.run(starts_twice) == ((2, 2, 2), False)


def test_folders_of_killed_processes_are_removed_and_others_stay(tmp_path):
    names = [f"{spmd.session.PREFIX}{item}" for item in (f"{os.getpid()}-a", "2147483646-b", "x-c")]
    for name in names:
        (tmp_path / name).mkdir()
    spmd.session._sweep(tmp_path)
    assert sorted(item.name for item in tmp_path.iterdir()) == sorted([names[0], names[2]])


def test_starting_too_late_says_what_to_do():
    with pytest.raises(fresh.Raised, match="restart the kernel"):
        fresh.run(starts_too_late)


def test_a_block_without_a_program_says_what_is_missing():
    with pytest.raises(fresh.Raised, match=r"nothing was compiled in the block.*sync"):
        spmd.run(compiles_nothing, devices=2)
    with pytest.raises(fresh.Raised, match=r"spmd.start"):
        fresh.run(compiles_nothing)


def test_an_environment_needs_a_number_of_devices():
    for wrong in (0, -1, 65, "4", 2.5, None, True):
        with pytest.raises(ValueError, match=f"found {wrong!r} .* from 1 to 64"):
            spmd.environment(wrong)


def blocks_in_each_other() -> list[int]:
    import torch
    import torch_xla

    numbers = []
    with spmd.Compiled() as outer:
        with pytest.raises(RuntimeError, match="open already"), spmd.Compiled():
            pass
        kept = torch.ones(7).to(torch_xla.device()) + 1
        torch_xla.sync()
    numbers.append(len(outer.modules))
    with pytest.raises(ZeroDivisionError), spmd.Compiled() as left:
        kept = kept + 2
        torch_xla.sync()
        1 / 0  # noqa: B018
    numbers.append(len(left.modules))
    return numbers


def test_blocks_do_not_nest_and_an_exception_leaves_one_that_can_be_read():
    assert spmd.run(blocks_in_each_other, devices=1) == [1, 1]
