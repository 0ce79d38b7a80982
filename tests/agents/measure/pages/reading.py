"""What a page holds, read as a browser would."""

from __future__ import annotations

import json
from html.parser import HTMLParser


class Page(HTMLParser):
    """Tags with their attributes, the text that is shown, the scripts, and the data of the
    charts.
    """

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.scripts = []
        self._inside = ""
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        self._inside = tag
        self.tags.append((tag, dict(attributes)))

    def handle_data(self, data):
        if self._inside == "script":
            self.scripts.append(data)
        elif self._inside != "style":
            self.text += data + "\n"

    def handle_endtag(self, tag):
        self._inside = ""

    @property
    def charts(self) -> dict[str, dict]:
        """By what their aria-label says."""
        shown = [attributes for _, attributes in self.tags if "data-chart" in attributes]
        return {
            attributes["aria-label"]: json.loads(attributes["data-chart"]) for attributes in shown
        }

    def assert_needs_nothing_else(self) -> None:
        """No address of anything but what the page itself carries, and a policy that lets nothing
        else run or load.
        """
        names = {"src", "href", "srcset", "action", "data", "poster"}
        addresses = [
            value
            for _, attributes in self.tags
            for name, value in attributes.items()
            if name in names
        ]
        assert all(value.startswith("data:") for value in addresses), addresses
        assert not {"link", "iframe", "object", "embed", "form"} & {tag for tag, _ in self.tags}
        (policy,) = (
            a["content"] for _, a in self.tags if a.get("http-equiv") == "Content-Security-Policy"
        )
        assert "default-src 'none'" in policy
        assert "unsafe-eval" not in policy
        assert "http" not in policy
