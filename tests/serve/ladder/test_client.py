"""The client against the stand-in: what each call gives, and what each refusal becomes."""

from __future__ import annotations

import threading

import pytest

from serve.ladder.client import TIMEOUT_S, ArenaClient
from serve.ladder.errors import (
    ArenaDownError,
    ArenaError,
    ArenaUnreachableError,
    NameTakenError,
    NotAllowedError,
    NotFoundError,
    RefusedError,
    StrangeAnswerError,
    TooManyRequestsError,
    WrongTokenError,
)
from serve.ladder.records import Ladder, Snake
from tests.serve.ladder.stand_in import (
    MISSING,
    ROUTES,
    TOKEN,
    cuts_off,
    fails_with,
    hangs_up,
    standing_in,
)

NOBODYS = Snake(MISSING, "nobody", "http://127.0.0.1:1", is_public=True)
NO_LADDER = Ladder(MISSING, "nowhere", active=True)


def test_each_request_says_who_sends_it(arena, client):
    client.snakes()
    client.ladders()
    assert [path for _, path, _ in arena.asked] == ["/api/snakes", "/api/leaderboards"]
    for _, _, headers in arena.asked:
        assert headers["User-Agent"].startswith("procsnake/")
        assert headers["Authorization"] == f"Bearer {TOKEN}"


def test_a_snake_is_registered_changed_and_listed(arena, client):
    made = client.create_snake(name=" Hisser ", url="https://a.example", is_public=False)
    assert (made.name, made.is_public) == ("Hisser", False)
    client.update_snake(made.id, url="https://b.example", is_public=True)
    assert client.snakes() == [Snake(made.id, "Hisser", "https://b.example", is_public=True)]


def test_rankings_have_ranked_snakes_and_those_in_placement(arena, client):
    ladder = Ladder(arena.add_ladder("Main"), "Main", active=True)
    for name, games, score in (("old", 40, 21.5), ("new", 4, 3.0), ("best", 12, 30.0)):
        client.join(ladder, Snake(arena.add_snake(name), name, "", is_public=True))
        list(arena.entries.values())[-1].update(games_played=games, display_score=score)
    found = [
        (one.snake_name, one.rank, one.score, one.games, one.min_games)
        for one in client.standings(ladder)
    ]
    assert found == [("best", 1, 30.0, 12, 10), ("old", 2, 21.5, 40, 10), ("new", 0, 3.0, 4, 10)]


REFUSALS = {
    "snakes without a token": (WrongTokenError, lambda c: ask_as_nobody(c)),
    "a name that is taken": (
        NameTakenError,
        lambda c: [c.create_snake(name="a", url="http://h", is_public=True) for _ in "ab"],
    ),
    "a name too long": (
        RefusedError,
        lambda c: c.create_snake(name="a" * 65, url="http://h", is_public=True),
    ),
    "no http": (RefusedError, lambda c: c.create_snake(name="a", url="ftp://h", is_public=True)),
    "somebody else's snake": (NotFoundError, lambda c: c.update_snake(MISSING, name="b")),
    "a field that no snake has": (RefusedError, lambda c: changed(c, owner="bob")),
    "public or not, in words": (RefusedError, lambda c: changed(c, is_public="no")),
    "a new snake, public or not, in words": (
        RefusedError,
        lambda c: c.create_snake(name="a", url="http://h", is_public="no"),
    ),
    "an id that is none": (RefusedError, lambda c: c.update_snake("../games", name="b")),
    "no such ladder": (NotFoundError, lambda c: c.standings(NO_LADDER)),
    "joining no ladder": (NotFoundError, lambda c: c.join(NO_LADDER, NOBODYS)),
    "leaving where one isn't": (NotFoundError, lambda c: c.leave(NO_LADDER, NOBODYS)),
    "a game of strangers": (
        RefusedError,
        lambda c: c.create_game([MISSING], board="7x7", game_type="solo"),
    ),
    "a game of nobody": (RefusedError, lambda c: c.create_game([], board="7x7", game_type="solo")),
    "no such game": (NotFoundError, lambda c: c.game(MISSING)),
    "no such game's details": (NotFoundError, lambda c: c.details(MISSING)),
    "no such frames": (NotFoundError, lambda c: c.frames(MISSING, offset=0)),
}


def changed(client, **changes):
    return client.update_snake(
        client.create_snake(name="mine", url="http://h", is_public=False).id, **changes
    )


def ask_as_nobody(client):
    with ArenaClient(client.arena, "wrong") as nobody:
        nobody.snakes()


@pytest.mark.parametrize("case", REFUSALS)
def test_each_refusal_is_an_error_of_its_own(client, case):
    kind, act = REFUSALS[case]
    with pytest.raises(kind) as caught:
        act(client)
    assert type(caught.value) is kind
    assert TOKEN not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_private_snake_and_a_strangers_are_kept_off_a_ladder(arena, client):
    ladder = Ladder(arena.add_ladder("Main"), "Main", active=True)
    with pytest.raises(RefusedError, match="public"):
        client.join(
            ladder, Snake(arena.add_snake("shy", is_public=False), "shy", "", is_public=False)
        )
    with pytest.raises(NotAllowedError):
        client.join(ladder, Snake(arena.add_snake("his", owner="bob"), "his", "", is_public=True))
    assert not arena.entries


def test_retry_after_is_honoured_to_the_second(arena, client):
    arena.disturb.append(fails_with(429, Retry_After="7"))
    assert client.snakes() == []
    assert arena.pauses == [7.0]


