"""What a finished site holds: pages, their weight, and links that lead nowhere."""

from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LINKS = {"a": "href", "link": "href", "img": "src", "script": "src"}
LOADED = ("link", "img", "script")


@dataclass(frozen=True)
class Page:
    """One page: its `bytes` with all that it loads, its `ids`, and where its links lead.

    links: the page's links within the site, as (file, anchor or ""). foreign: addresses that it
    loads from elsewhere, of which there should be none.
    """

    path: Path
    bytes: int
    ids: frozenset[str]
    links: tuple[tuple[Path, str], ...]
    foreign: tuple[str, ...]


def read(site: Path) -> dict[Path, Page]:
    """Every page of the site by its file."""
    return {path: _page(path, site) for path in sorted(site.rglob("*.html"))}


def broken_links(pages: dict[Path, Page]) -> list[str]:
    """Each link within the site to a file or an anchor that does not exist: "page: link"."""
    results = []
    for page in pages.values():
        for target, anchor in page.links:
            missing = not target.exists() or (
                anchor and target in pages and anchor not in pages[target].ids
            )
            if missing:
                results.append(f"{page.path.name}: {target.name}#{anchor}")
    return results


class _Tags(HTMLParser):
    """Collects the ids of a page, and [tag, address] of what it links to."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.addresses: list[tuple[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        if name := attributes.get("id"):
            self.ids.add(name)
        if address := attributes.get(LINKS.get(tag, "")):
            self.addresses.append((tag, address))


def _page(path: Path, site: Path) -> Page:
    tags = _Tags()
    tags.feed(path.read_text(encoding="utf-8"))
    links, foreign, loaded = [], [], {path}
    for tag, written in tags.addresses:
        address = urlsplit(written)
        if address.scheme or address.netloc:
            if tag in ("img", "script") and address.scheme != "data":
                foreign.append(written)
            continue
        name = unquote(address.path)
        target = (site / name[1:] if name.startswith("/") else path.parent / name).resolve()
        target = path if not name else target / "index.html" if target.is_dir() else target
        links.append((target, unquote(address.fragment)))
        if tag in LOADED and target.exists():
            loaded.add(target)
    weight = sum(file.stat().st_size for file in loaded)
    return Page(path, weight, frozenset(tags.ids), tuple(links), tuple(foreign))
