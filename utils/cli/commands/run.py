"""Execute lessons from top to bottom and report seconds and memory of each; --all adds the labs."""

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

from utils.course.catalog import ROOT
from utils.course.notebooks import canonical, to_text
from utils.course.runner import Run, execute_all
from utils.course.shown import columns

NEEDS = "learner"
FOLDERS = ("notebooks", "labs", "solutions")


def find(paths: list[str], everything: bool) -> list[Path]:
    """The notebooks that `paths` name, files or folders; by default the lessons."""
    names = paths or [str(ROOT / name) for name in (FOLDERS if everything else FOLDERS[:1])]
    results: list[Path] = []
    for name in names:
        path = Path(name).absolute()
        inside = sorted(path.rglob("*.ipynb")) if path.is_dir() else [path]
        inside = [item for item in inside if ".ipynb_checkpoints" not in item.parts]
        if not inside or not inside[0].is_file():
            raise ValueError(f"{name}: no notebook there; name a notebook file or a folder of them")
        results += [item for item in inside if item not in results]
    return results


def _target(source: Path, out: Path) -> Path:
    inside = source.is_relative_to(ROOT)
    return out / (source.relative_to(ROOT) if inside else source.name)


def _save(run: Run) -> str:
    """Store the fresh outputs in the source. Returns what was done."""
    source = Path(run.source)
    if source.is_relative_to(ROOT / "labs"):
        return f"not saved: {source.name} in labs/ is made by 'course.py labs'"
    fresh = to_text(canonical(json.loads(Path(run.target).read_text(encoding="utf-8"))))
    if fresh == source.read_text(encoding="utf-8"):
        return f"unchanged: {source.name}"
    source.write_text(fresh, encoding="utf-8")
    return f"saved: {source.name}"


def report(runs: list[Run]) -> str:
    """The closing table."""
    rows = [("notebook", "seconds", "memory MB", "result")]
    for run in runs:
        cell = f" in cell {run.cell}" if run.cell else ""
        result = "ok" if run.ok else f"failed{cell}: {run.error.splitlines()[0]}"
        name = os.path.relpath(run.source, ROOT)
        rows.append((name, f"{run.seconds:.1f}", f"{run.memory_mb:.0f}", result))
    return "\n".join(columns(rows, indent=""))


def _parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="course.py run", description=__doc__)
    parser.add_argument("paths", nargs="*", help="notebooks or folders (default: the lessons)")
    parser.add_argument("--all", action="store_true", help="lessons, labs and solutions")
    parser.add_argument("--out", type=Path, help="folder for the executed copies")
    parser.add_argument("--jobs", type=int, default=2, help="notebooks at a time (default 2)")
    parser.add_argument(
        "--save", action="store_true", help="for maintainers: store fresh outputs in the sources"
    )
    return parser.parse_args(argv)


def main(argv: list[str]) -> int:
    """Execute notebooks; returns 0 if all ran, 1 if one failed, 2 for a path that is none."""
    from tqdm import tqdm

    arguments = _parse(argv)
    try:
        sources = find(arguments.paths, arguments.all)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    out = (arguments.out or Path(tempfile.mkdtemp(prefix="course-run-"))).absolute()
    # A run must not count as the learner's own attempts.
    environment = {key: value for key, value in os.environ.items() if key != "COURSE_PROGRESS"}
    with tqdm(total=len(sources), unit="notebook", desc="executing") as bar:

        def done(run: Run) -> None:
            bar.update()
            bar.set_postfix_str(f"{Path(run.source).name} {'ok' if run.ok else 'FAILED'}")

        jobs = [(source, _target(source, out)) for source in sources]
        runs = execute_all(jobs, max(1, arguments.jobs), environment, done)
    print(report(runs))
    print(f"executed copies: {out}")
    failed = [run for run in runs if not run.ok]
    if arguments.save:
        if failed:
            print("nothing was saved: correct the notebooks that failed first", file=sys.stderr)
        else:
            print("\n".join(_save(run) for run in runs))
    return 1 if failed else 0
