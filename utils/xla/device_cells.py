"""Cells that measure on a real Neuron device where there is one, and say in words what they would
show where there is none.

    @on_device("the losses of the script on a NeuronCore, beside those above", quoted="…")
    def losses(device):
        ...  # imports inside; the result is plain JSON

The function runs in this kernel if this kernel can use the device. On a Trainium machine that is
another Python, with another torch than the course's, so there the function runs in that one: the
environment of AWS's image, or the Python that COURSE_NEURON_PYTHON names.
"""

import ast
import inspect
import json
import os
import re
import subprocess
import textwrap
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from utils.xla import children, defaults, devices

if TYPE_CHECKING:
    from utils.facts import Fact

DEVICE_FILE = Path("/dev/neuron0")  # what the driver makes for the first device
IMAGES = (  # where AWS's images keep TorchNeuron, and before it PyTorch/XLA
    "aws_neuronx_venv_torch_neuronx_*/bin/python",
    "aws_neuronx_venv_pytorch_2_9/bin/python",
)
VARIABLE = "COURSE_NEURON_PYTHON"
SECONDS = 1800
"""For a cell: the first compile of a large graph can take minutes."""
WIDTH = 98
LONGEST = 900
"""Characters of an error that are shown: the runtime's can run over pages."""

_FOLD = textwrap.TextWrapper(  # a path or a command stays whole
    WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
)
_MARK = "#device-cell "
_NOT_FOR_IT = ("PJRT_DEVICE", "PYTHONPATH", "PYTHONHOME")


@dataclass(frozen=True)
class Place:
    """Where a device cell runs: the Python that can use the device (None: this one)."""

    python: Path | None = None


def place(images: Path = Path("/opt")) -> Place | None:
    """Where the device cells of this kernel run; None if there is no Neuron device.

    Raises: LookupError if there is a device and no Python that could use it.
    """
    if not DEVICE_FILE.exists():
        return None
    if defaults.neuron_through():
        return Place()
    named = os.environ.get(VARIABLE)
    result = _python_of(named) if named else _newest(images)
    if result and result.is_file():
        return Place(result)
    looked = named or " or ".join(f"{images}/{image}" for image in IMAGES)
    raise LookupError(
        f"this machine has a Neuron device, and no Python that can use it was found at {looked}:"
        f" set {VARIABLE} to the Python of an environment with torch-neuronx"
    )


def _python_of(named: str) -> Path:
    """The Python that was named, by its file or by the folder of its environment."""
    path = Path(named).expanduser().absolute()
    return path / "bin" / "python" if path.is_dir() else path


def _newest(images: Path) -> Path | None:
    """TorchNeuron before PyTorch/XLA, and of each the highest version."""

    def version(path: Path) -> list[int]:
        return [int(item) for item in re.findall(r"\d+", path.parents[1].name)]

    results = (sorted(images.glob(image), key=version) for image in IMAGES)
    return next((item[-1] for item in results if item), None)


def kind() -> str:
    """The kind of device, for `utils.xla.devices`, by which this Python reaches a Neuron device."""
    return "xla" if defaults.neuron_through() == "xla" else "neuron"


def on_device(
    would: str, quoted: "Fact | str" = ""
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Run the function below on the Neuron device and print what it returns, or say what it would.

    would: what the cell shows on a device, in words. quoted: what is published about it, to read
    beside it: a fact, or words that name their source. An error on the device is printed and does
    not stop the notebook: nobody could try the cell where the course is made.

    >>> @on_device("the sum of two numbers")
    ... def two(device):
    ...     return 1 + 1
    no Neuron device here. On one, this cell shows the sum of two numbers
    """

    def decorated(function: Callable[..., Any]) -> Callable[..., Any]:
        for line in _lines(function, would, _quotation(quoted)):
            print(_FOLD.fill(line))
        return function

    return decorated


def _quotation(quoted: "Fact | str") -> str:
    return quoted if isinstance(quoted, str) else f"{quoted.text} ({quoted.status}, {quoted.date})"


def _lines(function: Callable[..., Any], would: str, quoted: str) -> list[str]:
    beside = [f"quoted: {quoted}"] if quoted else []
    try:
        where = place()
    except LookupError as error:
        return [f"not run: {error}. The cell shows {would}", *beside]
    if where is None:
        return [f"no Neuron device here. On one, this cell shows {would}", *beside]
    try:
        through, result = _apart(function, where.python) if where.python else _here(function)
    except (Exception, SystemExit) as error:
        return [f"on the Neuron device, this cell failed: {_short(_words(error))}", *beside]
    return [f"measured on a Neuron device, as {through!r}: {would}", *_show(result), *beside]


def _here(function: Callable[[devices.Device], Any]) -> tuple[str, Any]:
    return kind(), function(devices.get(kind()))


def _apart(function: Callable[..., Any], python: Path) -> tuple[str, Any]:
    """The function's result from another Python, which gets its source: bytecode does not cross
    versions.

    Raises: RuntimeError if it failed there; TimeoutError.
    """
    program = "\n".join(
        [
            f"import sys; sys.path[:0] = [{str(defaults.ROOT)!r}]",
            source(function),
            f"from utils.xla import device_cells; device_cells.tell({function.__name__})",
        ]
    )
    try:
        command = [str(python), "-c", program]
        done = children.run(command, SECONDS, env=settings(python), text=True, errors="replace")
    except subprocess.TimeoutExpired:
        raise TimeoutError(f"it was stopped after {SECONDS} s; run the cell again") from None
    text = [line for line in done.stdout.splitlines() if line.startswith(_MARK)]
    if not text:
        last = " / ".join(done.stderr.strip().splitlines()[-3:]) or "it said nothing"
        raise RuntimeError(f"{python} ended with {done.returncode}: {last}")
    answer = json.loads(text[-1].removeprefix(_MARK))
    if "error" in answer:
        raise RuntimeError(answer["error"])
    return answer["through"], answer["result"]


def tell(function: Callable[[devices.Device], Any]) -> None:
    """In the other Python: run the function and print its result, or its error, behind a mark,
    because the compiler and the runtime print, too.
    """
    try:
        through, result = _here(function)
        line = json.dumps({"through": through, "result": result})
    except (Exception, SystemExit) as error:
        line = json.dumps({"error": _words(error)})
    print(f"\n{_MARK}{line}", flush=True)


def settings(python: Path) -> dict[str, str]:
    """The variables of a process of another Python, as if its environment were activated: the
    compiler is a program beside it, which torch-neuronx looks for on the PATH.
    """
    kept = {name: value for name, value in os.environ.items() if name not in _NOT_FOR_IT}
    folders = (str(python.parent), "/opt/aws/neuron/bin", kept.get("PATH", os.defpath))
    return kept | {"PATH": os.pathsep.join(folders), "VIRTUAL_ENV": str(python.parents[1])}


def _words(error: BaseException) -> str:
    return "".join(traceback.format_exception_only(error)).strip()


def _short(text: str) -> str:
    half = LONGEST // 2
    return text if len(text) <= LONGEST else f"{text[:half]} … {text[-half:]}"


def source(function: Callable[..., Any]) -> str:
    """The function's source without its decorators."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    definition = tree.body[0]
    assert isinstance(definition, ast.FunctionDef)
    definition.decorator_list = []
    return ast.unparse(tree)


def _show(result: Any) -> list[str]:
    if isinstance(result, dict):
        return [f"  {key}: {value}" for key, value in result.items()]
    return [f"  {line}" for line in str(result).splitlines()]
