"""Single elimination: who meets, who has a bye, who goes on; as closed forms for 2 to 17 players,
and as it is played.
"""

from __future__ import annotations

import json
import math
import shlex
from collections import Counter

import pytest

import procsnake
from agents.measure.tournament import bracket
from agents.measure.tournament.play import play_tournament
from agents.measure.tournament.schedule import games_of_round
from agents.measure.tournament.settings import Tournament
from agents.measure.tournament.standings import standings
from agents.measure.tournament.store import Store
from envs.common.errors import ConfigError
from tests.agents.measure.pages.reading import Page
from tests.agents.measure.tournament.made import drawn, of, small, won


def played(tournament, winner_of=min):
    """All games, if `winner_of` says which of two players wins: a number, or None for a draw."""
    games = []
    waves = []
    while schedule := games_of_round(tournament, len(waves), games):
        waves.append(schedule)
        for number, pair in enumerate(schedule):
            winner = winner_of(pair)
            where = {"round_": len(waves) - 1, "number": number}
            loser = sum(pair) - winner if winner is not None else None
            games.append(drawn(*pair, **where) if winner is None else won(winner, loser, **where))
    return games, waves


def test_eight_meet_as_arena_plans_it():
    rounds = bracket.rounds_of(of(8, form="bracket", games=1), [])
    assert [pairing.players for pairing in rounds[0]] == [(0, 7), (3, 4), (1, 6), (2, 5)]


@pytest.mark.parametrize("num", range(2, 18))
def test_pairings_byes_and_numbers_of_games_are_the_closed_forms(num):
    tournament = of(num, form="bracket", games=1)
    games, waves = played(tournament)
    rounds = bracket.rounds_of(tournament, games)
    size = 2 ** math.ceil(math.log2(num))
    assert len(games) == num - 1
    assert len(rounds) == len(waves) == math.log2(size)
    byes = [pairing.players[0] for pairing in rounds[0] if pairing.players[1] is None]
    assert sorted(byes) == list(range(size - num))
    assert all(pairing.players[1] is not None for later in rounds[1:] for pairing in later)
    # If the better seed always wins, then in each round the seeds of a full pairing add up to the
    # players that are left.
    for left, round_ in zip((size >> k for k in range(len(rounds))), rounds, strict=True):
        assert len(round_) == left // 2
        assert all(
            sum(pairing.players) == left - 1 for pairing in round_ if pairing.players[1] is not None
        )
    assert bracket.champion(tournament, games) == 0
    # Everybody else has lost exactly one match.
    losses = Counter(seat.player for game in games for seat in game.seats if seat.place == 2)
    assert losses == dict.fromkeys(range(1, num), 1)


@pytest.mark.parametrize("num", [3, 8, 13])
def test_if_the_worse_always_wins_the_last_seed_does(num):
    tournament = of(num, form="bracket", games=1)
    games, _ = played(tournament, max)
    assert bracket.champion(tournament, games) == num - 1
    assert standings(tournament, games)[0].player == num - 1


def test_who_came_further_stands_higher_whatever_the_ratings_say():
    """Player 0 has a bye and loses the final 0:2; player 2 lost the first round 1:2."""
    tournament = of(3, form="bracket", games=3)
    results = iter([1, 2, 1, 1, 1])
    games, _ = played(tournament, lambda pair: next(results))
    rows = standings(tournament, games)
    assert [row.player for row in rows] == [1, 0, 2]
    assert rows[1].skill.ordinal < rows[2].skill.ordinal


@pytest.mark.parametrize(("best_of", "least", "most"), [(1, 1, 1), (3, 2, 3), (5, 3, 5)])
def test_a_match_ends_when_it_is_decided(best_of, least, most):
    tournament = of(2, form="bracket", games=best_of)
    games, _ = played(tournament)
    assert len(games) == least
    turns = iter([1, 0] * best_of)
    games, _ = played(tournament, lambda pair: next(turns))
    assert len(games) == most
    assert bracket.rounds_of(tournament, games)[0][0].wins == (best_of // 2, best_of // 2 + 1)


def test_players_change_seats_from_game_to_game():
    results = iter([0, 1, 0, 1, 0])
    _, waves = played(of(2, form="bracket", games=5), lambda pair: next(results))
    assert [pair for (pair,) in waves] == [(0, 1), (1, 0), (0, 1), (1, 0), (0, 1)]


def test_draws_are_played_again_but_not_for_ever():
    tournament = of(4, form="bracket", games=3)
    results = iter([None, None, *[1] * 9])
    games, _ = played(of(2, form="bracket", games=3), lambda pair: next(results))
    assert len(games) == 4
    games, _ = played(tournament, lambda pair: None)
    assert len(games) == 3 * bracket.MOST_GAMES * 3
    assert bracket.champion(tournament, games) == 0


def test_what_no_bracket_can_be_is_refused():
    with pytest.raises(ConfigError, match="odd"):
        of(4, form="bracket", games=2)
    with pytest.raises(ConfigError, match="duels"):
        of(4, form="bracket", games=1, seats=4)


def test_a_bracket_that_was_killed_goes_on_with_the_same_games(tmp_path):
    tournament = small(
        "random", "greedy", "flood", "r2=random", "r3=random", form="bracket", games=3, seed=4
    )
    with Store(tmp_path / "whole.db", Tournament) as store:
        whole = play_tournament(tournament, store)
    killed = []

    def kill(games):
        killed.append(len(games))
        if len(games) == 4:
            raise KeyboardInterrupt

    with Store(tmp_path / "t.db", Tournament) as store:
        with pytest.raises(KeyboardInterrupt):
            play_tournament(tournament, store, on_game=kill)
        again = play_tournament(
            tournament, store, concurrency=2, on_game=lambda games: killed.append(len(games))
        )
    assert killed == list(range(1, len(whole) + 1))
    assert [(g.round, g.number, g.seed, g.winner) for g in again] == [
        (g.round, g.number, g.seed, g.winner) for g in whole
    ]
    assert bracket.champion(tournament, again) is not None


def test_the_command_tells_the_bracket_as_table_json_and_page(tmp_path, capsys):
    words = shlex.split("tournament flood greedy random --form bracket --width 7 --height 7")
    words += [
        "--store",
        str(tmp_path / "t.db"),
        "--report",
        str(tmp_path / "t.html"),
        "--replays",
        "0",
    ]
    assert procsnake.main(words) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[1].split() == ["semifinal", "1.", "flood", "nobody", "bye", "flood"]
    assert procsnake.main(["tournament", "--store", str(tmp_path / "t.db"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    final = told["rounds"][-1][0]
    assert told["champion"] == final["winner"] == told["standings"][0]["name"]
    assert max(final["wins"]) == 2
    assert "semifinal" in Page((tmp_path / "t.html").read_text()).text
    assert procsnake.main([*words, "--rounds", "2"]) == 2
    assert "number of players sets its rounds" in capsys.readouterr().err


def test_a_place_where_no_report_can_be_is_refused_before_the_games(tmp_path, capsys):
    path = tmp_path / "t.db"
    assert (
        procsnake.main(
            ["tournament", "random", "greedy", "--store", str(path), "--report", str(tmp_path)]
        )
        == 2
    )
    assert "can't be written: it is a folder" in capsys.readouterr().err
    with Store(path, Tournament) as store:
        assert store.games() == []
