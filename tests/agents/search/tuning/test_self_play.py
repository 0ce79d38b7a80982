"""The games that an evaluation is learned from."""

from __future__ import annotations

import io
import os
import shlex
import signal
import struct
import subprocess
import sys
import time
import zipfile
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest

from agents.search.evaluation.learned import find_evaluation
from agents.search.evaluation.learned_features import OWN, SHARED
from agents.search.tuning import self_play
from agents.search.tuning.self_play import (
    GAMES_PER_BLOCK,
    SETTINGS,
    SelfPlay,
    collect,
    play_block,
    read_games,
    read_turns,
)
from envs.common.errors import ConfigError

SMALL = SelfPlay(nodes=20, width=7, height=7, max_turns=60, opening_turns=3)
LENGTH = OWN.index("length")
DISTANCE = 2 * len(OWN) + SHARED.index("distance")


def same(a, b):
    return all((getattr(a, name) == getattr(b, name)).all() for name in vars(a))


def test_a_block_is_a_function_of_its_settings_and_its_number():
    first, turns = play_block(SMALL, 3)
    assert same(first, play_block(SMALL, 3)[0])
    assert turns.tolist() == play_block(SMALL, 3)[1].tolist()
    assert set(first.game) <= set(range(3 * GAMES_PER_BLOCK, 4 * GAMES_PER_BLOCK))
    assert not np.array_equal(first.hand, play_block(SMALL, 4)[0].hand)


def test_the_settings_nodes_count_and_not_the_players():
    player = replace(SMALL, player="alphabeta?nodes=500")
    assert same(play_block(player, 0)[0], play_block(SMALL, 0)[0])


def test_positions_are_quiet_and_the_results_of_both_snakes_make_one_win():
    views, turns = play_block(SMALL, 0)
    assert len(turns) == GAMES_PER_BLOCK
    assert views.turns_left.max() <= turns.max() <= SMALL.max_turns
    assert len(views.game) > 20
    assert (views.features[:, DISTANCE] != 2).all()
    assert (views.features[:, LENGTH] >= 3).all()
    assert ((views.turns_left > 0) & (views.turns_left <= SMALL.max_turns)).all()
    for game in np.unique(views.game):
        one = views.select(views.game == game)
        for left in np.unique(one.turns_left):
            pair = one.select(one.turns_left == left)
            # A position is quiet for both snakes or for none.
            assert pair.result.sum() == 1
            assert len(pair.game) == 2


def test_each_view_of_a_position_has_the_other_one_mirrored():
    (views, _), pairs = play_block(SMALL, 1), 0
    for game in np.unique(views.game):
        for left in np.unique(views.turns_left[views.game == game]):
            a, b = views.features[(views.game == game) & (views.turns_left == left)]
            if a[LENGTH] != b[LENGTH]:
                assert (a[: len(OWN)] == b[len(OWN) : 2 * len(OWN)]).all()
                pairs += 1
    assert pairs > 5


def test_positions_inside_the_searches_are_added_to_the_same_games():
    (plain, turns), (more, same_turns) = (
        play_block(SMALL, 1),
        play_block(replace(SMALL, inner_positions=3), 1),
    )
    inner = np.isnan(more.result)
    assert not np.isnan(plain.result).any()
    assert (~inner).sum() < inner.sum() < 3 * (~inner).sum()
    assert (more.features[:, DISTANCE] != 2).all()
    # Bodies don't get shorter; where food was eaten inside the search they are longer.
    root = more.select(~inner)
    seen = more.select(inner)
    assert same(plain, root)
    assert turns.tolist() == same_turns.tolist()
    grown = 0
    for game, left in {*zip(seen.game.tolist(), seen.turns_left.tolist(), strict=True)}:
        lengths = [
            one.features[(one.game == game) & (one.turns_left == left), LENGTH]
            for one in (root, seen)
        ]
        assert lengths[1].min() >= lengths[0].min()
        grown += (lengths[1] > lengths[0].max()).sum()
    assert grown > 0


def test_an_interrupted_collection_goes_on_and_comes_to_the_same(tmp_path):
    told = []
    whole = collect(SMALL, tmp_path, 3 * GAMES_PER_BLOCK, on_block=lambda *done: told.append(done))
    assert told == [(0, 3), (1, 3), (2, 3), (3, 3)]
    (tmp_path / "block-000001.npz").unlink()
    told.clear()
    again = collect(SMALL, tmp_path, 3 * GAMES_PER_BLOCK, on_block=lambda *done: told.append(done))
    assert told == [(2, 3), (3, 3)]
    assert same(whole, again)
    turns = np.concatenate([play_block(SMALL, block)[1] for block in range(3)])
    assert read_turns(tmp_path, 3 * GAMES_PER_BLOCK).tolist() == turns.tolist()
    assert (
        read_turns(tmp_path, 2 * GAMES_PER_BLOCK, after=1).tolist()
        == turns[GAMES_PER_BLOCK : 2 * GAMES_PER_BLOCK].tolist()
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        *(f"block-00000{n}.npz" for n in range(3)),
        SETTINGS,
    ]


def test_blocks_are_played_by_processes_that_end_with_this_one(tmp_path, monkeypatch):
    """What `processes` lends is killed with its parent, which tests/agents/test_parallel.py
    tries.
    """
    lent = []

    @contextmanager
    def lend(jobs):
        lent.append(jobs)
        yield None

    monkeypatch.setattr(self_play, "processes", lend)
    self_play.play_games(SMALL, tmp_path, 1, jobs=2)
    assert lent == [2]


