"""Who looks at pages of the server without a browser."""

from __future__ import annotations

import re

from flask.testing import FlaskClient

STRANGER = {"environ_overrides": {"REMOTE_ADDR": "203.0.113.9"}}
"""For requests that come from another machine."""


class Reader(FlaskClient):
    """Reads answers to their end, so that files are closed."""

    def open(self, *args, **options):
        return super().open(*args, buffered=True, **options)

    def checked(self, path):
        """A page that takes scripts from here alone, and whose files are there."""
        page = self.get(path)
        assert "script-src 'self'" in page.headers["Content-Security-Policy"]
        for file in re.findall(r'(?:src|href)="(/viewer/[^"]+)"', page.get_data(as_text=True)):
            assert self.get(file).status_code == 200, file
        return page
