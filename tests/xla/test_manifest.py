"""The manifest of a cache folder: nothing that happens to a file escapes it."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from utils.xla import manifest
from utils.xla.manifest import Difference

FEW = settings(max_examples=30)  # each writes and reads files
CONTENTS = st.lists(st.binary(min_size=1, max_size=200), min_size=1, max_size=4)


@contextmanager
def cache_of(contents: list[bytes]) -> Iterator[Path]:
    """A folder with an entry for each content and a manifest; the second lies a level deeper."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "deep").mkdir()
        for number, content in enumerate(contents):
            (folder / ("deep/1" if number == 1 else str(number))).write_bytes(content)
        manifest.write(folder)
        yield folder


@FEW
@given(CONTENTS)
def test_an_untouched_folder_has_no_differences(contents: list[bytes]) -> None:
    with cache_of(contents) as folder:
        assert manifest.check(folder) == []
        assert manifest.usage(folder).entries == len(contents)
        assert manifest.usage(folder).size_bytes == sum(map(len, contents))


@FEW
@given(CONTENTS, st.data())
def test_any_flipped_bit_is_noticed(contents: list[bytes], data: st.DataObject) -> None:
    position = data.draw(st.integers(0, len(contents[0]) - 1))
    changed = bytearray(contents[0])
    changed[position] ^= data.draw(st.integers(1, 255))
    with cache_of(contents) as folder:
        (folder / "0").write_bytes(changed)
        assert manifest.check(folder) == [Difference("0", "changed")]


@FEW
@given(CONTENTS, st.data())
def test_any_other_length_is_noticed(contents: list[bytes], data: st.DataObject) -> None:
    left = data.draw(st.integers(0, len(contents[0]) - 1))
    with cache_of(contents) as folder:
        (folder / "0").write_bytes(contents[0][:left])
        assert manifest.check(folder) == [Difference("0", "size")]
        (folder / "0").write_bytes(contents[0] + b"\0")
        assert manifest.check(folder) == [Difference("0", "size")]


@FEW
@given(CONTENTS, st.sampled_from(["new", "deep/new", ".hidden"]))
def test_a_file_more_or_less_is_noticed(contents: list[bytes], name: str) -> None:
    with cache_of(contents) as folder:
        (folder / "0").unlink()
        (folder / name).write_bytes(b"")
        expected = {Difference("0", "missing"), Difference(name, "unknown")}
        assert set(manifest.check(folder)) == expected


def test_quarantine_takes_bad_entries_away_and_a_new_manifest_agrees() -> None:
    with cache_of([b"good", b"bad", b"gone"]) as folder:
        (folder / "deep/1").write_bytes(b"BAD")
        (folder / "2").unlink()
        moved = manifest.quarantine(folder, manifest.check(folder))
        assert [path.read_bytes() for path in moved] == [b"BAD"]
        assert not (folder / "deep/1").exists()
        assert [item.kind for item in manifest.check(folder)] == ["missing", "missing"]
        manifest.write(folder)
        assert manifest.check(folder) == []
        assert manifest.usage(folder).entries == 1


def test_an_interrupted_write_leaves_the_old_manifest(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*paths: Path) -> None:
        raise KeyboardInterrupt

    with cache_of([b"a"]) as folder:
        (folder / "b").write_bytes(b"b")
        monkeypatch.setattr(os, "replace", interrupted)
        with pytest.raises(KeyboardInterrupt):
            manifest.write(folder)
        assert manifest.check(folder) == [Difference("b", "unknown")]


def test_the_least_recently_used_goes_first(tmp_path: Path) -> None:
    for name, read, written in [("old", 1, 1), ("read", 9, 1), ("new", 5, 5)]:
        (tmp_path / name).write_bytes(b"12345")
        os.utime(tmp_path / name, (read, written))
    manifest.write(tmp_path)
    held = manifest.usage(tmp_path)
    assert (held.entries, held.size_bytes, held.oldest, held.newest) == (3, 15, 1.0, 9.0)
    assert manifest.prune(tmp_path, 15) == []
    assert manifest.prune(tmp_path, 14) == ["old"]
    assert manifest.prune(tmp_path, 1) == ["new", "read"]
    assert manifest.usage(tmp_path).entries == 0 and (tmp_path / manifest.NAME).exists()


@FEW
@given(CONTENTS, st.integers(0, 900))
def test_prune_keeps_within_the_bound_and_takes_no_more_than_needed(
    contents: list[bytes], most: int
) -> None:
    with cache_of(contents) as folder:
        sizes = {str(number): len(content) for number, content in enumerate(contents)}
        removed = [Path(name).name for name in manifest.prune(folder, most)]
        left = manifest.usage(folder).size_bytes
        assert left <= most
        assert not removed or left + sizes[removed[-1]] > most


def test_no_folder_no_manifest_and_no_json_are_said(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no folder"):
        manifest.write(tmp_path / "none")
    assert manifest.usage(tmp_path / "none") == manifest.Usage(0, 0, None, None)
    with pytest.raises(FileNotFoundError, match=r"manifest\.write"):
        manifest.check(tmp_path)
    for text in ["", "[]", '{"a": 1}', '{"a": {}}']:
        (tmp_path / manifest.NAME).write_text(text)
        with pytest.raises(ValueError, match="no manifest"):
            manifest.check(tmp_path)
    with pytest.raises(ValueError, match="never negative"):
        manifest.prune(tmp_path, -1)
