"""Small libraries that stand in for large ones which torch names and a CPU course never calls.

The torch on the package index is built for CUDA: its libtorch_cuda.so lists cuBLAS, cuDNN, NCCL
and others as needed, 3 GB in all, so the dynamic linker refuses to load torch without them. The
official CPU wheel would need none, but it lies on PyTorch's own server only, which many classes
and mirrors cannot reach. No stock tool makes such libraries without a C compiler, which a learner's
machine need not have: so this writes them, at most a few KB each.

The linker wants two things: a library of each name, and somewhere each symbol that torch asks of
them. Most symbols are asked in a version, "cublasSgemm_v2 of libcublas.so.12", and the linker takes
one without a version from any library but the one named. So one stand-in, that of a library which
torch asks for no versions, holds all symbols, and the others are empty. Each symbol is a function
that answers 1, "not initialised". Standard library only: it runs before anything is installed.
Linux on x86-64 only.
"""

import hashlib
import mmap
import os
import re
import struct
from collections.abc import Collection, Mapping
from pathlib import Path

HOLDER = "nvidia/nccl/lib/libnccl.so.2"
EMPTY = (
    "nvidia/cublas/lib/libcublas.so.12",
    "nvidia/cublas/lib/libcublasLt.so.12",
    "nvidia/cudnn/lib/libcudnn.so.9",
    "nvidia/cufft/lib/libcufft.so.11",
    "nvidia/curand/lib/libcurand.so.10",
    "nvidia/cusparse/lib/libcusparse.so.12",
    "nvidia/cusparselt/lib/libcusparseLt.so.0",
    "nvidia/nvshmem/lib/libnvshmem_host.so.3",
)
"""Where torch's RPATH looks for each library, below site-packages."""
READERS = (
    "libtorch_cuda.so",
    "libtorch_cpu.so",
    "libc10_cuda.so",
    "libtorch_python.so",
    "libtorch_nvshmem.so",  # torch 2.7 of the cache lab has none
)
ASKED = re.compile(r"(cublas|cudnn|cufft|curand|cusparse|nccl|nvshmem)")
"""How the symbols begin that torch asks of these libraries."""


def cuda(site: Path) -> dict[str, bytes]:
    """The stand-ins that torch in `site` (a site-packages folder) needs: {path relative to `site`:
    content}; none for a library that is there.
    """
    files = {path: shared_object() for path in EMPTY if not (site / path).exists()}
    if not (site / HOLDER).exists():
        readers = [path for name in READERS if (path := site / "torch" / "lib" / name).exists()]
        asked = {name for path in readers for name in undefined_symbols(path) if ASKED.match(name)}
        files[HOLDER] = shared_object(asked)
    return files


def libpython(site: Path, soname: str) -> dict[str, bytes]:
    """An empty libpython where torch_xla's RUNPATH looks for it, unless one is there; as `cuda`
    returns.

    torch_xla names libpython3.X.so.1.0, which Debian's python3 does not have; the interpreter
    itself carries its symbols, so that a library of that name with nothing in it is enough.
    """
    path = f"torch_xla/lib/{soname}"
    return {} if (site / path).exists() else {path: shared_object()}


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


# --- The two halves of the ELF format that this needs ----------------------------------------

DYNAMIC_SYMBOLS = 11  # the type of a section, and the bytes of an entry in it
SYMBOL_BYTES = 24


def undefined_symbols(path: Path) -> set[str]:
    """The global symbols that the shared library at `path` leaves for others to define; a weak one
    may stay without."""
    names = set()
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        (table_at,) = struct.unpack_from("<Q", data, 0x28)
        entry_bytes, count = struct.unpack_from("<HH", data, 0x3A)
        # Fields: name, type, flags, address, offset, size, link (to the section of strings).
        sections = [
            struct.unpack_from("<IIQQQQI", data, table_at + i * entry_bytes) for i in range(count)
        ]
        for _, kind, _, _, offset, size, link in sections:
            if kind == DYNAMIC_SYMBOLS:
                strings_at = sections[link][4]
                for at in range(offset + SYMBOL_BYTES, offset + size, SYMBOL_BYTES):
                    name, info, _, section = struct.unpack_from("<IBBH", data, at)
                    if section == 0 and info >> 4 == 1:
                        start = strings_at + name
                        names.add(data[start : data.find(b"\0", start)].decode())
    return names


