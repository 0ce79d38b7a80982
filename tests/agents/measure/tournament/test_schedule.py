from __future__ import annotations

from collections import Counter
from itertools import combinations

import pytest

from agents.measure.tournament.schedule import games_of_round, ladder
from agents.measure.tournament.settings import Player, Tournament
from envs.common.errors import ConfigError, UnknownNameError
from tests.agents.measure.tournament.made import game, of, players


def played(tournament, rounds):
    """All games, if the player of the lower number always comes first."""
    games = []
    for round_ in range(rounds):
        for number, group in enumerate(games_of_round(tournament, round_, games)):
            places = [(player, 1 + sorted(group).index(player)) for player in group]
            games.append(game(*places, round_=round_, number=number))
    return games


@pytest.mark.parametrize("seats", [2, 3, 4, 8])
def test_round_robin_has_every_group_and_every_seat_as_often(seats):
    tournament = of(8, seats=seats, games=seats, rounds=2)
    games = played(tournament, 1)
    met = Counter(frozenset(seat.player for seat in g.seats) for g in games)
    assert met == {frozenset(group): seats for group in combinations(range(8), seats)}
    places = Counter((slot, seat.player) for g in games for slot, seat in enumerate(g.seats))
    assert len(set(places.values())) == 1
    assert len(places) == 8 * seats


def test_swiss_pairs_neighbours_and_avoids_repetition():
    tournament = of(8, form="swiss", rounds=5, games=1)
    games = played(tournament, 5)
    pairs = [frozenset(seat.player for seat in g.seats) for g in games]
    assert len(set(pairs)) == len(pairs) == 20
    # After three rounds somebody has won all; from then on the top meet the top.
    assert all(max(pair) - min(pair) <= 5 for pair in pairs[12:16])


@pytest.mark.parametrize(("num", "seats"), [(7, 2), (7, 4), (9, 4), (5, 3)])
def test_in_swiss_everybody_sits_out_about_as_often(num, seats):
    games = played(of(num, form="swiss", seats=seats, rounds=8, games=1), 8)
    count = Counter(seat.player for g in games for seat in g.seats)
    assert len(count) == num
    assert max(count.values()) - min(count.values()) <= 2


@pytest.mark.parametrize(
    ("num", "seats"), [(2, 2), (5, 2), (6, 2), (4, 4), (6, 4), (7, 4), (8, 3), (9, 8)]
)
def test_the_ladder_sorts_whoever_plays_as_strong_as_they_are(num, seats):
    """Player 0 is the best and begins at the foot."""
    tournament = of(num, form="ladder", seats=seats, games=1, rounds=3 * num)
    games = []
    for round_ in range(3 * num):
        for number, group in enumerate(games_of_round(tournament, round_, games)):
            assert len(set(group)) == seats
            places = [(player, 1 + sorted(group, reverse=True).index(player)) for player in group]
            games.append(game(*places, round_=round_, number=number))
    assert ladder(tournament, games, 3 * num) == list(range(num))[::-1]


def test_players_are_named_and_twins_are_refused():
    assert Player.parse("me=http://127.0.0.1:8000").named() == Player("me", "http://127.0.0.1:8000")
    assert Player.parse("http://x.org/?a=b").named() == Player("http://x.org", "http://x.org/?a=b")
    assert Player.parse("runs/a").named() == Player("runs/a", "runs/a")
    with pytest.raises(ConfigError, match="flood-2=flood"):
        Tournament(players=players("flood", "flood"))


@pytest.mark.parametrize(
    "options", [{"seats": 1}, {"seats": 9}, {"seats": 4}, {"rounds": 0}, {"seed": -1}]
)
def test_what_cannot_be_played_is_refused(options):
    with pytest.raises(ConfigError):
        of(3, **options)
    with pytest.raises(UnknownNameError, match="swiss"):
        of(3, form="swis")


def test_a_tournament_survives_json():
    tournament = of(4, form="ladder", seats=4, seed=7, tell_deadline=True)
    assert Tournament.from_dict(tournament.to_dict()) == tournament
    assert tournament.game_seed(0, 1) != tournament.game_seed(1, 0)
