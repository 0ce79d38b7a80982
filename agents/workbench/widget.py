"""The bench in a notebook, made of ipywidgets: `Workbench(["my_rule.py", "flood"])` as the last
line of a cell.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

import ipywidgets as widgets

from agents.workbench.arrangement import TOOLS
from agents.workbench.bench import Bench, Seen
from envs.battlesnake.render.rgb import png
from envs.battlesnake.state import MOVE_NAMES
from envs.common.errors import ProcsnakeError
from envs.common.palette import ROLES

_FOOD, _ = ROLES["food"]
_HAZARD = "#c9b8d8"
_EMPTY = "#f1f1f4"
_CELL = 26
_NO_GLYPH = " "
"""An ipywidgets button whose description becomes empty keeps showing the old one."""


class Workbench(widgets.VBox):
    """A `Bench` with its controls. The upper part arranges the position; the lower part plays from
    it and shows every turn.

    `bench` is the model. Call `show()` after changing it from code. The last line, `message`, shows
    mistakes."""

    children: Sequence[widgets.Widget]

    def __init__(self, players: Sequence[str], **options: Any) -> None:
        self.bench = Bench(players, **options)
        self.message = widgets.HTML()
        super().__init__([self._arranging(), self._watching(), self.message])
        self.show()

    def __repr__(self) -> str:
        """Jupyter shows this in place of a widget whose kernel has ended."""
        return "The workbench needs a running kernel: run this cell to see it."

    def _arranging(self) -> widgets.Widget:
        self.tool = widgets.ToggleButtons(
            options=TOOLS, value="food", style={"button_width": "70px"}
        )
        self.snake = widgets.Dropdown(options=self.bench.names, description="snake")
        self.cells: dict[tuple[int, int], widgets.Button] = {}
        rows = []
        for y in reversed(range(self._height)):
            row = [self._cell(x, y) for x in range(self._width)]
            self.cells |= {(x, y): cell for x, cell in enumerate(row)}
            rows.append(widgets.HBox(row))
        self.position = widgets.Textarea(placeholder="a move request or a board as JSON", rows=4)
        self.take = _button(
            "take this JSON", lambda: self.bench.load(self.position.value), self._do
        )
        self.clear = _button("clear", self.bench.clear, self._do)
        self.deal = _button("deal", self.bench.deal, self._do)
        controls = [
            self.tool,
            self.snake,
            widgets.HBox([self.clear, self.deal]),
            self.position,
            self.take,
        ]
        return widgets.HBox([widgets.VBox(rows), widgets.VBox(controls)])

    def _watching(self) -> widgets.Widget:
        self.play = _button("play from here (rules are read again)", self.bench.play, self._do)
        self.back = _button("◄", lambda: self._go(-1), self._do)
        self.forth = _button("►", lambda: self._go(1), self._do)
        self.film = widgets.Play(interval=150, min=0, max=0, show_repeat=False)
        self.turn = widgets.IntSlider(min=0, max=0, description="turn")
        widgets.jslink((self.film, "value"), (self.turn, "value"))
        self.turn.observe(lambda change: self._show_turn(), "value")
        # A box stretches what is in it to its tallest, and squeezes it where there is little room.
        in_proportion = widgets.Layout(align_self="flex-start", flex="0 0 auto")
        self.picture = widgets.Image(format="png", layout=in_proportion)
        self.snakes = widgets.HTML()
        self.copy = _button("copy this frame to the JSON field", self._copy, self._do)
        self.arrange = _button("arrange this frame", self._rearrange, self._do)
        self.player = widgets.Text("http://127.0.0.1:8000", description="ask")
        self.ask = _button("what would it do?", self._ask, self._do)
        self.answer = widgets.HTML()
        steps = widgets.HBox([self.play, self.back, self.forth, self.film, self.turn])
        actions = widgets.HBox([self.copy, self.arrange, self.player, self.ask, self.answer])
        return widgets.VBox([steps, widgets.HBox([self.picture, self.snakes]), actions])

    @property
    def _width(self) -> int:
        return self.bench.board["width"]

    @property
    def _height(self) -> int:
        return self.bench.board["height"]

    def _cell(self, x: int, y: int) -> widgets.Button:
        side = f"{_CELL}px"
        layout = widgets.Layout(width=side, height=side, margin="1px", padding="0")
        return _button(
            _NO_GLYPH,
            lambda: self.bench.click(x, y, self.tool.value, self.snake.value),
            self._do,
            layout=layout,
            tooltip=f"({x}, {y})",
        )

    def _do(self, act: Callable[[], Any]) -> None:
        """Do what a button stands for, and show the result, or why it can't be done."""
        try:
            act()
            self.message.value = ""
        except ProcsnakeError as error:
            self.message.value = f"<b>{escape(str(error))}</b>"
        self.show()

    def show(self) -> None:
        """Update the controls to the current state of the bench."""
        # The cell at the upper right is the largest of the points.
        if max(self.cells) != (self._width - 1, self._height - 1):
            self.children = [self._arranging(), *self.children[1:]]
        self._paint_cells()
        last = max(0, len(self.bench.turns) - 1)
        self.turn.max = self.film.max = last
        self._show_turn()

    def _paint_cells(self) -> None:
        board = self.bench.board
        look = dict.fromkeys(self.cells, (_EMPTY, _NO_GLYPH))
        for point in board["hazards"]:
            # Some maps have hazards beyond the edge.
            if _place(point) in look:
                look[_place(point)] = (_HAZARD, _NO_GLYPH)
        for point in board["food"]:
            look[_place(point)] = (_FOOD, "●")
        for snake in board["snakes"]:
            color = snake["customizations"]["color"]
            for point in snake["body"]:
                look[_place(point)] = (color, _NO_GLYPH)
            look[_place(snake["body"][0])] = (color, "◉")
        for place, (color, glyph) in look.items():
            self.cells[place].style.button_color = color
            self.cells[place].description = glyph

    def _show_turn(self) -> None:
        turns = self.bench.turns
        number = self.turn.value
        board = self.bench.board
        self.snakes.value = ""
        if turns:
            board = turns[number].board
            self.snakes.value = "".join(map(snake_html, turns[number].snakes))
        self.picture.value = png(board, cell=_CELL)

    def _go(self, turns: int) -> None:
        self.turn.value = min(max(self.turn.value + turns, 0), self.turn.max)

    def _copy(self) -> None:
        self.position.value = self.bench.copy(self.turn.value)

    def _rearrange(self) -> None:
        self.bench.load(self.bench.copy(self.turn.value))

    def _ask(self) -> None:
        self.answer.value = ""
        self.answer.value = snake_html(self.bench.ask(self.player.value, self.turn.value))