PAGE_BYTES = 4096
RETURN_ONE = b"\xb8\x01\x00\x00\x00\xc3"  # mov eax, 1; ret
LOAD, DYNAMIC, STACK = 1, 2, 0x6474E551  # types of segments
READ, WRITE, EXECUTE = 4, 2, 1
HASH, STRINGS, SYMBOLS, STRINGS_BYTES, ENTRY_BYTES = 4, 5, 6, 10, 11  # tags of the dynamic section


def shared_object(symbols: Collection[str] = ()) -> bytes:
    """A minimal x86-64 ELF shared library that defines these functions; each returns 1."""
    names = sorted(symbols)
    strings = b"\0" + b"".join(name.encode() + b"\0" for name in names)
    hashes = _hash_table(names)
    # The file: headers, code, hash table, symbols, strings, and on a page of its own the dynamic
    # section, which the linker writes to.
    code_at = 64 + 4 * 56
    hash_at = code_at + 8
    symbols_at = hash_at + len(hashes)
    strings_at = symbols_at + SYMBOL_BYTES * (len(names) + 1)
    end = strings_at + len(strings)
    dynamic_at = -(-end // PAGE_BYTES) * PAGE_BYTES
    tags = [
        (HASH, hash_at),
        (STRINGS, strings_at),
        (SYMBOLS, symbols_at),
        (STRINGS_BYTES, len(strings)),
        (ENTRY_BYTES, SYMBOL_BYTES),
        (0, 0),
    ]
    dynamic = b"".join(struct.pack("<QQ", *tag) for tag in tags)
    table, at = bytes(SYMBOL_BYTES), 1
    for name in names:
        function, section = 0x12, 1  # a global function; any section but 0 means "defined"
        table += struct.pack("<IBBHQQ", at, function, 0, section, code_at, len(RETURN_ONE))
        at += len(name) + 1

    header = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    header += struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, 0, 0, 64, 56, 4, 64, 0, 0)
    for kind, flags, start, size, alignment in (
        (LOAD, READ | EXECUTE, 0, end, PAGE_BYTES),
        (LOAD, READ | WRITE, dynamic_at, len(dynamic), PAGE_BYTES),
        (DYNAMIC, READ | WRITE, dynamic_at, len(dynamic), 8),
        (STACK, READ | WRITE, 0, 0, 16),
    ):
        header += struct.pack("<IIQQQQQQ", kind, flags, start, start, start, size, size, alignment)
    body = header + RETURN_ONE.ljust(8, b"\0") + hashes + table + strings
    return body.ljust(dynamic_at, b"\0") + dynamic


def _hash_table(names: list[str]) -> bytes:
    """The System V hash table, by which the linker finds a symbol: buckets of chains, padded to
    the 8 bytes on which the symbols after it must begin."""
    count = len(names) + 1
    buckets, chains = [0] * max(1, count // 2), [0] * count
    for i, name in enumerate(names, 1):
        bucket = elf_hash(name) % len(buckets)
        chains[i], buckets[bucket] = buckets[bucket], i
    numbers = [len(buckets), count, *buckets, *chains]
    return struct.pack(f"<{len(numbers)}I", *numbers) + bytes(4 * (len(numbers) % 2))


def elf_hash(name: str) -> int:
    """The hash of the System V ABI.

    >>> hex(elf_hash("printf"))
    '0x77905a6'
    """
    value = 0
    for byte in name.encode():
        value = (value << 4) + byte
        high = value & 0xF0000000
        value = (value ^ high >> 24) & ~high & 0xFFFFFFFF
    return value
