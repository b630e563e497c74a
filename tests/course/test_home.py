"""The first page sends a learner to the right next step, in every track and from any progress."""

import asyncio
import datetime
import json
import threading
from collections.abc import Iterator
from html.parser import HTMLParser
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.course.kernels import start_kernel
from utils.cli.commands import home as command
from utils.course import catalog, copies, home, progress, running, tracks
from utils.course.catalog import ROOT, CatalogError
from utils.course.earlier import WANTED
from utils.course.home import home_of
from utils.course.kernels import FewKernels
from utils.course.tracks import Track

TRACKS = tracks.tracks(ROOT)
EXERCISES = {e.id: e for lab in catalog.labs(ROOT) for e in lab.exercises}
every_track = pytest.mark.parametrize("track", TRACKS.values(), ids=TRACKS)


@st.composite
def documents(draw: st.DrawFn) -> progress.Document:
    """Any progress; half of it as a learner leaves it who goes through a track in order."""
    document = progress.nothing()
    track = draw(st.sampled_from(list(TRACKS.values())))
    for stop in track.stops[: draw(st.integers(0, len(track.stops)))]:
        if stop.exercise:
            full = progress.Entry(points=stop.exercise.points, attempts=1)
            document["exercises"][stop.id] = full
        else:
            document["lessons"][stop.id] = "done"
    shares = st.dictionaries(st.sampled_from(list(EXERCISES)), st.sampled_from([0, 0.5, 1]))
    for name, share in draw(shares).items():
        points = share * EXERCISES[name].points
        document["exercises"][name] = progress.Entry(points=points, attempts=2)
    lessons = [lesson.number for lesson in catalog.lessons(ROOT)]
    states = st.dictionaries(st.sampled_from(lessons), st.sampled_from(["begun", "done"]))
    return {**document, "lessons": {**document["lessons"], **draw(states)}}


@given(st.sampled_from(list(TRACKS.values())), documents())
def test_continue_is_the_first_step_that_is_open(track: Track, document: progress.Document) -> None:
    page = home_of(track, document)
    here = page.continue_at
    assert [step.stop for step in page.steps] == list(track.stops)
    if here is None:
        assert {step.state for step in page.steps} == {"done"}
        assert (page.minutes_left, page.otherwise, home.where(page)) == (
            0,
            None,
            "All of it is done.",
        )
        return
    place = page.steps.index(here)
    assert here.state != "done" and all(step.state == "done" for step in page.steps[:place])
    assert page.minutes_left == sum(s.stop.minutes for s in page.steps if s.state != "done") > 0
    if here.stop.exercise:
        won = document["exercises"].get(here.stop.id, {"points": 0})["points"]
        assert won < here.stop.exercise.points
        lessons = [s.stop.id for s in page.steps[:place] if not s.stop.exercise]
        assert here.stop.notebook.number in lessons
    else:
        assert document["lessons"].get(here.stop.id) != "done"
    if other := page.otherwise:
        assert other.state != "done" and page.steps.index(other) > place
        assert other.stop.notebook != here.stop.notebook
    assert "Continue: " in home.text(page)


@pytest.mark.parametrize(
    ("exercises", "lessons", "expected", "sentence"),
    [
        ({}, {}, "00", "You have not begun yet."),
        ({}, {"00": "begun"}, "00", "You are in lesson 00."),
        ({}, {"00": "done"}, "03", "Next comes lesson 03."),
        ({}, {"00": "done", "03": "begun"}, "03", "You are in lesson 03."),
        ({}, {"03": "begun"}, "03", "You are in lesson 03."),
        ({}, {"00": "done", "03": "done"}, "lab03.ex1", "You are in lab 03: 0 of 14 points."),
        ({"lab03.ex1": 6}, {"00": "done", "03": "done"}, "lab03.ex2", "6 of 14 points"),
        # An older course recorded no lessons: who has tried the lab is past its lesson.
        ({"lab03.ex1": 6, "lab03.ex2": 5}, {}, "lab03.ex2", "11 of 14 points"),
        ({"lab03.ex1": 3, "lab03.ex2": 8}, {}, "lab03.ex1", "11 of 14 points"),
        ({"lab09.ex1": 6}, {}, "03", "Next comes lesson 03."),
    ],
)
def test_where_a_learner_of_the_workshop_is(exercises, lessons, expected, sentence) -> None:
    won = {name: progress.Entry(points=points, attempts=1) for name, points in exercises.items()}
    document = {**progress.nothing(), "exercises": won, "lessons": lessons}
    page = home_of(TRACKS["workshop"], document)
    assert page.continue_at.stop.id == expected
    assert sentence in home.where(page)


# ---- tracks


@every_track
def test_a_track_keeps_its_promise_and_its_order(track: Track) -> None:
    ids = [stop.id for stop in track.stops]
    assert len(set(ids)) == len(ids) and ids[0] == "00"
    for part in track.parts:
        assert track.most is None or sum(stop.minutes for stop in part) <= track.most
    for place, stop in enumerate(track.stops):
        before = ids[:place]
        needed = [stop.notebook.number] if stop.exercise else stop.notebook.after
        assert set(needed) <= set(before), f"{stop.id} builds on {needed}"
        if stop.id == "lab15.ex4":
            assert {item.id for item in WANTED["lab15"]} <= set(before)
    assert track.whom.endswith(".") and len(track.parts) == (track.stops[-1].part)


