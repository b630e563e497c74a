"""What the tests need of pytest: sizes, work for two workers, a line of progress, a table of time.

`course.py test` loads it with `-p tests.plugin`, tests/conftest.py for everybody else. Options of
its own: --exhaustive runs what is marked so; --size says which of the three sizes this run is, and
asks for progress and table; --units names a file with the only units to run, one a line, what
matters most first; --limit says after how many seconds no further unit is begun; --record stores
how long each unit took in tests/durations.json.
"""

import contextlib
import gc
import importlib
import inspect
import sys
import time
from collections import defaultdict
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from utils.cli import suite
from utils.course.notebooks import without_grammars
from utils.facts.tables import columns

REPORT = "course-report"
SLOWEST = 20
LINE_EVERY_S, LINE_EVERY_SHARE = 10.0, 0.05
"""A line of progress comes after the first of the two, but not within a second of the last one."""

without_grammars()  # nbval, which is loaded after this, imports nbformat


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("course")
    group.addoption("--exhaustive", action="store_true", help="also what is marked exhaustive")
    group.addoption("--size", choices=suite.SIZES, help="report progress and where the time went")
    group.addoption("--units", type=Path, help="a file with the only units to run, one a line")
    group.addoption("--limit", type=float, help="begin no unit after so many seconds")
    group.addoption("--record", action="store_true", help="store how long each unit took")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("size") and not _is_worker(config):
        config.pluginmanager.register(Report(config), REPORT)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """What is collected stays to the end: Python's garbage collector need not look through its
    million objects again and again, neither meanwhile nor beside every test, where it comes rarely.
    """
    gc.disable()
    try:
        _import_from_another_place(session.config)
        return (yield)
    finally:
        gc.enable()
        gc.freeze()
        gc.set_threshold(10_000)


def _import_from_another_place(config: pytest.Config) -> None:
    """Import the test files of a run of everything, each worker beginning at another one.

    In a fresh clone nothing is compiled yet. Workers that go through the files in step compile all
    of them three times; like this, most are there already when a worker comes to them.
    """
    if config.getoption("size") not in ("default", "exhaustive") or not _is_worker(config):
        return
    files = sorted((config.rootpath / "tests").rglob("test_*.py"))
    number = int(config.workerinput["workerid"].removeprefix("gw"))
    begin = len(files) * number // config.workerinput["workercount"]
    for path in files[begin:] + files[:begin]:
        name = ".".join(path.relative_to(config.rootpath).with_suffix("").parts)
        # Where one cannot be imported, collecting it says so.
        with contextlib.suppress(Exception, pytest.skip.Exception):
            importlib.import_module(name)


