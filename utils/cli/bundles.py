"""One file that installs the course without a network: its files, and the wheels of an environment.

It is a plain tar, because wheels are compressed already. Unpacked it is the course's folder with
`wheels/` in it, which the set-up takes in place of the network. The wheels fit one kind of machine,
one Python and one build of torch, which `wheels/bundle.json` names. Standard library only.
"""

import io
import json
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Mapping
from pathlib import Path

from utils.cli import builds
from utils.cli.home import Home, SetupError
from utils.cli.installers import PIP, Say, pip_environment, run, uv_requirement
from utils.xla.defaults import machine

NOTE = "bundle.json"


def make(home: Home, build: str, folder: Path, say: Say) -> Path:
    """Write the bundle for this machine and this Python into `folder`; returns its file.

    Needs the network, and git. Raises SetupError.
    """
    name = f"trainium-course-{version(home.root)}"
    note = requirements(home, "learner", build)
    python = note["python"]
    files: dict[str, Path | bytes] = dict(course_files(home.root))
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".bundle-") as work:
        wheels = Path(work, "wheels")
        chosen = Path(work, "requirements.txt")
        chosen.write_text(builds.selection(home.lock("learner"), build))
        say(f"Fetching the wheels of Python {python} and the {build} build of torch.")
        for what in (["--require-hashes", "--requirement", chosen], [uv_requirement(home)]):
            download = [*PIP, "download", "--no-deps", "--only-binary=:all:", "--dest", wheels]
            run([*download, *what], pip_environment(home), "fetch the wheels", cwd=home.root)
        files |= {f"wheels/{path.name}": path for path in wheels.iterdir()}
        files[f"wheels/{NOTE}"] = (json.dumps(note, indent=1) + "\n").encode()
        place = machine().lower().replace(" on ", "-")
        out = folder / f"{name}-{place}-py{python}.tar"
        pack(out, {f"{name}/{path}": content for path, content in files.items()}, day(home.root))
    return out


def requirements(home: Home, needs: str, build: str) -> dict[str, str]:
    """What wheels must be made for, to be installed here."""
    python = f"{sys.version_info[0]}.{sys.version_info[1]}"
    fingerprint = home.fingerprint(needs, build)
    return {"machine": machine(), "python": python, "build": build, "lock": fingerprint}


def check(home: Home, needs: str, build: str) -> None:
    """SetupError if the folder has wheels that do not fit."""
    if not home.wheels.is_dir():
        return
    try:
        note = json.loads((home.wheels / NOTE).read_text())
    except (OSError, ValueError):
        note = {}
    for key, value in requirements(home, needs, build).items():
        if note.get(key) != value:
            why = f"were made for {key} {note.get(key, 'unknown')}, and this is {key} {value}"
            if key == "lock":
                why = "are of another version of the course, or lack what tests and grading need"
            raise SetupError(
                f"the wheels in {home.wheels} {why}.\n"
                "Use what they were made for, or a bundle for this; or remove that folder, and the"
                " same command\ninstalls from the network."
            )


def version(root: Path) -> str:
    """The version of the course, as pyproject.toml has it."""
    return tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"]


def git(root: Path, *arguments: str) -> str:
    """What git says; SetupError if it fails."""
    command = ["git", "-C", str(root), *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SetupError(f"this needs the course as a git clone; git says: {done.stderr.strip()}")
    return done.stdout


def day(root: Path) -> int:
    """The time of the last commit, in seconds since 1970: what is made from it is dated so."""
    return int(git(root, "log", "-1", "--format=%ct"))


def course_files(root: Path) -> dict[str, Path]:
    """The files that git knows, by their place."""
    names = git(root, "ls-files", "-z").split("\0")
    return {name: root / name for name in names if (root / name).is_file()}


def pack(out: Path, files: Mapping[str, Path | bytes], seconds: int) -> None:
    """Write a tar of `files`, by their place in it, whole or not at all; equal files make an equal
    tar, byte for byte.

    seconds: the time that all of them get.
    """
    part = out.with_name(f".{out.name}.part")
    with tarfile.open(part, "w") as tar:
        for place, content in sorted(files.items()):
            info = tarfile.TarInfo(place)
            info.mtime, info.mode = seconds, 0o644
            if isinstance(content, bytes):
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
                continue
            status = content.stat()
            info.size = status.st_size
            info.mode = 0o755 if status.st_mode & 0o100 else 0o644
            with content.open("rb") as file:
                tar.addfile(info, file)
    part.replace(out)
