"""Recorded games as demonstrations: what was seen and played, what followed, and what is left
out.
"""

from __future__ import annotations

import json
from contextlib import closing

import numpy as np
import pytest

import agents
from agents.measure.evaluation.referee import Referee
from envs.common.errors import UnknownNameError
from tests.envs.battlesnake.traces import DATA
from tests.train.recorded import cloning, record_games
from train.demonstrations.recorded import games_hash, read_demonstrations
from train.worlds.build import single_world


def read(experiment, rewards="win"):
    """What is read, and what is said of the games that are left out."""
    said = []
    with closing(single_world(experiment)) as world:
        return read_demonstrations(experiment.settings, world, rewards, say=said.append), said


@pytest.fixture(scope="module")
def games(tmp_path_factory):
    return record_games(tmp_path_factory.mktemp("games"), num_games=12)


def changed(path, change):
    """Rewrite a recording, whose lines are changed as objects."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    path.write_text("\n".join(map(json.dumps, change(lines))) + "\n")


def test_they_are_what_the_snake_saw_in_the_game_and_the_moves_that_it_made(tmp_path):
    """Compared with the engine's own states while the games were played."""
    experiment = cloning(tmp_path, snakes=["b"], train_batch_size=1)
    world = single_world(experiment)
    seen = []
    moves = []
    turning = []
    for seed in range(2):
        flood = agents.make("flood")
        referee = Referee(
            [flood, flood],
            names=["a", "b"],
            width=7,
            height=7,
            seed=seed,
            recording=tmp_path / f"{seed}.jsonl",
        )
        here = (np.zeros(1, int), np.ones(1, int))
        for frame in referee.play():
            if seen and frame.state.arrays.turn[0]:
                moves.append(int(frame.moves[1]))
            if not frame.state.arrays.cause[0, 1]:
                seen.append(world.observation.observe(frame.state, *here)[0])
                turning.append(
                    [
                        int(world.observation.to_moves(frame.state, *here, np.array([k]))[0])
                        for k in range(3)
                    ]
                )
        del seen[len(moves) :], turning[len(moves) :]
    found, said = read(experiment)
    expected = [(s, t.index(m)) for s, m, t in zip(seen, moves, turning, strict=True) if m in t]
    got = found.demonstrations
    assert not said
    assert len(expected) == len(got.actions) > 20
    np.testing.assert_array_equal(got.observations, np.stack([one for one, _ in expected]))
    np.testing.assert_array_equal(got.actions, [action for _, action in expected])
    assert got.masks[np.arange(len(got.actions)), got.actions].all()


def test_returns_are_what_the_outcome_pays_discounted(games):
    found, _ = read(cloning(games, snakes=["a"], gamma=0.9, train_batch_size=1))
    for number, path in enumerate(sorted(games.iterdir())):
        last = json.loads(path.read_text().splitlines()[-1])
        returns = found.demonstrations.returns[found.games == number]
        paid = 1.0 if last["winnerName"] == "a" else -1.0
        assert returns[-1] == pytest.approx(paid)
        np.testing.assert_allclose(returns[1:], returns[:-1] / 0.9, rtol=1e-5)
    unknown, _ = read(cloning(games, snakes=["a"], train_batch_size=1), rewards={"ate_food": 1.0})
    assert np.isnan(unknown.demonstrations.returns).all()


def test_a_snake_is_meant_by_its_name_or_by_its_id(games):
    boards = [json.loads(path.read_text().splitlines()[1])["board"] for path in games.iterdir()]
    ids = sorted(
        {snake["id"] for board in boards for snake in board["snakes"] if snake["name"] == "a"}
    )
    (by_name, _), (by_id, _) = (read(cloning(games, snakes=snakes)) for snakes in (["a"], ids))
    assert "a" not in ids
    np.testing.assert_array_equal(
        by_id.demonstrations.observations, by_name.demonstrations.observations
    )
    with pytest.raises(UnknownNameError, match=r"unknown snake 'nobody'\. Known: a, b\."):
        read(cloning(games, snakes=[*ids, "nobody"]))