def _is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Scripts of the lessons hold no doctest, and what is a whole program must not run here."""
    return True if collection_path.parent.name == "scripts" else None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    units = config.getoption("units")
    wanted = set(_lines(units)) if units else None
    if not config.getoption("exhaustive"):
        _draw_fewer_examples(items)
    kept, left = [], []
    for item in items:
        too_much = item.get_closest_marker("exhaustive") and not config.getoption("exhaustive")
        chosen = wanted is None or suite.unit_of(item.nodeid) in wanted
        (left if too_much or not chosen else kept).append(item)
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = kept


LEAST_EXAMPLES = 10


def _draw_fewer_examples(items: list[pytest.Item]) -> None:
    """Try properties with half of their examples by day, and with all of them at night: each run
    draws others.
    """
    for test in {getattr(item, "obj", None) for item in items}:
        # As hypothesis' own plugin for pytest does it: settings of a test cannot be asked for.
        own = getattr(test, "_hypothesis_internal_use_settings", None)
        if own and inspect.isfunction(test) and own.max_examples > LEAST_EXAMPLES:
            fewer = max(LEAST_EXAMPLES, own.max_examples // 2)
            test._hypothesis_internal_use_settings = type(own)(own, max_examples=fewer)


def _lines(path: Path) -> list[str]:
    return path.read_text("utf-8").splitlines()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Whole units, the longest first; a worker that is free takes the next one.

    A unit is what must stay together or shares what is costly to make: a lesson, a notebook that
    papermill runs, the tests of a file, or of one lab in a file over all labs. Where --units names
    them, their order holds instead.
    """
    from xdist.scheduler import LoadScopeScheduling

    units, limit = config.getoption("units"), config.getoption("limit")
    deadline = time.monotonic() + limit if limit else float("inf")
    report = config.pluginmanager.getplugin(REPORT)

    class LongestFirst(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return suite.unit_of(nodeid)

        def _assign_work_unit(self, node: object) -> None:
            if not any(self.assigned_work.values()):
                self._sort()
            super()._assign_work_unit(node)

        def _sort(self) -> None:
            counts = {unit: len(tests) for unit, tests in self.workqueue.items()}
            seconds = suite.estimate(counts)
            order = sorted(counts, key=lambda unit: -seconds[unit])
            for unit in _lines(units) if units else order:
                if unit in self.workqueue:
                    self.workqueue.move_to_end(unit)

        def _reschedule(self, node: object) -> None:
            if time.monotonic() > deadline and self.workqueue:
                if report:
                    report.not_begun = list(self.workqueue)
                self.workqueue.clear()
            super()._reschedule(node)

        def mark_test_complete(self, node: object, item_index: int, duration: float = 0) -> None:
            super().mark_test_complete(node, item_index, duration)
            # What is done is looked through for every test that ends.
            work = self.assigned_work[node]
            for unit in [unit for unit, tests in work.items() if all(tests.values())]:
                del work[unit]

    return LongestFirst(config, log) if config.getvalue("dist") == "loadfile" else None


class Report:
    """Progress while the tests run, and where the time went, in the process that starts workers."""

    def __init__(self, config: pytest.Config) -> None:
        self.size = config.getoption("size")
        self.record = config.getoption("record")
        self.started = self.last_line = time.monotonic()
        self.total = self.done = self.failed = 0
        self.share_shown = 0.0
        self.seconds: dict[str, float] = defaultdict(float)  # by test
        self.units: dict[str, set[str]] = defaultdict(set)  # the tests of each
        self.failures: set[str] = set()
        self.not_begun: list[str] = []
        self.first_test = 0.0
        # As they are now: a notebook that is edited while the tests run has not passed.
        try:
            self.hashes = suite.hashes_of_notebooks()
        except Exception as error:  # a module or a notebook that nobody can read: tests will say so
            self.hashes = {}
            print(f"what notebooks read is not known: {error}")
        self.plugins = config.pluginmanager

    @property
    def terminal(self) -> pytest.TerminalReporter:
        return self.plugins.getplugin("terminalreporter")  # it registers after this one

    # Without workers, and with them.
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        if session.items:
            self._expect([item.nodeid for item in session.items])

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: object, ids: list[str]) -> None:
        self._expect(ids)

    def _expect(self, nodeids: list[str]) -> None:
        self.total = len(nodeids)
        for nodeid in nodeids:
            self.units[suite.unit_of(nodeid)].add(nodeid)

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(
        self, report: pytest.CollectReport | pytest.TestReport
    ) -> tuple[str, str, str] | None:
        """No dots: lines of progress stand in their place."""
        if report.failed:
            return ("failed" if report.when == "call" else "error"), "", ""
        if report.skipped:
            return "skipped" if not hasattr(report, "wasxfail") else "xfailed", "", ""
        return ("passed" if report.when == "call" else ""), "", ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.first_test = self.first_test or time.monotonic() - report.duration
        self.seconds[report.nodeid] += report.duration
        if report.failed:
            self.failed += 1
            self.failures.add(report.nodeid)
            self.terminal.write_line(f"FAILED {report.nodeid} ({report.when})")
        if report.when == "teardown":
            self.done += 1
            self._line()

    def _line(self) -> None:
        now = time.monotonic()
        share = self.done / max(self.total, 1)
        much = share - self.share_shown >= LINE_EVERY_SHARE and now - self.last_line > 1
        if not much and now - self.last_line < LINE_EVERY_S and self.done != self.total:
            return
        self.last_line, self.share_shown = now, share
        self.terminal.write_line(
            f"{share:4.0%}  {self.done:,} of {self.total:,} tests, {self.failed} failed,"
            f" {clock(now - self.started)}"
        )
        sys.stdout.flush()

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        done = {unit: tests for unit, tests in self.units.items() if tests <= self.seconds.keys()}
        passed = {unit for unit, tests in done.items() if not tests & self.failures}
        suite.remember_green({u: h for u, h in self.hashes.items() if u in passed})
        if self.record:
            suite.record({u: sum(self.seconds[test] for test in done[u]) for u in done})

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for line in [*self.table(), *self.late()] if self.seconds else []:
            terminalreporter.write_line(line)

    def late(self) -> list[str]:
        """What was not begun within the limit, if anything."""
        if not self.not_begun:
            return []
        lines = ["", "LEFT OUT, because time was up:", *(f"  {unit}" for unit in self.not_begun)]
        return [*lines, f"Run them too: {suite.WITHOUT_LIMIT}"]

    def table(self) -> Iterator[str]:
        """The time by group and of the slowest tests, a lesson counted as one."""
        groups: dict[str, list[float]] = defaultdict(list)
        slow: dict[str, float] = defaultdict(float)
        for nodeid, seconds in self.seconds.items():
            groups[suite.group_of(nodeid)].append(seconds)
            slow[suite.unit_of(nodeid) if ".ipynb" in nodeid else nodeid] += seconds
        total = sum(self.seconds.values())
        wall = time.monotonic() - self.started
        yield ""
        start = clock(self.first_test - self.started)
        yield f"{clock(wall)}, of which {start} to start and to collect. Seconds of all workers:"
        rows = [("group", "tests", "seconds", "share")]
        for group, times in sorted(groups.items(), key=lambda item: -sum(item[1])):
            rows.append((group, f"{len(times)}", f"{sum(times):.0f}", f"{sum(times) / total:.0%}"))
        yield from columns([*rows, ("all", f"{len(self.seconds)}", f"{total:.0f}", "100%")])
        yield ""
        yield f"The slowest {min(SLOWEST, len(slow))}:"
        slowest = sorted(slow, key=lambda name: -slow[name])[:SLOWEST]
        yield from columns([(f"{slow[name]:.1f}", name) for name in slowest])


def clock(seconds: float) -> str:
    """
    >>> clock(192.3)
    '3 min 12 s'
    """
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"
