"""The first page: where the learner is, a link to go on by, what is left; the rest is folded."""

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from pathlib import Path

from utils.course import catalog, progress, running
from utils.course.catalog import ROOT, Lab, Lesson
from utils.course.cells import running_shell
from utils.course.lesson import strict
from utils.course.progress import EXERCISE_HEAD, Document, Entry
from utils.course.shown import Shown, columns, html_table, in_html, link
from utils.course.tracks import Stop, Track, duration, tracks

SYMBOLS = {"done": "●", "begun": "◐", "open": "○"}
MAP_HEAD = ("state", "lesson", "lab", "left")
ALL_HEAD = ("notebook", "minutes", "after", "what it shows")


@dataclass(frozen=True)
class Step:
    """A stop of a track with what is recorded of it. state: one of `SYMBOLS`."""

    stop: Stop
    state: str
    entry: Entry | None = None

    @property
    def minutes_left(self) -> int:
        """0 once the step is done."""
        return 0 if self.state == "done" else self.stop.minutes


@dataclass(frozen=True)
class Home:
    """Where a learner is in a track. note: on the progress file, or ""."""

    track: Track
    steps: tuple[Step, ...]
    note: str = ""

    @property
    def continue_at(self) -> Step | None:
        """The first step that is not done; None if all are."""
        return next((step for step in self.steps if step.state != "done"), None)

    @property
    def otherwise(self) -> Step | None:
        """Where to go on for who leaves that step: the first open one of a later notebook."""
        here = self.continue_at
        if here is None:
            return None
        later = self.steps[self.steps.index(here) :]
        others = (step for step in later if step.stop.notebook != here.stop.notebook)
        return next((step for step in others if step.state != "done"), None)

    @property
    def minutes_left(self) -> int:
        """Of the steps that are not done."""
        return sum(step.minutes_left for step in self.steps)


def home_of(track: Track, document: Document, note: str = "") -> Home:
    """Where a learner with this progress is in the track."""
    return Home(track, tuple(_step(stop, document) for stop in track.stops), note)


def _step(stop: Stop, document: Document) -> Step:
    if stop.exercise:
        entry = document["exercises"].get(stop.id)
        state = progress.exercise_state(stop.exercise, entry)
        return Step(stop, {"passed": "done", "tried": "begun"}.get(state, "open"), entry)
    recorded = document["lessons"].get(stop.id)
    # Who tries a lab, or anything after the first page, is past the lesson: older courses recorded
    # no lessons, and nobody is to be held up by a page that was not read to its end.
    tried = any(name.startswith(f"lab{stop.id}.") for name in document["exercises"])
    others = document["exercises"] or set(document["lessons"]) - {stop.id}
    if recorded == "done" or tried or (not stop.notebook.after and others):
        return Step(stop, "done")
    return Step(stop, recorded or "open")


def _name(stop: Stop) -> str:
    return f"{stop.id} · {stop.title}" if stop.exercise else f"lesson {stop.id} · {stop.title}"


def _href(notebook: Path, cell: str = "") -> str:
    """From a notebook in notebooks/, here and among a learner's own copies."""
    path = f"../{notebook.parent.parent.name}/{notebook.parent.name}/{notebook.name}"
    if notebook.parent.name == "notebooks":
        path = notebook.name
    return f"{path}#cell-id={cell}" if cell else path


def _link(step: Step, before: str = "") -> Shown:
    cell = f"{step.stop.id.partition('.')[2]}-task" if step.stop.exercise else ""
    return link(before + _name(step.stop), _href(step.stop.notebook.path, cell))


def where(home: Home) -> str:
    """Where the learner is, in a sentence or two."""
    here = home.continue_at
    if here is None:
        return "All of it is done."
    parts = len(home.track.parts)
    part = f"{home.track.part.capitalize()} {here.stop.part} of {parts}. " if parts > 1 else ""
    if all(step.state == "open" for step in home.steps):
        return f"{part}You have not begun yet."
    if not here.stop.exercise:
        verb = "You are in" if here.state == "begun" else "Next comes"
        return f"{part}{verb} lesson {here.stop.id}."
    of_lab = [step for step in home.steps if step.stop.notebook == here.stop.notebook]
    return f"{part}You are in lab {here.stop.notebook.number}: {_points(of_lab)}."


def _points(steps: list[Step]) -> str:
    won = sum(step.entry["points"] for step in steps if step.entry)
    return f"{won:g} of {sum(s.stop.exercise.points for s in steps if s.stop.exercise):g} points"


def _map(home: Home) -> list[tuple[str | Shown, ...]]:
    """A row for each lesson with its lab."""
    rows: list[tuple[str | Shown, ...]] = []
    by_number: dict[str, list[Step]] = {}
    for step in home.steps:
        by_number.setdefault(step.stop.notebook.number, []).append(step)
    for number, steps in by_number.items():
        state = "begun" if any(step.state != "open" for step in steps) else "open"
        state = "done" if all(step.state == "done" for step in steps) else state
        lesson = next((step for step in steps if not step.stop.exercise), None)
        lab = [step for step in steps if step.stop.exercise]
        title = steps[0].stop.notebook.title
        left = sum(step.minutes_left for step in steps)
        rows.append(
            (
                f"{SYMBOLS[state]} {state}",
                link(f"{number} {title}", _href(lesson.stop.notebook.path)) if lesson else number,
                link(_points(lab), _href(lab[0].stop.notebook.path)) if lab else "",
                duration(left) if left else "",
            )
        )
    return rows


