"""Fixtures for all tests. No test touches the progress of the person who runs it."""

import os
import signal
import sys
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# A busy machine is no fault: counts gate tests, never seconds.
settings.register_profile("course", deadline=None)
settings.load_profile("course")

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
_folder = tempfile.TemporaryDirectory(prefix="course-tests-")  # removed when the process ends
os.environ.setdefault("COURSE_PROGRESS", str(Path(_folder.name, "progress.json")))

from tests.labs.lab99 import course as lab99  # noqa: E402
from utils.xla import fresh, late  # noqa: E402

late.install()  # test modules import torch_xla while they are collected

COMPILE_FAST = fresh.FAST["XLA_FLAGS"]
"""XLA's flags for the tests of this folder, which compile thousands of graphs to count them: in a
seventh of the time. XLA reads them once, when a process first asks for a device.
"""

os.environ["XLA_FLAGS"] = COMPILE_FAST  # some modules ask for it when they are imported

collect_ignore = ["serving/locustfile.py"]
"""Doctests would import locust, which patches threads and sockets of the whole process."""


def _flags_of_lessons(config: pytest.Config) -> str:
    """Lessons show the same when XLA compiles fast, after two thirds of the time; at night, and
    where one is tested alone, they run with XLA's own flags, as for learners.
    """
    return "" if config.getoption("exhaustive") else COMPILE_FAST


def pytest_addoption(pluginmanager: pytest.PytestPluginManager) -> None:
    """`course.py test` names the plugin itself; here it comes to who calls pytest."""
    if not pluginmanager.hasplugin("tests.plugin"):
        pluginmanager.import_plugin("tests.plugin")


def pytest_collection_finish(session: pytest.Session) -> None:
    os.environ["XLA_FLAGS"] = _flags_of_lessons(session.config)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    # It is called for what lies in this folder only, not for notebooks that nbval runs.
    os.environ["XLA_FLAGS"] = COMPILE_FAST
    try:
        return (yield)
    finally:
        os.environ["XLA_FLAGS"] = _flags_of_lessons(item.config)


@pytest.fixture
def progress_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A progress file of this test's own."""
    path = tmp_path / "progress.json"
    monkeypatch.setenv("COURSE_PROGRESS", str(path))
    return path


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Ctrl-C raises KeyboardInterrupt, also where the tests were started in the background: a shell
    makes such processes deaf to it.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def xla_device() -> None:
    """A first backward on the CPU before XLA's device is there breaks all later ones on it."""
    from utils.xla import env

    env.set_defaults()
    import torch_xla

    torch_xla.device()


@pytest.fixture
def relaxed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checks show their cards instead of raising."""
    monkeypatch.delenv("COURSE_STRICT", raising=False)


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, progress_file: Path) -> Path:
    """A course with one lesson and lab 99, whose exercises can be imported. Returns its root."""
    import utils.labs

    root = tmp_path / "course"
    lab99.build(root)
    monkeypatch.setattr(
        utils.labs, "__path__", [*utils.labs.__path__, str(ROOT / "tests" / "labs")]
    )
    monkeypatch.setattr("utils.course.quiz.FOLDER", ROOT / "tests" / "labs" / "lab99" / "quizzes")
    yield root
    for name in [module for module in sys.modules if module.startswith("utils.labs.lab99")]:
        del sys.modules[name]
