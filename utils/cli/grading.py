"""What `course.py grade` does with results: into gradebooks, totals, feedback, marks by hand."""

import argparse
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TextIO

from utils.course import catalog
from utils.course.files import replace_file
from utils.labs.grading import batch, folders, merge
from utils.labs.grading.gradebook import GradebookError
from utils.labs.grading.platforms import feedback, policy, results, tables, total
from utils.labs.grading.platforms.policy import Late
from utils.labs.grading.platforms.results import Results


def _export(given: argparse.Namespace) -> None:
    graded = results.load(given.out, catalog.ROOT)
    known = tables.FORMATS.get(given.platform)
    table = tables.read(given.class_file, known) if given.class_file and known else None
    late = _late(graded, given, tables.times(table, known) if table and known else {})
    if given.platform == "nbgrader":
        rules = _policy_file(graded, given)
        due = policy.read(rules).due if rules else ""
        to = given.to or given.out / "nbgrader.csv"
        replace_file(to, tables.nbgrader_table(graded, late, due))
        print(f"{to}: {len(graded.students)} students")
        return
    if given.platform == "gradescope":
        packed, without = tables.autograder(graded, late)
        to = given.out / "gradescope_autograder.zip"
        to.write_bytes(packed)
        print(f"{to}: {len(graded.students) - len(without)} submissions")
        _say("not in it, because they are not from Gradescope or were not graded", without)
    elif table is None:
        raise ValueError(
            f"export {given.platform} needs --class FILE: the table that {given.platform} exports,"
            " so that its columns and ids are kept"
        )
    if table is None or known is None:
        return
    column = tables.column_for(table, known, graded.lab.name, given.column)
    filled = tables.fill(table, given.platform, column, graded, late, given.scale)
    to = given.to or given.out / f"{given.platform}{given.class_file.suffix}"
    if to.resolve() == given.class_file.resolve():
        raise ValueError(f"{to} is the file that was read: choose another --to")
    to.write_bytes(filled.content)
    print(f"{to}: points of {len(filled.students)} students in {column}")
    _say(f"graded here, not in {given.class_file}", filled.unmatched)
    _say("in it, without a submission here; left as they are", filled.absent)
    _say("not graded; left as they are", filled.ungraded)
    for remark in filled.remarks:
        print(f"  {remark}")


def _total(given: argparse.Namespace) -> None:
    labs = [(r, _late(r, given, {})) for r in (results.load(o, catalog.ROOT) for o in given.out)]
    students = total.add_up(labs)
    text = total.table(students, {r.lab.name: r.lab.points for r, _ in labs})
    if not given.to:
        sys.stdout.write(text)
        return
    replace_file(given.to, text)
    print(f"{given.to}: {len(students)} students, {len(labs)} labs")


def _feedback(given: argparse.Namespace) -> None:
    graded = results.load(given.out, catalog.ROOT)
    late = _late(graded, given, {})
    without = feedback.release(graded, late, given.to, given.platform)
    print(f"{given.to}: feedback for {len(graded.students) - len(without)} students")
    _say(f"left out, because {given.platform} would not find them", without)


def _by_hand(given: argparse.Namespace) -> None:
    graded = results.load(given.out, catalog.ROOT)
    if not given.marks:
        folder = feedback.write_by_hand(graded)
        print(f"{folder}: notebooks without names; write points into {folder / 'marks.csv'}")
        return
    changed = feedback.read_marks(graded, given.marks)
    for slug, points in changed.items():
        graded.book.give(slug, points)
    batch.write(given.out, graded.lab, graded.book)
    print(f"points of {len(changed)} students changed; see {given.out / 'gradebook.csv'}")


def _merge(given: argparse.Namespace) -> None:
    students, conflicts = merge.merge(given.out, given.to.resolve(), catalog.ROOT)
    print(f"{given.to}: {students} students of {len(given.out)} folders")
    for sentence in conflicts:
        print(f"  in several, with different submissions: {sentence}")


