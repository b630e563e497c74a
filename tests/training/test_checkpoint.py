"""One checkpoint is whole or not there, and a folder of them always has a good one."""

import errno
import io
import os
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from utils.training import checkpoint
from utils.training.checkpoint import files, folder, kills
from utils.xla import fresh

CONTENT = bytes(range(40))
quick = settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])


def state(number: int) -> dict[str, object]:
    return {"weights": torch.full((50,), float(number)), "step": number}


def names(run: Path) -> set[str]:
    return {path.name for path in run.iterdir()} - {folder.LOCK}


def test_what_is_written_is_read(tmp_path: Path) -> None:
    for content in (b"", b"\n", CONTENT, os.urandom(3 * files.CHUNK_BYTES + 1)):
        files.write(tmp_path / "x", content)
        assert files.read(tmp_path / "x") == content
    assert names(tmp_path) == {"x"}


def test_a_file_cut_at_any_length_is_torn(tmp_path: Path) -> None:
    path = tmp_path / "x"
    files.write(path, CONTENT)
    stored = path.read_bytes()
    for length in range(len(stored)):
        path.write_bytes(stored[:length])
        with pytest.raises(files.Torn, match="x (is|ends|holds).*: load an earlier checkpoint"):
            files.read(path)


def test_every_flipped_bit_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "x"
    files.write(path, CONTENT)
    stored = path.read_bytes()
    for place in range(len(stored)):
        for bit in range(8):
            flipped = bytearray(stored)
            flipped[place] ^= 1 << bit
            path.write_bytes(flipped)
            with pytest.raises(files.CheckpointError):
                files.read(path)


@quick
@given(result=st.binary(max_size=200))
def test_nothing_else_is_taken_for_a_checkpoint(tmp_path: Path, result: bytes) -> None:
    (tmp_path / "x").write_bytes(result)
    with pytest.raises(files.CheckpointError):
        files.read(tmp_path / "x")


@quick
@given(content=st.binary(max_size=300), more=st.binary(min_size=1, max_size=20))
def test_what_is_appended_is_noticed(tmp_path: Path, content: bytes, more: bytes) -> None:
    files.write(tmp_path / "x", content)
    with open(tmp_path / "x", "ab") as file:
        file.write(more)
    with pytest.raises(files.Damaged):
        files.read(tmp_path / "x")


@pytest.mark.parametrize(
    ("stored", "says"),
    [
        (b"", "is empty"),
        (b"[" * 100_000 + b"\n", "has no first line of a checkpoint"),
        (b'{"format": "other", "bytes": 0, "sha256": ""}\n', "has format 'other'"),
    ],
)
def test_the_error_says_what_was_found(tmp_path: Path, stored: bytes, says: str) -> None:
    (tmp_path / "x").write_bytes(stored)
    with pytest.raises(files.CheckpointError, match=says):
        files.read(tmp_path / "x")


def test_the_calls_come_in_the_order_that_is_safe(tmp_path, monkeypatch) -> None:
    calls = []

    def noted(name):
        real = getattr(os, name)

        def call(*arguments):
            calls.append(name)
            return real(*arguments)

        monkeypatch.setattr(os, name, call)

    for name in ("write", "fsync", "replace", "unlink"):
        noted(name)
    for step in (1, 2):
        folder.write(tmp_path, step, CONTENT, keep=1)
    # The old one goes last, when the new one and its name are on the disk.
    assert calls == ["write", "fsync", "replace", "fsync"] * 2 + ["unlink"]


def saved_until_full(run: Path, limit_bytes: int) -> tuple[str, list[int]]:
    for step in (1, 2):
        folder.write(run, step, CONTENT)
    kills.full_at_byte(limit_bytes)
    try:
        folder.write(run, 3, os.urandom(5000))
    except files.NotSaved as error:
        return str(error), folder.steps(run)
    return "saved", folder.steps(run)


@pytest.mark.parametrize("limit_bytes", [0, 1, 4999])
def test_a_kernel_that_refuses_to_write_leaves_the_last_good_one(tmp_path, limit_bytes) -> None:
    text, steps = fresh.run(saved_until_full, tmp_path, limit_bytes)
    assert "no room for 5,000 bytes of step-00000003.ckpt (File too large)" in text
    assert "older checkpoints are untouched: free some space" in text
    assert (steps, len(names(tmp_path))) == ([1, 2], 2)
    assert files.read(folder.path_of(tmp_path, 2)) == CONTENT


def test_a_disk_that_is_full_at_the_first_byte(tmp_path, monkeypatch) -> None:
    folder.write(tmp_path, 1, CONTENT)
    real = os.open

    def full(path, flags, *mode):
        # Linux's own full disk: every write to it fails with ENOSPC.
        return real("/dev/full", os.O_WRONLY) if str(path).endswith("part") else real(path, flags)

    monkeypatch.setattr(os, "open", full)
    with pytest.raises(files.NotSaved, match="No space left on device") as caught:
        folder.write(tmp_path, 2, CONTENT)
    assert caught.value.errno == errno.ENOSPC
    assert names(tmp_path) == {"step-00000001.ckpt"}


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_disk_that_says_so_only_when_it_is_forced(tmp_path, monkeypatch, number) -> None:
    folder.write(tmp_path, 1, CONTENT)

    def fsync(descriptor):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(files.NotSaved):
        folder.write(tmp_path, 2, CONTENT)
    assert names(tmp_path) == {"step-00000001.ckpt"}


