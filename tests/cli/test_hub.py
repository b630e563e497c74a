"""A hub for a class: who gets in, what is handed in, what limits hold, and the real thing with two
people; with five in browsers at night.
"""

import argparse
import contextlib
import datetime
import hashlib
import html
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import requests
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.browser import free_port, launch, violations
from utils.cli.commands import hub
from utils.cli.hub import handin, pages, people, watch
from utils.cli.hub.people import Class, ClassError
from utils.course import catalog
from utils.course.catalog import ROOT
from utils.course.copies import FOLDER
from utils.course.runner import kernel_environment
from utils.facts import figure
from utils.labs.grading import batch
from utils.labs.grading.confine import Limits
from utils.launch import known, plan
from utils.launch.launch_plans import dollars

LAB = catalog.lab("lab03")
START_S = 120
WAIT_MS = 300_000
HOG = """
import subprocess, sys, time
code = "import time; held = bytearray(700_000_000); time.sleep(600)"
children = [subprocess.Popen([sys.executable, "-Ic", code]) for _ in range(6)]
while True:
    print(sum(child.poll() is None for child in children), "of 6 live")
    time.sleep(1)
"""
ONE = {"cell_type": "code", "source": HOG, "metadata": {}, "outputs": [], "execution_count": None}
KERNEL = {"kernelspec": {"name": "python3", "display_name": "Python 3 (ipykernel)"}}
HOG_NOTEBOOK = {"cells": [ONE], "metadata": KERNEL, "nbformat": 4, "nbformat_minor": 5}


# ---- names and passwords


def test_names_become_safe_folders_and_passwords_are_kept_nowhere(tmp_path: Path) -> None:
    known = Class(tmp_path / "class")
    shown = ["Ada  Lovelace", "Ada Lovelace", "ADA lovelace!", "../../etc", "<b>王</b>", " "]
    passwords = people.add(known, shown)
    assert list(passwords) == ["teacher", "ada-lovelace", "ada-lovelace-2", "etc", "b-b"]
    assert people.add(known, shown) == {}
    people.save(known)
    sheet = people.write_sheet(known, passwords, "https://class.example/")
    text = sheet.read_text()
    assert all(password in text for password in passwords.values())
    assert "&lt;b&gt;王" in text and "<b>" not in text
    stored = tmp_path / "class" / "class.json"
    assert not any(password in stored.read_text() for password in passwords.values())
    assert [oct(path.stat().st_mode & 0o777) for path in (stored, sheet, stored.parent)] == [
        "0o600", "0o600", "0o700",
    ]  # fmt: skip

    known = people.load(known.folder)
    assert people.right(known, "etc", passwords["etc"].upper() + " ")
    assert not people.right(known, "etc", passwords["teacher"])
    assert not people.right(known, "nobody", "")
    renewed = people.renew(known, "etc")["etc"]
    assert people.right(known, "etc", renewed) and not people.right(known, "etc", passwords["etc"])
    assert [person.number for person in known.people.values()] == [0, 1, 2, 3, 4]
    with pytest.raises(ClassError, match="nobody is called 'bob'; there are teacher, ada-lov"):
        people.renew(known, "bob")
    with pytest.raises(ClassError, match="more than 200"):
        people.add(known, map(str, range(300)))
    stored.write_text("{")
    with pytest.raises(ClassError, match="class.json cannot be read"):
        people.load(known.folder)


# ---- to a network


