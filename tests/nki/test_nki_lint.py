"""The lint of kernels: each rule finds what it names and leaves what it allows."""

import linecache
import warnings
from pathlib import Path

import numpy as np
import pytest

from utils.nki import simulator
from utils.nki.simulator import launch
from utils.nki.simulator import lint as package
from utils.nki.simulator.lint import RULES, lint, lint_source
from utils.nki.simulator.lint.source import CERTAINTIES, MayNotCompile


@pytest.fixture(autouse=True)
def the_compiler_of_0_6(monkeypatch: pytest.MonkeyPatch) -> None:
    """NKI 0.7 runs a kernel as Python, which lifts most of these rules."""
    monkeypatch.setenv("COURSE_NKI_API", "0.6")


@pytest.fixture
def of_its_version(monkeypatch: pytest.MonkeyPatch, rule: str) -> None:
    """A rule is tried with the version that has it."""
    if rule in RULES:
        version = "0.7" if RULES[rule].since == "0.7" else "0.6"
        monkeypatch.setenv("COURSE_NKI_API", version)


KERNELS = Path(simulator.__file__).parent.parent / "kernels"

HEAD = """\
import math
import numpy as np
import nki
import nki.isa as nisa
import nki.language as nl
from enum import Enum

STATE = {}
SEEN = []

class Plain:
    pass

class Settings(nl.NKIObject):
    size: int = 1

class Mode(Enum):
    one = 1

"""

# Rule: lines of a kernel that break it, lines that do not. `t` is a tensor, `r` a register.
BODIES = {
    "identity": (["if x.dtype is nl.float32: pass"], ["if x.dtype == nl.float32: pass"]),
    "identity-none": (["if bias is not None: pass"], ["if bias != None: pass"]),
    "memory-name": (
        ["a = nl.zeros((128, 4), nl.float32, buffer='psum')"],
        ["a = nl.zeros((128, 4), nl.float32, buffer=nl.psum)"],
    ),
    "choice-number": (
        ["nisa.dma_copy(dst=t, src=x, dge_mode=2)"],
        ["nisa.dma_copy(dst=t, src=x, dge_mode=nisa.dge_mode.hwdge)"],
    ),
    "dictionary-key": (["d = {1: t}", "e = {(0, 1): t}"], ["d = {'one': t}", "d[n] = t"]),
    "class-base": (["p = Plain()"], ["s = Settings(size=2)", "m = Mode(1)"]),
    "old-import": (["import neuronxcc.nki.language as old"], []),
    "inner-import": (["import math"], []),
    "run-time-value": (
        [
            "if t[0, 0] > 0: pass",
            "while nl.sum(t, axis=1): pass",
            "y = 1 if r else 2",
            "assert t",
            "for i in range(r): pass",
            "for row in t: pass",
            "if x > 0: pass",
        ],
        [
            "if t.shape[0] > 64 and n: pass",
            "if t == None or x != None: pass",
            "if x: pass",
            "while n > 0: n -= 1",
            "for i in range(t.shape[1]): pass",
            "if t.get_pattern()[0][1] > 4: pass",
            "if nl.program_id(0) == 0: pass",
        ],
    ),
    "run-time-index": (
        ["u = t[0:128, r]", "u = t[r:128, :]", "u = x[t]"],
        ["u = t[0:128, n]", "u = x.ap([[4, 128], [1, 4]], scalar_offset=r)"],
    ),
    "host-function": (
        [
            "v = float(t[0, 0])",
            "v = np.exp(t)",
            "v = math.sqrt(r)",
            "v = t.item()",
            "v = max(t, 0)",
        ],
        ["v = float(n)", "v = np.sqrt(n)", "v = math.ceil(t.shape[0] / 2)", "v = min(n, 4)"],
    ),
    "print-value": (
        ["print(t)", "print(f'value {t[0, 0]}')"],
        ["print(t.shape)", "print(f'{x.dtype} {n}')", "nl.device_print('t', t)"],
    ),
    "loop-in-no-reorder": (
        ["def body(i): pass", "with nl.no_reorder(): nl.fori_loop(0, 4, body)"],
        ["def body(i):", "    with nl.no_reorder(): pass", "nl.fori_loop(0, 4, body)"],
    ),
    "loop-body": (
        ["def body(i):", "    return i", "nl.fori_loop(0, n, body)"],
        [
            "def body(i): nisa.dma_copy(dst=t, src=x.ap([[4, 128]], scalar_offset=i))",
            "def again(s):",
            "    return s",
            "nl.fori_loop(0, n, body)",
            "nl.while_loop(r, again)",
        ],
    ),
    "loop-variable": (
        ["def body(i): u = i * 128", "nl.fori_loop(0, n, body)"],
        ["def body(i): u = n * 128", "nl.fori_loop(0, n, body)", "for i in range(4): u = i * 128"],
    ),
    "unrolled-range": (
        ["for i in nl.affine_range(4): pass", "a = nl.static_range(2)"],
        ["for i in range(4): pass"],
    ),
    "dynamic-range": (
        ["for i in nl.dynamic_range(4): pass"],
        ["for i in nl.affine_range(4): pass"],
    ),
    "register-while": (["while r: nisa.register_load(r, t)"], ["while n: n -= 1"]),
    "outer-state": (
        ["global STATE", "STATE['a'] = 1", "SEEN.append(n)"],
        ["d = {}", "d['a'] = 1", "made = []", "made.append(t)", "v = STATE"],
    ),
    "exception": (["try: pass", "except ValueError: pass"], ["assert n > 0, 'n is positive'"]),
    "with-block": (["with open('f') as f: pass"], ["with nl.no_reorder(): pass"]),
    "generator": (["yield t"], ["made = [t]"]),
    "set": (["s = {1, 2}", "s = set(x.shape)", "s = {i for i in x.shape}"], ["s = (1, 2)"]),
    "comprehension": (
        ["ts = [nl.load(x[i]) for i in range(4)]", "[nisa.memset(t, 0) for i in range(2)]"],
        [
            "ts = [nl.ndarray((128, 4), nl.float32) for i in range(4)]",
            "sizes = [min(n, i) for i in range(4)]",
        ],
    ),
    "lambda": (["f = lambda a: a"], ["def f(a): return a"]),
    "star-arguments": (
        ["nisa.memset(*(t, 0))", "nisa.memset(**{'dst': t, 'value': 0})"],
        ["nisa.memset(dst=t, value=0)", "a, *b = (1, 2, 3)"],
    ),
    "inner-class": (["class Inner: pass"], []),
    "iteration": (
        ["for i, s in enumerate(x.shape): pass"],
        ["for s in x.shape: pass", "for i in range(len(x.shape)): pass", "for v in [1, 2]: pass"],
    ),
    "statement": (["del n", "match n:", "    case 1: pass"], ["assert n", "n += 1"]),
}

