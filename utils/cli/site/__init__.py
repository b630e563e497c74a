"""The website of the course: its notebooks with their results, and what is looked up.

- `sources`: the pages, as Markdown and notebooks, from the catalogue, the facts and the tools
- `recording`: the explorables of lessons, computed beforehand
- `costs`: the cost model's scenarios, moved along the inputs that decide
- `building`: Sphinx makes the site of them, without a network
- `reading`: what a finished site holds, and which of its links lead nowhere
- `guide/`: pages that are written by hand; `static/`: the style and the filter of long tables

May import: every room below. Used by: `course.py site`.
"""
