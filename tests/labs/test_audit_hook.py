"""What is noticed of an answer, and what of honest code is not."""

import multiprocessing
from collections.abc import Callable
from typing import Any

import pytest

from utils.labs import apart, audit_hook
from utils.labs.forbidden import forbid

HONEST = """
import collections, copy, dataclasses, enum, functools, gc, inspect, logging, traceback, typing
import warnings
Pair = collections.namedtuple("Pair", "one two")
@dataclasses.dataclass(frozen=True)
class Point:
    x: float = 0.0
class Kind(enum.Enum):
    A = enum.auto()
class Row(typing.NamedTuple):
    name: str
@functools.lru_cache
def cached(number):
    return number
signature, source = inspect.signature(cached), inspect.getdoc(cached)
try:
    {}["missing"]
except KeyError as error:
    text = traceback.format_exc() + str(error)
    last = traceback.extract_tb(error.__traceback__)[-1]
warnings.warn("once", stacklevel=2)
logging.getLogger("mine").debug("a line")
gc.collect()
from utils.chip.topology import ring
copies = copy.deepcopy([ring, Pair(1, Point()), Kind.A, Row("a")])
exec("def length(chips):\\n    return [chips, chips + 1, sum([chips, 2 * chips]), max(chips, 4)]")
"""


def run(work: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """In a process of its own, because nobody takes an audit hook away."""
    with multiprocessing.get_context("fork").Pool(1) as pool:
        return pool.apply(work, arguments)


def noticed_of(source: str) -> list[str]:
    """What is noticed when a cell runs and the exercise of rings is observed then."""
    results: list[str] = []
    audit_hook.Watch(results.append)
    exec(compile(source, "<cell>", "exec"), {"__name__": "__main__"})
    with forbid("lab01.ex6", "utils.chip.topology"):
        pass
    return results


@pytest.mark.filterwarnings("ignore")
def test_honest_code_is_not_noticed() -> None:
    assert run(noticed_of, HONEST) == []


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ("import inspect; inspect.currentframe()", "sys._getframe"),
        ("import inspect; inspect.stack()", "sys._getframe"),
        ("import traceback; list(traceback.walk_stack(None))", "sys._getframe"),
        ("import bdb; bdb.Bdb().set_trace()", "sys._getframe"),
        ("import gc; [*map(gc.get_referrers, [1])]", "gc.get_referrers"),
        ("x = (x.gi_frame for _ in [1]); next(x)", "gi_frame"),
        ("import ctypes; ctypes.c_int.from_address(id(1))", "ctypes.cdata"),
        (
            "import types\nfrom utils.chip.topology import ring\n"
            "def mine(chips): pass\nmine.__code__ = ring.__code__",
            "a copy of utils.chip.topology.ring",
        ),
        (
            "import marshal\nfrom utils.chip.topology import ring\n"
            "import types; types.FunctionType(marshal.loads(marshal.dumps(ring.__code__)), {})",
            "a copy of utils.chip.topology.ring",
        ),
    ],
)
def test_what_reaches_further_is_noticed(source: str, what: str) -> None:
    assert what in run(noticed_of, source)


def test_what_happens_in_another_process_is_told_here(monkeypatch: pytest.MonkeyPatch) -> None:
    messages: list[str] = []
    monkeypatch.setattr(audit_hook, "tell", messages.append)
    monkeypatch.setattr(apart, "_wait_for_server", lambda: None)
    space: dict[str, Any] = {}
    exec(
        compile(
            "import sys\ndef answer():\n    return len(sys._getframe(1).f_locals)", "<c>", "exec"
        ),
        space,
    )
    assert apart.run_apart(run, _called, space["answer"]) > 0
    assert messages == ["sys._getframe"]


def _called(answer: Callable[[], int]) -> int:
    return answer()
