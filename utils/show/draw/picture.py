"""A finished figure with its caption, and the colours, hatches and markers of all figures.

Colours are those of Okabe and Ito, which colour-blind readers can tell apart; markers and hatches
say the same again.
"""

import base64
import html
import io
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLORS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")
HATCHES = ("", "//", "..", "xx", "\\\\", "++")
MARKERS = ("o", "s", "^", "D", "v", "P")

DARK = (
    ":is([data-jp-theme-light=false],.vscode-dark,.vscode-high-contrast:not(.vscode-high-contrast-light))"
    " .course-figure img{filter:invert(0.93) hue-rotate(180deg)}"
)
"""In the dark themes of Jupyter and VS Code a figure is light on dark, so that it does not glare;
its hues stay as they are, and its ground is near the theme's own.
"""


@dataclass(frozen=True)
class Picture:
    """A finished figure. `png`: its bytes; `caption`: what it shows, for every reader, seeing or
    not.
    """

    png: bytes
    caption: str

    def __repr__(self) -> str:
        return f"Figure. {self.caption}"

    def _repr_png_(self) -> bytes:
        return self.png

    def html(self) -> str:
        """The figure as HTML: at its own size at most, dark on white or, in a dark theme, light on
        dark; its caption below, which is its alternative text too.
        """
        source = base64.b64encode(self.png).decode()
        caption = html.escape(self.caption)
        return (
            f'<style>{DARK}</style><figure class="course-figure" style="margin:0.5em 0">'
            f'<img alt="{caption}" src="data:image/png;base64,{source}"'
            ' style="max-width:100%;height:auto;background:#fff">'
            f"<figcaption><em>Figure.</em> {caption}</figcaption></figure>"
        )

    def _ipython_display_(self) -> None:
        # late: only a notebook needs IPython
        from IPython.display import Markdown, display

        if os.environ.get("COURSE_STRICT") != "1":
            display({"text/html": self.html(), "text/plain": repr(self)}, raw=True)
            return
        # The stored copy, for readers on the web: pages that show notebooks drop images in HTML.
        display(
            {"image/png": self.png, "text/plain": repr(self)},
            metadata={"image/png": {"alt": self.caption}},
            raw=True,
        )
        display(Markdown(f"*Figure.* {self.caption}"))


def new_figure(width: float, height: float) -> "Figure":
    """An empty figure of that size, in inches."""
    # late: matplotlib is slow to load. Its object interface needs no pyplot: no global state, no
    # figure left open, no window.
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def finish(figure: "Figure", caption: str, diagram: bool = False) -> Picture:
    """The picture of a figure. diagram: it has few pure colours, which 32 in an octree keep."""
    from PIL import Image  # late: comes with matplotlib

    drawn, small = io.BytesIO(), io.BytesIO()
    figure.savefig(drawn, format="png", dpi=100)
    # Line art needs few colours: a palette makes the file a third as large, and notebooks keep
    # their figures.
    pixels = Image.open(drawn).convert("RGB")
    few = pixels.quantize(32, Image.Quantize.FASTOCTREE) if diagram else pixels.quantize(64)
    few.save(small, format="png", optimize=True)
    return Picture(small.getvalue(), caption)
