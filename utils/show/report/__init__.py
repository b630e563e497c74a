"""The report for whoever decides: one page that is complete by itself, and all inputs behind it.

`report(scenario, decision)` is its content, which `to_html`, `to_pdf` and `to_csv` write.
"""

from utils.report.build import report
from utils.report.content import Given, Line, Report, Section, Table
from utils.report.page import to_html
from utils.report.pdf import to_pdf
from utils.report.spreadsheet import to_csv

__all__ = ["Given", "Line", "Report", "Section", "Table", "report", "to_csv", "to_html", "to_pdf"]
