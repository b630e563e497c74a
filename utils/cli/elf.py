"""The two halves of the ELF format that the stand-ins need: read what a library asks of
others, and write a library that answers. x86-64 Linux only; standard library only.
"""

import mmap
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Ask:
    """A symbol that a library leaves for others to define; `version` and `soname` are "" if not
    named."""

    symbol: str
    version: str
    soname: str


SHT_DYNSYM, SHT_GNU_VERNEED, SHT_GNU_VERSYM = 11, 0x6FFFFFFE, 0x6FFFFFFF
SYMBOL_BYTES = 24


def asks(path: Path) -> Iterator[Ask]:
    """The global symbols that the ELF file at `path` leaves undefined (weak ones may stay
    unresolved)."""
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        table_at = struct.unpack_from("<Q", data, 0x28)[0]
        entry_bytes, count = struct.unpack_from("<HH", data, 0x3A)
        sections = [
            struct.unpack_from("<IIQQQQI", data, table_at + i * entry_bytes) for i in range(count)
        ]
        # Fields: name, type, flags, address, offset, size, link. A file has one of each type read.
        offset = {kind: at for _, kind, _, _, at, _, _ in sections}
        _, _, _, _, symbols_at, symbols_bytes, link = next(
            s for s in sections if s[1] == SHT_DYNSYM
        )
        strings_at = sections[link][4]
        needed = (
            _needed_versions(data, offset[SHT_GNU_VERNEED], strings_at)
            if SHT_GNU_VERNEED in offset
            else {}
        )
        for i in range(1, symbols_bytes // SYMBOL_BYTES):
            name, info, _, section = struct.unpack_from(
                "<IBBH", data, symbols_at + i * SYMBOL_BYTES
            )
            is_global = info >> 4 == 1
            if section == 0 and is_global:
                index = 0
                if needed:
                    index = (
                        struct.unpack_from("<H", data, offset[SHT_GNU_VERSYM] + 2 * i)[0] & 0x7FFF
                    )
                yield Ask(_string(data, strings_at + name), *needed.get(index, ("", "")))


def _needed_versions(data: mmap.mmap, at: int, strings_at: int) -> dict[int, tuple[str, str]]:
    """{index: (version, soname)} from the section of needed versions, two nested linked lists."""
    found = {}
    while True:
        _, count, file, first, following = struct.unpack_from("<HHIII", data, at)
        entry = at + first
        for _ in range(count):
            _, _, index, name, step = struct.unpack_from("<IHHII", data, entry)
            found[index & 0x7FFF] = (
                _string(data, strings_at + name),
                _string(data, strings_at + file),
            )
            entry += step
        if not following:
            return found
        at += following


def _string(data: mmap.mmap, at: int) -> str:
    return data[at : data.find(b"\0", at)].decode()


PAGE_BYTES = 4096
RETURN_ONE = b"\xb8\x01\x00\x00\x00\xc3"  # mov eax, 1; ret
PT_LOAD, PT_DYNAMIC, PT_GNU_STACK = 1, 2, 0x6474E551
READ, WRITE, EXECUTE = 4, 2, 1
DT_HASH, DT_STRTAB, DT_SYMTAB, DT_STRSZ, DT_SYMENT, DT_SONAME = 4, 5, 6, 10, 11, 14
DT_VERSYM, DT_VERDEF, DT_VERDEFNUM = 0x6FFFFFF0, 0x6FFFFFFC, 0x6FFFFFFD


def shared_object(soname: str, symbols: Mapping[str, str]) -> bytes:
    """A minimal x86-64 ELF shared library that defines `symbols`, {name: version or ""}; each
    returns 1.

    Named versions are defined too: glibc aborts when a library lacks a version that another one
    needs.
    """
    names = sorted(symbols)
    versions = sorted(set(filter(None, symbols.values())))
    strings, at = _string_table([soname, *names, *versions])
    # In the table of versions, 0 is local, 1 is global without a version, the named ones follow.
    index = {version: i for i, version in enumerate(versions, 2)} | {"": 1}

    parts = {
        "symbols": b"",  # filled in below, once the address of the code is known
        "hash": _hash_table(names),
        "versym": struct.pack(f"<{len(names) + 1}H", 0, *(index[symbols[name]] for name in names)),
        "verdef": _version_definitions([soname, *versions], at),
        "strings": strings,
        "code": RETURN_ONE,
    }
    parts["symbols"] = bytes(SYMBOL_BYTES * (len(names) + 1))
    headers_bytes = 64 + 4 * 56
    offset, end = {}, headers_bytes
    for part, content in parts.items():
        offset[part] = _aligned(end, 16)
        end = offset[part] + len(content)
    dynamic_at = _aligned(end, PAGE_BYTES)

    function, section = 0x12, 1  # global function; any section but 0 means "defined"
    parts["symbols"] = bytes(SYMBOL_BYTES) + b"".join(
        struct.pack("<IBBHQQ", at[name], function, 0, section, offset["code"], len(RETURN_ONE))
        for name in names
    )
    tags = [
        (DT_SONAME, at[soname]),
        (DT_HASH, offset["hash"]),
        (DT_STRTAB, offset["strings"]),
        (DT_SYMTAB, offset["symbols"]),
        (DT_STRSZ, len(strings)),
        (DT_SYMENT, SYMBOL_BYTES),
    ]
    if versions:
        tags += [
            (DT_VERSYM, offset["versym"]),
            (DT_VERDEF, offset["verdef"]),
            (DT_VERDEFNUM, 1 + len(versions)),
        ]
    dynamic = b"".join(struct.pack("<QQ", *tag) for tag in [*tags, (0, 0)])

    header = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    header += struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, 0, 0, 64, 56, 4, 64, 0, 0)
    header += _segment(PT_LOAD, READ | EXECUTE, 0, end, PAGE_BYTES)
    header += _segment(PT_LOAD, READ | WRITE, dynamic_at, len(dynamic), PAGE_BYTES)
    header += _segment(PT_DYNAMIC, READ | WRITE, dynamic_at, len(dynamic), 8)
    header += _segment(PT_GNU_STACK, READ | WRITE, 0, 0, 16)

    image = bytearray(dynamic_at + len(dynamic))
    image[: len(header)] = header
    for part, content in parts.items():
        image[offset[part] : offset[part] + len(content)] = content
    image[dynamic_at:] = dynamic
    return bytes(image)


