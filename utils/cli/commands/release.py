"""For maintainers: check, test, build and tag a release: wheels, site, course, notes, checksums.

It goes into a folder of its own, and built again it is equal byte for byte: all files are dated by
the last commit. The tag is set last, and stays here until you push it.
"""

import argparse
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from utils.cli import bom, builds, bundles, wheels
from utils.cli.home import Home, SetupError
from utils.cli.site import building
from utils.xla.defaults import has_xla

ROOT = Path(__file__).resolve().parents[3]
SUMS = "SHA256SUMS"
RECIPE = "Containerfile"


def main(arguments: list[str]) -> int:
    """Run the command; returns its exit status."""
    parser = argparse.ArgumentParser("course.py release", description=__doc__)
    parser.add_argument("--to", type=Path, default=Path("dist"), help="a folder; default: dist")
    parser.add_argument("--bundle", action="store_true", help="also the bundle, from the network")
    parser.add_argument("--no-tests", action="store_true", help="somebody has run them already")
    parser.add_argument("--draft", action="store_true", help="build only: no checks, tests or tag")
    given = parser.parse_args(arguments)
    version = bundles.version(ROOT)
    try:
        if not given.draft:
            if problems := faults(ROOT, version):
                raise SetupError("no release yet:\n" + "\n".join(f"- {p}" for p in problems))
            if not given.no_tests:
                command = [sys.executable, str(ROOT / "course.py"), "--inside", "test"]
                if subprocess.run(command, cwd=ROOT).returncode:
                    raise SetupError("no release yet: the tests have failed")
        out = build(ROOT, given.to.resolve() / version, given.bundle)
        print((out / SUMS).read_text() + f"in {out}")
        if not given.draft:
            text = (out / "NOTES.md").read_text()
            bundles.git(ROOT, "tag", "--annotate", f"v{version}", "--cleanup=verbatim", "-m", text)
            print(f"Tagged v{version} here. To publish it: git push origin v{version}")
    except (OSError, ValueError, SetupError) as error:
        print(f"course.py release: {error}", file=sys.stderr)
        return 1
    return 0


def faults(root: Path, version: str) -> list[str]:
    """What stands in the way of a release, and what to do about each."""
    log = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    cited = re.search(r"^version: (\S+)", (root / "CITATION.cff").read_text(), re.MULTILINE)
    checks = {
        "files are changed or not known to git: commit or remove them": bundles.git(
            root, "status", "--porcelain"
        ),
        f"there is a tag v{version}: raise the version in pyproject.toml": bundles.git(
            root, "tag", "--list", f"v{version}"
        ),
        f"CHANGELOG.md has no heading '## {version} (YYYY-MM-DD)': give the open one version and"
        " day": not re.search(rf"^## {re.escape(version)} \(\d{{4}}-\d\d-\d\d\)$", log, re.M),
        "CHANGELOG.md still has a heading 'Unreleased': its lines belong to the release": re.search(
            "^## Unreleased", log, re.MULTILINE
        ),
        f"CITATION.cff is not of version {version}": not cited or cited[1] != version,
    }
    return [fault for fault, wrong in checks.items() if wrong]


def notes(log: str, version: str) -> str:
    """The part of the changelog on `version`, or else on what is not released yet.

    >>> notes("# Changelog\\n\\n## 2.0 (2026-01-02)\\n\\n- New.\\n\\n## 1.0 (2025-01-02)\\n", "2.0")
    '# 2.0\\n\\n- New.\\n'
    """
    for title in (rf"{re.escape(version)} \([^\n]*\)", "Unreleased"):
        part = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", log, re.MULTILINE | re.DOTALL)
        if part:
            return f"# {version}\n\n{part[1].strip()}\n"
    raise ValueError(f"CHANGELOG.md says nothing of {version}")


def build(root: Path, out: Path, bundle: bool = False, site: bool = True) -> Path:
    """Build everything into `out`, which appears when it is whole; an older one is replaced.

    Raises: SetupError, ValueError or OSError.
    """
    if out.exists() and not (out / SUMS).exists():
        raise SetupError(f"{out} holds something else: name another folder")
    home, version, seconds = Home(root), bundles.version(root), bundles.day(root)
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=".release-") as name:
        work, made = Path(name, "work"), Path(name, "made")
        made.mkdir()
        for tool in wheels.TOOLS:
            wheels.build(tool, made, home)
        course = f"trainium-course-{version}"
        files = bundles.course_files(root)
        bundles.pack(
            made / f"{course}.tar", {f"{course}/{p}": f for p, f in files.items()}, seconds
        )
        if site:
            site_folder = building.build(work / "site", root)
            pages = {
                p.relative_to(work).as_posix(): p for p in site_folder.rglob("*") if p.is_file()
            }
            bundles.pack(made / f"{course}-site.tar", pages, seconds)
        if bundle:
            bundles.make(home, builds.choose("slim", "", has_xla()), made, print)
        shutil.copyfile(root / RECIPE, made / RECIPE)
        bill = bom.bill(
            root / "pyproject.toml", home.lock("learner"), home.lock("everything"), seconds
        )
        (made / "sbom.cdx.json").write_text(json.dumps(bill, indent=1) + "\n")
        log = (root / "CHANGELOG.md").read_text(encoding="utf-8")
        (made / "NOTES.md").write_text(notes(log, version), encoding="utf-8")
        (made / SUMS).write_text(
            "".join(f"{_sha256(p)}  {p.name}\n" for p in sorted(made.iterdir()))
        )
        if out.exists():
            shutil.rmtree(out)
        made.rename(out)
    return out


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
