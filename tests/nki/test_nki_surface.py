"""Names outside the simulator's subset, and the spellings of older versions."""

import importlib
import os
import subprocess
import sys

import nki.isa as nisa
import nki.language as nl
import numpy as np
import pytest

from utils.nki import simulator
from utils.nki.simulator import launch, surface
from utils.nki.simulator.errors import DoubtfulKernel, NkiValidationError, NotInSubset
from utils.nki.simulator.table import TABLE

LEFTOVERS = surface.leftovers()
NAMES = [key for key in LEFTOVERS if "(" not in key and key != "neuronxcc.nki"]
ARGUMENTS = [key for key in LEFTOVERS if key.endswith("=)")]


@pytest.mark.parametrize("module", surface.modules())
def test_every_documented_name_has_a_page_and_a_version(module: str) -> None:
    for name, version in surface.versions(module).items():
        assert name.isidentifier()
        assert version in ("0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "unknown")
        address = surface.page(module, name)
        assert address.startswith("https://") and address.endswith(".html") and "{" not in address


def test_a_page_is_known_only_of_documented_names() -> None:
    with pytest.raises(KeyError, match="documents no 'arange'"):
        surface.page("nki.language", "arange")


def test_a_name_outside_the_subset_imports_and_raises_when_used() -> None:
    name = surface.outside("nki.compiler", "AddressRotation")
    assert "nki.compiler.AddressRotation" in repr(name)
    with pytest.raises(NotInSubset) as caught:
        name(stride=2)
    text = str(caught.value)
    assert "(NKI 0.7)" in text
    assert "api/nki.compiler.html" in text
    assert "nki.simulate(kernel)" in text
    assert "At: " in text and "test_nki_surface.py:" in text


@pytest.mark.parametrize("use", [
    "name()", "name[0]", "name.anything", "name + 1", "1 + name", "name > 1", "bool(name)",
    "list(name)", "name.__enter__()",
])  # fmt: skip
def test_any_use_raises(use: str) -> None:
    with pytest.raises(NotInSubset):
        eval(use, {"name": surface.outside("nki.compiler", "AddressRotation")})


def test_a_misspelt_name_is_unknown_and_gets_near_matches() -> None:
    with pytest.raises(AttributeError, match=r"no 'tensor_tensr'; did you mean tensor_tensor"):
        surface.outside("nki.isa", "tensor_tensr")
    with pytest.raises(AttributeError, match=r"has no 'zzz'$"):
        surface.outside("nki.isa", "zzz")
    with pytest.raises(AttributeError):
        surface.outside("nki.isa", "__wrapped__")
    assert not hasattr(surface.outside("nki.compiler", "AddressRotation"), "__wrapped__")


@pytest.mark.parametrize("key", NAMES)
def test_an_old_name_shows_the_new_spelling(key: str) -> None:
    module, _, name = key.rpartition(".")
    with pytest.raises(NkiValidationError) as caught:
        surface.outside(module, name)()
    text = str(caught.value)
    assert text.startswith(f"{key} is not part of NKI since 0.")
    for part in ("\nWhy: ", "\nFix: ", "instead of", "\nAt: "):
        assert part in text
    assert LEFTOVERS[key].new.splitlines()[0] in text
    assert name not in surface.versions(module), "it is not an old name"


@pytest.mark.parametrize("key", ARGUMENTS)
def test_an_old_argument_shows_the_new_spelling(key: str) -> None:
    function, _, argument = key.rstrip("=)").partition("(")
    function = {"*": "nki.language.load", "nki.isa.*": "nki.isa.activation"}.get(function, function)
    error = surface.unknown_argument(function, argument, [])
    assert isinstance(error, NkiValidationError)
    assert LEFTOVERS[key].new.splitlines()[0] in str(error)


def misuse(*args: object, **kwargs: object) -> str:
    with pytest.raises(NkiValidationError) as caught:
        TABLE["tensor_copy"].bind(args, kwargs)
    return str(caught.value)


def test_a_misspelt_argument_lists_the_right_ones() -> None:
    text = misuse(dst=1, value=2)
    assert text.startswith("tensor_copy: there is no argument 'value'; there are dst, src, engine")
    assert "Fix: leave value= out" in text
    assert "Fix: write dst=..." in misuse(dts=1, src=2)


def test_arguments_missing_or_given_twice() -> None:
    assert misuse(dst=1).startswith("tensor_copy: src missing.")
    assert misuse(1, 2, dst=3).startswith("tensor_copy: dst given twice.")


def test_an_instruction_called_for_its_result_is_told_of_dst() -> None:
    assert "nisa.reciprocal(dst=y, data=x)" in misuse(src=1)
    assert "converts to the type of dst" in misuse(dst=1, src=2, dtype="bfloat16")


@pytest.mark.parametrize("name", ["neuronxcc", "neuronxcc.nki", "neuronxcc.nki.language"])
def test_the_old_namespace_says_the_new_imports(name: str) -> None:
    surface.explain_old_imports()
    surface.explain_old_imports()
    assert sum(isinstance(item, surface.OldNamespace) for item in sys.meta_path) == 1
    with pytest.raises(ModuleNotFoundError, match=r"import nki\.language as nl") as caught:
        importlib.import_module(name)
    assert caught.value.name == "neuronxcc"


@pytest.mark.parametrize(("given", "named"), [(3, "none"), (2, "hwdge"), (0, "unknown")])
def test_a_choice_by_its_number_is_taken_and_named(given: int, named: str) -> None:
    def kernel(x):
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=out, src=x, dge_mode=given)
        return out

    with pytest.warns(DoubtfulKernel, match=rf"write dge_mode=nisa\.dge_mode\.{named}"):
        program = launch.run(kernel, (np.zeros((2, 2), np.float32),), {})
    assert program.instructions[0].args["dge_mode"] is nisa.dge_mode[named]


VERSIONS = """
import nki, nki.language as nl, nki.isa as nisa
print(hasattr(nl, "dynamic_range"), type(nl.dynamic_range).__name__, type(nl.tiles).__name__)
print(type(nisa.scalar_load).__name__, type(nisa.topk).__name__)
try:
    nl.tiles(1)
except NotImplementedError as error:
    print(str(error).splitlines()[0])
except AssertionError as error:
    print(str(error).splitlines()[0])
"""


@pytest.mark.parametrize(("version", "lines"), [
    ("0.7", ["True Outside function", "function function", "nl.tiles: source is 1, it takes"]),
    ("0.6", ["True function Outside", "Outside function", "later than NKI 0.6, which COURSE"]),
    ("0.5", ["True function Outside", "Outside Outside", "came later than NKI 0.5"]),
])  # fmt: skip
def test_an_older_version_has_its_own_names(version: str, lines: list[str]) -> None:
    environment = os.environ | {"COURSE_NKI_API": version, "PYTHONPATH": str(simulator.PACKAGE)}
    out = subprocess.check_output([sys.executable, "-c", VERSIONS], env=environment, text=True)
    for line, wanted in zip(out.splitlines(), lines, strict=True):
        assert wanted in line


def test_a_version_that_there_is_not_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COURSE_NKI_API", "0.9")
    with pytest.raises(ValueError, match=r"COURSE_NKI_API is '0.9'; it is one of 0\.3, .*0\.7"):
        surface.api()