def _string_table(texts: list[str]) -> tuple[bytes, dict[str, int]]:
    """The strings one after the other, each ended by a zero byte, and the position of each."""
    table, at = bytearray(b"\0"), {}
    for text in texts:
        if text not in at:
            at[text] = len(table)
            table += text.encode() + b"\0"
    return bytes(table), at


def _hash_table(names: list[str]) -> bytes:
    """The System V hash table, by which the linker finds a symbol: buckets of chains."""
    count = len(names) + 1
    buckets, chains = [0] * max(1, count // 2), [0] * count
    for i, name in enumerate(names, 1):
        bucket = elf_hash(name) % len(buckets)
        chains[i], buckets[bucket] = buckets[bucket], i
    numbers = [len(buckets), count, *buckets, *chains]
    return struct.pack(f"<{len(numbers)}I", *numbers)


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


def _version_definitions(names: list[str], at: Mapping[str, int]) -> bytes:
    """The section of defined versions; the first of `names` is the library itself."""
    entry_bytes, last = 28, len(names) - 1
    return b"".join(
        struct.pack("<HHHHIII", 1, i == 0, i + 1, 1, elf_hash(name), 20, entry_bytes * (i != last))
        + struct.pack("<II", at[name], 0)
        for i, name in enumerate(names)
    )


def _segment(kind: int, flags: int, at: int, size_bytes: int, alignment: int) -> bytes:
    return struct.pack("<IIQQQQQQ", kind, flags, at, at, at, size_bytes, size_bytes, alignment)


def _aligned(at: int, to: int) -> int:
    return (at + to - 1) // to * to
