"""Writes a tournament as one HTML page that needs no network: standings, ratings, who beat whom,
latency, deaths, replays.
"""

from __future__ import annotations

import html
import tempfile
from collections.abc import Sequence
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

    These are first the games in which a player lost to one that stands lower, then the last games.
    The moves of all games are in the store: `procsnake tournament --store FILE --replay
    ROUND/NUMBER` shows any of them. Raises `ConfigError` if the page can't be written."""
    make_folder_of(path)
    rows = standings(tournament, games)
    shown = _most_telling(rows, games)[:replays]
    folder = path.with_name(f"{path.stem}-replays")
    for game in shown:
        _draw(tournament, game, folder / f"{game.round}-{game.number}.svg")
    write_whole(path, _page(tournament, rows, games, shown, folder.name))
    return path


def _draw(tournament: Tournament, game: Game, target: Path) -> None:
    make_folder_of(target)
    with tempfile.TemporaryDirectory() as scratch:
        save_animation(record(tournament, game, Path(scratch) / "game.jsonl"), target)


def _most_telling(rows: Sequence[Standing], games: Sequence[Game]) -> list[Game]:
    rank = {row.player: place for place, row in enumerate(rows)}

    def surprise(game: Game) -> tuple[int, int, int]:
        if game.winner is None:
            upset = 0
        else:
            upset = rank[game.winner] - min(rank[seat.player] for seat in game.seats)
        return upset, game.round, game.number

    return sorted(games, key=surprise, reverse=True)


def _page(
    tournament: Tournament,
    rows: Sequence[Standing],
    games: Sequence[Game],
    shown: Sequence[Game],
    folder: str,
) -> str:
    t = tournament
    what = (
        f"{len(games)} games, {t.form}, {t.seats} snakes per game, {t.width}×{t.height}, ruleset"
        f" {t.settings.ruleset}, map {t.settings.map}, seed {t.seed}, time-out {t.timeout_ms} ms,"
        f" {t.effort_in_words}"
    )
    latencies = [
        (
            r.name,
            f"{r.latency_ms:.2f}",
            f"{r.slowest_ms:.1f}",
            str(r.failures),
            str(r.excused),
            r.failure,
        )
        for r in rows
    ]
    links = "".join(
        "<p><a"
        f' href="{html.escape(folder)}/{g.round}-{g.number}.svg">{html.escape(_told(t, g))}</a></p>'
        for g in shown
    )
    any_other = shell_command("tournament", "--store", "FILE", "--replay", "ROUND/NUMBER")
    sections = [
        lead("Tournament", what),
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
            section("A game", *(_film(t, game) for game in shown[:1])),
        ),
        fold(
            "Who outlived whom",
            note("How often the row came out before the column, in %; draws count half."),
            _cross(t, rows, games),
        ),
        fold(
            "Latency",
            table(
                latencies,
                head=(
                    "player",
                    "median ms",
                    "slowest ms",
                    "failed requests",
                    "excused",
                    "first reason",
                ),
            ),
        ),
        fold("Causes of death", _causes(rows)),
        fold("Replays", note(f"Those that say most; any other: {any_other}"), links),
        fold("Games", _games(t, games)),
    ]
    return html_page("Tournament", sections)


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
        title="ratings with 95 % intervals",
        x_label="Elo relative to the mean",
        rows=[(row.name, row.elo, *row.interval) for row in rows],
    )


def _film(tournament: Tournament, game: Game) -> str:
    with tempfile.TemporaryDirectory() as scratch:
        boards = record(tournament, game, Path(scratch) / "game.jsonl").boards()
    return moving_picture(animated_svg(boards), _told(tournament, game))


def _told(tournament: Tournament, game: Game) -> str:
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
    order = [row.player for row in rows]
    cells = [
        (
            row.name,
            *(
                (
                    f"{100 * before[row.player, o] / met[row.player, o]:.0f}"
                    if met[row.player, o]
                    else ""
                )
                for o in order
            ),
        )
        for row in rows
    ]
    return table(cells, head=("", *(row.name for row in rows)))


def _causes(rows: Sequence[Standing]) -> str:
    causes = sorted({cause for row in rows for cause in row.causes})
    return table(
        [(row.name, *(str(row.causes.get(cause, 0)) for cause in causes)) for row in rows],
        head=("player", *causes),
    )


def _games(tournament: Tournament, games: Sequence[Game]) -> str:
    rows = [
        (f"{g.round}/{g.number}", _players(tournament, g), _winner(tournament, g), str(g.turns))
        for g in games
    ]
    return table(rows, head=("game", "players by seat", "winner", "turns"), text_columns=3)
