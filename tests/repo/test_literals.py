"""Figures of hardware and prices are quoted from the facts, never typed again.

Looked at are the sources of all notebooks, prose and code, the modules of utils/, and what was
taken out of them as data: quizzes, misconceptions, templates of plans.
A number with a unit of rate, clock, power, capacity or price is a literal; so is, in code, a number
that is a fact's value. Mathematics is not: bits, shapes, counts of elements.
"""

import ast
import json
import operator
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from utils.facts import figures

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted(
    path
    for folder in ("notebooks", "solutions", "labs")
    for path in (ROOT / folder).rglob("*.ipynb")
)
MODULES = sorted(
    path
    for path in (ROOT / "utils").rglob("*.py")
    if path.parent.name != "facts"  # which shows in examples what it holds
)

DATA = sorted(
    path
    for path in (ROOT / "utils").rglob("*.yaml")
    if path.parent != ROOT / "utils" / "facts" / "data"  # where figures belong
)

NUMBER = r"(?<![\w.,^])\$?\d[\d,]*(?:\.\d+)?(?:e\d+)?(?:\s?[x×·]\s?10\^\d+)?"
UNIT = (
    r"(?:[MGTPE]FLOP(?:S|/s)?|(?:mega|giga|tera|peta|exa)(?:flops?|bytes?|hertz)|[MGTPE]OPS"
    r"|[KMGTP]i?B/(?:s|ns)|B/(?:s|ns)|[MGT]bps|[MG]Hz|k?W|watts?|nm"
    r"|[MGT]i?B|KiB|USD|(?:US )?dollars?)"
)
BETWEEN = r"(?:[\s-]|[*`$]{1,2} ?|&nbsp;)?(?:(?:dense|sparse|MXFP\d|FP\d+|BF16|TF32|INT8)[\s-])*"
WITH_UNIT = re.compile(
    rf"{NUMBER}{BETWEEN}{UNIT}(?!\w)|\$\s?\d[\d,.]*|USD \d[\d,.]*", re.IGNORECASE
)

ALLOWED = {
    rf"(?<![\w.,])1[\s-]?{UNIT}(?!\w)": "a unit",
    r"(?<![\w.,])(?:1,?000|1,?024)[\s-]?(?:[KMG]i?B(?![\w/])|TFLOP/s)": "one unit in another",
    r"3 GB (?:of GPU libraries|in all)": "the size of libraries on the reader's disk",
    r"\(\d+ MB\)": "the size of a download",
    r"A table prints [\d.]+ PFLOPS": "an invented figure, in a question on how to read one",
}
"""Patterns of text that are no figures of hardware, with the reason."""


def numbers_in(text: str) -> list[str]:
    """Numbers with a unit that only facts may have.

    >>> numbers_in("a chip with 667 TFLOPS and 96GiB for $2.23, in 16 bits, 4 x 512 elements")
    ['667 TFLOPS', '96GiB', '$2.23,']
    """
    for pattern in ALLOWED:
        text = re.sub(pattern, "", text)
    return [result[0] for result in WITH_UNIT.finditer(text)]


def digits(number: float) -> str:
    """The significant digits of a number, without sign, point and zeros around them.

    >>> digits(2.9e12), digits(1299), digits(0.00667)
    ('29', '1299', '667')
    """
    return f"{abs(number):.12g}".partition("e")[0].replace(".", "").strip("0")


SI = {"TFLOPS": "FLOPS", "PFLOPS": "FLOPS", "TB/s": "B/s", "GB/s": "B/s", "GHz": "Hz"}


@cache
def telling() -> set[float]:
    """Numbers that are hardly anything but a quoted fact: rates and prices of three digits and
    more, from 100 on or with a fraction of two digits, no multiple of 10 or 32, prices also in
    cents; rates and capacities in base units, powers of ten or two left out.
    """
    results: set[float] = set()
    for figure in figures().values():
        if figure.formula or not isinstance(figure.value, int | float):
            continue
        if figure.unit in (*SI, "TOPS", "USD/h"):
            long = len(digits(figure.value)) >= (3 if figure.value >= 100 else 4)
            if long and figure.value % 32 and figure.value % 10:
                results.add(float(figure.value))
        if figure.unit == "USD/h" and figure.value > 10 and round(figure.value, 2) % 1:
            results.add(round(figure.value, 2))
        if figure.unit in ("MiB", "GiB") and (figure.value & -figure.value) != figure.value:
            results.add(figure.to("byte"))
        if figure.unit in SI and digits(figure.value) != "1":
            results.add(figure.to(SI[figure.unit]))
    return results


FOLDED = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
}


def number(node: ast.AST) -> float | None:
    """The value of a number, or of arithmetic with numbers; otherwise None."""
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return value
        case ast.BinOp(left=left, op=op, right=right) if type(op) in FOLDED:
            one, other = number(left), number(right)
            if one is None or other is None or abs(other) > 1e3 and isinstance(op, ast.Pow):
                return None
            try:
                return FOLDED[type(op)](one, other)
            except (ArithmeticError, TypeError, ValueError):
                return None
    return None


