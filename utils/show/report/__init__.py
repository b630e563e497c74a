"""The report for whoever decides: one page that is complete by itself, and all inputs behind it.

`report(scenario, decision)` is its content, which `to_html`, `to_pdf` and `to_csv` write.
"""

from utils.show.report.build import report
from utils.show.report.content import Given, Line, Report, Section, Table
from utils.show.report.page import to_html
from utils.show.report.pdf import to_pdf
from utils.show.report.spreadsheet import to_csv
