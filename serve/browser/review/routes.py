"""The page that opens recorded games, and the JSON requests of this page and of a game's page.

| request | body | answer |
|---|---|---|
| `GET /analyse` | | the page |
| `GET /api/analyses` | | the games that are open |
| `POST /api/analyses?name=…` | a recording's file | `path`, the address of the game's page |
| `GET /api/analyses/<game>` | | how far each snake's analysis is, and `fit_in_json` |
| `GET /api/analyses/<game>/<number>` | | the analysis of the snake of this number |

An analysis has the form that `procsnake analyse --json` prints. A file that can't be read is
answered with status 400 and `error`, one line. An analysis costs seconds of processor time, so all
this is for the machine itself, and only for the pages of this server."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from flask import Blueprint, Flask, Response, abort, jsonify, request
from werkzeug.wrappers import Response as BaseResponse

from agents.measure.analysis.win_probability import WinProbability
from envs.battlesnake.recording import Recording
from envs.common.errors import ProcsnakeError
from serve.browser.own_browsers import own_app, own_pages, refusal
from serve.browser.review.reviews import Reviews
from serve.browser.viewer.routes import static_file

PAGE = "/analyse"
MAX_FILE_BYTES = 32 << 20
MAX_NAME = 100
"""The most bytes of a dropped file, and the most characters of its name."""


def review_app(reviews: Reviews, *, curves: WinProbability) -> Flask:
    """Make the application that shows games and their analyses to browsers on this machine, and to
    nobody elsewhere.
    """
    return own_app(reviews, _pages(reviews, curves), first_page=PAGE, max_bytes=MAX_FILE_BYTES)


def _pages(reviews: Reviews, curves: WinProbability) -> Blueprint:
    pages = own_pages("review")
    pages.register_error_handler(ProcsnakeError, lambda error: refusal(400, error))

    @pages.get(PAGE)
    def page() -> BaseResponse:
        return static_file("analyse.html")

    @pages.get("/api/analyses")
    def list_games() -> Response:
        return jsonify(games=reviews.listed(), max_bytes=MAX_FILE_BYTES)

    @pages.post("/api/analyses")
    def open_game() -> Response:
        name = request.args.get("name", "")[:MAX_NAME] or "the file"
        text = request.get_data().decode("utf-8", "replace")
        return jsonify(path=reviews.open(Recording.parse(text, name), name).path)

    @pages.get("/api/analyses/<game_id>")
    def progress(game_id: str) -> Response:
        sides = reviews.sides(game_id) or abort(
            404, "this game isn't open any more; open its file again"
        )
        return jsonify(snakes=[side.progress() for side in sides], fit=fit_in_json(curves))

    @pages.get("/api/analyses/<game_id>/<int:number>")
    def analysis(game_id: str, number: int) -> Response:
        sides = reviews.sides(game_id) or []
        if number >= len(sides) or not sides[number].analysis:
            abort(404, "there is no such analysis, or it isn't done")
        return jsonify(sides[number].analysis)

    return pages


def fit_in_json(curves: WinProbability) -> dict[str, Any]:
    """Return each group's curve, and its results on held-out games if its file has them.

    These are `held_out` (the number of positions, the mean loss in nats, and that of always
    predicting the mean result) and `bins` (for each, the number of positions, the mean fitted
    probability, and the share of points won)."""
    held_out = _by_group(curves, "held_out")
    bins = _by_group(curves, "bins")
    return {
        group: {**asdict(curve), "held_out": held_out.get(group), "bins": bins.get(group)}
        for group, curve in curves.curves.items()
    }


def _by_group(curves: WinProbability, name: str) -> dict[str, Any]:
    """An entry of what a fit's file tells of its training; a user's own file may hold anything."""
    entry = curves.training.get(name)
    return entry if isinstance(entry, dict) else {}