def certificate(folder: Path, days: int = 1, names: tuple[str, ...] = ("a.example",)) -> list[Path]:
    """A certificate that signs itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "class")])
    now = datetime.datetime.now(datetime.UTC)
    begin, end = sorted([now - datetime.timedelta(hours=1), now + datetime.timedelta(days=days)])
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, begin, end)
    if names:
        alternative = x509.SubjectAlternativeName([x509.DNSName(n) for n in names])
        builder = builder.add_extension(alternative, critical=False)
    pem, private = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    paths = [folder / f"{len(list(folder.iterdir()))}.pem" for _ in "ab"]
    paths[1] = paths[0].with_suffix(".key")
    paths[0].write_bytes(builder.sign(key, hashes.SHA256()).public_bytes(pem))
    paths[1].write_bytes(key.private_bytes(pem, private, serialization.NoEncryption()))
    paths[1].chmod(0o600)
    return paths


def test_a_network_needs_a_certificate_that_is_of_use(tmp_path: Path) -> None:
    def address(network: str | None, *pair: Path) -> str:
        both = pair or (None, None)
        given = argparse.Namespace(network=network, certificate=both[0], key=both[1])
        return hub.network_address(given)

    good, key = certificate(tmp_path)
    assert address(None) == "127.0.0.1" == address("127.0.0.1")
    assert address("0.0.0.0", good, key) == "0.0.0.0"
    for network in ("0.0.0.0", "192.0.2.7", "::"):
        with pytest.raises(ClassError, match="--network needs --certificate and --key"):
            address(network)
    with pytest.raises(ClassError, match="give an address of this machine"):
        address("class.example", good, key)

    assert hub.check_certificate(None, None) == []
    assert hub.check_certificate(good, key) == ["a.example"]
    other, _ = certificate(tmp_path)
    expired, of_expired = certificate(tmp_path, days=-2)
    nameless, of_nameless = certificate(tmp_path, names=())
    for pair, message in [
        ((good, None), "need each other"),
        ((other, key), "is no key of"),
        ((expired, of_expired), "is valid from .*, not now"),
        ((nameless, of_nameless), "names no host"),
        ((key, key), "cannot be used"),
        ((tmp_path / "none", key), "cannot be used"),
    ]:
        with pytest.raises(ClassError, match=message):
            hub.check_certificate(*pair)
    key.chmod(0o640)
    with pytest.raises(ClassError, match="chmod 600"):
        hub.check_certificate(good, key)


# ---- what a hostile learner leaves in the own folder


def test_handing_in_follows_nothing_and_reads_plain_notebooks_only(tmp_path: Path) -> None:
    work, secret = tmp_path / "work", tmp_path / "secret.ipynb"
    secret.write_text('{"cells": []}')
    path = work.joinpath(*handin.place_of(LAB))

    def refusal() -> str:
        with pytest.raises(handin.NotHandedIn) as caught:
            handin.hand_in(work, tmp_path / "submissions", "ada", LAB)
        return str(caught.value)

    work.mkdir()
    assert "there is no file labs/lab03" in refusal()
    path.parent.mkdir(parents=True)
    path.symlink_to(secret)
    assert "there is no file" in refusal()
    path.unlink()
    os.mkfifo(path)
    assert "no plain file" in refusal()
    path.unlink()
    path.mkdir()
    assert "no plain file" in refusal()
    path.rmdir()
    with open(path, "wb") as file:
        file.truncate(handin.MAX_NOTEBOOK_BYTES + 1)
    assert "larger than 20 MiB" in refusal()
    for damaged in ("", "[" * 100_000, "[]", '{"cells": 1}'):
        path.write_text(damaged)
        assert "is damaged: open it, save it" in refusal()
    path.unlink()
    path.parent.rmdir()
    (tmp_path / path.parent.name).mkdir()
    (tmp_path / path.parent.name / path.name).write_text('{"cells": []}')
    path.parent.symlink_to(tmp_path / path.parent.name)
    assert "there is no file" in refusal()
    assert not (tmp_path / "submissions").exists()

    path.parent.unlink()
    path.parent.mkdir()
    path.write_text('{"cells": []}')
    copy = handin.hand_in(work, tmp_path / "submissions", "ada", LAB)
    assert copy == tmp_path / "submissions" / "ada" / LAB.path.name
    assert copy.read_text() == '{"cells": []}'


def test_a_progress_file_of_a_learner_is_read_with_the_same_care(tmp_path: Path) -> None:
    path = tmp_path / ".progress.json"
    entry = {"points": 1e9, "attempts": 1}
    path.write_text(json.dumps({"format": 1, "exercises": {"lab03.ex1": entry, "<b>": entry}}))
    document, written = pages.read_progress(tmp_path)
    row = pages.lab_row(LAB, document, tmp_path, tmp_path / "none")
    assert row["won"] == LAB.exercises[0].points and written > 0
    assert (row["saved"], row["handed"], row["since"]) == ("", "", False)
    real = path.rename(tmp_path / "real")
    path.symlink_to(real)
    assert pages.read_progress(tmp_path) == ({**document, "exercises": {}}, 0.0)
    for text in ("{", "[]", '{"format": 1, "exercises": {"lab03.ex1": {"points": "many"}}}'):
        path.unlink()
        path.write_text(text)
        assert pages.read_progress(tmp_path)[0]["exercises"] == {}


# ---- limits

TREE = """
import subprocess, sys, time
depth = int(sys.argv[1])
held = bytearray(0 if depth else 80_000_000)
if depth:
    subprocess.Popen([sys.executable, "-Ic", sys.argv[2], str(depth - 1), sys.argv[2]])
