"""A tournament as one HTML page that needs no network: standings, ratings, who beat whom, latency, deaths, replays."""

from __future__ import annotations

import html
import tempfile
from collections.abc import Sequence
from pathlib import Path

from agents.page import html_page, table
from agents.tournament.play import record
from agents.tournament.rules import Game, Tournament
from agents.tournament.standings import Standing, cross_table, standings
from envs.battlesnake.render.animation import save_animation
from envs.command_line import write_whole

_ROW, _LEFT, _WIDTH = 26, 190, 560


def write_report(tournament: Tournament, games: Sequence[Game], path: Path, *, replays: int = 10) -> Path:
    """Write the page, and beside it, in `<name>-replays/`, as moving pictures (SVG) the `replays` games that say most: first
    those in which a player lost to one that stands lower, then the last ones.

    Every other game's moves are in the store too: `procsnake tournament --store FILE --replay ROUND/NUMBER`.
    """
    rows = standings(tournament, games)
    shown = _most_telling(rows, games)[:replays]
    folder = path.with_name(f"{path.stem}-replays")
    for game in shown:
        _draw(tournament, game, folder / f"{game.round}-{game.number}.svg")
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, _page(tournament, rows, games, shown, folder.name))
    return path


def _draw(tournament: Tournament, game: Game, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        save_animation(record(tournament, game, Path(scratch) / "game.jsonl"), target)


def _most_telling(rows: Sequence[Standing], games: Sequence[Game]) -> list[Game]:
    rank = {row.player: place for place, row in enumerate(rows)}

    def surprise(game: Game) -> tuple[int, int, int]:
        upset = 0 if game.winner is None else rank[game.winner] - min(rank[seat.player] for seat in game.seats)
        return upset, game.round, game.number

    return sorted(games, key=surprise, reverse=True)


def _page(tournament: Tournament, rows: Sequence[Standing], games: Sequence[Game], shown: Sequence[Game], folder: str) -> str:
    t = tournament
    about = (
        f"{len(games)} games, {t.form}, {t.seats} snakes a game, {t.width}×{t.height}, ruleset {t.settings.ruleset}, map"
        f" {t.settings.map}, seed {t.seed}, time-out {t.timeout_ms} ms"
        + (", agents think until the time-out" if t.tell_deadline else ", agents take a fixed effort")
    )
    sections = [
        f"<h1>Tournament</h1>{_note(about)}",
        "<h2>Standings</h2>",
        _standings(rows),
        _note(
            "Points: the share of the others that it outlived, a shared place counting half. μ − 3σ: OpenSkill (Plackett-Luce),"
            " as arenas rate. Elo: Bradley-Terry, relative to the mean, with 95 % intervals."
        ),
        "<h2>Ratings</h2>",
        _rating_plot(rows),
        "<h2>Who outlived whom</h2>",
        _note("How often the row came out before the column, in %; draws count half."),
        _cross(tournament, rows, games),
        "<h2>Latency</h2>",
        table(
            [(r.name, f"{r.latency_ms:.2f}", f"{r.slowest_ms:.1f}", str(r.failures), r.failure) for r in rows],
            head=("player", "median ms", "slowest ms", "failed requests", "first reason"),
        ),
        "<h2>Causes of death</h2>",
        _causes(rows),
        "<h2>Replays</h2>",
        _note("Those that say most; any other: procsnake tournament --store FILE --replay ROUND/NUMBER."),
        "".join(f'<p><a href="{html.escape(folder)}/{g.round}-{g.number}.svg">{_told(tournament, g)}</a></p>' for g in shown),
        "<h2>Games</h2>",
        _games(tournament, games),
    ]
    return html_page("Tournament", sections)


def _note(text: str) -> str:
    return f'<p class="note">{html.escape(text)}</p>'


def _told(tournament: Tournament, game: Game) -> str:
    return html.escape(
        f"{game.round}/{game.number}: {_players(tournament, game)}, {_winner(tournament, game)}, {game.turns} turns"
    )


def _players(tournament: Tournament, game: Game) -> str:
    return " · ".join(tournament.names[seat.player] for seat in game.seats)


def _winner(tournament: Tournament, game: Game) -> str:
    return "draw" if game.winner is None else f"{tournament.names[game.winner]} won"


def _standings(rows: Sequence[Standing]) -> str:
    head = ("player", "games", "won", "drawn", "points", "μ − 3σ", "μ", "σ", "Elo", "95 % interval")
    cells = [
        (
            *(
                r.name,
                str(r.games),
                str(r.wins),
                str(r.draws),
                f"{r.points:.1%}",
                f"{r.skill.ordinal:.2f}",
                f"{r.skill.mu:.2f}",
            ),
            *(f"{r.skill.sigma:.2f}", f"{r.elo:+.0f}", f"{r.interval[0]:+.0f} … {r.interval[1]:+.0f}"),
        )
        for r in rows
    ]
    return table(cells, head=head)


def _rating_plot(rows: Sequence[Standing]) -> str:
    low = min(row.interval[0] for row in rows)
    span = max(max(row.interval[1] for row in rows) - low, 1.0)

    def x(elo: float) -> float:
        return _LEFT + (elo - low) / span * (_WIDTH - 40) + 20

    height = _ROW * len(rows) + 30
    parts = [f'<svg viewBox="0 0 {_LEFT + _WIDTH} {height}" role="img" aria-label="ratings">']
    parts.append(
        f'<path d="M{x(0):.1f} 0V{height - 24}" stroke="#999" stroke-dasharray="3 3"/>' if low < 0 < low + span else ""
    )
    for k, row in enumerate(rows):
        y = _ROW * k + _ROW // 2
        parts.append(
            f'<text x="{_LEFT - 8}" y="{y + 5}" text-anchor="end">{html.escape(row.name[-24:])}</text>'
            f'<path d="M{x(row.interval[0]):.1f} {y}H{x(row.interval[1]):.1f}" stroke="#3E338F" stroke-width="3"/>'
            f'<circle cx="{x(row.elo):.1f}" cy="{y}" r="5" fill="#3E338F"/>'
        )
    for elo in (low, low + span):
        parts.append(f'<text x="{x(elo):.1f}" y="{height - 6}" text-anchor="middle">{elo:+.0f}</text>')
    return "".join(parts) + "</svg>"


def _cross(tournament: Tournament, rows: Sequence[Standing], games: Sequence[Game]) -> str:
    before, met = cross_table(tournament, games)
    order = [row.player for row in rows]
    cells = [
        (row.name, *(f"{100 * before[row.player, o] / met[row.player, o]:.0f}" if met[row.player, o] else "" for o in order))
        for row in rows
    ]
    return table(cells, head=("", *(row.name for row in rows)))


def _causes(rows: Sequence[Standing]) -> str:
    causes = sorted({cause for row in rows for cause in row.causes})
    return table([(row.name, *(str(row.causes.get(cause, 0)) for cause in causes)) for row in rows], head=("player", *causes))


def _games(tournament: Tournament, games: Sequence[Game]) -> str:
    rows = [(f"{g.round}/{g.number}", _players(tournament, g), _winner(tournament, g), str(g.turns)) for g in games]
    return table(rows, head=("game", "players by seat", "winner", "turns"), text_columns=3)
