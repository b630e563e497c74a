"""A learner's way in a real browser: open lesson 03, run it, move a slider, see the result."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser import answers, free_port, launch, note_foreign, violations
from utils.cli.server import options
from utils.course import copies, kernel_server, progress
from utils.course.catalog import ROOT
from utils.course.runner import kernel_environment

LESSON = "notebooks/03_lazy_tensors.ipynb"
CLAIMS = "notebooks/claims.ipynb"
HOME = "notebooks/00_start_here.ipynb"
COPIED = ("labs", "notebooks", "utils")
TOKEN = "test"
PAGE_PX = 4000
"""What axe-core looks at in one go: it takes a second to begin."""
START_S, RUN_MS, WIDGET_MS = 180, 240_000, 240_000

# The kernel's own words are waited for: the page says "idle" before the kernel is connected.
CONNECTED = """async () => {
    const panel = window.jupyterapp.shell.currentWidget;
    await panel.context.ready;
    await panel.sessionContext.ready;
    const kernel = panel.sessionContext.session.kernel;
    await kernel.info;
    return kernel.name;
}"""
RUN_ALL = "() => window.jupyterapp.commands.execute('notebook:run-all-cells')"
ERRORS = """() => [...window.jupyterapp.shell.currentWidget.model.cells].flatMap(cell =>
    cell.type !== 'code' ? [] : cell.outputs.toJSON()
        .filter(output => output.output_type === 'error')
        .map(output => `${cell.id}: ${output.ename}: ${output.evalue}`))"""
# A slider shows its own number: only what stands beside it is the result.
RESULT = """(cell) => {
    const copy = cell.querySelector('.jp-Cell-outputWrapper').cloneNode(true);
    copy.querySelectorAll('label').forEach(label => label.remove());
    return copy.textContent;
}"""
# The kernel's facts come into the notebook a moment after they are known.
CHANGED = """async () => {
    await new Promise(done => setTimeout(done, 2000));
    const model = window.jupyterapp.shell.currentWidget.model;
    return [model.dirty, model.getMetadata('language_info').file_extension];
}"""
OURS = {"include": [[".jp-OutputArea"], [".jp-RenderedMarkdown"]]}
FIGURE = ".course-figure img"
# Waited for, because a figure that is drawn anew leaves the page for a moment.
STYLED = """([selector, name, value]) => {
    const element = document.querySelector(selector);
    return element !== null && getComputedStyle(element)[name] === value;
}"""
THEME = "theme => window.jupyterapp.commands.execute('apputils:change-theme', {theme})"
COUNT = "words => document.querySelector('.dt-info')?.innerText.includes(words)"


@pytest.fixture(scope="module")
def course_copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The course without its environment: what is run in a browser is saved there."""
    root = tmp_path_factory.mktemp("course")
    for name in COPIED:
        shutil.copytree(
            ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__", ".ipynb_*")
        )
    assert copies.sync(root)
    return root


@pytest.fixture(scope="module")
def server(course_copy: Path) -> Iterator[str]:
    """JupyterLab as `course.py start` runs it, on the copy. Returns its address."""
    port = free_port()
    own = ("JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR")
    kernels = kernel_environment(server=kernel_server.socket_path())
    with kernels as environment, open(course_copy / "log", "w+") as log:
        environment |= {name: str(course_copy / ".jupyter") for name in own}
        environment |= {"PJRT_DEVICE": "CPU", "COURSE_STRICT": "0"}
        command = [sys.executable, "-m", "jupyterlab", *options(course_copy, os.geteuid() == 0)]
        command += ["--no-browser", f"--port={port}", f"--IdentityProvider.token={TOKEN}"]
        command += ["--LabApp.expose_app_in_browser=True"]
        process = subprocess.Popen(
            command, cwd=course_copy, env=environment, stdout=log, stderr=subprocess.STDOUT
        )
        try:
            address = f"http://127.0.0.1:{port}"
            deadline = time.monotonic() + START_S
            while not answers(f"{address}/api/status?token={TOKEN}"):
                if process.poll() is not None or time.monotonic() > deadline:
                    log.seek(0)
                    pytest.fail(f"JupyterLab did not start:\n{log.read()[-2000:]}")
                time.sleep(0.2)
            yield address
        finally:
            process.terminate()
            process.wait()


@contextlib.contextmanager
def open_page(server: str, notebook: str) -> Iterator[Any]:
    """The page of a notebook whose cells have all run, without an error or a foreign request."""
    errors: list[str] = []
    foreign: list[str] = []
    with launch() as browser:
        page = browser.new_page(viewport={"width": 1400, "height": 1000})
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("request", lambda request: note_foreign(request.url, server, foreign))
        page.goto(f"{server}/lab/tree/{notebook}?reset&token={TOKEN}")
        page.wait_for_selector(".jp-NotebookPanel .jp-Cell", timeout=RUN_MS)
        assert page.evaluate(CONNECTED) == "python3"

        if notebook.startswith(copies.FOLDER):
            # Else JupyterLab would ask whether to save it, and it would count as edited ever after.
            assert page.evaluate(CHANGED) == [False, ".py"]

        page.set_default_timeout(RUN_MS)
        ran = page.evaluate(RUN_ALL)
        assert page.evaluate(ERRORS) == []
        assert ran is True

        page.set_default_timeout(WIDGET_MS)
        yield page
    assert errors == []
    assert foreign == [], "the page asked for something outside this machine"


