"""The pages of the site, as the Markdown and the notebooks that Sphinx reads.

A page is written by hand in `guide/`, copied from where it lives (lessons, labs, the changelog), or
made from data (tracks, claims, error codes, rules of the audit, instructions of NKI, glossary).
"""

import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from utils.audit import rule_pages
from utils.cli.site import costs, recording
from utils.course import catalog
from utils.course.catalog import ROOT
from utils.course.glossary import glossary
from utils.course.shown import markdown
from utils.facts.errors import errors
from utils.facts.ledger import ARTICLES, AS_OF, VERDICTS, claims

HERE = Path(__file__).parent
GUIDE = (
    "start",
    "tracks",
    "map",
    "working_copy",
    "platforms",
    "commands",
    "class",
    "hub",
    "on_trainium",
)
"""Pages of `guide/` in the order of the menu."""
COPIED = {
    "README.md": "index.md",
    **{f"utils/cli/site/guide/{name}.md": f"guide/{name}.md" for name in GUIDE},
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "utils/cli/trn-audit.md": "tools/audit.md",
    "utils/cli/trn-nki.md": "tools/nki.md",
    "utils/labs/grading/PLATFORMS.md": "guide/platforms_of_classes.md",
    "utils/labs/grading/CLUSTER.md": "guide/cluster.md",
}
MOVED = (
    *((f"]({source})", f"]({target})") for source, target in COPIED.items()),
    ("](../../../../", "](../"),
    ("](CLUSTER.md)", "](cluster.md)"),
    # Sphinx draws no diagram of mermaid; as text it can be read.
    ("```mermaid", "```text"),
)
"""What links of copied pages are on the site."""
TO_NOTEBOOK = re.compile(r"""((?:href=["']|\]\()(?!https?:)[^"')]+)\.ipynb(["'#)])""")