def test_no_game_is_on_both_sides_of_the_split(games):
    found, _ = read(cloning(games))
    lessons, held_out = found.split(0.25, seed=3)
    assert len(lessons) + len(held_out) == len(found.games)
    assert set(found.games[lessons]).isdisjoint(found.games[held_out])
    assert len(set(found.games[held_out])) == 3
    assert [len(set(found.games[part])) for part in found.split(0.01, 0)] == [11, 1]
    assert [len(set(found.games[part])) for part in found.split(0.9, 0)] == [1, 11]


def test_a_game_that_lies_there_twice_counts_once(games, tmp_path):
    once, _ = read(cloning(games))
    (tmp_path / "copy.jsonl").write_bytes((games / "7-0.jsonl").read_bytes())
    twice, _ = read(cloning(games, tmp_path))
    assert len(twice.games) == len(once.games)


def test_what_cannot_be_learned_from_is_left_out_and_said(games, tmp_path):
    record_games(tmp_path, num_games=1, side=11)
    for name in ("gap", "late"):
        (tmp_path / f"{name}.jsonl").write_bytes((games / "7-1.jsonl").read_bytes())
    (tmp_path / "noise.jsonl").write_text("no game\n")
    changed(tmp_path / "gap.jsonl", lambda lines: lines[:3] + lines[4:])

    def another_game_with_a_late_answer(lines):
        request = lines[3]
        head = lines[3]["procsnake"]["decisions"]
        lines[0]["id"] = "another"
        me = next(s["id"] for s in request["board"]["snakes"] if s["name"] == "a")
        head[me]["move"] = {"up": "down"}.get(head[me]["move"], "up")
        return lines

    changed(tmp_path / "late.jsonl", another_game_with_a_late_answer)
    whole, _ = read(cloning(games / "7-0.jsonl", games / "7-1.jsonl", train_batch_size=1))
    found, said = read(cloning(games / "7-0.jsonl", tmp_path, train_batch_size=1))
    assert [line.partition(":")[0] for line in said] == [
        "left out 11-0.jsonl",
        "left out gap.jsonl",
        "left out noise.jsonl",
    ]
    assert "11×11" in said[0]
    assert "turn 2 is missing" in said[1]
    assert len(whole.games) - len(found.games) == 1


def test_a_game_that_contradicts_its_rules_is_named_and_learned_from(games, tmp_path):
    (tmp_path / "edited.jsonl").write_bytes((games / "7-1.jsonl").read_bytes())

    def with_less_health(lines):
        lines[3]["board"]["snakes"][0]["health"] -= 1
        return lines

    changed(tmp_path / "edited.jsonl", with_less_health)
    found, said = read(cloning(games / "7-0.jsonl", tmp_path, train_batch_size=1))
    assert [line.partition(" (")[0] for line in said] == [
        "edited.jsonl: turn 2 contradicts the rules"
    ]
    assert found.num_games == 2


def test_the_official_command_lines_games_are_read(tmp_path):
    names = {
        s["name"]
        for s in json.loads((DATA / "cli-output-example.jsonl").read_text().splitlines()[1])[
            "board"
        ]["snakes"]
    }
    official = DATA / "cli-output-example.jsonl"
    twin = tmp_path / "twin.jsonl"
    twin.write_text(
        official.read_text().replace(json.loads(official.read_text().splitlines()[0])["id"], "twin")
    )
    experiment = cloning(official, twin, snakes=sorted(names), train_batch_size=1)
    experiment = experiment.override(["env.options.width=11", "env.options.height=11"])
    found, said = read(experiment)
    assert not said
    assert found.num_games == 2
    assert len(found.games) > 20


def test_the_hash_is_that_of_the_games_whatever_they_are_called(games, tmp_path):
    first = next(games.iterdir())
    (tmp_path / "renamed.jsonl").write_bytes(first.read_bytes())
    assert games_hash([first]) == games_hash([tmp_path])
    assert games_hash([games]) != games_hash([tmp_path])
