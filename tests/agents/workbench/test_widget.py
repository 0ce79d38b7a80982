"""The widgets through their models: what a browser would send, and what it would be told to
show.
"""

from __future__ import annotations

import io
import json

import pytest
from PIL import Image

from agents.workbench.widget import Workbench

pytestmark = pytest.mark.filterwarnings("default")  # of ipywidgets


@pytest.fixture
def bench():
    bench = Workbench(["classics", "flood"], width=7, height=7)
    bench.clear.click()
    for name, x in (("snake 1", 1), ("snake 2", 5)):
        bench.tool.value, bench.snake.value = "snake", name
        for y in (2, 1, 0):
            bench.cells[x, y].click()
    return bench


def test_clicks_arrange_the_board_and_colour_the_cells(bench):
    assert [[(p["x"], p["y"]) for p in s["body"]] for s in bench.bench.board["snakes"]] == [
        [(1, 2), (1, 1), (1, 0)],
        [(5, 2), (5, 1), (5, 0)],
    ]
    colors = {bench.cells[place].style.button_color for place in [(1, 0), (1, 2), (5, 0), (3, 3)]}
    assert len(colors) == 3
    assert bench.cells[1, 2].description == "◉"


def test_the_slider_and_the_arrows_step_through_the_game(bench):
    bench.play.click()
    assert bench.turn.max == bench.film.max == len(bench.bench.turns) - 1 > 5
    first = bench.picture.value
    bench.forth.click()
    bench.forth.click()
    bench.back.click()
    assert bench.turn.value == 1
    assert bench.picture.value != first
    assert Image.open(io.BytesIO(bench.picture.value)).size[0] > 100
    bench.turn.value = 0
    assert bench.picture.value == first
    bench.back.click()
    assert bench.turn.value == 0


def test_each_snake_is_shown_with_its_move_its_rules_and_its_probabilities(bench):
    bench.play.click()
    seen = bench.bench.turns[0].snakes[0]
    shown = bench.snakes.value
    for told in (
        seen.color,
        "health 100, length 3",
        f"<b>{seen.move}</b>",
        "certain_death",
        "✓",
        "probability",
    ):
        assert told in shown
    bench.turn.value = bench.turn.max
    assert "dead: " in bench.snakes.value


def test_a_frame_is_copied_and_arranged(bench):
    bench.play.click()
    bench.turn.value = 3
    board = bench.bench.turns[3].board
    bench.copy.click()
    assert json.loads(bench.position.value)["turn"] == 3
    bench.arrange.click()
    assert [s["body"] for s in bench.bench.board["snakes"]] == [s["body"] for s in board["snakes"]]
    assert bench.turn.max == bench.turn.value == 0


def test_a_board_of_another_size_gets_its_own_cells(bench):
    bench.position.value = json.dumps(
        {
            "width": 4,
            "height": 5,
            "food": [],
            "hazards": [],
            "snakes": [{"id": "a", "health": 9, "body": [{"x": 3, "y": 4}]}],
        }
    )
    bench.take.click()
    assert bench.message.value == ""
    assert set(bench.cells) == {(x, y) for x in range(4) for y in range(5)}


def test_mistakes_are_told_and_names_are_no_html(bench):
    bench.position.value = "<img onerror=alert(1)>"
    bench.take.click()
    assert "this is not JSON" in bench.message.value
    bench.player.value = "<img>"
    bench.ask.click()
    assert "&lt;img&gt;" in bench.message.value
    assert "<img" not in bench.message.value


def test_another_player_is_asked(bench):
    bench.play.click()
    bench.player.value = "flood"
    bench.ask.click()
    assert bench.bench.ask("flood", turn=0).move in bench.answer.value


def test_no_cell_loses_its_description(bench):
    """A button in the browser keeps its old text when its description becomes empty
    (`ButtonView.update` of ipywidgets).
    """
    bench.cells[3, 3].click()
    bench.clear.click()
    assert {cell.description for cell in bench.cells.values()} == {" "}


def test_the_picture_of_a_turn_keeps_its_proportions_in_its_box(bench):
    """By default a flex box stretches an image to the height of the text beside it, and squeezes
    its width.
    """
    assert (bench.picture.layout.align_self, bench.picture.layout.flex) == (
        "flex-start",
        "0 0 auto",
    )


def test_a_stored_notebook_says_how_to_see_the_bench(bench):
    assert "run this cell" in bench._repr_mimebundle_()["text/plain"]