def facts_in_code(source: str, known: set[float]) -> list[str]:
    """Numbers in code, also products such as 2.9 * 10**12, that are values of facts.

    >>> facts_in_code("rate = 1299; peak = 667e12; size = 512", {1299.0, 667e12})
    ['1299', '667000000000000.0']
    >>> facts_in_code("bandwidth = 2.9 * 10**12", {2.9e12})
    ['2.9 * 10 ** 12']
    """
    values = ((node, number(node)) for node in ast.walk(ast.parse(source)))
    return [
        ast.unparse(node)
        for node, value in values
        if isinstance(value, int | float) and float(f"{value:.12g}") in known
    ]


def sources(path: Path) -> Iterator[tuple[str, str, bool]]:
    """(place, text, whether it is code) of a notebook or a module."""
    if path.suffix != ".ipynb":
        yield path.name, path.read_text(encoding="utf-8"), path.suffix == ".py"
        return
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = cell["source"]
        text = source if isinstance(source, str) else "".join(source)
        yield cell["id"], text, cell["cell_type"] == "code"


def is_quoted(item: str) -> bool:
    """Whether a number with a unit is what a fact says: a lesson's first cell, which nothing can be
    computed in, may open with the bill.

    >>> is_quoted("98.32 USD"), is_quoted("98.33 USD")
    (True, False)
    """
    match = re.fullmatch(rf"({NUMBER}){BETWEEN}({UNIT})", item, re.IGNORECASE)
    return match is not None and any(
        figure.value == float(match[1].replace(",", "")) and figure.unit.startswith(match[2])
        for known in figures().values()
        for figure in (known, *known.history)
        if isinstance(figure.value, int | float)
    )


def literals(path: Path, known: set[float]) -> list[str]:
    results = []
    for place, text, is_code in sources(path):
        first = place == "title" and not is_code
        results += [f"{place}: {t}" for t in numbers_in(text) if not (first and is_quoted(t))]
        if is_code:
            try:
                results += [f"{place}: {item}" for item in facts_in_code(text, known)]
            except SyntaxError:
                continue  # a shell command or a magic
    return results


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", [*NOTEBOOKS, *MODULES, *DATA], ids=relative)
def test_no_hardware_figure_or_price_is_typed(path: Path) -> None:
    assert literals(path, telling()) == [], "quote it: utils.facts.figure(key)"


@pytest.mark.parametrize(
    "text",
    [
        "Trainium2 reaches 667 TFLOPS in BF16",
        "its HBM delivers 2.9 TB/s",
        "an HBM of 96 GiB and an SBUF of 24 MiB",
        "at 1.4GHz, or 820 GB/s",
        "for $35.76 an hour",
        "it costs 2.235 USD/h",
        "a 500 W chip",
        "667 dense BF16 TFLOPS, or 667 teraflops",
        "**2.9** TB/s",
        "`2.9` TB per second",
        "24 MB of SRAM",
        "at USD 35.76",
        "links of 1,024 GB/s",
    ],
)
def test_a_planted_figure_is_found_in_prose(text: str, tmp_path: Path) -> None:
    cell = {"id": "planted", "cell_type": "markdown", "source": [text]}
    path = tmp_path / "planted.ipynb"
    path.write_text(json.dumps({"cells": [cell]}))
    assert literals(path, telling())


@pytest.mark.parametrize(
    "code",
    [
        *("peak = 667e12", "peak = 1299", "bandwidth = 2.9e12", "price = 35.7608", "clock = 2.4e9"),
        *("bandwidth = 2.9 * 10**12", "hbm = 96 * 2**30", "sbuf = 28 << 20", "price = 35.76"),
        "print(f'{667} TFLOPS')",
        "print(f'{share:.0%} of 667 TFLOPS')",
    ],
)
def test_a_planted_figure_is_found_in_code(code: str, tmp_path: Path) -> None:
    path = tmp_path / "planted.py"
    path.write_text(f"def model():\n    {code}\n")
    assert literals(path, telling())


@pytest.mark.parametrize(
    "text",
    [
        "rounded to 8 bits, with 512 values of FP32, in 4 steps of 128 rows",
        "1 GiB is 1024 MiB",
        "K = 4096 and a tolerance of 1e-6, batch 64, seed 2024",
        "a factor of 3.5, 30 % of the peak, 1,299 tokens",
        "twelve graphs in 45 s",
    ],
)
def test_mathematics_and_counts_are_no_figures(text: str) -> None:
    assert numbers_in(text) == []


@pytest.mark.parametrize("pattern", ALLOWED)
def test_every_exception_is_still_needed(pattern: str) -> None:
    every = [text for path in [*NOTEBOOKS, *MODULES, *DATA] for _, text, _ in sources(path)]
    assert any(re.search(pattern, text) for text in every), ALLOWED[pattern]