time.sleep(60)
"""


def test_only_the_largest_notebook_of_who_uses_too_much_is_ended(tmp_path: Path) -> None:
    command = [sys.executable, "-Ic", TREE, "3", TREE]
    trees = {name: subprocess.Popen(command, start_new_session=True) for name in ("ada", "bob")}
    sandboxes = {name: process.pid for name, process in trees.items()}
    try:
        deadline = time.monotonic() + 60
        while True:
            uses = watch.uses(sandboxes | {"eve": 2**22 + 1})
            if [use.memory_bytes > 80_000_000 for use in uses.values()] == [True, True]:
                break
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert uses.keys() == sandboxes.keys()
        assert uses["ada"].processes == 4
        # The hub is the parent of all: what they use together is nobody's excess.
        (tmp_path / "hub.pid").write_text(str(os.getpid()))
        for name, pid in sandboxes.items():
            (tmp_path / f"{name}.sandbox").write_text(str(pid))
        classroom = pages.Classroom(tmp_path, tmp_path, Limits(memory_bytes=150_000_000), {}, {})
        classroom.look()
        assert classroom.uses.keys() == {"ada", "bob"} and classroom.noticed == {}
        assert watch.end_excess("ada", uses["ada"], Limits(memory_bytes=10**9)) == ""
        message = watch.end_excess("ada", uses["ada"], Limits(memory_bytes=60_000_000))
        assert message.startswith("your notebooks used more than 0.1 GB of memory together")
        while uses["ada"].memory_bytes > 80_000_000:
            assert time.monotonic() < deadline
            uses = watch.uses(sandboxes)
        assert uses["bob"].memory_bytes > 80_000_000
        assert all(process.poll() is None for process in trees.values())
        many = watch.Use(0, 500, uses["bob"].largest)
        assert "more than 256 processes" in watch.end_excess("bob", many, Limits())
    finally:
        for process in trees.values():
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def test_a_server_is_idle_since_its_last_activity() -> None:
    ago = datetime.datetime.now(datetime.UTC) - datetime.timedelta(minutes=90)
    server = {"last_activity": ago.isoformat().replace("+00:00", "Z"), "started": None}
    assert 89 < pages.idle_minutes({"servers": {"": server}}) < 91
    assert pages.idle_minutes({"servers": {}}) == 0


# ---- the guide's table

GUIDE = ROOT / "utils" / "cli" / "site" / "guide" / "hub.md"
PERSON_GB, MACHINE_GB, PEOPLE_OF_A_VCPU = 1.1, 4, 4


def test_the_guide_says_how_many_fit_and_what_an_afternoon_costs() -> None:
    text = GUIDE.read_text()
    assert f"count {PERSON_GB:g} GB for each person, and {MACHINE_GB} GB for the machine" in text
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line[:5] == "| r7i"]
    assert [row[0] for row in rows] == list(known.place("hub").instances)
    for name, vcpu, memory, fit, cost in rows:
        ram = figure(f"launch.ram.{name}")
        by_memory = int((ram.to("GB") - MACHINE_GB) / PERSON_GB)
        assert f"By memory alone {by_memory} people fit" in text or name != rows[0][0]
        assert int(fit) == min(by_memory, PEOPLE_OF_A_VCPU * known.vcpus(name))
        assert (int(vcpu), memory) == (known.vcpus(name), ram.text)
        assert cost == f"{dollars(plan('hub', name, hours=4).cost.total_usd)} USD"


# ---- the real hub and proxy


class Hub:
    """A hub that `course.py hub` started, with a class in `folder`."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder, self.port, self.options = folder, free_port(), options
        self.address = f"http://127.0.0.1:{self.port}"
        self.log = folder.with_suffix(".log")
        self.start()
        cards = re.findall(r"<code>([^<]*)</code>", (folder / "sheet.html").read_text())
        self.passwords = dict(zip(cards[::2], cards[1::2], strict=True))

    def start(self) -> None:
        """Start it, and wait until people can log in."""
        command = [sys.executable, ROOT / "course.py", "--inside", "hub", f"--port={self.port}"]
        with kernel_environment() as environment, open(self.log, "w") as log:
            environment.pop("COURSE_PROGRESS", None)
            self.process = subprocess.Popen(
                [*command, f"--folder={self.folder}", *self.options],
                env=environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        deadline = time.monotonic() + START_S
        while not self.is_up():
            if self.process.poll() is not None or time.monotonic() > deadline:
                pytest.fail(f"the hub did not start:\n{self.log.read_text()[-3000:]}")
            time.sleep(0.2)

    def is_up(self) -> bool:
        with contextlib.suppress(requests.RequestException):
            page = requests.get(f"{self.address}/services/class/", timeout=5)
            return page.ok and "Sign in" in page.text
        return False

    def stop(self, how: int = signal.SIGTERM) -> None:
        """End it, or kill it."""
        self.process.send_signal(how)
        self.process.wait(60)

    def cpu_s(self) -> float:
        """Seconds of processors that all its processes took so far."""
        family = [psutil.Process(self.process.pid)]
        family += family[0].children(recursive=True)
        times = [process.cpu_times() for process in family]
        return sum(t.user + t.system + t.children_user + t.children_system for t in times)


class Visitor(requests.Session):
    """Somebody of the class, by HTTP."""

    def __init__(self, hub: Hub, name: str, password: str | None = None) -> None:
        super().__init__()
        self.name, self.hub = name, hub
        page = self.get(f"{hub.address}/")
        data = {"username": name, "password": password or hub.passwords[name]}
        data["_xsrf"] = self.hidden(page.text)
        self.page = self.post(html.unescape(self.action(page)), data=data)

    def action(self, page: requests.Response) -> str:
        return self.hub.address + re.search(r'action="([^"]*)"', page.text)[1]  # type: ignore[index]

    def hidden(self, text: str) -> str:
        return re.search(r'name="_xsrf" value="([^"]*)"', text)[1]  # type: ignore[index]

    def open_server(self) -> requests.Response:
        """Start the own server; returns its page."""
        self.get(f"{self.hub.address}/hub/user-redirect/")
        deadline = time.monotonic() + START_S
        while True:
            page = self.get(f"{self.hub.address}/user/{self.name}/lab")
            if page.url.endswith("/lab") or time.monotonic() > deadline:
                return page
            time.sleep(0.5)

    def hand_in(self, lab: str = "lab03") -> str:
        """What the page says to a click."""
        xsrf = self.hidden(self.get(f"{self.hub.address}/services/class/").text)
        data = {"lab": lab, "_xsrf": xsrf}
        page = self.post(f"{self.hub.address}/services/class/", data=data)
        return re.search(r'role="(?:status|alert)">([^<]*)', page.text)[1]  # type: ignore[index]

    def pid_files(self) -> Iterator[Path]:
        """Where the hub notes the process of the own sandbox."""
        digest = hashlib.sha256(str(self.hub.folder).encode()).hexdigest()[:12]
        return Path("/tmp", f"course-hub-{digest}").glob(f"{self.name}.sandbox")

    def api(self, method: str, path: str, **more: Any) -> requests.Response:
        """Ask the own server."""
        token = self.cookies.get("_xsrf", path=f"/user/{self.name}/")
        headers = {"X-XSRFToken": token or ""}
        place = f"{self.hub.address}/user/{self.name}/api/{path}"
        return self.request(method, place, headers=headers, **more)


@contextlib.contextmanager
def running(folder: Path, *options: str) -> Iterator[Hub]:
    hub = Hub(folder, *options)
    try:
        yield hub
    finally:
        if hub.process.poll() is None:
            hub.stop()


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    with running(tmp_path_factory.mktemp("hub") / "class", "--people=5") as hub:
        yield hub


def test_two_people_work_hand_in_and_are_seen(small: Hub) -> None:
    refused = Visitor(small, "person-1", "wrong")
    assert refused.page.status_code == 403 and "Invalid username or password" in refused.page.text
    one, two = Visitor(small, "person-1"), Visitor(small, "person-2")
    assert "Hello, Person 1" in one.page.text
    assert one.open_server().ok and two.open_server().ok

    # Each has an own folder with the lab in it, and gets at nobody else's.
    place = f"contents/{FOLDER}/labs/{LAB.path.parent.name}/{LAB.path.name}"
    lab = one.api("GET", place).json()
    lab["content"]["cells"][0]["source"] = "# by person 1"
    assert one.api("PUT", place, json=lab).ok
    assert "by person 1" not in two.api("GET", place).text
    assert two.get(f"{small.address}/user/person-1/lab").status_code == 403
    for hidden in ("solutions", "tests", ".git", "class"):
        assert one.api("GET", f"contents/{hidden}").status_code == 404, hidden

    assert one.hand_in() == "lab03 is handed in, as it was saved. You can hand it in again."
    copy = small.folder / "submissions" / "person-1" / LAB.path.name
    assert "# by person 1" in copy.read_text()
    assert one.post(f"{small.address}/services/class/", data={"lab": "lab03"}).status_code == 403
    page = f"{small.address}/services/class/progress"
    assert two.get(page).status_code == 403
    teacher = Visitor(small, "teacher")
    assert teacher.get(f"{small.address}/user/person-1/lab").status_code == 403
    assert teacher.get(f"{small.address}/hub/admin").ok
    assert two.get(f"{small.address}/hub/admin").status_code == 403
    seen = teacher.get(page)
    assert "2 of 5 people have a server running" in seen.text
    assert "lab03: 0 of 40, handed in" in seen.text
    # Who is root here has a user id for each; otherwise each server is in a user namespace.
    owners = {p.stat().st_uid for p in (small.folder / "people").iterdir()}
    assert len(owners) == (2 if os.geteuid() == 0 else 1)
    print(f"{small.cpu_s():.1f} s of processors")
    for password in small.passwords.values():
        for log in [small.log, *(small.folder / "logs").iterdir()]:
            assert password not in log.read_text(errors="replace")


@pytest.mark.exhaustive
def test_a_hub_that_was_killed_finds_the_servers_again_and_an_end_keeps_the_files(
    tmp_path: Path,
) -> None:
    with running(tmp_path / "class", "--people=1") as hub:
        one = Visitor(hub, "person-1")
        assert one.open_server().ok
        place = f"contents/{FOLDER}/notes.ipynb"
        content = {"type": "notebook", "format": "json", "content": HOG_NOTEBOOK}
        assert one.api("PUT", place, json=content).ok
        began = one.api("GET", "status").json()["started"]
        hub.stop(signal.SIGKILL)
        hub.start()
        assert one.api("GET", "status").json()["started"] == began  # the same server, logged in
        assert one.hand_in() == "lab03 is handed in, as it was saved. You can hand it in again."
        sandbox = psutil.Process(int(next(one.pid_files()).read_text()))
        hub.stop()
        assert not sandbox.is_running() or sandbox.status() == psutil.STATUS_ZOMBIE
        hub.start()
        assert one.open_server().ok
        assert one.api("GET", place).json()["content"]["cells"][0]["source"] == HOG


# ---- five people in browsers

LESSON = f"{FOLDER}/notebooks/03_lazy_tensors.ipynb"
FIGURE = ".jp-NotebookPanel .course-figure img"


def enter(browser: Any, hub: Hub, name: str) -> Any:
    """The own page of somebody who logs in."""
    page = browser.new_context(viewport={"width": 1200, "height": 900}).new_page()
    page.set_default_timeout(WAIT_MS)
    page.goto(f"{hub.address}/")
    page.get_by_label("Username").fill(name)
    page.get_by_label("Password").first.fill(hub.passwords[name])
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("heading", name="Hello").wait_for()
    return page


def press_through(lab: Any, cells: int) -> None:
    for _ in range(cells):
        lab.keyboard.press("Shift+Enter")


def wait_for_kernel(lab: Any) -> None:
    """Until cells run: the page says "Idle" some moments before."""
    lab.get_by_text("Python 3 (ipykernel) | Idle").wait_for()
    lab.wait_for_timeout(5000)


def kernels(hub: Hub) -> set[int]:
    """The processes of all notebooks."""
    family = psutil.Process(hub.process.pid).children(recursive=True)
    return {p.pid for p in family if "ipykernel_launcher" in " ".join(p.cmdline())}


@pytest.mark.exhaustive
def test_five_people_in_browsers_a_hog_and_a_restart(tmp_path: Path) -> None:
    names = [f"person-{number}" for number in range(1, 6)]
    with running(tmp_path / "class", "--people=5", "--memory=2") as hub, launch() as browser:
        own = {name: enter(browser, hub, name) for name in names}
        labs = {}
        for name, page in own.items():
            with page.context.expect_page() as opening:
                page.get_by_role("link", name="Open the course").click()
            labs[name] = opening.value
            labs[name].set_default_timeout(WAIT_MS)
        for name, lab in labs.items():
            lab.wait_for_url("**/lab/tree/**")
            lab.goto(f"{hub.address}/user/{name}/lab/tree/{LESSON}?reset")
        for lab in labs.values():
            wait_for_kernel(lab)
            lab.locator(".jp-NotebookPanel .jp-Cell").first.click()
            press_through(lab, 8)  # to the first figure
        for lab in labs.values():
            lab.locator(FIGURE).first.wait_for()
        visitors = {name: Visitor(hub, name) for name in names}
        sandboxes = {n: int(next(v.pid_files()).read_text()) for n, v in visitors.items()}
        uses = watch.uses(sandboxes)
        print("MB of each:", [use.memory_bytes // 10**6 for use in uses.values()])
        started = kernels(hub)

        # One exhausts memory: notebooks of others go on, and the page says what happened.
        hog = visitors[names[4]]
        hog.open_server()
        content = {"type": "notebook", "format": "json", "content": HOG_NOTEBOOK}
        assert hog.api("PUT", f"contents/{FOLDER}/hog.ipynb", json=content).ok
        labs[names[4]].goto(f"{hub.address}/user/{names[4]}/lab/tree/{FOLDER}/hog.ipynb?reset")
        wait_for_kernel(labs[names[4]])
        labs[names[4]].locator(".jp-NotebookPanel .jp-Cell").first.click()
        press_through(labs[names[4]], 1)
        own[names[4]].wait_for_timeout(8000)
        own[names[4]].reload()
        own[names[4]].get_by_text("your notebooks used more than 2.0 GB").wait_for()
        use = watch.uses(sandboxes)
        print("MB of the hog:", use[names[4]].memory_bytes // 10**6)
        assert use[names[4]].memory_bytes < 2.1e9
        for name in names[:4]:
            press_through(labs[name], 6)  # the text before, a prediction, and a sync
        for name in names[:4]:
            labs[name].get_by_text("first:", exact=False).first.wait_for()
            labs[name].keyboard.press("Control+s")

        # All hand in, and the teacher sees it.
        for page in own.values():
            page.get_by_role("button", name="Hand in lab03").click()
            page.get_by_role("status").filter(has_text="lab03 is handed in").wait_for()
            assert violations(page) == set()
        teacher = enter(browser, hub, "teacher")
        teacher.get_by_role("link", name="Progress of the class").click()
        teacher.get_by_text("5 of 5 people have a server running").wait_for()
        assert teacher.get_by_text("lab03: 0 of 40, handed in").count() == 5
        assert violations(teacher) == set()
        teacher.set_viewport_size({"width": 360, "height": 740})
        assert teacher.evaluate("document.documentElement.scrollWidth") <= 360

        # A hub that is killed finds servers and notebooks again; an orderly end keeps the files.
        hub.stop(signal.SIGKILL)
        hub.start()
        assert all(psutil.pid_exists(pid) for pid in started)
        own[names[0]].reload()
        own[names[0]].get_by_role("heading", name="Hello").wait_for()
        press_through(labs[names[0]], 2)
        labs[names[0]].keyboard.press("Control+s")
        lesson = hub.folder / "people" / names[0] / "notebooks" / "03_lazy_tensors.ipynb"
        deadline = time.monotonic() + 60
        while "first: " not in lesson.read_text():
            assert time.monotonic() < deadline
            time.sleep(0.5)
        before = lesson.read_bytes()
        hub.stop()
        assert not any(psutil.pid_exists(pid) for pid in started)
        hub.start()
        assert Visitor(hub, names[0]).open_server().ok and lesson.read_bytes() == before
    rows = batch.grade(hub.folder / "submissions", tmp_path / "graded", lab_name="lab03")
    assert [(row.record.student, row.record.status) for row in rows] == [
        (name, "graded") for name in names
    ]
