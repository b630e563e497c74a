"""Files that are written whole or not at all."""

import os
from pathlib import Path


def replace_file(path: Path, text: str, private: bool = False) -> None:
    """Write a file whole, or leave the one that is there; its mode stays, and lines end as in
    `text`. private: nobody else may read it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_name(f".{path.name}.half")  # after a kill the next one takes it over
    opener = private_file if private else None
    try:
        with open(half, "w", encoding="utf-8", newline="", opener=opener) as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if path.exists() and not private:
            half.chmod(path.stat().st_mode)
        os.replace(half, path)
    except OSError:
        half.unlink(missing_ok=True)
        raise


def private_file(path: str, flags: int) -> int:
    """For `open`: a new file that nobody else may read."""
    return os.open(path, flags, 0o600)