def test_another_error_of_the_disk_comes_as_it_is(tmp_path, monkeypatch) -> None:
    def fsync(descriptor):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(OSError) as caught:
        folder.write(tmp_path, 2, CONTENT)
    assert (type(caught.value), caught.value.errno) == (OSError, errno.EIO)
    assert names(tmp_path) == set()


def test_the_newest_stay(tmp_path: Path) -> None:
    for step in (1, 3, 20, 100_000_000):
        checkpoint.save(tmp_path, step, state(step), keep=2)
    assert checkpoint.steps(tmp_path) == [20, 100_000_000]
    assert checkpoint.latest(tmp_path).step == 100_000_000
    checkpoint.save(tmp_path, 7, state(7), keep=1)
    # What was just saved stays, and so do later ones, which somebody went back behind.
    assert checkpoint.steps(tmp_path) == [7, 20, 100_000_000]


def test_a_folder_that_never_held_one_is_a_fresh_start(tmp_path: Path) -> None:
    assert checkpoint.latest(tmp_path / "none") is None
    assert checkpoint.latest(tmp_path) is None


def test_a_file_is_no_folder_and_no_fresh_start(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"")
    for call in (checkpoint.latest, lambda run: checkpoint.save(run, 1, {})):
        for run, says in ((path, "x is a file"), (path / "y", "y lies below a file")):
            with pytest.raises(NotADirectoryError, match=f"{says}: give a folder"):
                call(run)


def test_a_folder_that_may_not_be_written_is_named(tmp_path, monkeypatch) -> None:
    def refused(*_, **__):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(Path, "mkdir", refused)  # root may write to any folder
    with pytest.raises(checkpoint.NotSaved, match="run may not be written .Read-only.*: allow"):
        checkpoint.save(tmp_path / "run", 1, {})


def test_other_names_are_no_checkpoints(tmp_path: Path) -> None:
    for name in ("step-0000000003.ckpt", "step-3.ckpt", "step-00000003.ckpt.bad", "latest"):
        (tmp_path / name).write_bytes(b"")
    assert checkpoint.latest(tmp_path) is None


@pytest.mark.parametrize("spoil", ["torn", "flipped"])
def test_the_newest_good_one_is_found_and_the_others_are_named(tmp_path, spoil) -> None:
    for step in (1, 2, 3):
        path = checkpoint.save(tmp_path, step, state(step))
        if step > 1:
            stored = bytearray(path.read_bytes())
            stored[-100] ^= 4
            path.write_bytes(stored[:-1] if spoil == "torn" else stored)
    result = checkpoint.latest(tmp_path)
    assert result.step == 1 and torch.equal(result.state["weights"], state(1)["weights"])
    kind = {"torn": checkpoint.Torn, "flipped": checkpoint.Damaged}[spoil]
    assert [(type(e), e.path.name) for e in result.refused] == [
        (kind, "step-00000003.ckpt"),
        (kind, "step-00000002.ckpt"),
    ]
    aside = checkpoint.set_aside(result.refused)
    assert [path.name for path in aside] == ["step-00000003.ckpt.bad", "step-00000002.ckpt.bad"]
    assert checkpoint.steps(tmp_path) == [1] and checkpoint.latest(tmp_path).refused == ()


def test_no_good_one_is_an_error_and_not_a_fresh_start(tmp_path: Path) -> None:
    for step in (1, 2):
        checkpoint.save(tmp_path, step, state(step)).write_bytes(b"")
    with pytest.raises(checkpoint.NoneGood, match="2 checkpoints and none is good .*is empty"):
        checkpoint.latest(tmp_path)


def test_torch_alone_does_not_notice_a_flipped_bit(tmp_path: Path) -> None:
    content = bytearray(folder.encode({"weights": torch.zeros(1000)}))
    place = content.index(bytes(500))
    content[place + 42] ^= 64
    loaded = torch.load(io.BytesIO(content), weights_only=True)
    assert loaded["weights"].count_nonzero() == 1


def test_what_could_not_be_read_again_is_not_saved(tmp_path: Path) -> None:
    for bad, says in (
        ({"x": np.zeros(2)}, r"state\['x'\] is a ndarray"),
        ([1, {2: np.float64(3)}], r"state\[1\]\[2\] is a float64"),
        ({Path("x"): 1}, "a key of state is a PosixPath"),
    ):
        with pytest.raises(TypeError, match=says):
            checkpoint.save(tmp_path, 1, bad)
    assert not checkpoint.steps(tmp_path)


class Harmful:
    def __reduce__(self):
        return os.system, ("true",)


