"""Sentences about a person's game: deaths, the result, and the search's advice."""

from __future__ import annotations

from agents.agent import Decision
from agents.player import Player
from agents.search.evaluation.evaluate import SURE
from envs.battlesnake.plain import Board, Death, Snake
from envs.battlesnake.render.scene import display_name, printable_name
from envs.battlesnake.state import MOVE_NAMES
from serve.browser.by_hand.game import HumanGame
from serve.browser.by_hand.table import MAX_TURNS, YOU


def news(game: HumanGame) -> list[str]:
    """Return a sentence for each snake that died on the last turn, and for each request that
    failed.
    """
    board = game.board()
    deaths = [(snake, Death.of(snake)) for snake in board["snakes"]]
    sentences = [
        death_sentence(board, snake, death)
        for snake, death in deaths
        if death is not None and death.turn == game.turn
    ]
    for slot, why in game.failures.items():
        name = printable_name(game.referee.names[slot])
        sentences.append(f"{name} played its last move again: {why}.")
    return sentences


def death_sentence(board: Board, snake: Snake, death: Death) -> str:
    """Return how a snake of a board died, in a sentence with the turn."""
    return f"{_capital(_who(snake))} {_cause(board, snake, death)} on turn {death.turn}."


def _cause(board: Board, snake: Snake, death: Death) -> str:
    whose = "another snake's"
    against = "another snake"
    is_mutual = False
    for other in board["snakes"]:
        if other["id"] == death.killer != snake["id"]:
            whose = _whose(other)
            against = _who(other)
            others_death = Death.of(other)
            is_mutual = others_death is not None and others_death.killer == snake["id"]
    match death.cause:
        case "wall-collision":
            return "left the board"
        case "snake-self-collision" if _is_you(snake):
            return "ran into your own body"
        case "snake-self-collision":
            return "ran into its own body"
        case "snake-collision":
            return f"ran into {whose} body"
        case "head-collision" if is_mutual:
            return f"met {against} head to head, both of one length,"
        case "head-collision":
            return f"lost a head-to-head with {against}"
        case "out-of-health":
            return "starved"
        case "hazard":
            return "died in a hazard"
        case cause:
            return f"died ({cause})"


def ending(game: HumanGame) -> str:
    """Return how the game stands for a person whose snake is dead or whose game is over; ""
    otherwise.
    """
    board = game.board()
    you = board["snakes"][YOU]
    snakes = board["snakes"]
    death = Death.of(you)
    own_death = death_sentence(board, you, death) if death is not None else ""
    turns = "1 turn" if game.turn == 1 else f"{game.turn} turns"
    if game.referee.result is None:
        if own_death:
            return f"You are out. {own_death} The others play on."
        return ""
    if len(snakes) == 1:
        over = f"The game is over after {turns}, with a length of {len(you['body'])}."
        return f"{over} {own_death}".rstrip()
    if game.result == "won":
        return f"You win after {turns}."
    if game.result == "draw":
        return f"A draw after {turns}. {own_death or _capped()}"
    winner = next(
        (display_name(snake) for snake in snakes if snake["name"] == game.referee.result.winner),
        "Nobody",
    )
    return f"You lose. {own_death} {winner} wins after {turns}."


def _capped() -> str:
    return f"Games are stopped after {MAX_TURNS} turns."


def advice(game: HumanGame, decision: Decision) -> str:
    """Return a hint in a sentence."""
    depth = decision.note.get("depth")
    outlook = _outlook(decision)
    adviser = Player.of(game.hint_by).made
    hint = f"{adviser} would go {MOVE_NAMES[decision.move]}"
    if not outlook:
        return f"{hint}."
    if not depth:
        return f"{hint}: it {outlook}."
    return f"{hint}: {depth} turn{'s' * (depth != 1)} ahead it {outlook}."


def _outlook(decision: Decision) -> str:
    score = decision.note.get("score")
    if score is not None and abs(score) > SURE:
        if score > 0:
            return "sees a certain win"
        return "finds no way out if all play against you"
    if decision.value is None:
        return ""
    value = f"{decision.value:+.2f}".replace("-", "−")
    if score is None:
        return f"expects {value}"
    return f"expects {value} (−1 lost, 1 won)"


def _is_you(snake: Snake) -> bool:
    return bool(snake["id"] == str(YOU))


def _who(snake: Snake) -> str:
    if _is_you(snake):
        return "you"
    return display_name(snake)


def _whose(snake: Snake) -> str:
    if _is_you(snake):
        return "your"
    return f"{display_name(snake)}'s"


def _capital(who: str) -> str:
    """A snake's name as it begins a sentence; strangers' names stay as they are."""
    if who == "you":
        return "You"
    return who
