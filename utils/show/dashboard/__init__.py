"""The cost model as a page, for those who do not open notebooks: `python3 course.py tco`.

`show()` is the page in a notebook; `utils.show.dashboard.server` serves the one notebook that
calls it.
"""

import os


def show() -> None:
    """Display the page for the link that the visitor opened."""
    # late: the server imports this package, and needs neither widgets nor figures
    from IPython.display import display

    from utils.show.dashboard.page import Page

    # Voila gives each kernel the query of its page.
    display(Page(os.environ.get("QUERY_STRING", "")).widget)
