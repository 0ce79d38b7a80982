"""Deaths, ends and hints in words."""

from __future__ import annotations

import numpy as np
import pytest

import serve.browser.by_hand.table
import serve.browser.by_hand.words
from agents.agent import Decision
from agents.search.evaluation.evaluate import WIN
from envs.battlesnake.plain import Death, ruleset_step
from envs.battlesnake.settings import Settings
from serve.browser.by_hand.words import advice, death_sentence, ending, news
from tests.serve.browser.by_hand.games import LEFT, UP, circle, game_of
from tests.serve.snakes import as_json, good_snake, served


def snake(number: int, *body: tuple[int, int], health: int = 90) -> dict:
    name = ["you", "rival"][number]
    return {
        "id": str(number),
        "name": name,
        "health": health,
        "body": [{"x": x, "y": y} for x, y in body],
    }


YOU = [(1, 1), (1, 2), (1, 3)]
RIVAL = [(5, 5), (5, 4), (5, 3)]
FATES = [
    ([(0, 1), (1, 1), (2, 1)], RIVAL, ["left", "up"], {}, "You left the board on turn 4."),
    ([(2, 2), (2, 1), (1, 1), (1, 2), (1, 3)], RIVAL, ["left", "up"], {},
     "You ran into your own body on turn 4."),
    ([(4, 4), (3, 4), (2, 4)], RIVAL, ["right", "up"], {}, "You ran into rival's body on turn 4."),
    ([(2, 5), (2, 4), (2, 3)], [(4, 5), (5, 5), (6, 5)], ["right", "left"], {},
     "You met rival head to head, both of one length, on turn 4."),
    ([(2, 5), (2, 4), (2, 3)], [(4, 5), (5, 5), (6, 5), (6, 4)], ["right", "left"], {},
     "You lost a head-to-head with rival on turn 4."),
    (YOU, RIVAL, ["down", "up"], {"health": 1}, "You starved on turn 4."),
    (YOU, RIVAL, ["down", "up"], {"health": 9, "hazards": [{"x": 1, "y": 0}]},
     "You died in a hazard on turn 4."),
]  # fmt: skip


@pytest.mark.parametrize(
    ("you", "rival", "moves", "more", "said"), FATES, ids=[fate[-1][4:12] for fate in FATES]
)
def test_the_engines_deaths_are_told(you, rival, moves, more, said):
    snakes = [snake(0, *you, health=more.get("health", 90)), snake(1, *rival)]
    board = {
        "turn": 3,
        "width": 7,
        "height": 7,
        "food": [],
        "hazards": more.get("hazards", []),
        "snakes": snakes,
    }
    _, after = ruleset_step(board, moves, settings={"damagePerTurn": 20})
    dead = after["snakes"][0]
    assert death_sentence(after, dead, Death.of(dead)) == said


def test_another_snakes_death_is_told_of_it(tmp_path):
    game = game_of(tmp_path, "circles", "circles", width=11, height=11, seed=5)
    told = []
    while not game.is_over:
        game.move(None, turn=game.turn)
        told += news(game)
    assert told == [
        "circles 1 lost a head-to-head with you on turn 8.",
        "You left the board on turn 10.",
    ]
    assert ending(game) == "You lose. You left the board on turn 10. circles 2 wins after 10 turns."


def test_a_request_that_failed_is_told(tmp_path):
    def shouts(path, body):
        return as_json({"move": "UP"}) if path == "/move" else good_snake(path, body)

    with served(shouts) as url:
        game = game_of(tmp_path, f"loud={url}", width=11, height=11)
        game.move(UP, turn=0)
        (told,) = news(game)
        assert told.startswith(
            "loud played its last move again: the move is 'UP', but moves are in lower case"
        )
        game.close()


def test_ends_are_told_right(tmp_path):
    out = game_of(tmp_path / "out", "circles", "circles", width=11, height=11, seed=2)
    assert ending(out) == ""
    while out.is_alive:
        out.move(None, turn=out.turn)
    assert ending(out) == "You are out. You left the board on turn 10. The others play on."
    alone = game_of(tmp_path / "alone")
    while not alone.is_over:
        alone.move(None, turn=alone.turn)
    turns = alone.turn
    assert (
        ending(alone)
        == f"The game is over after {turns} turns, with a length of 3. You left the board on turn"
        f" {turns}."
    )
    # Nobody finds food, so both starve on the same turn.
    drawn = game_of(
        tmp_path / "drawn",
        "circles",
        settings=Settings(map="empty", food_spawn_chance=0, minimum_food=0),
    )
    circle(drawn, 100)
    assert (drawn.result, ending(drawn)) == (
        "draw",
        "A draw after 100 turns. You starved on turn 100.",
    )
    won = game_of(tmp_path / "won", "circles")
    while not won.is_over:
        won.move(won.hint(turn=won.turn).move, turn=won.turn)
    assert (won.result, ending(won)) == ("won", f"You win after {won.turn} turns.")


def test_a_game_that_never_ends_is_stopped_and_has_no_winner(tmp_path, monkeypatch):
    for module in (serve.browser.by_hand.table, serve.browser.by_hand.words):
        monkeypatch.setattr(module, "MAX_TURNS", 12)
    still = game_of(tmp_path / "still", "circles")
    circle(still, 12)
    assert ending(still) == "A draw after 12 turns. Games are stopped after 12 turns."
    out = game_of(tmp_path / "out", "circles", "circles", width=11, height=11, seed=2)
    while not out.is_over:
        out.move(None, turn=out.turn)
    assert ending(out) == "You lose. You left the board on turn 10. Nobody wins after 12 turns."


@pytest.mark.parametrize(
    ("decision", "said"),
    [
        (Decision(UP, value=-0.25, note={"score": -400, "depth": 7}),
         "alphabeta would go up: 7 turns ahead it expects −0.25 (−1 lost, 1 won)."),
        (Decision(LEFT, value=1.0, note={"score": WIN - 3, "depth": 1}),
         "alphabeta would go left: 1 turn ahead it sees a certain win."),
        (Decision(LEFT, value=-1.0, note={"score": 5 - WIN, "depth": 4}),
         "alphabeta would go left: 4 turns ahead it finds no way out if all play against you."),
        (Decision(LEFT, probabilities=np.eye(4, dtype=np.float32)[2]), "alphabeta would go left."),
        (Decision(LEFT, value=0.5), "alphabeta would go left: it expects +0.50."),
    ],
)  # fmt: skip
def test_a_hint_is_told_with_what_it_rests_on(tmp_path, decision, said):
    assert advice(game_of(tmp_path), decision) == said
