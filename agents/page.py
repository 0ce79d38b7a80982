"""Pages of one file that needs nothing else: sections of charts and tables, one look for all reports."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #888; }
body { font: 15px/1.45 system-ui, sans-serif; max-width: 1180px; margin: 2em auto; padding: 0 1em; }
h1 { font-size: 1.5em; margin-bottom: 0.2em; overflow-wrap: anywhere; } h2 { font-size: 1.15em; margin: 1.8em 0 0.4em; }
p.note { color: var(--soft); margin: 0.2em 0 0.8em; }
.charts { display: grid; grid-template-columns: repeat(auto-fill, minmax(340px, 1fr)); gap: 1.1em; }
.wide { grid-template-columns: repeat(auto-fill, minmax(480px, 1fr)); }
.charts:not(.wide) svg text { font-size: 15px; }
figure { margin: 0; } figcaption { font-weight: 600; margin-bottom: 0.2em; overflow-wrap: anywhere; }
svg { width: 100%; height: auto; } svg text { font-size: 11px; fill: currentColor; } .grid { stroke: var(--line); }
.legend { font-size: 12px; } .key { margin-right: 1em; white-space: nowrap; }
.key i { display: inline-block; width: 10px; height: 10px; border-radius: 2px; margin-right: 4px; }
table { border-collapse: collapse; } td, th { text-align: left; padding: 2px 14px 2px 0; border-bottom: 1px solid var(--line); }
td.n { text-align: right; font-variant-numeric: tabular-nums; }
pre { background: #8881; padding: 0.8em; overflow-x: auto; font-size: 13px; }
"""


def html_page(title: str, sections: Iterable[str]) -> str:
    """The whole page; `sections` are HTML."""
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{escape(title)}</title>'
    return f"<!doctype html><html lang=en><head>{head}<style>{_STYLE}</style></head><body>{''.join(sections)}</body></html>\n"


def figures(title: str, note: str, charts: Sequence[tuple[str, str]], *, wide: bool = False) -> str:
    """A section of (caption, chart) pairs, the charts HTML; none if there is nothing to show."""
    shown = [f"<figure><figcaption>{escape(caption)}</figcaption>{chart}</figure>" for caption, chart in charts if chart]
    grid = "charts wide" if wide else "charts"
    return (
        f'<h2>{escape(title)}</h2><p class="note">{escape(note)}</p><div class="{grid}">{"".join(shown)}</div>' if shown else ""
    )


def table(rows: Iterable[Sequence[str]], *, head: Sequence[str] = (), text_columns: int = 1) -> str:
    """Rows of plain text; after the first `text_columns` columns are figures, set to the right."""
    top = f"<tr>{''.join(f'<th>{escape(cell)}</th>' for cell in head)}</tr>" if head else ""
    return f"<table>{top}{''.join(_row(row, text_columns) for row in rows)}</table>"


def _row(cells: Sequence[str], text_columns: int) -> str:
    marked = ('<td class="n">' if place >= text_columns else "<td>" for place in range(len(cells)))
    return f"<tr>{''.join(f'{mark}{escape(cell)}</td>' for mark, cell in zip(marked, cells, strict=True))}</tr>"