def test_a_file_in_the_folders_place_is_refused(tmp_path):
    (tmp_path / "games.db").touch()
    with pytest.raises(ConfigError, match=r"games.db.* can't be written"):
        self_play.play_games(SMALL, tmp_path / "games.db", 1)


def test_a_player_that_can_not_be_made_claims_no_folder(tmp_path):
    with pytest.raises(ConfigError, match="Did you mean 'near'"):
        self_play.play_games(replace(SMALL, player="alphabeta?naer=9"), tmp_path, 1)
    self_play.play_games(replace(SMALL, player="alphabeta?near=9"), tmp_path, 1)


def test_a_folder_of_other_games_is_refused(tmp_path):
    collect(SMALL, tmp_path, 1)
    with pytest.raises(ConfigError, match="games of other settings"):
        collect(SelfPlay(nodes=21, width=7, height=7), tmp_path, 1)
    with pytest.raises(ConfigError, match="games of other settings"):
        collect(replace(SMALL, inner_positions=1), tmp_path, 1)
    (tmp_path / SETTINGS).write_text("{")
    with pytest.raises(ConfigError, match="can't be read"):
        collect(SMALL, tmp_path, 1)


def test_games_of_a_player_that_has_changed_since_are_not_mixed_with_others(tmp_path):
    path = tmp_path / "evaluation.json"
    find_evaluation("duel").write(path)
    settings = replace(SMALL, width=11, height=11, player=f"alphabeta?evaluation={path}")
    collect(settings, tmp_path / "games", 1)
    find_evaluation("duel-units").write(path)
    collect(settings, tmp_path / "games", 1)
    with pytest.raises(ConfigError, match="of an earlier version"):
        collect(settings, tmp_path / "games", GAMES_PER_BLOCK + 1)


def _no_archive(content):
    return b"PK"


def _broken_members(content):
    """An archive whose table of contents is right, but in which nothing can be inflated."""
    broken = bytearray(content)
    for member in zipfile.ZipFile(io.BytesIO(content)).infolist():
        name, extra = struct.unpack_from("<HH", content, member.header_offset + 26)
        broken[member.header_offset + 30 + name + extra] = 0xFF
    return bytes(broken)


def _unknown_compression(content):
    """An archive whose members want a version of ZIP that doesn't exist."""
    broken = bytearray(content)
    place = content.index(b"PK\1\2")
    while place >= 0:
        broken[place + 6] = 0xFF
        place = content.find(b"PK\1\2", place + 1)
    return bytes(broken)


def _damaged_lzma(content):
    """The same arrays in an archive of another method, whose members have no properties where LZMA
    has them.
    """
    whole = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(content)) as block,
        zipfile.ZipFile(whole, "w", zipfile.ZIP_LZMA) as packed,
    ):
        for member in block.infolist():
            packed.writestr(member.filename, block.read(member))
    broken = bytearray(whole.getvalue())
    for member in zipfile.ZipFile(whole).infolist():
        name, extra = struct.unpack_from("<HH", broken, member.header_offset + 26)
        place = member.header_offset + 30 + name + extra
        broken[place + 2 : place + 4] = bytes(2)
    return bytes(broken)


def _one_array(content):
    whole = io.BytesIO()
    np.save(whole, np.arange(8))
    return whole.getvalue()


@pytest.mark.parametrize(
    "damage", [_no_archive, _broken_members, _unknown_compression, _damaged_lzma, _one_array]
)
def test_a_block_that_can_not_be_read_is_named(tmp_path, damage):
    settings = replace(SMALL, nodes=5, max_turns=10)
    collect(settings, tmp_path, 1)
    path = tmp_path / "block-000000.npz"
    path.write_bytes(damage(path.read_bytes()))
    for read in (read_games, read_turns):
        with pytest.raises(ConfigError, match=r"block-000000\.npz can't be read .* remove it"):
            read(tmp_path, 1)
    path.unlink()
    assert len(collect(settings, tmp_path, 1).game) > 0


@pytest.mark.long
def test_ctrl_c_ends_with_whole_blocks_and_a_line(tmp_path):
    words = shlex.split(
        "tune-search learn alphabeta learned.json --nodes 50 --games 100000 --jobs 2 --store blocks"
    )
    command = [sys.executable, "-m", "procsnake", *words]
    piped = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    running = subprocess.Popen(
        command, cwd=tmp_path, env=os.environ, start_new_session=True, **piped
    )
    while running.poll() is None and not list(tmp_path.glob("blocks/block-*.npz")):
        time.sleep(0.05)
    # As a terminal does: to all processes at once.
    os.killpg(running.pid, signal.SIGINT)
    told, _ = running.communicate(timeout=300)
    assert running.returncode == 130, told
    assert "Traceback" not in told
    assert all(path.suffix == ".npz" for path in tmp_path.glob("blocks/block-*"))
    assert not (tmp_path / "learned.json").exists()


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"player": "flood"}, "only alphabeta can"),
        ({"player": "my_rule.py+alphabeta"}, "plays with rules"),
        ({"seed": -1}, "seed is -1"),
        ({"width": 2}, "width is 2"),
        ({"width": -5, "height": -5}, "width is -5"),
        ({"width": 4, "height": 26}, "height is 26"),
        ({"randomness": 1.1}, "is a share"),
        ({"nodes": 0}, "at least 1"),
        ({"inner_positions": -1}, "inner_positions at least 0"),
    ],
    ids=str,
)
def test_what_can_not_be_played_is_refused(settings, told):
    with pytest.raises(ConfigError, match=told):
        SelfPlay(**settings)