def test_promises_are_those_of_the_names_and_the_first_track_holds_everything() -> None:
    most = {key: track.most for key, track in TRACKS.items() if track.most}
    assert most == {"course": 200, "workshop": 90, "half-day": 240, "two-days": 420}
    assert len(TRACKS["two-days"].parts) == 2
    everything = {*EXERCISES, *(lesson.number for lesson in catalog.lessons(ROOT))}
    assert next(iter(TRACKS)) == "course"
    assert {stop.id for stop in TRACKS["course"].stops} == everything, "name it in tracks.yaml"


@pytest.mark.parametrize("name", ['"98"', "lab98", "lab99.ex7", "claims"])
def test_a_track_that_names_nothing_is_refused(course: Path, name: str) -> None:
    file = course / tracks.FILE
    file.write_text(file.read_text().replace("lab99.ex2", name))
    with pytest.raises(CatalogError, match=rf"track 'all' names '{name.strip(chr(34))}'"):
        tracks.tracks(course)


# ---- the card


class Page(HTMLParser):
    """Notes links and texts, and fails where an element is not closed in its order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.links: list[tuple[str, str]] = []
        self.open: list[str] = []
        self.tags: list[str] = []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.tags.append(tag)
        if tag == "a":
            self.links.append((dict(attrs)["href"] or "", ""))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "a" in self.open:
            self.links[-1] = (self.links[-1][0], self.links[-1][1] + data)


@every_track
def test_the_card_is_one_page_whose_links_lead_somewhere(track: Track, tmp_path: Path) -> None:
    for count in (0, len(track.stops) // 2, len(track.stops)):
        document = progress.nothing()
        for stop in track.stops[:count]:
            if stop.exercise:
                entry = progress.Entry(points=stop.exercise.points, attempts=1)
                document["exercises"][stop.id] = entry
            else:
                document["lessons"][stop.id] = "done"
        card = home.card(track, document, "a note", ROOT)
        page = Page(card.html)
        texts = [text for _, text in page.links]
        going_on = [text for text in texts if text.startswith("Continue: ")]
        on_this_page = count == 0 and track.stops[0].id == "00"
        assert len(going_on) == (count < len(track.stops) and not on_this_page)
        assert ("Read on below" in card.html) == on_this_page
        for href, _ in page.links:
            path, _, cell = href.partition("#cell-id=")
            assert (ROOT / "notebooks" / path).is_file()
            if cell:
                notebook = catalog.read_notebook(ROOT / "notebooks" / path)
                assert cell in [item["id"] for item in notebook["cells"]]
        assert {"h3", "label", "progress", "th", "details", "summary"} <= set(page.tags)
        assert "style" not in page.tags and "color" not in card.html
        assert "a note" in card.html and card.text.endswith("a note")
        assert len(card.text.splitlines()) < 25


def test_links_of_the_card_hold_among_a_learners_copies(course: Path) -> None:
    (course / "labs").mkdir()
    (course / "labs" / "lab99_sums").symlink_to(course / "solutions" / "lab99_sums")
    copies.sync(course)
    html = home.card(tracks.tracks(course)["all"], progress.nothing(), "", course).html
    for href, _ in Page(html).links:
        for folder in (course, copies.folder(course)):
            assert (folder / "notebooks" / href.partition("#")[0]).exists(), href


def test_the_stored_card_is_that_of_a_beginner(course: Path) -> None:
    progress.finish_lesson("lesson99", course)
    shown = home.home(root=course)
    assert shown.text.startswith("All. You have not begun yet.\nContinue: lesson 99 · Counting")


def test_the_card_that_the_first_page_stores_is_current(progress_file: Path) -> None:
    path = ROOT / "notebooks" / "00_start_here.ipynb"
    cells = {cell["id"]: cell for cell in catalog.read_notebook(path)["cells"]}
    (output,) = cells["home"]["outputs"]
    text = "store it again: python3 course.py run --save notebooks/00_start_here.ipynb"
    assert "".join(output["data"]["text/plain"]) == repr(home.home()), text
    assert "".join(output["data"]["text/html"]) == home.home()._repr_html_(), text


def test_the_card_in_a_terminal_follows_progress_and_track(course: Path, relaxed) -> None:
    progress.finish_lesson("lesson99", course)
    assert repr(home.home(root=course)).splitlines() == [
        "All. You are in lab 99: 0 of 12 points.",
        "Continue: lab99.ex1 · Twice · 5 min",
        "  ◐ begun  99 Counting  0 of 12 points  15 min",
        "left: 15 min",
    ]
    assert "no track 'nights'; there is: all" in repr(home.home("nights", course))
    home.home("all", course)
    assert progress.document(course)[0]["track"] == "all"
    progress.progress_file().write_text("{")
    assert "was damaged" in repr(home.home(root=course))


def test_a_terminal_has_it_too(progress_file: Path, relaxed, capsys) -> None:
    assert command.main(["serving"]) == 0 and progress.document()[0]["track"] == "serving"
    assert capsys.readouterr().out.startswith("Serving. You have not begun yet.")


def test_a_track_is_chosen_from_a_menu(progress_file: Path, relaxed, monkeypatch) -> None:
    shown, updates = [], []
    monkeypatch.setattr(home, "running_shell", lambda: object())
    monkeypatch.setattr(
        "IPython.display.display",
        lambda item, **_: shown.append(item) or SimpleNamespace(update=updates.append),
    )
    kernel = running.Kernel("work/notebooks/00_start_here.ipynb", False, 1500, 600_000_000)
    monkeypatch.setattr(running, "kernels", lambda: [kernel])
    assert home.home() is None
    menu, card = shown
    assert (menu.description, menu.value) == ("Track", "course")
    menu.value = "kernels"
    assert progress.document()[0]["track"] == "kernels"
    assert "<h3>The whole course</h3>" in card.html and "<h3>Writing kernels" in updates[0].html
    assert "1 running, 0.6 GB" in card.html and "idle for 25 min" in card.html


def test_a_lesson_is_begun_in_a_kernel_and_done_when_all_its_questions_are(
    progress_file: Path,
) -> None:
    def recorded() -> dict[str, str]:
        return progress.document()[0]["lessons"]

    variables = {"COURSE_PROGRESS": str(progress_file), "COURSE_STRICT": "0"}
    with start_kernel(variables) as kernel:
        kernel.run("from utils.course.lesson import *; begin('lesson03'); Recap()")
        assert recorded() == {"03": "begun"}
        kernel.run("predict(nodes=None, triggers=None); Recap()")
        assert recorded() == {"03": "begun"}
        kernel.run("predict(nodes=5, triggers='show'); Recap()")
        assert recorded() == {"03": "done"}
        kernel.run("begin('lesson03')")
        outputs = kernel.run("from utils.course.home import home; home()")
    menu, card = (o["data"] for o in outputs if o["msg_type"] == "display_data")
    assert "widget" in str(menu) and "Next comes lesson 01." in card["text/html"]
    assert recorded() == {"03": "done"}


# ---- kernels


def test_idle_kernels_end_except_for_the_last_three(monkeypatch) -> None:
    """Seven kernels: four idle for long, one of them busy, one idle for a minute, two fresh."""
    manager, ended = FewKernels(), []
    now = datetime.datetime.now(datetime.UTC)

    async def shutdown(kernel_id: str) -> None:
        ended.append(kernel_id)
        del manager._kernels[kernel_id]

    monkeypatch.setattr(manager, "shutdown_kernel", shutdown)
    minutes = {"busy": 90, "a": 80, "b": 70, "c": 60, "d": 19, "e": 1, "f": 0}
    for name, idle in minutes.items():
        manager._kernels[name] = SimpleNamespace(
            last_activity=now - datetime.timedelta(minutes=idle),
            execution_state="busy" if name == "busy" else "idle",
            kernel_name="python3",
            kernel_spec=SimpleNamespace(metadata={}),
        )
        manager._kernel_connections[name] = 1
    manager._kernels["starting"] = SimpleNamespace()
    asyncio.run(manager.cull_kernels())
    assert ended == ["a", "b", "c"]
    for name in ("d", "e", "f"):
        manager._kernels[name].last_activity = now - datetime.timedelta(hours=9)
    del manager._kernels["busy"], manager._kernels["starting"]
    asyncio.run(manager.cull_kernels())
    assert ended == ["a", "b", "c"] and manager.cull_interval == 60


@pytest.fixture
def jupyter(tmp_path: Path, monkeypatch) -> Iterator[list[str]]:
    """A server that lists two notebooks, as the Jupyter that started this kernel; what it hears."""
    heard: list[str] = []
    now = datetime.datetime.now(datetime.UTC)
    sessions = [
        {
            "path": name,
            "kernel": {"id": name, "last_activity": when.isoformat(), "execution_state": state},
        }
        for name, when, state in (
            ("a.ipynb", now - datetime.timedelta(minutes=30), "idle"),
            ("b.ipynb", now, "busy"),
        )
    ]

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            heard.append(f"{self.path} {self.headers['Authorization']}")
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(sessions).encode())

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    messages = {"url": f"http://127.0.0.1:{server.server_port}/", "token": "secret"}
    (tmp_path / "jpserver-7.json").write_text(json.dumps(messages))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("JPY_PARENT_PID", "7")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield heard
    server.shutdown()
    thread.join()
    server.server_close()


def test_the_running_notebooks_are_asked_of_the_server(jupyter: list[str], monkeypatch) -> None:
    monkeypatch.setattr(running, "_memory", lambda: {"a.ipynb": 600_000_000})
    assert [kernel.row for kernel in running.kernels()] == [
        ("b.ipynb", "busy", ""),
        ("a.ipynb", "idle for 30 min", "0.6 GB"),
    ]
    assert jupyter == ["/api/sessions token secret"]


def test_without_a_server_nothing_runs(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path))
    assert running.kernels() == []
