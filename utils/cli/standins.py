"""Small libraries that stand in for large ones which torch names and a CPU course never calls.

The torch on the package index is built for CUDA: its libtorch_cuda.so lists cuBLAS, cuDNN, NCCL
and others as needed, 3 GB in all, so the dynamic linker refuses to load torch without them. A
stand-in defines exactly the symbols that torch asks of such a library, at most a few KB, and each
answers 1, "not initialised". Standard library only: it runs before anything is installed. Linux
on x86-64 only.
"""

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from utils.cli.elf import Ask, asks, shared_object


@dataclass(frozen=True)
class Library:
    """A library to stand in for: its name for the linker, where torch's RPATH looks for it below
    site-packages, and the prefix of the symbols that torch takes from it without naming a
    version."""

    soname: str
    folder: str
    prefix: str = ""

    @property
    def path(self) -> str:
        return f"{self.folder}/{self.soname}"


LIBRARIES = (
    Library("libcublas.so.12", "nvidia/cublas/lib"),
    Library("libcublasLt.so.12", "nvidia/cublas/lib"),
    Library("libcudnn.so.9", "nvidia/cudnn/lib"),
    Library("libcufft.so.11", "nvidia/cufft/lib"),
    Library("libcurand.so.10", "nvidia/curand/lib", "curand"),
    Library("libcusparse.so.12", "nvidia/cusparse/lib"),
    Library("libcusparseLt.so.0", "nvidia/cusparselt/lib", "cusparseLt"),
    Library("libnccl.so.2", "nvidia/nccl/lib", "nccl"),
    Library("libnvshmem_host.so.3", "nvidia/nvshmem/lib", "nvshmem"),
)
READERS = ("libtorch_cuda.so", "libtorch_cpu.so", "libc10_cuda.so", "libtorch_python.so")
READERS += ("libtorch_nvshmem.so",)


def cuda(site: Path) -> dict[str, bytes]:
    """The stand-ins that torch in `site` (a site-packages folder) needs for every library of
    `LIBRARIES` that is not there: {path relative to `site`: content}."""
    missing = [library for library in LIBRARIES if not (site / library.path).exists()]
    if not missing:
        return {}
    # torch 2.7 of the cache lab has no libtorch_nvshmem.so.
    readers = [path for name in READERS if (path := site / "torch" / "lib" / name).exists()]
    asked = [ask for path in readers for ask in asks(path)]
    return {
        library.path: shared_object(library.soname, _symbols(library, asked)) for library in missing
    }


def libpython(site: Path, soname: str) -> dict[str, bytes]:
    """An empty libpython where torch_xla's RUNPATH looks for it, unless one is there; as `cuda`
    returns.

    torch_xla names libpython3.X.so.1.0, which Debian's python3 does not have; the interpreter
    itself carries its symbols, so that a library of that name with nothing in it is enough.
    """
    path = f"torch_xla/lib/{soname}"
    return {} if (site / path).exists() else {path: shared_object(soname, {})}


def digests(files: Mapping[str, bytes]) -> dict[str, str]:
    """{path: sha256}, by which `remove` knows a stand-in from a real library."""
    return {path: hashlib.sha256(content).hexdigest() for path, content in files.items()}


def write(site: Path, files: Mapping[str, bytes]) -> None:
    """Write each file whole or not at all, so that an interruption leaves no half library."""
    for relative, content in files.items():
        path = site / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        half = path.with_name(path.name + ".part")
        half.write_bytes(content)
        os.replace(half, path)


def remove(site: Path, written: Mapping[str, str]) -> None:
    """Remove those files of `written`, {path: sha256}, that still are what was written, and the
    folders that this leaves empty. A real library installed over a stand-in has another sha256
    and stays."""
    for relative, digest in written.items():
        path = site / relative
        if path.is_file() and digests({relative: path.read_bytes()})[relative] == digest:
            path.unlink()
            for folder in list(Path(relative).parents)[:-1]:
                if any((site / folder).iterdir()):
                    break
                (site / folder).rmdir()


def _symbols(library: Library, asked: list[Ask]) -> dict[str, str]:
    """{symbol: version} that is asked of `library`, by its name or, without one, by the prefix."""
    return {
        ask.symbol: ask.version
        for ask in asked
        if ask.soname == library.soname
        or (not ask.soname and library.prefix and ask.symbol.startswith(library.prefix))
    }