def write(folder: Path, root: Path = ROOT, recorded: Mapping[str, str] = {}) -> None:
    """Write every page below `folder`. Raises OSError, CatalogError.

    recorded: the explorable of a notebook as HTML, by the notebook's name, and the page of costs.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("images", "scripts"):
        # Compiled Python would differ from build to build.
        kept = shutil.ignore_patterns("__pycache__")
        shutil.copytree(root / "notebooks" / name, folder / "notebooks" / name, ignore=kept)
    lessons, labs, pages = catalog.lessons(root), catalog.labs(root), catalog.pages(root)
    for notebook in (*lessons, *labs, *pages):
        place = folder / notebook.path.relative_to(root)
        place.parent.mkdir(parents=True, exist_ok=True)
        explorable = recorded.get(notebook.path.stem, "")
        place.write_text(json.dumps(readable(catalog.read_notebook(notebook.path), explorable)))
    shutil.copy(root / "LICENSE", folder)
    for source, target in COPIED.items():
        (folder / target).parent.mkdir(parents=True, exist_ok=True)
        content = (root / source).read_text(encoding="utf-8")
        for old, new in MOVED:
            content = content.replace(old, new)
        (folder / target).write_text(content, encoding="utf-8")
    _write_made(folder, root)
    (folder / f"{costs.NAME}.md").write_text(recorded.get(costs.NAME, costs.HEAD), encoding="utf-8")
    menu = {
        "How to": [f"guide/{name}" for name in GUIDE],
        "Lessons": [_page(lesson.path, root) for lesson in lessons],
        "Labs": [_page(lab.path, root) for lab in labs],
        "Looked up": [
            *(_page(page.path, root) for page in pages),
            "costs", "claims", "error_codes", "glossary",
        ],
        "Tools": ["tools/audit", "tools/rules/index", "tools/nki", "tools/nki_reference"],
        "The project": [
            "guide/platforms_of_classes", "guide/cluster", "contributing", "changelog",
        ],
    }  # fmt: skip
    with (folder / "index.md").open("a", encoding="utf-8") as file:
        for caption, names in menu.items():
            file.write(_toctree(caption, names))


def readable(notebook: dict[str, Any], explorable: str = "") -> dict[str, Any]:
    """The notebook as the site shows it: code that JupyterLab folds is folded, links in results
    lead to pages, and a recorded explorable stands where the notebook has it."""
    for cell in notebook["cells"]:
        if explorable and cell.get("id") == recording.CELL:
            cell["metadata"]["jupyter"] = {"source_hidden": True}
            cell["outputs"] = [
                {"output_type": "display_data", "metadata": {}, "data": {"text/html": explorable}}
            ]
        if cell["metadata"].get("jupyter", {}).get("source_hidden"):
            cell["metadata"]["tags"] = [*catalog.tags(cell), "hide-input"]
        for output in cell.get("outputs", []):
            for kind in {"text/html", "text/markdown"} & set(output.get("data", {})):
                content = "".join(output["data"][kind])
                output["data"][kind] = TO_NOTEBOOK.sub(r"\1.html\2", content)
    return notebook


def _page(path: Path, root: Path) -> str:
    return str(path.relative_to(root).with_suffix(""))


def _toctree(caption: str, names: list[str]) -> str:
    lines = [
        "",
        "```{toctree}",
        ":hidden:",
        ":titlesonly:",
        f":caption: {caption}",
        "",
        *names,
        "```",
        "",
    ]
    return "\n".join(lines)


def _write_made(folder: Path, root: Path) -> None:
    """Write the pages that are made from data."""
    from utils.nki.tool import reference  # late: it loads the simulator

    rule_pages.write_pages(folder / "tools" / "rules")
    for path in (folder / "tools" / "rules").glob("*.md"):
        if path.stem != "index":  # which links to all: in the menu of each page they would be half
            text = path.read_text(encoding="utf-8")
            path.write_text(f"---\norphan: true\n---\n{text}\n[All rules](index.md)\n", "utf-8")
    made = {
        "claims.md": _claims(),
        "error_codes.md": _error_codes(root),
        "glossary.md": _glossary(),
        "tools/nki_reference.md": reference.page(),
    }
    for name, content in made.items():
        (folder / name).write_text(content, encoding="utf-8")


def _claims() -> str:
    rows = [
        (
            claim.id,
            claim.topic,
            claim.verdict,
            *(text.replace("|", "\\|").replace("<", "\\<") for text in (claim.text, claim.correct)),
            f"[source]({claim.source})" if claim.source.startswith("http") else "-",
        )
        for claim in claims()
    ]
    lines = [
        "# Claims about Trainium",
        "",
        f"What four kinds of articles say, checked; last changed on {AS_OF}.",
        "",
        *(f"- **{letter}**: {kind}" for letter, kind in ARTICLES.items()),
        "",
        "A verdict is one of:",
        "",
        *(f"- **{verdict}**: {meaning}" for verdict, meaning in VERDICTS.items()),
        "",
        markdown(("Id", "Topic", "Verdict", "Claim", "What the evidence says", "Source"), rows),
        "",
    ]
    return "\n".join(lines)


def _error_codes(root: Path) -> str:
    lessons = {lesson.number: _page(lesson.path, root) for lesson in catalog.lessons(root)}
    rows = []
    for error in errors().values():
        page = lessons.get(error.lesson)
        rows.append(
            (
                f"`{error.code}`" + (f" ({error.number})" if error.number else ""),
                "<br>".join(f"`{message}`" for message in error.messages) or "-",
                error.cause,
                error.action,
                f"[{error.lesson}]({page}.ipynb)" if page else "-",
                f"[{error.date}]({error.source})",
            )
        )
    lines = [
        "# Error codes of Neuron",
        "",
        "What the compiler, the runtime, containers and the profiler say when something fails."
        " Messages are quoted from AWS's documentation"
        " ([CC BY-SA 4.0](https://creativecommons.org/licenses/by-sa/4.0/)); `…` stands for what"
        " differs. `python3 course.py symptoms < run.log` finds the entries of a log.",
        "",
        markdown(("Code", "Message", "Cause", "What to do", "Lesson", "Source"), rows),
        "",
    ]
    return "\n".join(lines)


def _glossary() -> str:
    lines = ["# Glossary", "", "Terms as this course uses them.", "", "```{glossary}"]
    for term, meaning in sorted(glossary().items(), key=lambda item: item[0].lower()):
        lines += [term, f"  {meaning}", ""]
    return "\n".join([*lines, "```", ""])
