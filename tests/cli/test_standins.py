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

from utils.cli import elf, standins

SITE = Path(distribution("torch").locate_file(""))
NAMES = st.text(string.ascii_letters + string.digits + "_.", min_size=1, max_size=40)
SYMBOLS = st.dictionaries(NAMES, st.one_of(st.just(""), NAMES), max_size=60)


def load(path, content):
    path.write_bytes(content)
    return ctypes.CDLL(str(path), mode=ctypes.RTLD_LOCAL)


def versioned(library, name, version):
    """dlvsym: the address of a symbol in that very version, or None."""
    find = ctypes.CDLL(None).dlvsym
    find.restype, find.argtypes = (
        ctypes.c_void_p,
        [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p],
    )
    return find(library._handle, name.encode(), version.encode())


@settings(max_examples=60, deadline=None)
@given(symbols=SYMBOLS, number=st.integers(0, 10**12))
def test_every_symbol_is_found_in_its_version_and_answers_1(tmp_path_factory, symbols, number):
    soname = f"libx{number}.so.1"
    path = tmp_path_factory.mktemp("elf") / soname
    library = load(path, elf.shared_object(soname, symbols))
    for name, version in symbols.items():
        assert library[name]() == 1
        if version:
            assert versioned(library, name, version)
            assert not versioned(library, name, version + "x")
    assert not hasattr(library, "absent!")


def test_a_version_may_be_named_like_the_library(tmp_path):
    """As NVIDIA's are: the definition of the library itself is then followed by one of the same
    name."""
    symbols = {"one": "libx.so.12", "two": "libx.so.12", "three": "V2"}
    library = load(tmp_path / "libx.so.12", elf.shared_object("libx.so.12", symbols))
    assert all(versioned(library, name, version) for name, version in symbols.items())


def test_the_same_input_gives_the_same_bytes():
    symbols = {"b": "V1", "a": ""}
    content = elf.shared_object("libx.so.1", symbols)
    assert content == elf.shared_object("libx.so.1", dict(reversed(symbols.items())))
    assert len(content) < 8192


def test_what_torch_asks_is_read_as_the_linker_would():
    asked = list(elf.asks(SITE / "torch" / "lib" / "libtorch_cuda.so"))
    by_library = {soname: {a.symbol for a in asked if a.soname == soname} for soname in SONAMES}
    assert {"cublasSgemm_v2", "cublasCreate_v2"} <= by_library["libcublas.so.12"]
    assert "cudnnCreate" in by_library["libcudnn.so.9"]
    assert elf.Ask("ncclCommInitRank", "", "") in asked
    assert not [a for a in asked if a.soname == "libc.so.6" and not a.version]


SONAMES = [library.soname for library in standins.LIBRARIES]


@pytest.fixture(scope="module")
def slim_site(tmp_path_factory):
    """A site-packages with the libraries of torch that are read, and no GPU library."""
    site = tmp_path_factory.mktemp("site")
    (site / "torch" / "lib").mkdir(parents=True)
    for name in standins.READERS:
        (site / "torch" / "lib" / name).symlink_to(SITE / "torch" / "lib" / name)
    return site


def test_the_nine_libraries_define_all_that_torch_asks_of_them(slim_site):
    files = standins.cuda(slim_site)
    assert [Path(path).name for path in files] == SONAMES and len(files) == 9
    assert max(map(len, files.values())) < 16_384
    standins.write(slim_site, files)
    asked = [a for name in standins.READERS for a in elf.asks(SITE / "torch" / "lib" / name)]
    checked = 0
    for library in standins.LIBRARIES:
        loaded = ctypes.CDLL(str(slim_site / library.path), mode=ctypes.RTLD_LOCAL)
        for ask in asked:
            if ask.soname == library.soname:
                assert versioned(loaded, ask.symbol, ask.version), ask
                checked += 1
            elif library.prefix and not ask.soname and ask.symbol.startswith(library.prefix):
                assert hasattr(loaded, ask.symbol), ask
                checked += 1
    assert checked > 200
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
    code = f"import sys; sys.path.insert(0, {str(Path(__file__).parents[1])!r}); "
    names = "install standins elf builds platforms commands.clean commands.lock commands.setup"
    code += "import " + ", ".join(
        f"utils.cli.{name}" for name in [*names.split(), "commands.torch"]
    )
    subprocess.run([sys.executable, "-I", "-S", "-c", code], check=True)
