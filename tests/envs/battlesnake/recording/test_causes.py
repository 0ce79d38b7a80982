"""Causes of death that a file doesn't tell, against those that the official engine recorded."""

from __future__ import annotations

from collections import Counter

from envs.battlesnake.recording import UNKNOWN_CAUSE, Recording, likely_cause
from tests.envs.battlesnake.recording.official import recorded
from tests.envs.battlesnake.traces import games

CRASHES = {"wall-collision", "snake-collision", "snake-self-collision"}


def told_and_worked_out(every):
    """(what the official engine says, what is worked out without it) of each death, in games of
    several snakes.
    """
    for game in games()[::every]:
        if (
            game["kind"] != "map"
            or game["n_snakes"] < 2
            or game["map"] == "solo_maze"
            or not game["turns"]
        ):
            continue
        whole = recorded(game)
        bare = [
            {key: value for key, value in request.items() if key != "procsnake"}
            for request in whole.requests
        ]
        silent = Recording(whole.game, bare)
        for n in range(1, len(bare)):
            before = silent.boards()[n - 1]
            after = silent.boards()[n]
            truth = whole.boards()[n]
            for snake in truth["snakes"]:
                if snake["eliminatedOnTurn"] == truth["turn"] and snake["eliminatedCause"]:
                    yield (
                        snake["eliminatedCause"],
                        likely_cause(before, after, snake["id"], silent.settings),
                    )


def test_what_a_file_does_not_tell_is_worked_out_as_the_official_engine_judged():
    found = Counter(told_and_worked_out(every=6))
    deaths = Counter(truth for truth, _ in found.elements())
    assert all(worked_out != UNKNOWN_CAUSE for _, worked_out in found)
    for cause in ("out-of-health", "hazard", "head-collision"):
        assert found[cause, cause] >= 0.9 * deaths[cause] > 0, cause
    crashes = [(truth, worked_out) for truth, worked_out in found.elements() if truth in CRASHES]
    assert sum(worked_out in CRASHES for _, worked_out in crashes) > 0.7 * len(crashes)
