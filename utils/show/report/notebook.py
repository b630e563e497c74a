"""The first page of a report as Markdown, for notebooks."""

import html

from utils.facts.tables import markdown as table
from utils.show.report.content import Report


def to_markdown(report: Report) -> str:
    """Question, answer and sections; the inputs and figures stay in the other forms."""
    parts = [f"*{report.question}*", f"**{report.headline}**", report.answer]
    for section in report.sections:
        parts += [f"**{section.title}**", section.text]
        if section.table:
            parts += [f"{section.table.caption}:", table(section.table.head, section.table.rows)]
        parts.append("\n".join(f"- {point}" for point in section.points))
    return html.escape("\n\n".join(filter(None, parts)), quote=False)