def test_a_learner_runs_a_copy_of_lesson_03_predicts_and_moves_its_slider(server: str) -> None:
    with open_page(server, f"{copies.FOLDER}/{LESSON}") as page:
        text = "() => document.querySelector('.jp-NotebookPanel').textContent"
        box = page.get_by_label("nodes of the graph of y")
        box.scroll_into_view_if_needed()
        assert "Closed until you predict" in page.evaluate(text)
        assert "You predicted" not in page.evaluate(text)
        box.fill("4")
        box.press("Enter")
        page.get_by_text("You predicted 4: ").wait_for()
        page.get_by_role("button", name="Show me").nth(1).press("Enter")
        page.get_by_text("t.clone() ").first.wait_for()  # the table of the second section

        slider = page.get_by_role("slider").first  # the browser's own, with a label
        slider.scroll_into_view_if_needed()
        cell = page.locator(".jp-Cell:has(input[type=range])").first.element_handle()
        before = cell.evaluate(RESULT)
        slider.focus()
        page.keyboard.press("ArrowLeft")
        page.wait_for_function(
            f"([cell, before]) => ({RESULT})(cell) !== before", arg=[cell, before]
        )
        assert cell.evaluate(RESULT).strip()
        assert_fit_for_the_dark_theme(page)
        assert_accessible(page)


def assert_fit_for_the_dark_theme(page: Any) -> None:
    """Figures turn light on dark, and printed lines are not broken inside of words."""
    page.wait_for_function(STYLED, arg=[FIGURE, "filter", "none"])
    page.evaluate(THEME, "JupyterLab Dark")
    page.wait_for_function(STYLED, arg=[FIGURE, "filter", "invert(0.93) hue-rotate(180deg)"])
    printed = ".jp-OutputArea-output.jp-RenderedText pre"
    page.wait_for_function(STYLED, arg=[printed, "wordBreak", "normal"])
    page.wait_for_timeout(1000)  # JupyterLab still takes the other theme's style away
    page.evaluate(THEME, "JupyterLab Light")
    page.wait_for_function(STYLED, arg=[FIGURE, "filter", "none"])
    page.wait_for_timeout(1000)


def assert_accessible(page: Any) -> None:
    """No violation that axe-core finds in what cells show; JupyterLab around them is not ours.

    JupyterLab draws only what is in view, so the notebook is looked at page by page.
    """
    pane = "document.querySelector('.jp-NotebookPanel .jp-WindowedPanel-outer')"
    page.set_viewport_size({"width": 1400, "height": PAGE_PX + 200})
    page.wait_for_timeout(300)
    height = page.evaluate(f"() => {pane}.scrollHeight")
    problems: set[str] = set()
    for top in range(0, height, PAGE_PX):
        page.evaluate(f"() => {{ {pane}.scrollTop = {top}; }}")
        page.wait_for_timeout(300)
        problems |= violations(page, OURS)
    assert problems == set()


def test_the_first_page_leads_a_learner_to_the_open_exercise(server: str) -> None:
    progress.reset("all")  # the file of these tests, which the kernels read too
    progress.finish_lesson("lesson03")
    progress.record("lab03.ex1", "passed", 6)
    with open_page(server, f"{copies.FOLDER}/{HOME}") as page:
        page.get_by_label("Track").select_option("Workshop of 90 minutes")
        page.get_by_role("heading", name="Workshop of 90 minutes").wait_for()
        page.locator("summary", has_text="running").click()
        page.get_by_text("work/notebooks/00_start_here.ipynb").wait_for()
        assert_accessible(page)
        page.get_by_role("link", name="Continue: lab03.ex2").click()
        page.get_by_role("heading", name="Exercise 2 · A sync budget").wait_for()
        path = page.evaluate("() => window.jupyterapp.shell.currentWidget.context.path")
        assert path == f"{copies.FOLDER}/labs/lab03_lazy_tensors/lab03_lazy_tensors.ipynb"


@pytest.mark.exhaustive
@pytest.mark.parametrize("lab", ["lab03_lazy_tensors", "lab09_nki_basics"])
def test_tasks_and_cards_of_an_untouched_lab_are_accessible(server: str, lab: str) -> None:
    with open_page(server, f"{copies.FOLDER}/labs/{lab}/{lab}.ipynb") as page:
        page.get_by_text("not attempted").first.wait_for()
        assert_accessible(page)


def test_a_reader_filters_searches_and_sorts_the_claims(server: str) -> None:
    with open_page(server, CLAIMS) as page:
        page.locator(".jp-Cell:has(.dt-container)").last.scroll_into_view_if_needed()
        page.wait_for_function(COUNT, arg="361 entries")
        page.locator(".dtsp-name", has_text=re.compile("^nki$")).click()
        page.wait_for_function(COUNT, arg="14 entries")
        page.locator(".dt-search input").fill("snippet is ready")
        page.wait_for_function(COUNT, arg="of 1 entry")
        assert (
            "indentation" in page.locator("table.dataTable", has_text="A-106").inner_text().lower()
        )
        page.locator(".dt-search input").fill("")
        page.wait_for_function(COUNT, arg="14 entries")
        heads = page.locator("table.dataTable th", has_text="an article says")
        heads.last.click()
        first = page.locator("table.dataTable tbody tr", has_text="A-").first
        first.filter(has_text="@nki.jit").wait_for()  # until the table is sorted


def test_the_lesson_has_one_cell_tagged_as_widget() -> None:
    cells = json.loads((ROOT / LESSON).read_text(encoding="utf-8"))["cells"]
    tagged = [cell["id"] for cell in cells if "widget" in cell["metadata"].get("tags", [])]
    assert len(tagged) == 1
