"""Sphinx makes the site. Nothing is executed and nothing is fetched."""

import contextlib
import io
import shutil
import tempfile
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from utils.cli.site import costs, recording, sources
from utils.course import catalog
from utils.course.catalog import ROOT

SETTINGS: dict[str, Any] = {
    "project": "AWS Trainium, learned on any Linux machine",
    "extensions": ["myst_nb"],
    "nb_execution_mode": "off",
    # The widgets of a notebook need its kernel: their pictures and texts are shown instead.
    "nb_ipywidgets_js": {},
    "myst_heading_anchors": 4,
    "html_theme": "furo",
    "html_title": "The Trainium course",
    "html_static_path": [str(sources.HERE / "static")],
    "html_css_files": ["site.css"],
    "html_js_files": ["filter.js", "explore.js"],
    # The figures of recorded explorables.
    "html_extra_path": ["extra"],
    "html_copy_source": False,
    "html_show_sourcelink": False,
    "html_show_sphinx": False,
    # Both with enough contrast for small letters.
    "pygments_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    # A function that a notebook shows is often one of Python's words to Pygments, and no more.
    "suppress_warnings": ["misc.highlighting_failure"],
}
REACHABLE = {
    '<p class="caption" role="heading">': '<p class="caption" role="heading" aria-level="2">',
    '<aside class="sidebar-drawer">': '<aside class="sidebar-drawer" aria-label="The course">',
    '<aside class="toc-drawer"': '<aside aria-label="This page" class="toc-drawer"',
    '<aside class="toc-drawer ': '<aside aria-label="This page" class="toc-drawer ',
    '<a href="#" class="back-to-top ': '<nav aria-label="Top"><a href="#" class="back-to-top ',
    "Back to top</span>\n        </a>": "Back to top</span></a></nav>",
    "<pre>": '<pre tabindex="0">',
    '<div class="table-wrapper ': '<div tabindex="0" class="table-wrapper ',
}
"""What the theme leaves out: landmarks have names and headings a level, and what scrolls is reached
by keyboard."""
MARK = ".buildinfo"
"""What Sphinx writes into every site; a folder without it is not replaced."""


class SiteError(ValueError):
    """The site cannot be built; the message says why, and what to do."""


def build(out: Path, root: Path = ROOT, explorables: str = "*") -> Path:
    """Build the site in `out`; an older site there is replaced when the new one is whole.

    explorables: a pattern for the names of notebooks, and "costs", whose explorables are recorded,
    which takes ten seconds for each; on the other pages they are not shown.

    Raises SiteError where `out` holds something else, and where Sphinx warns: of a link to a page
    that does not exist, for example.
    """
    if out.exists() and any(out.iterdir()) and not (out / MARK).exists():
        raise SiteError(
            f"{out} holds files that are not a site: name a new folder, or an empty one"
        )
    from sphinx.application import Sphinx  # late: slow to load
    from sphinx.util.console import nocolor

    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=".site-") as name:
        work = Path(name)
        (extra := work / "source" / "extra").mkdir(parents=True)
        paths = [item.path for item in (*catalog.lessons(root), *catalog.pages(root))]
        recorded = recording.record_all(
            [path for path in paths if fnmatch(path.stem, explorables)], extra / "notebooks"
        )
        recorded[costs.NAME] = costs.page(extra, whole=fnmatch(costs.NAME, explorables))
        sources.write(work / "source", root, recorded)
        settings = "\n".join(f"{name} = {value!r}" for name, value in SETTINGS.items())
        (work / "source" / "conf.py").write_text(settings)
        warnings = io.StringIO()
        nocolor()
        with contextlib.redirect_stdout(io.StringIO()):
            app = Sphinx(
                str(work / "source"), str(work / "source"), str(work / "html"),
                str(work / "trees"), "html", status=None, warning=warnings,
            )  # fmt: skip
            app.build()
        if result := warnings.getvalue().strip():
            raise SiteError(f"Sphinx warns of the pages:\n{result.replace(str(work), '')}")
        for page in (work / "html").rglob("*.html"):
            content = page.read_text(encoding="utf-8")
            for old, new in REACHABLE.items():
                content = content.replace(old, new)
            page.write_text(content, encoding="utf-8")
        if out.exists():
            shutil.rmtree(out)
        (work / "html").rename(out)
    return out
