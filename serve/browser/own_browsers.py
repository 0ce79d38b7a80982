"""The set-up shared by the pages that change something, `/play` and `/analyse`, for browsers on
this machine only.
"""

from __future__ import annotations

from flask import Blueprint, Flask, Response, jsonify, redirect, request
from werkzeug.exceptions import HTTPException

from envs.common.strangers.printable import printable
from serve.browser.viewer.access import Access, is_another_sites
from serve.browser.viewer.routes import Games, viewer_blueprint, with_headers

_MAX_ERROR = 500


def own_app(games: Games, pages: Blueprint, *, first_page: str, max_bytes: int) -> Flask:
    """Make the application of `pages` and the viewer of `games`. Bodies of more than `max_bytes`
    are refused.
    """
    app = Flask("procsnake", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = max_bytes
    app.register_blueprint(viewer_blueprint(games))
    app.register_blueprint(pages)
    app.register_error_handler(
        HTTPException, lambda error: (jsonify(error=str(error.description)), error.code or 500)
    )
    app.register_error_handler(
        RecursionError, lambda error: (jsonify(error="the body is nested too deeply"), 400)
    )
    app.get("/")(lambda: redirect(first_page))
    return app


def own_pages(name: str) -> Blueprint:
    """Make a blueprint that answers only browsers on this machine, and refuses requests from other
    sites' pages in them.
    """
    pages = Blueprint(name, __name__)
    pages.before_request(Access().refusal)
    pages.before_request(_refuse_other_sites)
    pages.after_request(with_headers)
    return pages


def refusal(status: int, error: Exception) -> tuple[Response, int]:
    """Return the answer that says what was wrong, on one line."""
    return jsonify(error=printable(error)[:_MAX_ERROR]), status


def _refuse_other_sites() -> tuple[Response, int] | None:
    if is_another_sites(request):
        return (jsonify(error="only this server's own pages may do this"), 403)
    return None