def _place(point: Mapping[str, Any]) -> tuple[int, int]:
    return point["x"], point["y"]


def snake_html(snake: Seen) -> str:
    """Return a snake on a turn as HTML: its state, its move, and what its rules and its policy say
    of each move.
    """
    if snake.cause:
        state = f"dead: {snake.cause}"
    else:
        state = f"health {snake.health}, length {snake.length}"
    parts = [
        f'<b style="color:{snake.color}">■</b> <b>{escape(snake.name)}</b> {escape(snake.player)}',
        state,
    ]
    if snake.move:
        parts.append(f"<b>{snake.move}</b>")
    if snake.value is not None:
        parts.append(f"expects {snake.value:.2f}")
    notes = " ".join(
        f"{escape(str(key))}={escape(str(value))}" for key, value in snake.note.items()
    )
    return f"<div>{' · '.join(parts)}</div>{_table(snake)}<div><small>{notes}</small></div>"


def _table(snake: Seen) -> str:
    """Return what the policy and the rules say of each move as a table; "" if they say nothing."""
    rows = []
    if snake.probabilities:
        rows.append(_row("probability", snake.probabilities, "{:.1%}".format))
    for name, opinion in snake.rules.items():
        rows.append(_row(name, opinion, _opinion_as_text))
    if not rows:
        return ""
    head = "".join(f"<th>{move}</th>" for move in MOVE_NAMES)
    return f"<table><tr><th></th>{head}</tr>{''.join(rows)}</table>"


def _row(name: str, by_move: Mapping[str, Any], as_text: Callable[[Any], str]) -> str:
    cells = []
    for move in MOVE_NAMES:
        text = as_text(by_move[move]) if move in by_move else ""
        cells.append(f'<td style="padding:0 6px">{escape(text)}</td>')
    return f"<tr><td>{escape(name)}</td>{''.join(cells)}</tr>"


def _opinion_as_text(opinion: Any) -> str:
    """Return what a rule says of a move: a ban as ✗, a preference as a number."""
    if isinstance(opinion, bool):
        return "✓" if opinion else "✗"
    return f"{opinion:+.2f}"


def _button(
    label: str, act: Callable[[], Any], do: Callable[[Callable[[], Any]], None], **options: Any
) -> widgets.Button:
    options = {"layout": widgets.Layout(width="auto"), **options}
    button = widgets.Button(description=label, **options)
    button.on_click(lambda _: do(act))
    return button
