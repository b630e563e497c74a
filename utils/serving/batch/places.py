"""Where tables lie and results go: a local folder, S3, or any address that fsspec opens.

A file is written whole or not at all: locally beside its place, synced, and renamed; elsewhere by
one put, which object stores take whole.
"""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from utils.course.files import replace_file


class Place(Protocol):
    """A folder. Names are relative to it, such as "results/00001.jsonl"."""

    def names(self, folder: str) -> set[str]:
        """Of the files in a folder, without it; none if the folder is missing."""

    def read(self, name: str) -> bytes:
        """Raises FileNotFoundError."""

    def write(self, name: str, text: str) -> None:
        """Whole, in place of what is there."""


@dataclass(frozen=True)
class Local:
    """A folder of this machine."""

    root: Path

    def names(self, folder: str) -> set[str]:
        result = self.root / folder
        files = result.iterdir() if result.is_dir() else ()
        return {path.name for path in files if not path.name.startswith(".")}

    def read(self, name: str) -> bytes:
        return (self.root / name).read_bytes()

    def write(self, name: str, text: str) -> None:
        replace_file(self.root / name, text)


@dataclass(frozen=True)
class Bucket:
    """A prefix in a bucket of S3, by boto3; AWS_ENDPOINT_URL leads to another service."""

    bucket: str
    prefix: str
    client: Any

    def names(self, folder: str) -> set[str]:
        start = f"{self.prefix}{folder}/"
        pages = self.client.get_paginator("list_objects_v2").paginate(
            Bucket=self.bucket, Prefix=start
        )
        return {
            entry["Key"].removeprefix(start) for page in pages for entry in page.get("Contents", ())
        }

    def read(self, name: str) -> bytes:
        try:
            result = self.client.get_object(Bucket=self.bucket, Key=self.prefix + name)
        except self.client.exceptions.NoSuchKey:
            raise FileNotFoundError(f"s3://{self.bucket}/{self.prefix}{name}") from None
        return result["Body"].read()

    def write(self, name: str, text: str) -> None:
        self.client.put_object(Bucket=self.bucket, Key=self.prefix + name, Body=text.encode())


@dataclass(frozen=True)
class Remote:
    """A folder of a file system of fsspec, such as gs://bucket/folder."""

    system: Any
    root: str

    def names(self, folder: str) -> set[str]:
        path = f"{self.root}/{folder}"
        if not self.system.exists(path):
            return set()
        return {name.rpartition("/")[2] for name in self.system.ls(path, detail=False)}

    def read(self, name: str) -> bytes:
        return self.system.cat_file(f"{self.root}/{name}")

    def write(self, name: str, text: str) -> None:
        path = f"{self.root}/{name}"
        self.system.makedirs(path.rpartition("/")[0], exist_ok=True)
        self.system.pipe_file(path, text.encode())


def place(address: str) -> Place:
    """The folder at an address. Raises ValueError for one that nothing installed here opens."""
    protocol, mark, rest = address.partition("://")
    if not mark or protocol == "file":
        return Local(Path(rest or address))
    if protocol == "s3":
        import boto3  # late: 0.3 s, and a local run needs no AWS

        bucket, _, prefix = rest.rstrip("/").partition("/")
        if not bucket:
            raise ValueError(f"{address} names no bucket: write s3://BUCKET/FOLDER")
        return Bucket(bucket, prefix and f"{prefix}/", boto3.client("s3"))
    import fsspec  # late, as boto3 is; torch brings it

    try:
        system, root = fsspec.core.url_to_fs(address)
    except (ImportError, ValueError) as error:
        raise ValueError(
            f"{address} cannot be opened ({error}): install the package of fsspec for"
            f" {protocol}://, or give a local path or s3://BUCKET/FOLDER"
        ) from None
    return Remote(system, root.rstrip("/"))


def content(address: str) -> bytes:
    """Of one file. Raises FileNotFoundError, and ValueError as `place` does."""
    folder, mark, name = address.rpartition("/")
    return place(folder or mark or ".").read(name)


@contextmanager
def _lock(root: Path) -> Iterator[None]:
    root.mkdir(parents=True, exist_ok=True)
    with open(root / ".lock", "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(
                f"another run writes to {root}: wait for its end, or name another folder"
            ) from None
        yield


def alone(where: Place) -> Any:
    """A with-block in which no other run writes to a local folder; elsewhere two runs write the
    same files, each whole. Raises ValueError if another one does.
    """
    return _lock(where.root) if isinstance(where, Local) else nullcontext()
