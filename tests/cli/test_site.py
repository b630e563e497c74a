"""The website: built without warnings, complete, light, and readable by everybody."""

import functools
import html
import http.server
import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser import launch, violations
from utils.audit.rules import RULES
from utils.cli.site import building, costs, reading, recording, sources
from utils.cost.tco.scenario import scenario
from utils.cost.tco.uncertainty import compare, tornado
from utils.course import catalog
from utils.course.catalog import ROOT
from utils.course.glossary import glossary
from utils.course.shown import Shown
from utils.facts.errors import errors
from utils.facts.ledger import claims
from utils.show.report.build import answer

MOST_BYTES = 1_500_000


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return building.build(tmp_path_factory.mktemp("site") / "html", explorables="13_*")


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, reading.Page]:
    return reading.read(site)


def test_every_notebook_rule_claim_and_term_has_its_place(site: Path) -> None:
    for notebook in (*catalog.lessons(), *catalog.labs(), *catalog.pages()):
        assert (site / notebook.path.relative_to(ROOT)).with_suffix(".html").is_file()
    assert all((site / "tools" / "rules" / f"{rule}.html").is_file() for rule in RULES)
    ledger = (site / "claims.html").read_text()
    assert all(f">{claim.id}<" in ledger for claim in claims())
    codes = (site / "error_codes.html").read_text()
    assert all(f">{part}<" in codes for code in errors() for part in code.split())
    assert (site / "glossary.html").read_text().count("<dt") == len(glossary())


def test_links_lead_somewhere_and_nothing_comes_from_elsewhere(
    pages: dict[Path, reading.Page],
) -> None:
    assert sum(len(page.links) for page in pages.values()) > 1000
    assert reading.broken_links(pages) == []
    assert [page.foreign for page in pages.values() if page.foreign] == []


def test_pages_are_light(pages: dict[Path, reading.Page]) -> None:
    assert {page.path.name: page.bytes for page in pages.values() if page.bytes > MOST_BYTES} == {}


def test_a_link_to_nowhere_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<p id="here"><a href="b.html"></a><a href="#there"></a><a href="#here"></a>'
        '<img src="https://example.org/x.png">'
    )
    pages = reading.read(tmp_path)
    assert reading.broken_links(pages) == ["a.html: b.html#", "a.html: a.html#there"]
    assert [page.foreign for page in pages.values()] == [("https://example.org/x.png",)]


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(building.SiteError, match="holds files that are not a site"):
        building.build(tmp_path)
    assert (tmp_path / "thesis.txt").read_text() == "mine"


def test_a_page_that_links_to_nothing_stops_the_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(folder: Path, root: Path, recorded: object) -> None:
        (folder / "index.md").write_text("# A page\n\n[more](missing.md)\n")

    monkeypatch.setattr(sources, "write", write)
    with pytest.raises(building.SiteError, match="index.md:3.*missing.md"):
        building.build(tmp_path / "html", explorables="")
    assert list(tmp_path.iterdir()) == []


def test_results_are_folded_and_their_links_lead_to_pages() -> None:
    link = "<a href=\"03_a.ipynb#x\">a</a> <a href='https://example.org/b.ipynb'>b</a>"
    markdown = ["[go on](../labs/lab03.ipynb)"]
    cell = {
        "metadata": {"jupyter": {"source_hidden": True}},
        "outputs": [{"data": {"text/html": link, "text/markdown": markdown}}, {"text": "x"}],
    }
    sources.readable({"cells": [cell]})
    assert cell["metadata"]["tags"] == ["hide-input"]
    assert cell["outputs"][0]["data"] == {
        "text/html": link.replace("03_a.ipynb", "03_a.html"),
        "text/markdown": "[go on](../labs/lab03.html)",
    }