SIGNATURES = {
    "keyword-only": ("def kernel(x, *, n=1): pass", "def kernel(x, n=1): pass"),
    "list-argument": ("def kernel(x, n=[1, 1]): pass", "def kernel(x, n=(1, 1)): pass"),
    "mutable-default": ("def kernel(x, n={}): pass", "def kernel(x, n=None): pass"),
    "star-arguments": ("def kernel(*xs, **more): pass", "def kernel(x): pass"),
    "generator": ("def kernel(x):\n    async def f(): pass", "def kernel(x):\n    def f(): pass"),
}


def kernel_of(lines: list[str]) -> str:
    made = ["t = nl.load(x)", "r = nisa.register_alloc(3)"]
    body = "\n".join(f"    {line}" for line in [*made, *lines])
    return f"{HEAD}@nki.jit\ndef kernel(x: nl.ndarray, n, bias=None):\n{body}\n"


def findings(source: str) -> list[tuple[str, int]]:
    return [(item.rule, item.line) for item in lint_source(source)]


def test_every_rule_is_tried() -> None:
    assert set(BODIES) | set(SIGNATURES) | {"jit-option"} == set(RULES)
    assert {rule.certainty for rule in RULES.values()} <= set(CERTAINTIES)


@pytest.mark.parametrize("rule", BODIES)
@pytest.mark.usefixtures("of_its_version")
def test_a_rule_finds_what_it_names(rule: str) -> None:
    lines, _ = BODIES[rule]
    before = kernel_of([]).count("\n")
    hit = {line - before for name, line in findings(kernel_of(lines)) if name == rule}
    ends = [i + 1 for i, line in enumerate(lines) if not line.startswith((" ", "except", "def "))]
    if rule in ("loop-body", "loop-variable"):
        assert hit == {1}
    elif rule == "statement":
        assert hit == {1, 2}
    else:
        assert hit == set(ends)


@pytest.mark.parametrize("rule", BODIES)
@pytest.mark.usefixtures("of_its_version")
def test_a_rule_leaves_what_is_allowed(rule: str) -> None:
    assert findings(kernel_of(BODIES[rule][1])) == []


