"""A4 paper with our type, margins and tables: what fpdf2 needs to be told once."""

import io
from collections.abc import Sequence
from pathlib import Path

from fpdf import FPDF, ViewerPreferences
from fpdf.enums import TableBordersLayout
from fpdf.fonts import FontFace, TTFFont

from utils.show.draw.picture import Picture
from utils.show.report.content import Table
from utils.show.report.wording import no_break, shorten

INK, SOFT, LINE, TINT, MARK = (
    (27, 39, 51),
    (82, 97, 111),
    (213, 220, 227),
    (238, 243, 247),
    (0, 114, 178),
)
SIDE, TOP, FOOT = 15.0, 13.0, 14.0
WIDTH = 210.0 - 2 * SIDE
END = 297.0 - FOOT
"""Margins, the width between them, and where the text of a page ends, in millimetres."""
ROOM = 25.0
"""What a heading needs for itself and its first lines, in millimetres."""
CELL = 900
"""Characters of a cell: one that is higher than a page cannot be set."""
MILLIMETRES = 25.4 / 72  # of a point


class Paper(FPDF):
    """A document whose text is written at `scale` times its size."""

    def __init__(self, foot: str) -> None:
        super().__init__(format="A4")
        # matplotlib brings DejaVu along: a type with Greek, Cyrillic and signs, free to embed.
        import matplotlib

        fonts = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
        self.add_font("DejaVu", "", fonts / "DejaVuSans.ttf")
        self.add_font("DejaVu", "B", fonts / "DejaVuSans-Bold.ttf")
        font = self.fonts["dejavu"]
        assert isinstance(font, TTFFont)
        self._characters = font.cmap
        self.foot, self.scale = foot, 1.0
        self.set_margins(SIDE, TOP)
        self.c_margin = 0
        self.set_auto_page_break(True, FOOT)
        self.set_lang("en")
        self.viewer_preferences = ViewerPreferences(display_doc_title=True)

    def footer(self) -> None:
        """What fpdf2 writes below each page."""
        self.set_y(-10)
        self.type(7, SOFT)
        self.cell(WIDTH - 17, 4, self.known(self.foot))
        self.cell(17, 4, f"Page {self.page_no()} of {{nb}}")

    def type(self, points: float, color: tuple[int, int, int] = INK, bold: bool = False) -> None:
        """Write from here on in that size and colour."""
        self.set_font("DejaVu", "B" if bold else "", points * self.scale)
        self.set_text_color(*color)

    def gap(self, millimetres: float) -> None:
        """Go down."""
        self.ln(millimetres * self.scale)

    def known(self, text: str) -> str:
        """The text, with a square for each character that the type does not have."""
        characters = self._characters
        return "".join(c if ord(c) in characters or c == "\n" else "□" for c in no_break(text))

    def text_line(
        self, text: str, width: float = WIDTH, leading: float = 1.3, link: str = ""
    ) -> None:
        """A paragraph in the present type, from the present place."""
        height = self.font_size_pt * MILLIMETRES * leading
        self.multi_cell(
            width, height, self.known(text), link=link, align="L", new_x="LMARGIN", new_y="NEXT"
        )

    def heading(self, text: str, beside: str = "") -> None:
        """A heading with a remark beside it, on the next page if there is no `ROOM` below it."""
        if self.auto_page_break and self.get_y() + ROOM > END:
            self.add_page()
        self.gap(2.2)
        self.type(9.5, MARK, bold=True)
        height = self.font_size_pt * MILLIMETRES * 1.3
        self.cell(self.get_string_width(text) + 2.5, height, text)
        self.type(7.3, SOFT)
        self.cell(0, height, beside, new_x="LMARGIN", new_y="NEXT")
        self.gap(0.5)

    def points(
        self, texts: Sequence[str], size: float = 8, links: Sequence[str] | None = None
    ) -> None:
        """Texts as a list, each with a link if there are any."""
        for text, link in zip(texts, links or [""] * len(texts), strict=True):
            self.type(size)
            height = self.font_size_pt * MILLIMETRES * 1.3
            self.cell(4, height, "–")
            self.text_line(text, WIDTH - 4, link=link)
            self.gap(0.4)

    def rows(
        self, table: Table, widths: Sequence[float], size: float = 8, total: bool = False
    ) -> None:
        """A table; its head is repeated on each page. widths: shares of the whole."""
        self.type(size - 0.7, SOFT)
        self.text_line(f"{table.caption}.")
        self.gap(0.6)
        self.type(size)
        self.set_draw_color(*LINE)
        self.set_fill_color(255)
        height = self.font_size_pt * MILLIMETRES * 1.28
        with self.table(
            width=WIDTH, col_widths=tuple(widths), text_align="LEFT", line_height=height,
            padding=(0.45, 2, 0.45, 0), borders_layout=TableBordersLayout.HORIZONTAL_LINES,
            headings_style=FontFace(emphasis="BOLD", color=INK), v_align="TOP",
        ) as lines:  # fmt: skip
            lines.row([self.known(cell) for cell in table.head])
            for number, row in enumerate(table.rows, 1):
                bold = FontFace(emphasis="BOLD") if total and number == len(table.rows) else None
                lines.row([self.known(shorten(item, CELL)) for item in row], style=bold)

    def picture(self, picture: Picture, width: float) -> None:
        """A figure with its caption below, and as its alternative text."""
        self.image(
            io.BytesIO(picture.png), x=SIDE, w=width, alt_text=picture.caption, title="Figure"
        )
        self.gap(1)
        self.type(7.3, SOFT)
        self.text_line(picture.caption)
        self.gap(3)
