"""Join folders of results that were graded apart: each student once, marks given by hand kept."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from utils.labs.grading import answers, batch, downloads, folders, records
from utils.labs.grading.gradebook import Book
from utils.labs.grading.platforms import results
from utils.labs.grading.platforms.results import Results
from utils.labs.grading.records import Graded
from utils.labs.grading.submissions import File, slugs_of


def merge(outs: Iterable[Path], to: Path, root: Path) -> tuple[int, list[str]]:
    """Write the results of all `outs` to the folder `to`, after what is there already.

    Of a student who is in several, the submission that was handed in last counts; where no times
    are known, that of the folder named last. Points given by hand hold, whichever counts. Returns
    the number of students, and a sentence for each who was in several with different submissions.
    Raises ValueError for folders without results and those of different labs. What was interrupted
    can be done again.
    """
    own = [to] if (to / "gradebook.db").exists() and any(records.read(to)) else []
    sources = [results.load(out, root) for out in (*own, *outs)]
    if len(labs := sorted({source.lab.name for source in sources})) > 1:
        raise ValueError(f"these are results of different labs ({', '.join(labs)}): merge one lab")
    if to.exists() and any(to.iterdir()) and not (to / "seed.txt").exists():
        raise ValueError(f"{to} holds other files: choose an empty or a new folder for --to")
    to.mkdir(parents=True, exist_ok=True)
    seeds = {folders.known_seed(source.out, None) for source in sources}
    folders.keep_seed(to, seeds.pop() if len(seeds) == 1 else folders.known_seed(to, None))
    people: dict[tuple[str, str], list[tuple[Results, Graded]]] = {}
    for source in sources:
        for student in source.students:
            record = student.record
            who = downloads.person(record.entry, record.id)
            people.setdefault(who, []).append((source, student))
    book = Book(sources[0].lab, root, to)
    taken: set[str] = set()
    conflicts = []
    for several in people.values():
        source, chosen = max(
            enumerate(several), key=lambda item: (item[1][1].record.submitted, item[0])
        )[1]
        record = chosen.record
        if len({student.record.key for _, student in several}) > 1:
            others = ", ".join(f"{s.out} {student.total:g}" for s, student in several)
            conflicts.append(f"{record.student}: {others}; {source.out} counts")
        slug = record.slug
        if slug in taken:
            slug = slugs_of([record.student], taken)[record.student]
        taken.add(slug)
        _copy(source, chosen, slug, book, to)
        by_hand = {name: s.points[name] for _, s in several for name in s.by_hand}
        by_hand |= {name: chosen.points[name] for name in chosen.by_hand}
        if by_hand:
            book.give(slug, by_hand)
    batch.write(to, sources[0].lab, book, ended=True)
    return len(people), conflicts


def _copy(source: Results, student: Graded, slug: str, book: Book, to: Path) -> None:
    record = student.record
    if source.out == to and slug == record.slug:
        return
    path = source.lab.path
    file = source.out / "submitted" / record.slug / path.stem / path.name
    notebook = answers.read([File(path.name, file.read_bytes())], source.lab)
    book.record(slug, notebook, list(record.marks), record.submitted)
    records.keep(to, replace(record, slug=slug))