def test_what_is_recorded_of_sliders_and_lists() -> None:
    is_all, taken, rows = recording.plan({"a": (1, 12, 12), "b": ["y", "x"]})
    assert is_all and taken == {"a": list(range(1, 13)), "b": ["y", "x"]}
    assert len(rows) == 24 and rows[0] == {"a": 12, "b": "y"}
    # Three sliders of six values would be 216 frames, of four 64: one at a time is recorded.
    is_all, taken, rows = recording.plan({name: (0, 100, 50) for name in "abc"})
    assert not is_all and taken["a"] == [0, 20, 50, 60, 80, 100]
    assert len(rows) == 16 and rows[0] == {"a": 50, "b": 50, "c": 50}
    assert all(sum(value != 50 for value in row.values()) == 1 for row in rows[1:])


def test_the_page_of_costs_moves_the_input_that_decides_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    item = scenario("chat-service")
    path = tornado(item)[0].path
    monkeypatch.setattr(costs, "scenarios", lambda: {item.name: item})
    monkeypatch.setattr(costs, "INPUTS", 1)
    page = costs.page(tmp_path)
    assert f"## {item.title}" in page and page.count("<img") == page.count("data-key=") == 5
    assert len(list((tmp_path / "costs_chat-service_frames").glob("*.png"))) == 5
    assert '<label data-kind="slider" data-first="2"' in page
    low = compare(item.with_values({path: item.inputs[path].low}))
    shown = html.unescape(page.split('data-key="0"')[1].split("</p></div>")[0])
    assert answer(low) in shown and answer(compare(item)) not in shown
    assert answer(compare(item)) in html.unescape(page.split("<div data-key=")[1])
    assert costs.page(tmp_path / "some", whole=False).count("data-key=") == 1


def test_an_explorable_that_fails_stops_the_build(tmp_path: Path) -> None:
    cell = {"cell_type": "code", "id": recording.CELL, "metadata": {}, "source": "1 / 0"}
    (tmp_path / "a.ipynb").write_text(json.dumps({"cells": [cell]}))
    with pytest.raises(ValueError, match=r"a\.ipynb cannot be recorded: ZeroDivisionError"):
        recording.record_all([tmp_path / "a.ipynb"], tmp_path)


@pytest.mark.exhaustive
def test_the_explorable_of_every_notebook_is_recorded(tmp_path: Path) -> None:
    paths = [item.path for item in (*catalog.lessons(), *catalog.pages())]
    recorded = recording.record_all(paths, tmp_path)
    # The planner and all lessons have one.
    assert set(recorded) == {item.path.stem for item in catalog.lessons()} | {"planner"}
    assert all(2 <= page.count("data-key=") <= recording.MOST for page in recorded.values())
    assert sum(file.stat().st_size for file in tmp_path.rglob("*.png")) < 3_000_000


def test_terms_of_the_glossary_are_used_and_written_once() -> None:
    texts = "\n".join(path.read_text() for path in ROOT.glob("[nls]*/**/*.ipynb")).lower()
    unused = [term for term in glossary() if term.lower().split()[0] not in texts]
    assert unused == []
    assert len({term.lower() for term in glossary()}) == len(glossary())


EVERYDAY = set(
    "ACTIONS AMD API AWS BA CNN CPU CSV GB GPU HTML IEEE JSON NVIDIA OSS PDF SHA TB TPU US USD"
    " TFLOP TFLOPS PFLOP PFLOPS".split()
)
"""Abbreviations that whoever reads PyTorch knows, larger units of FLOP, and names: of a model, of a
product in a formula, of a list in lab 10."""


NO_PROSE = re.compile(r"""(?s)```.*?```|`[^`]*`|\]\([^)]*\)|\*\*[A-Z ]+\*\*|"[^"\n]*"|CC BY-SA""")
"""Code, what links lead to, columns of a tool, quotations, a licence."""


