"""Files that are odd as files: each maker writes what a student hands in."""

import io
import json
import zipfile
from pathlib import Path

from tests.labs.hostile import Maker, answering, cell, hand_in, notebook
from tests.labs.lab99 import course as lab99

MAGICS = """%load_ext autoreload
%autoreload 2
%matplotlib inline
!echo '\x1b[2J' && ls /
files = !ls
%time _ = 1
import warnings; warnings.simplefilter("error")
def double(number):
    return 2 * number"""

MAKERS: dict[str, Maker] = {}


def maker(function: Maker) -> Maker:
    MAKERS[function.__name__.replace("_", "-")] = function
    return function


MAKERS["magics"] = answering(ex1=MAGICS)


def _wrong() -> dict:
    return notebook(ex1="def double(number):\n    return -1")


@maker
def zip_bomb(folder: Path) -> None:
    """256 MiB of zeros in a file of 256 KiB."""
    folder.mkdir()
    with zipfile.ZipFile(folder / "lab99.zip", "w", zipfile.ZIP_DEFLATED) as file:
        with file.open("lab99_sums.ipynb", "w", force_zip64=True) as entry:
            for _ in range(256):
                entry.write(bytes(1 << 20))


@maker
def zip_of_elsewhere(folder: Path) -> None:
    """Absolute names, names that climb, one name twice, a zip in a zip."""
    folder.mkdir()
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w") as file:
        file.writestr("lab99_sums.ipynb", json.dumps(_wrong()))
    with zipfile.ZipFile(folder / "lab99.zip", "w") as file:
        for name in ("/tmp/evil.py", "../../evil.py", "..\\evil.py", "C:evil", "a\nb\x1b[2J.py"):
            file.writestr(name, "evil")
        file.writestr("inner.zip", inner.getvalue())
        file.writestr("lab99_sums.ipynb", json.dumps(notebook()))
    (folder / "more.zip").write_bytes(b"PK\x05\x06" + b"\xff" * 18)


@maker
def same_ids(folder: Path) -> None:
    made = notebook()
    for item in made["cells"]:
        item["id"] = "one"
    made["cells"] += [lab99.code("one", "x = 1")] * 800
    hand_in(folder, made)


@maker
def huge_metadata(folder: Path) -> None:
    made = notebook()
    made["metadata"]["widgets"] = {str(k): "x" * 100 for k in range(40_000)}
    cell(made, "ex1-code")["metadata"]["tags"] = ["t"] * 100_000
    hand_in(folder, made)


@maker
def broken_letters(folder: Path) -> None:
    """Halves of surrogate pairs and zeros, in sources, names and ids."""
    made = _wrong()
    own = lab99.code("\ud800\x1b[2J", "note = '\ud800'\nother = '\x00'")
    made["cells"].insert(2, own)
    made["metadata"]["kernelspec"]["name"] = "\udfff\u202e"
    hand_in(folder, made, "lab99_\u202e\x1b[2J\nsums.ipynb")


@maker
def numbers_of_no_size(folder: Path) -> None:
    made = notebook()
    made["nbformat_minor"] = "MINOR"
    made["metadata"]["n"] = "MANY"
    text = json.dumps(made).replace('"MINOR"', "1e999").replace('"MANY"', "9" * 100_000)
    folder.mkdir()
    (folder / "lab99_sums.ipynb").write_text(text.replace('"execution_count": null', '"x": NaN'))


@maker
def deep_source(folder: Path) -> None:
    """Code that a parser gives up on, and code that it takes and others give up on."""
    made = notebook()
    made["cells"] += [
        lab99.code("brackets", "x = " + "(" * 5000 + "1" + ")" * 5000),
        lab99.code("signs", "x = " + "-" * 50_000 + "1"),
        lab99.code("dots", "y = 1 if 0 else 2\nx = y" + ".real" * 20_000),
        lab99.code("sums", "x = 1" + " + 1" * 50_000),
    ]
    hand_in(folder, made)


@maker
def long_line(folder: Path) -> None:
    made = notebook(ex1="def double(number):\n    return 2 * number\nx = '" + "a(" * 500_000 + "'")
    hand_in(folder, made)


@maker
def folders_in_folders(folder: Path) -> None:
    """Links that lead in a circle, and a path of two hundred folders."""
    hand_in(folder, notebook())
    (folder / "again").symlink_to(folder)
    (folder / "gone").symlink_to(folder / "nowhere")
    deep = folder.joinpath(*["d"] * 200)
    deep.mkdir(parents=True)
    (deep / "lab99_sums.ipynb").write_text("{}")


@maker
def many_notebooks(folder: Path) -> None:
    made = _wrong()
    for number in range(300):
        cell(made, "ex1-code")["source"] = f"def double(number):\n    return {number}"
        hand_in(folder, made, f"copy ({number}).ipynb")
