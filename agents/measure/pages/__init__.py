"""Writes reports as pages, each of which is one file that needs nothing else, and draws the same
charts as pictures.
"""

from agents.measure.pages.chart import Chart, Intervals, Line
from agents.measure.pages.page import (
    chart_grid,
    columns,
    film,
    fold,
    html_page,
    lead,
    logo,
    moving_picture,
    note,
    section,
    statement,
    table,
)

__all__ = [
    "Chart",
    "Intervals",
    "Line",
    "chart_grid",
    "columns",
    "film",
    "fold",
    "html_page",
    "lead",
    "logo",
    "moving_picture",
    "note",
    "section",
    "statement",
    "table",
]