def test_every_abbreviation_of_the_text_stands_in_the_glossary() -> None:
    known = set(re.findall(r"\w+", " ".join(glossary()))) | EVERYDAY
    missing: dict[str, str] = {}
    for notebook in (*catalog.lessons(), *catalog.labs(), *catalog.pages()):
        for cell in catalog.read_notebook(notebook.path)["cells"]:
            if cell["cell_type"] == "markdown":
                prose = NO_PROSE.sub(" ", catalog.text(cell))
                for word in re.findall(r"\b([A-Z]{2,}\d*)s?\b", prose):
                    if word not in known:
                        missing[word] = notebook.path.name
    assert missing == {}


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *arguments: object) -> None:
            pass

    handler = functools.partial(Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_readers_search_filter_and_read_on_a_phone_in_both_themes(
    site: Path, address: str, request: pytest.FixtureRequest
) -> None:
    """One browser for all, because starting it takes longer than reading."""
    # Of the rows of a long table, which are alike, some are looked at by day.
    some = (
        {}
        if request.config.getoption("exhaustive")
        else {"claims": "a-00", "error_codes": "NCC_EOOM"}
    )
    with launch() as browser:
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(f"{address}/search.html?q=stochastic+rounding")
        page.locator("#search-results li a", has_text="Mixed precision").first.wait_for()

        page.goto(f"{address}/claims.html")
        page.get_by_label("Show rows that contain").fill("a-001 adoption")
        page.get_by_text(f"1 of {len(claims())} rows").wait_for()
        assert page.locator("table tbody tr:visible").count() == 1

        page.goto(f"{address}/notebooks/13_tco.html")
        shown = page.locator(".explore .frames > div:visible")
        prices = page.get_by_label("price of the instance")
        assert "40 USD an hour at 30 %" in shown.inner_text()
        page.get_by_label("runs that share the port").select_option("52")
        assert "spread over 52 runs" in shown.inner_text()
        prices.focus()
        page.keyboard.press("End")
        # The page has one choice at a time: the runs are one again.
        assert prices.get_attribute("aria-valuetext") == "100"
        assert "100 USD an hour at 30 % of the peak" in shown.inner_text()
        assert "spread over 1 run:" in shown.inner_text()
        image = shown.locator("img")
        image.evaluate("image => image.decode()")
        assert image.get_attribute("src") == "13_tco_frames/5.png"
        assert violations(page, ".explore") == set()

        def tell(a: int, b: str) -> Shown:
            return Shown(f"{a} and {b}")

        whole = recording.record(site, tell, {"a": "how <many>"}, a=(1, 3, 2), b=["x", "y"])
        page.set_content(whole)
        page.add_script_tag(content=(sources.HERE / "static" / "explore.js").read_text())
        page.evaluate("document.dispatchEvent(new Event('DOMContentLoaded'))")
        page.get_by_label("how <many>").fill("2")
        page.get_by_label("b").select_option("y")
        assert page.locator(".frames pre:visible").all_inner_texts() == ["3 and y"]

        # Of the pages that have one layout, each theme is asked about others.
        for scheme, names in {
            "light": ("index", "tools/rules/cuda-move"),
            "dark": ("claims", "error_codes", "notebooks/03_lazy_tensors"),
        }.items():
            phone = browser.new_page(viewport={"width": 390, "height": 844}, color_scheme=scheme)
            for name in names:
                phone.goto(f"{address}/{name}.html")
                assert phone.evaluate("document.documentElement.scrollWidth") <= 390, name
                if name in some:
                    phone.get_by_label("Show rows that contain").fill(some[name])
                    assert 0 < phone.locator("table tbody tr:visible").count() < 20
                assert violations(phone) == set(), (name, scheme)
            phone.close()

        without = browser.new_context(java_script_enabled=False).new_page()
        without.goto(f"{address}/notebooks/03_lazy_tensors.html")
        assert without.get_by_role("heading", name=re.compile("Lazy tensors")).first.is_visible()
        without.goto(f"{address}/notebooks/13_tco.html")
        assert without.locator(".explore .frames > div:visible").count() == 1
        assert not without.locator(".explore .controls").is_visible()
        closed = without.locator("article details:not([open])").first
        closed.locator("summary").click()
        assert closed.or_(without.locator("article details[open]")).first.is_visible()
