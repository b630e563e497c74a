"""The cost model as a page in a real browser: change an input, share the link, take files along."""

import contextlib
import csv
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser import answers, free_port, launch, note_foreign, violations
from utils.cost.tco.fields import FIELDS
from utils.course.catalog import ROOT
from utils.course.runner import kernel_environment

START_S, WAIT_MS = 120, 120_000
PHONE = {"width": 360, "height": 740}
READY = ".tco-drawn:nth-child(9) img"
UNNAMED = """() => [...document.querySelectorAll('main :is(input, select)')]
    .filter(box => !box.labels.length).length"""


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[str, int]]:
    """The page as `course.py tco` serves it. Returns its address and the server's process."""
    port = free_port()
    with kernel_environment() as environment, open(tmp_path / "log", "w+") as log:
        command = [sys.executable, ROOT / "course.py", "--inside", "tco", "--no-browser"]
        process = subprocess.Popen(
            [*command, f"--port={port}"],
            cwd=tmp_path,
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            address = f"http://localhost:{port}"
            deadline = time.monotonic() + START_S
            # The page itself would start a kernel.
            while not answers(f"{address}/voila/templates/tco/static/page.js"):
                if process.poll() is not None or time.monotonic() > deadline:
                    log.seek(0)
                    pytest.fail(f"the page did not start:\n{log.read()[-2000:]}")
                time.sleep(0.1)
            yield address, process.pid
        finally:
            process.terminate()
            process.wait()
        log.seek(0)
        assert log.read().splitlines()[0] == f"What would it cost? The page is at {address}/"


def status(url: str, host: str = "") -> int:
    """The status of a request, redirections followed."""
    request = urllib.request.Request(url, headers={"Host": host} if host else {})
    try:
        with urllib.request.urlopen(request, timeout=10) as reply:
            return reply.status
    except urllib.error.HTTPError as error:
        return error.code


def kernels(server: int) -> int:
    """How many kernels a server has."""
    result = 0
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            child = f"\nPPid:\t{server}\n" in (process / "status").read_text()
            result += child and b"ipykernel" in (process / "cmdline").read_bytes()
    return result


def opened(context: Any, url: str) -> Any:
    page = context.new_page()
    page.set_default_timeout(WAIT_MS)
    page.goto(url, wait_until="commit")
    page.wait_for_selector(f"{READY}, .tco-fault")
    faults = page.locator(".tco-fault").all_inner_texts()
    assert faults == []
    return page


def saved(page: Any, button: str) -> bytes:
    with page.expect_download() as waiting:
        page.get_by_role("button", name=button).click()
    return Path(waiting.value.path()).read_bytes()


def test_a_visitor_changes_an_input_shares_the_link_and_takes_files_along(
    served: tuple[str, int],
) -> None:
    server, process = served
    for path in ("dashboard.ipynb", "page.py", "voila/files/page.py", "voila/files/dashboard.ipynb",
                 "api/contents", "api/kernels"):  # fmt: skip
        assert status(f"{server}/{path}") == 403, path
    assert status(server, host="elsewhere.example") == 403

    errors: list[str] = []
    foreign: list[str] = []
    with launch() as browser:
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        context.on("request", lambda request: note_foreign(request.url, server, foreign))
        context.on("weberror", lambda error: errors.append(str(error.error)))
        page = opened(context, f"{server}/?scenario=lora-13b")
        assert "import" not in page.locator("main").inner_text(), "the page shows source code"

        # With the keyboard alone; the name of a box is its title and its own label.
        weeks = page.get_by_role("textbox", name=FIELDS["weeks"].label)
        headline = page.locator(".tco-headline")
        assert headline.get_attribute("aria-live") == "polite"
        before = headline.inner_text()
        weeks.first.focus()
        page.keyboard.press("ControlOrMeta+a")
        page.keyboard.type("1.25")
        page.keyboard.press("Tab")
        page.wait_for_function(
            "before => document.querySelector('.tco-headline').innerText !== before", arg=before
        )
        after = headline.inner_text()

        # Bad input: an error by name, and what was there stays.
        runs = page.get_by_role("textbox", name=FIELDS["runs"].label)
        runs.fill("-5")
        runs.press("Enter")
        fault = page.get_by_role("alert").filter(has_text="runs = -5: allowed is 1 or more")
        fault.wait_for()
        assert runs.input_value() == "52" and runs.get_attribute("aria-invalid") == "true"
        assert headline.inner_text() == after

        assert violations(page) == set()
        link = page.get_by_label("Link to what you see").input_value()
        assert link == f"{server}/?scenario=lora-13b&trainium.weeks=1.25" == page.url

        rows = list(csv.DictReader(saved(page, "Save as CSV").decode("utf-8-sig").splitlines()))
        values = {(row["option"], row["name"]): row["value"] for row in rows}
        assert values["trainium", "weeks"] == "1.25"
        assert saved(page, "Save as PDF").startswith(b"%PDF")

        # Who leaves the page stops its kernel, also where no goodbye before it can be said.
        assert kernels(process) == 1
        page.close(run_before_unload=False)
        deadline = time.monotonic() + START_S
        while kernels(process) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert kernels(process) == 0

        # Somebody else opens the link, on a phone: groups are closed until they are asked for.
        phone = browser.new_context(viewport=PHONE)
        phone.on("request", lambda request: note_foreign(request.url, server, foreign))
        other = opened(phone, link)
        assert other.locator(".tco-headline").inner_text() == after
        there = other.get_by_role("textbox", name=FIELDS["weeks"].label).first
        assert not there.is_visible()
        group = other.get_by_role("button", name="Engineering and operations")
        group.press("Enter")
        there.wait_for()
        assert there.input_value() == "1.25" and group.get_attribute("aria-expanded") == "true"
        assert other.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        for image in other.locator("img").all():
            assert len(image.get_attribute("alt")) > 40
        assert other.evaluate(UNNAMED) == 0
        other.get_by_role("link", name="Skip to the results").press("Enter")
        assert other.evaluate("document.querySelector(':target h2').innerText") == "Result"

        # Its server is stopped: the page says that it is dead.
        os.kill(process, signal.SIGTERM)
        other.get_by_role("alert").filter(has_text="no longer answers").wait_for()
    assert errors == []
    assert foreign == [], "the page asked for something outside this machine"