def test_without_patience_the_error_says_for_how_long(arena):
    arena.disturb.append(fails_with(429, Retry_After="7"))
    with (
        ArenaClient(arena.url, TOKEN, patience_s=5, sleep=arena.sleep) as client,
        pytest.raises(TooManyRequestsError) as caught,
    ):
        client.snakes()
    assert caught.value.retry_after_s == 7
    assert "7 s" in str(caught.value)
    assert not arena.pauses


def test_patience_ends_with_the_sum_of_all_pauses(arena):
    arena.disturb += [fails_with(429, Retry_After="3")] * 9
    with (
        ArenaClient(arena.url, TOKEN, patience_s=8, sleep=arena.sleep) as client,
        pytest.raises(TooManyRequestsError),
    ):
        client.snakes()
    assert arena.pauses == [3.0, 3.0]


def test_an_answer_is_waited_for_no_longer_than_the_time_limit(arena, client, monkeypatch):
    assert TIMEOUT_S <= 60
    monkeypatch.setattr("serve.ladder.client.TIMEOUT_S", 0.3)
    mine = arena.add_snake("mine")
    over = threading.Event()
    arena.disturb.append(lambda request: over.wait(20))
    try:
        with pytest.raises(ArenaUnreachableError, match="can't be reached for POST /api/games"):
            client.create_game([mine], board="7x7", game_type="solo")
    finally:
        over.set()


def test_whoever_needs_a_proxy_is_told_that_none_is_used(arena, client, monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example.org:3128")
    arena.disturb += [hangs_up] * 9
    with pytest.raises(ArenaUnreachableError, match="proxy that is set on this machine isn't used"):
        client.snakes()


def test_an_odd_retry_after_is_no_number_of_seconds(arena, client):
    arena.disturb.append(fails_with(429, Retry_After="Fri, 20 Nov 2026 20:00:00 GMT"))
    client.snakes()
    assert arena.pauses == [30.0]


def test_a_reading_request_is_repeated_ever_more_slowly(arena, client):
    arena.disturb += [hangs_up, fails_with(503), fails_with(502)]
    assert client.snakes() == []
    assert arena.pauses == [1.0, 2.0, 4.0]


def test_after_four_failures_the_site_is_down(arena, client):
    arena.disturb += [fails_with(503, "under repair")] * 9
    with pytest.raises(ArenaDownError, match="503: under repair"):
        client.snakes()
    assert len(arena.asked) == 4


def test_a_503_may_name_its_own_pause(arena, client):
    arena.disturb.append(fails_with(503, Retry_After="11"))
    client.snakes()
    assert arena.pauses == [11.0]


TROUBLES = [(fails_with(503), ArenaDownError), (hangs_up, ArenaUnreachableError)]


@pytest.mark.parametrize(
    ("trouble", "kind"),
    [*TROUBLES, (fails_with(503, "under repair", Retry_After="3600"), ArenaDownError)],
)
def test_a_failure_that_is_not_waited_for_is_told_as_what_it_is(arena, trouble, kind):
    arena.disturb += [fails_with(429, Retry_After="7")] * 2 + [trouble] * 2
    with (
        ArenaClient(arena.url, TOKEN, patience_s=14, sleep=arena.sleep) as client,
        pytest.raises(kind, match="site is up"),
    ):
        client.snakes()
    assert arena.pauses == [7.0, 7.0]


@pytest.mark.parametrize(("trouble", "kind"), TROUBLES)
def test_a_writing_request_is_not_repeated(arena, client, trouble, kind):
    mine = arena.add_snake("mine")
    client.snakes()  # The connection is kept from here on.
    arena.disturb.append(trouble)
    with pytest.raises(kind, match="may have been done"):
        client.create_game([mine], board="7x7", game_type="solo")
    assert sum(method == "POST" for method, _, _ in arena.asked) == 1


def test_half_an_answer_is_asked_for_again(arena, client):
    arena.add_snake("mine")
    arena.disturb.append(cuts_off)
    assert [snake.name for snake in client.snakes()] == ["mine"]


@pytest.mark.parametrize("status", [302, 400, 401, 418, 503])
def test_a_token_that_is_echoed_is_not_shown(arena, client, status):
    arena.disturb += [fails_with(status, f"no: Bearer {TOKEN}, says the proxy")] * 9
    with pytest.raises(ArenaError, match=r"no: Bearer \[token\], says the proxy") as failed:
        client.snakes()
    assert TOKEN not in str(failed.value)


def test_nobody_listens():
    with standing_in() as gone:
        pass
    with (
        ArenaClient(gone.url, TOKEN, sleep=gone.sleep) as client,
        pytest.raises(ArenaUnreachableError, match="nothing listens"),
    ):
        client.snakes()


@pytest.mark.parametrize("told", [{"no": "list"}, [{"id": 3}], [{"id": "a"}], ["a"], "text", None])
def test_a_strange_answer_is_named(arena, client, monkeypatch, told):
    monkeypatch.setitem(ROUTES, ("GET", "snakes"), lambda request: (200, told))
    with pytest.raises(StrangeAnswerError):
        client.snakes()


def test_a_redirect_is_not_followed_with_the_token(arena, client):
    arena.disturb.append(fails_with(302, "elsewhere", Location="http://127.0.0.1:1/"))
    with pytest.raises(ArenaError, match="302"):
        client.snakes()
    assert len(arena.asked) == 1
