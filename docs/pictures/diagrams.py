"""Draws diagrams as SVG, which follow the reader's light or dark screen."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

from envs.common.palette import declarations

_STYLE = (
    f":root {{ {declarations(is_dark=False)} }} @media (prefers-color-scheme: dark)"
    f" {{ :root {{ {declarations(is_dark=True)} }} }}"
    " text { font: 14px system-ui, sans-serif; fill: var(--ink); }"
    " .small { font-size: 12px; fill: var(--muted); } .title { font-weight: 650; }"
    " .paper { fill: var(--paper); } .card { fill: var(--surface); stroke: var(--line); }"
    " .accent { stroke: var(--accent); stroke-width: 2; }"
    " .arrow { stroke: var(--accent); stroke-width: 2; fill: none; marker-end: url(#tip); }"
    " marker path { fill: var(--accent); }"
)
_TIP = (
    '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7"'
    ' orient="auto"><path d="M0 0 8 4 0 8z"/></marker></defs>'
)
_LINE = 19


def architecture(path: Path) -> None:
    """The way from a world to a served agent."""
    _save(
        path,
        960,
        330,
        "Worlds feed agents and training; training makes policies, which agents play and serve",
        [
            _card(
                20,
                60,
                200,
                "Worlds · envs",
                ["Battlesnake: 25 maps,", "Procgen: 16 games,", "your own, by one interface"],
            ),
            _card(
                260, 20, 200, "Agents · agents", ["rules, alpha-beta, MCTS,", "policies, champions"]
            ),
            _card(
                260,
                180,
                200,
                "Training · train",
                ["PPO, APPO, DQN, APEX,", "imitation; one machine,", "a cluster or SageMaker"],
            ),
            _card(500, 180, 200, "Run", ["report, checkpoints,", "bundle: the policy", "as ONNX"]),
            _card(
                500,
                20,
                200,
                "Measuring",
                ["matches, tournaments,", "sequential tests,", "analysis"],
            ),
            _card(
                740, 60, 200, "Serving · serve", ["arena server, doctor,", "viewer, AIcrowd entry"]
            ),
            _arrow(220, 95, 256, 70),
            _arrow(220, 125, 256, 215),
            _arrow(460, 225, 496, 225),
            _arrow(600, 180, 464, 105),
            _arrow(460, 60, 496, 60),
            _arrow(700, 70, 736, 95),
            _arrow(700, 215, 736, 145),
            _words(
                20,
                312,
                "worlds → agents → training → serving; each box is a package or what it makes",
            ),
        ],
    )


def house(path: Path) -> None:
    """Which package stands on which, with their rooms."""
    _save(
        path,
        960,
        340,
        "The command line stands on serve and train, they stand on agents, and agents on envs",
        [
            _card(
                20,
                20,
                920,
                "procsnake/cli · the roof",
                ["one module per command: it parses, calls and prints; nothing imports it"],
            ),
            _card(
                20,
                95,
                450,
                "serve",
                [
                    "transport · timing · archive · browser · monitoring",
                    "deploy · doctor · ladder · aicrowd",
                ],
            ),
            _card(
                490,
                95,
                450,
                "train",
                [
                    "PPO · APPO · DQN · APEX · imitation",
                    "runs · settings · worlds · tuning · cluster · sagemaker",
                ],
            ),
            _card(
                20,
                189,
                920,
                "agents",
                ["heuristics · search · networks · champions · measure · workbench · export"],
            ),
            _card(
                20,
                264,
                920,
                "envs",
                ["battlesnake: rules, maps, observations, rewards, render · procgen · common"],
            ),
        ],
    )


def answer(path: Path) -> None:
    """How the arena server makes sure that a move is answered in time."""
    names = [
        ("Request", ["POST /move", "500 ms from now"]),
        ("Margin", ["learned from the", "engine's latency"]),
        ("Agent", ["thinks until then,", "a second at most"]),
        ("Watchdog", ["late or failed: the", "move with most room"]),
        ("Answer", ["a legal move", "in time"]),
    ]
    cards = [_card(20 + 188 * k, 20, 156, title, lines) for k, (title, lines) in enumerate(names)]
    arrows = [_arrow(176 + 188 * k, 62, 204 + 188 * k, 62) for k in range(len(names) - 1)]
    _save(path, 948, 125, "From a request to a legal answer in time", cards + arrows)


def _save(path: Path, width: int, height: int, title: str, parts: Sequence[str]) -> None:
    path.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style>{_TIP}"
        f'<rect class="paper" width="{width}" height="{height}" rx="14"/>{"".join(parts)}</svg>\n',
        encoding="utf-8",
    )


def _card(x: int, y: int, width: int, title: str, lines: Sequence[str]) -> str:
    height = 40 + _LINE * len(lines)
    frame = f'<rect class="card" x="{x}" y="{y}" width="{width}" height="{height}" rx="12"/>'
    head = f'<text class="title" x="{x + 14}" y="{y + 26}">{escape(title)}</text>'
    return (
        frame
        + head
        + "".join(_words(x + 14, y + 48 + _LINE * k, line) for k, line in enumerate(lines))
    )


def _words(x: int, y: int, text: str) -> str:
    return f'<text class="small" x="{x}" y="{y}">{escape(text)}</text>'


def _arrow(x: int, y: int, to_x: int, to_y: int) -> str:
    return f'<path class="arrow" d="M{x} {y} {to_x} {to_y}"/>'


MAKERS = {"answer.svg": answer, "architecture.svg": architecture, "house.svg": house}
