"""The pages of a class: a learner hands in, the teacher sees the progress of all.

`python -m utils.cli.hub.pages`, a service that JupyterHub starts. It also watches what everybody's
processes use, so that a hub with much to do is no reason for a notebook to fill the memory.
"""

import asyncio
import contextlib
import datetime
import json
import os
import secrets
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

from jupyterhub.httpclient import fetch
from jupyterhub.services.auth import HubOAuthCallbackHandler, HubOAuthenticated
from jupyterhub.utils import url_path_join
from tornado import web

from utils.cli.hub import handin, people, watch
from utils.cli.hub.handin import NotHandedIn
from utils.course import catalog, progress
from utils.course.catalog import ROOT, Lab
from utils.labs.grading.confine import Limits

PROGRESS_BYTES = 2 << 20


@dataclass
class Classroom:
    """What the pages know. noticed: {name: what to tell about the last process that was ended}."""

    folder: Path
    run: Path
    limits: Limits
    uses: dict[str, watch.Use]
    noticed: dict[str, str]

    @property
    def known(self) -> people.Class:
        """The class, read anew."""
        return people.load(self.folder)

    def look(self) -> None:
        """Count what everybody uses, and end what is too much."""
        sandboxes = {}
        for path in self.run.glob("*.sandbox"):
            with contextlib.suppress(OSError, ValueError):
                sandboxes[path.stem] = int(path.read_text())
        self.uses = watch.uses(sandboxes)
        for name, use in self.uses.items():
            if message := watch.end_excess(name, use, self.limits):
                self.noticed[name] = f"At {time.strftime('%H:%M')} {message}."

    async def watch(self) -> None:
        """Look again and again, as long as the hub that started this lives."""
        hub = os.getppid()
        while os.getppid() == hub:
            await asyncio.to_thread(self.look)
            await asyncio.sleep(watch.EVERY_S)

    async def end_idle(self, minutes: float) -> None:
        """Every minute, end the servers that did nothing for so long.

        jupyterhub-idle-culler does this over a network only, and the hub listens on a file.
        """
        api, token = os.environ["JUPYTERHUB_API_URL"], os.environ["JUPYTERHUB_API_TOKEN"]
        headers = {"Authorization": f"token {token}"}
        while True:
            await asyncio.sleep(min(60, 60 * minutes))
            with contextlib.suppress(Exception):  # the hub may be busy: next time
                response = await fetch(f"{api}/users?state=ready", headers=headers)
                for user in json.loads(response.body):
                    if idle_minutes(user) > minutes:
                        place = f"{api}/users/{user['name']}/server"
                        await fetch(place, method="DELETE", headers=headers)


def idle_minutes(user: dict[str, Any]) -> float:
    """For how long the server of somebody did nothing, as the hub's API tells it."""
    server = user["servers"].get("", {})
    last = server.get("last_activity") or server.get("started")
    if not last:
        return 0.0
    since = datetime.datetime.fromisoformat(last)
    return (datetime.datetime.now(datetime.UTC) - since).total_seconds() / 60


def read_progress(work: Path) -> tuple[progress.Document, float]:
    """What somebody's progress file says and when it was written; nothing if it makes no sense."""
    try:
        content, written = handin.read_plain(work, (".progress.json",), PROGRESS_BYTES)
        return progress.read(content), written
    except (OSError, ValueError):
        return progress.nothing(), 0.0


def lab_row(lab: Lab, document: progress.Document, work: Path, handed: Path) -> dict[str, Any]:
    """What the pages show of one lab of one person."""
    saved = 0.0
    with contextlib.suppress(OSError):
        saved = os.lstat(work.joinpath(*handin.place_of(lab))).st_mtime
    entries = [(document["exercises"].get(e.id), e.points) for e in lab.exercises]
    won = sum(min(max(entry["points"], 0), most) for entry, most in entries if entry)
    when = handed.stat().st_mtime if handed.exists() else 0.0
    times = {"saved": clock(saved), "handed": clock(when), "since": saved > when > 0}
    return {"lab": lab, "won": won, **times}


def clock(when: float) -> str:
    """A time of today as hours and minutes, an earlier one with its date; "" for none.

    >>> clock(0.0)
    ''
    """
    at = time.localtime(when)
    day = "" if at[:3] == time.localtime()[:3] else "%d %b "
    return time.strftime(f"{day}%H:%M", at) if when else ""