@pytest.mark.parametrize("rule", SIGNATURES)
def test_signatures(rule: str) -> None:
    bad, good = SIGNATURES[rule]
    assert {name for name, _ in findings(f"{HEAD}@nki.jit\n{bad}\n")} == {rule}
    assert findings(f"{HEAD}@nki.jit\n{good}\n") == []


def test_options_of_jit() -> None:
    source = HEAD + "@nki.jit(mode='trace', platform_target='trn2')\ndef kernel(x): pass\n"
    assert [rule for rule, _ in findings(source)] == ["jit-option"] * 2
    assert findings(HEAD + "@nki.jit()\ndef kernel(x): pass\n") == []


def test_a_list_is_allowed_in_a_function_that_is_no_kernel_but_shared() -> None:
    source = HEAD + "def helper(t, sizes=[1]):\n    nisa.memset(t, 0)\n"
    assert [rule for rule, _ in findings(source)] == ["mutable-default"]


def test_functions_without_nki_are_not_read() -> None:
    assert (
        findings("import numpy as np\ndef host(x):\n    return x if x is None else {1, 2}\n") == []
    )


def test_a_finding_says_place_certainty_fix_and_page() -> None:
    (finding,) = lint_source(kernel_of(["if x.dtype is nl.float32: pass"]), "mine.py")
    text = str(finding)
    assert text.startswith(f"mine.py:{finding.line}: does not compile: `x.dtype is nl.float32`")
    assert "\nFix: compare with ==" in text
    assert "\nSee: https://awsdocs-neuron" in text


def helper_of_a_module(t):  # noqa: ANN001
    if t.dtype is None:
        return t
    return t


def kernel_of_a_module(x):  # noqa: ANN001
    try:
        return helper_of_a_module(x)
    except ValueError:
        return x


def test_a_function_object_is_read_with_those_of_its_module() -> None:
    findings = lint(kernel_of_a_module)
    assert [finding.rule for finding in findings] == ["identity-none", "exception"]
    shown = [linecache.getline(__file__, finding.line).strip() for finding in findings]
    assert shown == ["if t.dtype is None:", "try:"]
    assert {finding.path for finding in findings} == {__file__}


def test_warnings_point_at_the_line() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        package.warn(kernel_of_a_module)
    assert [item.category for item in caught] == [MayNotCompile] * 2
    assert caught[0].filename == __file__
    assert "is None" in linecache.getline(__file__, caught[0].lineno)


def test_a_kernel_is_linted_at_its_first_call() -> None:
    def kernel(x):
        if x.dtype is None:
            return x
        return x

    array = np.zeros((1, 1), np.float32)
    with pytest.warns(MayNotCompile, match="may not compile: `x.dtype is None`"):
        launch.simulate(kernel)(array)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        launch.simulate(kernel)(array)


def test_a_list_at_the_call_is_found_there() -> None:
    def kernel(x, order):
        return x

    with pytest.warns(MayNotCompile, match=r"takes no list, and `order=\[1, 0\]`") as caught:
        launch.simulate(kernel)(np.zeros((1, 1), np.float32), order=[1, 0])
    assert [item.filename for item in caught] == [__file__]


def test_a_function_without_source_has_no_findings() -> None:
    space: dict = {}
    exec("def kernel(x):\n    return x is None", space)
    assert lint(space["kernel"]) == []
    assert lint(len) == []


@pytest.mark.parametrize("path", sorted(KERNELS.rglob("*.py")), ids=lambda path: path.name)
def test_our_own_kernels_have_no_findings(path: Path) -> None:
    assert [str(item) for item in lint_source(path.read_text(encoding="utf-8"), path.name)] == []


def test_in_0_7_python_may_do_what_python_can(monkeypatch: pytest.MonkeyPatch) -> None:
    lifted = {key for key, rule in RULES.items() if rule.before}
    brought = {key for key, rule in RULES.items() if rule.since == "0.7"}
    assert brought == {"unrolled-range"} and len(lifted) == 17
    for version, held in (("0.6", lifted), ("0.7", set())):
        monkeypatch.setenv("COURSE_NKI_API", version)
        results = set()
        for rule in RULES:
            if rule in BODIES:
                results |= {item.rule for item in lint_source(kernel_of(BODIES[rule][0]))}
        assert bool(results & lifted) == bool(held) and not results & lifted - held
    text = kernel_of(["for i in nl.affine_range(4): pass"])
    assert [item.rule for item in lint_source(text)] == ["unrolled-range"]
    (loop,) = lint_source(kernel_of(["for i in nl.dynamic_range(4): pass"]))
    assert "does not compile: nl.dynamic_range is gone since NKI 0.7" in str(loop)