def test_a_checkpoint_brings_no_code_along(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    torch.save({"x": Harmful()}, buffer)
    path = folder.write(tmp_path, 1, buffer.getvalue())
    with pytest.raises(checkpoint.Damaged, match="is whole, but torch cannot read it"):
        checkpoint.load(path)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda run: checkpoint.save(run, -1, {}), "step is -1"),
        (lambda run: checkpoint.save(run, 1.0, {}), "step is 1.0"),
        (lambda run: checkpoint.save(run, 1, {}, keep=0), "keep is 0: at least 1"),
        (lambda run: checkpoint.set_random_states({"jax": 1}), "known are python, numpy"),
        (lambda run: checkpoint.Kill("lunch", 1), "the moment is one of step, write"),
        (lambda run: checkpoint.Kill("step", "1"), "the count from 1"),
        (lambda run: checkpoint.Plan(every=0), "steps, every, keep and batch from 1"),
        (lambda run: checkpoint.Plan(batch=11), "batch up to texts"),
    ],
)
def test_impossible_wishes_are_refused(tmp_path, call, says) -> None:
    with pytest.raises(ValueError, match=says):
        call(tmp_path)


def saves(run: Path, number: int) -> None:
    for step in range(20):
        folder.write(run, step, bytes([number]) * 3000, keep=3)


def test_savers_at_the_same_time_write_whole_files(tmp_path: Path) -> None:
    (tmp_path / ".step-00000002.ckpt.1.part").write_bytes(b"left by a dead one")
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda number: fresh.run(saves, tmp_path, number), range(4)))
    left = checkpoint.steps(tmp_path)
    assert left[-1] == 19 and names(tmp_path) == {f"step-{step:08d}.ckpt" for step in left}
    for step in left:
        content = files.read(folder.path_of(tmp_path, step))
        assert content == content[:1] * 3000


def draws() -> list[object]:
    return [random.gauss(), random.random(), np.random.normal(), np.random.random(),
            torch.rand(2).tolist()]  # fmt: skip


def test_random_states_of_the_host_survive_a_file(tmp_path: Path) -> None:
    # Both gauss draws leave one number in store, which is a part of the state.
    random.gauss(), np.random.normal(), torch.rand(1)
    path = checkpoint.save(tmp_path, 1, checkpoint.random_states())
    first = draws()
    draws()
    checkpoint.set_random_states(checkpoint.load(path))
    assert draws() == first


def drawn_on_the_device(extra_sync: bool) -> bool:
    import torch
    import torch_xla

    def noise():
        drawn = torch.rand(8, device=torch_xla.device())
        torch_xla.sync()
        return drawn.cpu()

    noise()
    kept = checkpoint.random_states()
    first = noise()
    checkpoint.set_random_states(kept)
    if extra_sync:
        torch_xla.sync()
    return torch.equal(noise(), first)


def test_the_state_of_the_device_is_set_after_the_last_sync() -> None:
    assert fresh.run(drawn_on_the_device, False)
    assert not fresh.run(drawn_on_the_device, True)


def test_the_background_saves_what_was_there_when_it_was_asked(tmp_path, monkeypatch) -> None:
    trained, real, log = threading.Event(), folder.write, []

    def slow(run, step, content, keep):
        log.append(f"begin {step}")
        assert trained.wait(20)
        log.append(f"end {step}")
        return real(run, step, content, keep)

    monkeypatch.setattr(folder, "write", slow)
    weights = torch.zeros(3)
    with checkpoint.Background(tmp_path) as saver:
        saver.save(1, {"weights": weights})
        weights += 1  # training goes on in place
        log.append("trained")
        trained.set()
        saver.save(2, {"weights": weights})
    assert log.index("trained") < log.index("end 1") < log.index("begin 2"), log
    loaded = [checkpoint.load(checkpoint.path_of(tmp_path, step))["weights"] for step in (1, 2)]
    assert [item.tolist() for item in loaded] == [[0.0] * 3, [1.0] * 3]


def test_a_copy_on_the_host_is_not_changed_by_training() -> None:
    weights = torch.zeros(2)
    kept = checkpoint.on_host({"weights": weights, "more": [(weights,)]})
    weights += 1
    assert [kept["weights"].tolist(), kept["more"][0][0].tolist()] == [[0.0, 0.0]] * 2


@pytest.mark.parametrize("surfaces", ["save", "wait", "exit"])
def test_an_error_in_the_background_comes_to_light_once(tmp_path, monkeypatch, surfaces) -> None:
    def full(run, step, content, keep):
        raise files.NotSaved(errno.ENOSPC, "no room")

    saver = checkpoint.Background(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(folder, "write", full)
        saver.save(1, {})
        saver._thread.join()
    with pytest.raises(files.NotSaved):
        if surfaces == "exit":
            with saver:
                pass
        else:
            {"save": lambda: saver.save(2, {}), "wait": saver.wait}[surfaces]()
    assert checkpoint.steps(tmp_path) == []
    saver.save(3, {})
    saver.wait()
    assert checkpoint.steps(tmp_path) == [3]


def test_the_error_of_the_block_is_the_one_that_is_seen(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), checkpoint.Background(tmp_path) as saver:
        saver.save(1, {})
        1 / 0  # noqa: B018
    assert checkpoint.steps(tmp_path) == [1]