def _policy_file(graded: Results, given: argparse.Namespace) -> Path | None:
    own = graded.out / "policy.yaml"
    named: Path | None = getattr(given, "policy", None)
    return named or (own if own.exists() else None)


def _late(
    graded: Results, given: argparse.Namespace, message: Mapping[str, str]
) -> Mapping[str, Late]:
    """What the policy takes off, if there is one; says whose time is unknown."""
    path = _policy_file(graded, given)
    if not path:
        return {}
    named = getattr(given, "times", None)
    own = named or graded.out / "times.csv"
    written = policy.read_times(own) if named or own.exists() else {}
    known = [s.record for s in graded.students]
    late = policy.decide(policy.read(path), known, {**message, **written})
    _say(f"in {own}, but not graded here", policy.strangers(written, known), sys.stderr)
    replace_file(graded.out / "late.csv", tables.late_table(graded, late))
    by_name = {s.record.slug: s.record.student for s in graded.students}
    unknown = [by_name[slug] for slug, taken in late.items() if not taken.known]
    _say("without a time of submission, so without a penalty; see late.csv", unknown, sys.stderr)
    return late


def _say(what: str, names: Iterable[str], file: TextIO | None = None) -> None:
    if names := list(names):
        print(f"  {len(names)} {what}: {results.join_names(names)}", file=file)


Verb = Callable[[argparse.Namespace], None]
VERBS: dict[str, tuple[Verb, str]] = {
    "export": (_export, "write points into the table that a platform exported"),
    "total": (_total, "add up several labs, one row a student"),
    "feedback": (_feedback, "write what students get: a page and their notebook with marks"),
    "merge": (_merge, "join folders that were graded separately into one, with each student once"),
    "by-hand": (_by_hand, "write notebooks without names, or read the marks that people gave"),
}


def parser_of_verbs() -> argparse.ArgumentParser:
    """What the verbs take."""
    parser = argparse.ArgumentParser(prog="course.py grade")
    verbs = parser.add_subparsers(dest="verb", required=True)
    known = {name: verbs.add_parser(name, description=text) for name, (_, text) in VERBS.items()}
    known["export"].add_argument("platform", choices=[*tables.FORMATS, "nbgrader"])
    for name, verb in known.items():
        several = {"nargs": "+"} if name in ("total", "merge") else {}
        verb.add_argument("out", type=Path, help="the folder of a grading", **several)  # type: ignore[arg-type]
    known["export"].add_argument(
        "--class", dest="class_file", type=Path, metavar="FILE", help="what the platform exported"
    )
    known["export"].add_argument("--column", default="", help="which takes the points")
    known["export"].add_argument(
        "--scale", action="store_true", help="shares of the points that the column holds at most"
    )
    known["by-hand"].add_argument("--marks", type=Path, metavar="FILE", help="read these marks")
    for name in ("export", "feedback"):
        known[name].add_argument("--policy", type=Path, help="otherwise OUT/policy.yaml, if any")
        known[name].add_argument("--times", type=Path, help="otherwise OUT/times.csv, if any")
    for name in ("export", "total", "feedback", "merge"):
        where = {"required": True} if name in ("feedback", "merge") else {}
        known[name].add_argument("--to", type=Path, help="where to write", **where)  # type: ignore[arg-type]
    known["feedback"].add_argument(
        "--for", dest="platform", choices=["moodle", "canvas"], default="", help="who takes it"
    )
    return parser


def main(argv: list[str]) -> int:
    """Run one of the verbs; returns its exit status."""
    given = parser_of_verbs().parse_args(argv)
    outs = given.out if isinstance(given.out, list) else [given.out]
    outs = [*outs, given.to] if given.verb == "merge" else outs
    try:
        with ExitStack() as stack:  # nbgrader's gradebook has one writer at a time
            for out in {out.resolve() for out in outs}:
                stack.enter_context(folders.claim(out))
            VERBS[given.verb][0](given)
    except (ValueError, GradebookError) as error:
        print(error, file=sys.stderr)
        return 1
    except OSError as error:
        print(f"{error.filename}: {error.strerror or error}", file=sys.stderr)
        return 1
    return 0
