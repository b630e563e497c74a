"""Stand-ins: the linker takes them, they define exactly what is asked, and undo removes only
them."""

import ctypes
import string
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from utils.cli import standins

SITE = Path(distribution("torch").locate_file(""))
NAMES = st.text(string.ascii_letters + string.digits + "_.", min_size=1, max_size=40)


def load(path, content):
    path.write_bytes(content)
    return ctypes.CDLL(str(path), mode=ctypes.RTLD_LOCAL)


@settings(max_examples=60)
@given(symbols=st.sets(NAMES, max_size=60), number=st.integers(0, 10**12))
def test_every_symbol_is_found_and_answers_1(tmp_path_factory, symbols, number):
    path = tmp_path_factory.mktemp("elf") / f"libx{number}.so.1"
    library = load(path, standins.shared_object(symbols))
    assert all(library[name]() == 1 for name in symbols)
    assert not hasattr(library, "absent!")


def test_the_same_input_gives_the_same_bytes():
    content = standins.shared_object(["b", "a"])
    assert content == standins.shared_object(("a", "b"))
    assert len(content) < 8192


def test_what_torch_asks_is_read_as_the_linker_would():
    asked = standins.undefined_symbols(SITE / "torch" / "lib" / "libtorch_cuda.so")
    assert {"cublasSgemm_v2", "cublasCreate_v2", "cudnnCreate", "ncclCommInitRank"} <= asked
    own = standins.undefined_symbols(SITE / "torch" / "lib" / "libtorch_global_deps.so")
    assert not [name for name in own if standins.ASKED.match(name)]


PATHS = [*standins.EMPTY, standins.HOLDER]


@pytest.fixture(scope="module")
def slim_site(tmp_path_factory):
    """A site-packages with torch's libraries and those that slim keeps, and no GPU library."""
    site = tmp_path_factory.mktemp("site")
    (site / "torch" / "lib").mkdir(parents=True)
    for library in (SITE / "torch" / "lib").glob("*.so*"):
        (site / "torch" / "lib" / library.name).symlink_to(library)
    (site / "nvidia").mkdir()
    for kept in ("cuda_cupti", "cuda_runtime", "cufile"):
        (site / "nvidia" / kept).symlink_to(SITE / "nvidia" / kept)
    return site


def test_the_nine_libraries_are_all_that_torch_lacks(slim_site):
    """One of them holds all symbols, and the linker takes each from there although torch asks for
    most of them in the version of another: loading with RTLD_NOW resolves every one."""
    code = "import ctypes, os, sys; ctypes.CDLL(sys.argv[1], mode=os.RTLD_NOW)"
    command = [sys.executable, "-c", code, str(slim_site / "torch" / "lib" / "libtorch_python.so")]
    before = subprocess.run(command, capture_output=True, text=True)
    assert before.returncode and "cannot open shared object file" in before.stderr
    files = standins.cuda(slim_site)
    assert sorted(files) == sorted(PATHS) and len(files) == 9
    assert max(map(len, files.values())) < 32_768
    standins.write(slim_site, files)
    asked = {
        name
        for reader in standins.READERS
        for name in standins.undefined_symbols(SITE / "torch" / "lib" / reader)
        if standins.ASKED.match(name)
    }
    holder = ctypes.CDLL(str(slim_site / standins.HOLDER), mode=ctypes.RTLD_LOCAL)
    assert len(asked) > 200 and all(hasattr(holder, name) for name in asked)
    after = subprocess.run(command, capture_output=True, text=True)
    assert after.returncode == 0, after.stderr
    assert standins.cuda(slim_site) == {}


def test_an_existing_library_is_never_written(slim_site, tmp_path):
    site = tmp_path
    (site / "torch").symlink_to(slim_site / "torch")
    real = site / "nvidia/cublas/lib/libcublas.so.12"
    real.parent.mkdir(parents=True)
    real.write_bytes(b"real")
    files = standins.cuda(site)
    assert len(files) == 8 and "nvidia/cublas/lib/libcublas.so.12" not in files
    standins.write(site, files)
    assert real.read_bytes() == b"real"
    assert not list(site.rglob("*.part"))


def test_undo_removes_what_was_written_and_nothing_real(tmp_path):
    files = {
        "nvidia/a/lib/liba.so": b"1",
        "nvidia/b/lib/libb.so": b"2",
        "nvidia/c/lib/libc.so": b"3",
    }
    standins.write(tmp_path, files)
    (tmp_path / "nvidia/b/lib/libb.so").write_bytes(b"the real library")
    (tmp_path / "nvidia/c/lib/neighbour.so").write_bytes(b"another")
    standins.remove(tmp_path, standins.digests(files) | {"nvidia/gone/lib/libd.so": "0" * 64})
    left = sorted(p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*") if p.is_file())
    assert left == ["nvidia/b/lib/libb.so", "nvidia/c/lib/neighbour.so"]
    assert not (tmp_path / "nvidia/a").exists()


def test_libpython_is_empty_and_written_once(tmp_path):
    files = standins.libpython(tmp_path, "libpython3.99.so.1.0")
    assert list(files) == ["torch_xla/lib/libpython3.99.so.1.0"]
    standins.write(tmp_path, files)
    load(tmp_path / "copy.so", (tmp_path / "torch_xla/lib/libpython3.99.so.1.0").read_bytes())
    assert standins.libpython(tmp_path, "libpython3.99.so.1.0") == {}


def test_standard_library_only():
    """They run before anything is installed: with an isolated Python that sees no site-packages."""
    code = f"import sys; sys.path.insert(0, {str(Path(__file__).parents[2])!r}); "
    names = "install installers home standins builds platforms".split()
    names += [f"commands.{verb}" for verb in ("clean", "lock", "setup", "torch")]
    code += "import " + ", ".join(f"utils.cli.{name}" for name in names)
    subprocess.run([sys.executable, "-I", "-S", "-c", code], check=True)
