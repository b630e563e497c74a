"""A plugin of pytest for kernels: `nki_close`, and budgets of estimated time and traffic.

    def test_scaled(nki_close, nki_budget):
        nki_close(nki.simulate(scaled)(x), 2 * x, "bfloat16")
        nki_budget(scaled, nki.Shape((128, 512), "bfloat16"))

Estimates are the same on every machine, so that a budget fails for a change of the kernel, of its
shapes or of the model, and for nothing else. Baselines stand in a file of JSON, by test and name:

    pytest --nki-baseline nki.json --nki-update-baseline     writes what is estimated now
    pytest --nki-baseline nki.json                           fails where something grew
"""

import fcntl
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from utils.course.files import replace_file

SLACK = 0.005
"""Growth, as a share, that is no growth."""
DEFAULT = "nki-baseline.json"

Estimates = dict[str, dict[str, float]]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Where the baselines stand."""
    group = parser.getgroup("nki")
    group.addoption("--nki-baseline", metavar="FILE", help=f"of nki_budget; default: {DEFAULT}")
    group.addoption(
        "--nki-update-baseline", action="store_true", help="write estimates instead of comparing"
    )


@pytest.fixture(scope="session")
def nki_close() -> Callable[..., None]:
    """`nki_close(actual, expected, dtype=None, terms=None)` fails if arrays differ by more than
    type and size allow; `terms`: how many numbers each element sums, by default those of a row.
    """
    from utils.nki.tool import close  # late: NumPy and the simulator are slow to load

    return close.nki_close


@pytest.fixture
def nki_budget(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """`nki_budget(kernel, *arrays or shapes, name="", target=None, slack=0.005, **arguments)`
    estimates a kernel, fails if time or traffic is above its baseline, and returns the profile.
    """
    from utils.nki.tool.figures import estimate  # late: only tests of kernels need it

    def budget(
        kernel: Any, *arrays: Any, name: str = "", target: str | None = None,
        slack: float = SLACK, **arguments: Any,
    ) -> Any:  # fmt: skip
        __tracebackhide__ = True
        both = estimate(kernel, arrays, arguments, target)
        now: dict[str, float] = {
            "as_compiled_s": both.compiled.seconds,
            "hbm_read_bytes": both.shown.hbm_read,
            "hbm_written_bytes": both.shown.hbm_written,
        }
        if both.written is not None:
            now["as_written_s"] = both.written.seconds
        key = request.node.nodeid + (f"::{name}" if name else "")
        file = baseline_file(request.config)
        if request.config.getoption("--nki-update-baseline"):
            update(file, key, now)
            return both.shown
        problem = excess(key, now, read(file), slack)
        if problem:
            pytest.fail(problem, pytrace=False)
        return both.shown

    return budget


def baseline_file(config: pytest.Config) -> Path:
    """The file of the option, or the one beside pytest's settings."""
    chosen = config.getoption("--nki-baseline")
    return Path(config.invocation_params.dir, chosen) if chosen else config.rootpath / DEFAULT


def read(file: Path) -> Estimates:
    """The baselines of a file, none if it is not there. Raises pytest.UsageError for another."""
    if not file.exists():
        return {}
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        return {
            str(key): {str(name): float(value) for name, value in entry.items()}
            for key, entry in content.items()
        }
    except (ValueError, AttributeError, TypeError) as error:
        raise pytest.UsageError(f"{file} holds no baselines of nki_budget: {error}") from None


def update(file: Path, key: str, now: dict[str, float]) -> None:
    """Put estimates into a file; workers of pytest-xdist take turns."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with open(file.with_name(f".{file.name}.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        entries = read(file) | {key: now}
        replace_file(file, json.dumps(entries, indent=2, sort_keys=True) + "\n")


def excess(key: str, now: dict[str, float], baselines: Estimates, slack: float = SLACK) -> str:
    """What is above its baseline, and by how much; "" if nothing is.

    >>> print(excess("k", {"as_written_s": 3e-6}, {"k": {"as_written_s": 2e-6}}))
    k grew:
      as_written_s: 2e-06 to 3e-06, +50.0%
    """
    if key not in baselines:
        return f"{key} has no baseline; run pytest --nki-update-baseline, and keep the file"
    before = baselines[key]
    lines = [
        f"  {name}: {before[name]:.6g} to {value:.6g}"
        + (f", {value / before[name] - 1:+.1%}" if before[name] else "")
        for name, value in now.items()
        if name in before and value > before[name] * (1 + slack)
    ]
    return "\n".join([f"{key} grew:", *lines]) if lines else ""