class Page(HubOAuthenticated, web.RequestHandler):
    """A page for somebody of the class."""

    @property
    def classroom(self) -> Classroom:
        """What all pages know."""
        return self.settings["classroom"]

    def set_default_headers(self) -> None:
        """Nothing from elsewhere, no script at all, in nobody's frame."""
        policy = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"
        self.set_header("Content-Security-Policy", f"{policy}; form-action 'self'")
        self.set_header("Cache-Control", "no-store")

    def person(self) -> people.Person:
        """Who asks. Raises HTTPError for whoever is not in the class."""
        person = self.classroom.known.people.get(self.current_user["name"])
        if person is None:
            raise web.HTTPError(403)
        return person

    def show(self, template: str, **values: Any) -> None:
        """Send a page."""
        self.finish(people.render(template, here=self.settings["prefix"], **values))


class Own(Page):
    """The page of a learner."""

    @web.authenticated
    def get(self) -> None:
        """Labs with their points, and a button to hand in."""
        self._answer("")

    @web.authenticated
    def post(self) -> None:
        """Hand in one lab."""
        person, known = self.person(), self.classroom.known
        name = self.get_body_argument("lab")
        lab = next((lab for lab in catalog.labs(ROOT) if lab.name == name), None)
        if lab is None:
            raise web.HTTPError(400)
        try:
            handin.hand_in(known.work(person.name), known.submissions, person.name, lab)
        except NotHandedIn as error:
            self._answer(f"{name} was not handed in: {error}.", failed=True)
            return
        self._answer(f"{name} is handed in, as it was saved. You can hand it in again.")

    def _answer(self, message: str, failed: bool = False) -> None:
        person, known = self.person(), self.classroom.known
        work = known.work(person.name)
        document, _ = read_progress(work)
        handed = known.submissions / person.name
        labs = catalog.labs(ROOT)
        rows = [lab_row(lab, document, work, handed / lab.path.name) for lab in labs]
        self.show(
            "own.html.jinja",
            person=person,
            rows=rows,
            message=message,
            failed=failed,
            noticed=self.classroom.noticed.get(person.name, ""),
            xsrf=self.xsrf_token.decode(),
        )


class Progress(Page):
    """The page of the teacher."""

    @web.authenticated
    def get(self) -> None:
        """A row for each person; it asks again by itself."""
        if not self.person().teacher:
            raise web.HTTPError(403)
        paused = bool(self.get_query_argument("paused", ""))
        if not paused:
            self.set_header("Refresh", "10")
        rows = [self._row(p) for p in self.classroom.known.people.values() if not p.teacher]
        used = sum(use.memory_bytes for use in self.classroom.uses.values())
        numbers = sorted({lab["lab"].number for row in rows for lab in row["labs"]})
        values = {
            "time": time.strftime("%H:%M:%S"),
            "used_gb": used / 1e9,
            "labs": numbers,
            "paused": paused,
        }
        self.show("progress.html.jinja", rows=rows, limits=self.classroom.limits, **values)

    def _row(self, person: people.Person) -> dict[str, Any]:
        known, use = self.classroom.known, self.classroom.uses.get(person.name)
        document, written = read_progress(known.work(person.name))
        handed = known.submissions / person.name
        work = known.work(person.name)
        labs = [lab_row(lab, document, work, handed / lab.path.name) for lab in catalog.labs(ROOT)]
        lessons = [number for number, state in document["lessons"].items() if state == "done"]
        return {
            "person": person,
            "labs": [row for row in labs if row["won"] or row["handed"]],
            "lessons": sorted(n for n in lessons if n.isdigit() and len(n) == 2),
            "last": clock(written),
            "memory": f"{use.memory_bytes / 1e9:.1f} GB" if use else "",
            "noticed": self.classroom.noticed.get(person.name, ""),
        }


def application(classroom: Classroom, prefix: str) -> web.Application:
    """The pages below `prefix`."""
    routes = [
        (prefix, Own),
        (url_path_join(prefix, "progress"), Progress),
        (url_path_join(prefix, "oauth_callback"), HubOAuthCallbackHandler),
    ]
    settings: dict[str, Any] = {"cookie_secret": secrets.token_bytes(32), "xsrf_cookies": True}
    return web.Application(routes, **settings, classroom=classroom, prefix=prefix)


async def main() -> None:
    """Serve until the hub ends this."""
    given = json.loads(os.environ["COURSE_HUB"])
    limits = Limits(memory_bytes=given["memory_bytes"], processes=given["processes"])
    classroom = Classroom(Path(given["folder"]), Path(given["run"]), limits, {}, {})
    address = urlparse(os.environ["JUPYTERHUB_SERVICE_URL"])
    pages = application(classroom, os.environ["JUPYTERHUB_SERVICE_PREFIX"])
    pages.listen(address.port or 0, address.hostname)
    idle = asyncio.create_task(classroom.end_idle(given["idle_minutes"]))
    await classroom.watch()
    idle.cancel()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):  # how a hub ends its services
        asyncio.run(main())
