"""Pictures, widgets and pages: what the other rooms compute, drawn.

- `draw`: the figures of lessons and labs, each with an alternative text
- `widgets`: the explorables; `report`: a cost report as PDF; `dashboard`: the cost model as a page

May import: every room below. Used by: notebooks, cli.
"""
