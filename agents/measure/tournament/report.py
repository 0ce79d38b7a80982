"""Writes a tournament as one HTML page that needs no network: standings, ratings, comparisons of
players, latency, causes of death, and replays.
"""

from __future__ import annotations

import html
import tempfile
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from agents.measure.pages import (
    Intervals,
    chart_grid,
    columns,
    fold,
    html_page,
    lead,
    moving_picture,
    note,
    section,
    table,
)
from agents.measure.tournament import bracket
from agents.measure.tournament.game import record
from agents.measure.tournament.settings import Game, Tournament
from agents.measure.tournament.standings import Standing, cross_table, standings
from envs.battlesnake.render.animation import save_animation
from envs.battlesnake.render.svg import animated_svg
from envs.common.shell_command import shell_command
from envs.common.whole_files import make_folder_of, write_whole


def write_report(
    tournament: Tournament, games: Sequence[Game], path: Path, *, replays: int = 10
) -> Path:
    """Write the page, and in `<name>-replays/` beside it the `replays` most telling games as moving
    pictures (SVG).

    The most telling games are those in which a player lost to one that stands lower, and after them
    the last games. Raises `ConfigError` if the page can't be written."""
    make_folder_of(path)
    rows = standings(tournament, games)
    films = _most_telling(rows, games)[:replays]
    folder = path.with_name(f"{path.stem}-replays")
    for game in films:
        _draw(tournament, game, folder / f"{game.round}-{game.number}.svg")
    write_whole(path, _page(tournament, rows, games, films, folder.name))
    return path


def _draw(tournament: Tournament, game: Game, target: Path) -> None:
    make_folder_of(target)
    with tempfile.TemporaryDirectory() as scratch:
        save_animation(record(tournament, game, Path(scratch) / "game.jsonl"), target)


def _most_telling(rows: Sequence[Standing], games: Sequence[Game]) -> list[Game]:
    rank = {row.player: place for place, row in enumerate(rows)}

    def surprise(game: Game) -> tuple[int, int, int]:
        upset = 0
        if game.winner is not None:
            upset = rank[game.winner] - min(rank[player] for player in game.players)
        return upset, game.round, game.number

    return sorted(games, key=surprise, reverse=True)


def _page(
    tournament: Tournament,
    rows: Sequence[Standing],
    games: Sequence[Game],
    films: Sequence[Game],
    folder: str,
) -> str:
    t = tournament
    summary = (
        f"{len(games)} games, {t.form}, {t.seats} snakes per game, {t.width}×{t.height}, ruleset"
        f" {t.settings.ruleset}, map {t.settings.map}, seed {t.seed}, timeout {t.timeout_ms} ms,"
        f" {t.effort_in_words}"
    )
    links = "".join(_link(t, game, folder) for game in films)
    any_other = shell_command("tournament", "--store", "FILE", "--replay", "ROUND/NUMBER")
    sections = [
        lead("Tournament", summary),
        *_bracket(t, games),
        section(
            "Standings",
            _standings(rows),
            note(
                "Points: the share of the others that it outlived, a shared place counting half. μ"
                " − 3σ: Weng-Lin (Bradley-Terry, full pairs), as Arena rates. Elo: Bradley-Terry,"
                " relative to the mean, with 95 % intervals."
            ),
        ),
        columns(
            section("Ratings", chart_grid([_ratings(rows)])),
            section("A game", *(_film(t, game) for game in films[:1])),
        ),
        fold(
            "Who outlived whom",
            note("How often the row came out before the column, in %; draws count half."),
            _cross(t, rows, games),
        ),
        fold("Latency", _latencies(rows)),
        fold("Causes of death", _causes(rows)),
        fold("Replays", note(f"Those that say most; any other: {any_other}"), links),
        fold("Games", _games(t, games)),
    ]
    return html_page("Tournament", sections)


def _link(tournament: Tournament, game: Game, folder: str) -> str:
    address = f"{html.escape(folder)}/{game.round}-{game.number}.svg"
    return f'<p><a href="{address}">{html.escape(_in_words(tournament, game))}</a></p>'


def _latencies(rows: Sequence[Standing]) -> str:
    cells = []
    for row in rows:
        times = (f"{row.latency_ms:.2f}", f"{row.slowest_ms:.1f}")
        cells.append((row.name, *times, str(row.failures), str(row.excused), row.failure))
    head = ("player", "median ms", "slowest ms", "failed requests", "excused", "first reason")
    return table(cells, head=head)


def _bracket(tournament: Tournament, games: Sequence[Game]) -> list[str]:
    if tournament.form != "bracket":
        return []
    head = ("round", "player", "against", "won", "goes on")
    return [
        section(
            "Bracket", table(bracket.rows(tournament, games), head=head, text_columns=len(head))
        )
    ]


def _ratings(rows: Sequence[Standing]) -> Intervals:
    return Intervals(
        title="with 95 % intervals",
        x_label="Elo relative to the mean",
        rows=[(row.name, row.elo, *row.interval) for row in rows],
    )


def _film(tournament: Tournament, game: Game) -> str:
    with tempfile.TemporaryDirectory() as scratch:
        boards = record(tournament, game, Path(scratch) / "game.jsonl").boards()
    return moving_picture(animated_svg(boards), _in_words(tournament, game))


def _in_words(tournament: Tournament, game: Game) -> str:
    return (
        f"{game.round}/{game.number}: {_players(tournament, game)}, {_winner(tournament, game)},"
        f" {game.turns} turns"
    )


def _players(tournament: Tournament, game: Game) -> str:
    return " · ".join(tournament.names[seat.player] for seat in game.seats)


def _winner(tournament: Tournament, game: Game) -> str:
    if game.winner is None:
        return "draw"
    return f"{tournament.names[game.winner]} won"


def _standings(rows: Sequence[Standing]) -> str:
    head = ("player", "games", "won", "drawn", "points", "Elo", "95 % interval", "μ − 3σ", "μ", "σ")
    return table([_standing(row) for row in rows], head=head)


def _standing(row: Standing) -> tuple[str, ...]:
    counts = (row.name, str(row.games), str(row.wins), str(row.draws), f"{row.points:.1%}")
    elo = (f"{row.elo:+.0f}", f"{row.interval[0]:+.0f} … {row.interval[1]:+.0f}")
    return (
        *counts,
        *elo,
        f"{row.skill.ordinal:.2f}",
        f"{row.skill.mu:.2f}",
        f"{row.skill.sigma:.2f}",
    )


def _cross(tournament: Tournament, rows: Sequence[Standing], games: Sequence[Game]) -> str:
    before, met = cross_table(tournament, games)

    def cell(player: int, other: int) -> str:
        if not met[player, other]:
            return ""
        return f"{100 * before[player, other] / met[player, other]:.0f}"

    cells = []
    for row in rows:
        cells.append((row.name, *(cell(row.player, other.player) for other in rows)))
    return table(cells, head=("", *(row.name for row in rows)))


def _causes(rows: Sequence[Standing]) -> str:
    causes = sorted(set(chain.from_iterable(row.causes for row in rows)))
    cells = []
    for row in rows:
        cells.append((row.name, *(str(row.causes.get(cause, 0)) for cause in causes)))
    return table(cells, head=("player", *causes))


def _games(tournament: Tournament, games: Sequence[Game]) -> str:
    rows = [
        (f"{g.round}/{g.number}", _players(tournament, g), _winner(tournament, g), str(g.turns))
        for g in games
    ]
    return table(rows, head=("game", "players by seat", "winner", "turns"), text_columns=3)
