"""A real browser for tests: Debian's Chromium, and axe-core, which finds what shuts people out."""

import contextlib
import functools
import os
import shutil
import socket
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pytest

WAIT_MS = 120_000
"""How long a page may take for anything: beside other tests two processors are busy."""


def chromium() -> str:
    """The path of Debian's Chromium. Missing is a failure, unless there is no way to install it."""
    for name in ("chromium", "chromium-browser"):
        if path := shutil.which(name):
            return path
    may_install = shutil.which("apt-get") and os.geteuid() == 0
    if may_install:
        pytest.fail("Chromium is missing: apt-get install chromium, or: python3 course.py test")
    pytest.skip("NOT TESTED: the browser. Chromium is missing and apt-get cannot be used here")


@contextlib.contextmanager
def launch() -> Iterator[Any]:
    """A browser of playwright."""
    from playwright.sync_api import sync_playwright  # late: slow to load

    flags = ["--disable-dev-shm-usage", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=flags)
        for make in ("new_page", "new_context"):
            setattr(browser, make, _patient(getattr(browser, make)))
        yield browser
        browser.close()


def _patient(make: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(make)
    def made(*arguments: Any, **options: Any) -> Any:
        page = make(*arguments, **options)
        page.set_default_timeout(WAIT_MS)
        return page

    return made


def violations(page: Any, context: Any = None) -> set[str]:
    """What axe-core finds wrong with a page, or with the part of it that `context` names."""
    from axe_playwright_python.sync_playwright import Axe  # late, as playwright

    return {
        f"{item['id']}: {node['html'][:200]}"
        for item in Axe().run(page, context=context).response["violations"]
        for node in item["nodes"]
    }


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def answers(url: str) -> bool:
    """Whether a server is there."""
    with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=2) as reply:
        return reply.status == 200
    return False


def note_foreign(url: str, server: str, foreign: list[str]) -> None:
    """Note an address that is not this server's."""
    own = (server, server.replace("http:", "ws:"), "data:", "blob:", "about:")
    if not url.startswith(own):
        foreign.append(url)