def text(home: Home) -> str:
    """The card for a terminal."""
    lines = [f"{home.track.name}. {where(home)}"]
    for step, words in ((home.continue_at, "Continue: "), (home.otherwise, "or go on with ")):
        if step:
            lines.append(f"{words}{_name(step.stop)} · {step.stop.minutes} min")
    lines += columns([tuple(map(str, row)) for row in _map(home)])
    lines.append(f"left: {duration(home.minutes_left)}")
    return "\n".join(filter(None, (*lines, home.note)))


def html(home: Home, everything: Iterable[Lesson] = ()) -> str:
    """The card for a notebook in notebooks/. everything: the notebooks that its last part lists."""
    total = sum(step.stop.minutes for step in home.steps)
    done = total - home.minutes_left
    blocks = [f"<h3>{in_html(home.track.name)}</h3>", f"<p>{in_html(where(home))}</p>"]
    here = home.continue_at
    if here and not here.stop.notebook.after and not here.stop.exercise:  # the page it stands on
        blocks.append("<p><strong>Read on below</strong>, then run this cell again.</p>")
    elif here:
        blocks.append(
            f"<p><strong>{_link(here, 'Continue: ').html}</strong>, {here.stop.minutes} min</p>"
        )
    else:
        blocks.append("<p>To go on, choose another track.</p>")
    if other := home.otherwise:
        blocks.append(f"<p>Or leave that for now: {_link(other).html}</p>")
    blocks.append(
        f'<p><label>{done} of {total} minutes done <progress max="{total}" value="{done}">'
        f"</progress></label> {duration(home.minutes_left)} left</p>"
    )
    blocks.append(html_table(MAP_HEAD, _map(home), "Lessons and labs of this track"))
    exercises = [
        progress.exercise_row(step.stop.exercise, step.entry)
        for step in home.steps
        if step.stop.exercise
    ]
    blocks.append(fold("Every exercise of this track", html_table(EXERCISE_HEAD, exercises)))
    if notebooks := [_in_short(notebook) for notebook in everything]:
        blocks.append(fold("Everything in the course", html_table(ALL_HEAD, notebooks)))
    return "".join([*blocks, f"<p>{in_html(home.note)}</p>" if home.note else ""])


def _in_short(notebook: Lesson) -> tuple[str | Shown, ...]:
    kind = "lab " if isinstance(notebook, Lab) else ""
    title = f"{kind}{notebook.number} {notebook.title}".removeprefix("- ")
    after = ", ".join(notebook.after)
    return link(title, _href(notebook.path)), str(notebook.minutes), after, notebook.proves


def fold(summary: str, content: str) -> str:
    """HTML that is closed until it is asked for."""
    return f"<details><summary>{escape(summary)}</summary>{content}</details>"


def home(track: str = "", root: Path = ROOT) -> Shown | None:
    """Show where you are and where to go on; in a notebook with a menu of the tracks.

    track: one of them, such as "kernels", that you want to be on from now on.
    """
    choice = tracks(root)
    if track and track not in choice:
        return Shown(f"there is no track {track!r}; there is: {', '.join(choice)}")
    if strict():  # stored in the course's own copy: as it is before the first step
        return card(choice[track or next(iter(choice))], progress.nothing(), "", root)
    note = progress.choose(track, root) if track else ""
    document, damage = progress.document(root)
    key = document["track"] if document["track"] in choice else next(iter(choice))
    shown = card(choice[key], document, note or damage, root)
    if running_shell() is None:
        return shown
    try:
        import ipywidgets  # late: slow to load, and only a live notebook needs it
    except ModuleNotFoundError:
        return shown
    from IPython.display import display

    menu = ipywidgets.Dropdown(
        options=[(item.name, key) for key, item in choice.items()], value=key, description="Track"
    )
    display(menu)
    handle = display(live(shown), display_id=True)

    def change(_: object) -> None:
        note = progress.choose(menu.value, root)
        document = progress.document(root)[0]
        handle.update(live(card(choice[menu.value], document, note, root)))

    menu.observe(change, names="value")
    return None


def card(track: Track, document: Document, note: str, root: Path) -> Shown:
    """The card with everything that stands still."""
    everything = [*catalog.lessons(root), *catalog.labs(root)]
    everything.sort(key=lambda item: (item.number, isinstance(item, Lab)))
    state = home_of(track, document, note)
    return Shown(text(state), html(state, [*everything, *catalog.pages(root)]))


def live(shown: Shown) -> Shown:
    """The card, and the notebooks that run now."""
    kernels = running.kernels()
    if not kernels:
        return shown
    table = html_table(running.HEAD, [kernel.row for kernel in kernels])
    gigabytes = sum(kernel.memory_bytes for kernel in kernels) / 1e9
    summary = f"{len(kernels)} running, {gigabytes:.1f} GB"
    return Shown(shown.text, shown.html + fold(summary, f"{table}<p>{running.RULE}</p>"))
