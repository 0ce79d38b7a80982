"""Games that are kept: as they were played, whatever order, however often and from how many sides
they are told.
"""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
import sqlalchemy as sa

from agents.agent import Decision
from envs.battlesnake.plain import conversion as plain
from envs.battlesnake.recording import Recording
from envs.battlesnake.state import LEFT, MOVE_NAMES, RIGHT, State
from envs.battlesnake.webhook import read_move_request
from envs.common.errors import ConfigError
from serve.archive import database, reader, rows, story, tables
from serve.archive.database import ABANDONED_AFTER_S
from serve.archive.figures import summary
from serve.archive.store import GameStore
from serve.doctor import CHECK_PREFIX
from tests.envs.battlesnake.webhook.test_requests import recorded
from tests.serve.archive.played import play, tell, tell_all, uneven_game


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.long)])
def url(request, tmp_path):
    return (
        f"sqlite:///{tmp_path}/games.db"
        if request.param == "sqlite"
        else request.getfixturevalue("postgres_url")
    )


def test_a_game_is_kept_as_it_was_played(url):
    store = GameStore(url)
    _, requests = recorded()
    seen = {}
    for number, request in enumerate(requests):
        if request["you"]["id"] in {snake["id"] for snake in request["board"]["snakes"]}:
            values = [0.1, -0.2, float("nan"), 3]
            decision = Decision(
                number % 4,
                np.array([0.5, 0.25, 0.25, 0], np.float32),
                0.5,
                {"values": values, "nodes": 9},
            )
            store.moved("ours", read_move_request(request), request, decision, latency_ms=number)
            seen.setdefault(request["you"]["id"], []).append((number, request))
    assert store.flush()
    for you, told in seen.items():
        turns = [
            turn for turn in store.turns(requests[0]["game"]["id"], "ours", you=you) if turn["move"]
        ]
        assert [turn["turn"] for turn in turns] == [request["turn"] for _, request in told]
        for turn, (number, request) in zip(turns, told, strict=True):
            # Up to the order of what lies on the board, exactly the engine's own JSON: a flipped y
            # would be seen.
            assert turn["board"] == request["board"]
            assert turn["move"] == MOVE_NAMES[number % 4]
            assert turn["probabilities"] == [0.5, 0.25, 0.25, 0.0]
            assert turn["values"] == [0.1, -0.2, None, 3.0]
            assert (turn["value"], turn["note"]["nodes"]) == (0.5, 9)
            assert (turn["latency_ms"], turn["fallback"]) == (number, None)
        since = store.turns(requests[0]["game"]["id"], "ours", you=you, since=turns[5]["turn"])
        assert [turn for turn in since if turn["move"]] == turns[5:]
    json.dumps(store.turns(requests[0]["game"]["id"], "ours"), allow_nan=False)
    store.close()


def test_order_repetition_and_concurrency_change_nothing(url):
    games = [play(seed=seed) for seed in (1, 2, 3)]
    events = [
        (game, slot, event) for game in games for slot in range(2) for event in game.events(slot)
    ]

    def kept(order):
        store = GameStore(url)
        for index in order:
            game, slot, event = events[index]
            tell(store, f"{len(order)}-{slot}", event)
        assert store.flush(20)
        found = {}
        for game in games:
            for slot in range(2):
                name = f"{len(order)}-{slot}"
                about = store.game(game.game_id, name)
                del about["started"], about["ended"], about["snake"], about["bodies"]
                found[game.game_id, slot] = about, store.turns(game.game_id, name)
        store.close()
        return found

    shuffled = np.random.default_rng(0).permutation(2 * len(events)) % len(events)
    assert kept(np.arange(len(events))) == kept(shuffled)


def test_a_game_that_is_played_again_from_turn_0_replaces_the_attempt_that_crashed(url):
    """Arena's runner may crash, and plays the game again under the same ids, at first with the same
    boards.
    """
    store = GameStore(url)
    crashed = play(seed=1)
    whole = play(seed=2)
    first = [copy.deepcopy(event) for event in whole.events(0)]
    attempt = [*first[:4], *list(crashed.events(0))[4:-1]]
    for _, body, _ in attempt:
        body["game"]["id"] = whole.game_id
    for event in [*attempt, *whole.events(0)]:
        tell(store, "ours", event)
    assert store.flush(20)
    kept = store.turns(whole.game_id, "ours")
    assert [turn["board"] for turn in kept[:-1]] == [
        request["board"] for request in whole.requests[0]
    ]
    assert kept[-1]["board"]["snakes"] == whole.ends[0]["board"]["snakes"]
    with store._database.reading() as connection:
        (size,) = connection.execute(sa.select(tables.GAMES.c.size))
        other = GameStore(f"sqlite:///{store._database.file}-2") if store._database.file else None
    if other is not None:
        tell_all(other, "ours", whole, 0)
        assert other.flush(20)
        with other._database.reading() as connection:
            assert size == connection.execute(sa.select(tables.GAMES.c.size)).one()
        other.close()
    store.close()


def test_games_are_numbered_one_after_the_other_however_many_turns_they_have(url):
    store = GameStore(url)
    for seed in range(3):
        tell_all(store, "s", play(seed=seed), 0)
        assert store.flush()
    with store._database.reading() as connection:
        assert list(
            connection.scalars(sa.select(tables.GAMES.c.number).order_by(tables.GAMES.c.number))
        ) == [1, 2, 3]
    store.close()


@pytest.mark.parametrize("seed", range(3))
def test_the_result_is_the_engines(store, seed):
    game = play(seed=seed, num_snakes=4, side=11)
    for slot in range(4):
        tell_all(store, f"s{slot}", game, slot)
    assert store.flush()
    survivors = [slot for slot, cause in enumerate(game.causes) if not cause]
    for slot, cause in enumerate(game.causes):
        about = store.game(game.game_id, f"s{slot}")
        if len(survivors) == 1:
            assert about["result"] == ("lost" if cause else "won")
            assert about["turns"] == game.ends[0]["turn"]
        if not cause:
            assert about["cause"] is None


def test_all_dead_at_once_is_a_draw_and_a_solo_game_has_no_result(store):
    game = next(
        game
        for game in (play(seed=seed, side=5, agent="random") for seed in range(500))
        if all(game.causes)
    )
    tell_all(store, "draw", game, 0)
    tell_all(store, "solo", play(num_snakes=1, side=5, agent="random", ruleset="solo"), 0)
    assert store.flush()
    assert store.game(game.game_id, "draw")["result"] == "draw"
    assert store.game("game-0", "solo")["result"] is None
    assert store.game("game-0", "solo")["cause"] not in (None, "unknown")
    assert store.statistics()["draw"] == 1


def test_under_the_ruleset_solo_nobody_is_beaten(store):
    game = play(seed=1, ruleset="solo")
    tell_all(store, "ours", game, 0)
    assert store.flush(20)
    assert store.game(game.game_id, "ours")["result"] is None


def test_the_way_to_the_next_maze_is_no_time_out(store):
    game = play(seed=1, num_snakes=1, side=11, map="solo_maze", max_turns=60)
    heads = [tuple(request["you"]["head"].values()) for request in game.requests[0]]
    assert any(abs(x1 - x0) + abs(y1 - y0) > 1 for (x0, y0), (x1, y1) in pairwise(heads))
    tell_all(store, "ours", game, 0)
    assert store.flush(20)
    assert store.game(game.game_id, "ours")["timeouts"] == 0


def test_causes_of_death_are_the_engines():
    """Whose moves we know is ourselves alone, so a head-on collision may also be told as what it
    nearly was.
    """
    from serve.archive.outcome import cause_of_death

    right = 0
    wrong = []
    for seed in range(60):
        game = play(seed=seed, num_snakes=4, side=7, agent="random" if seed % 2 else "greedy")
        for slot, cause in enumerate(game.causes):
            if not cause:
                continue
            last = game.requests[slot][-1]
            move = game.moves[slot][-1]
            found = cause_of_death(
                last["board"], game.ids[slot], [move], ruleset="standard", hazard_damage=14
            )
            right += found == cause
            if found != cause:
                wrong.append((cause, found))
    assert right > 100
    assert len(wrong) <= 0.05 * right
    assert {cause for cause, _ in wrong} <= {"head-collision", "snake-collision"}


def crowded(number=0):
    """A move request with two snakes beside our head, and a deep stack of hazards."""
    request = play(num_snakes=3, side=11).requests[0][0]
    for snake, y in zip(request["board"]["snakes"], (5, 6, 4), strict=True):
        snake["body"] = [{"x": x, "y": y} for x in (5, 4, 3)]
        snake["head"] = snake["body"][0]
    request["board"]["hazards"] = [{"x": 6, "y": 5}] * 200
    return {**request, "turn": number, "you": request["board"]["snakes"][0]}


def dead(request):
    """The end of a game on whose last board nobody lives."""
    return {**request, "board": {**request["board"], "snakes": []}}


def test_however_many_moves_are_tried_the_board_is_read_once(monkeypatch):
    from serve.archive.outcome import cause_of_death

    built = []
    monkeypatch.setattr(
        plain, "State", lambda *args, **options: built.append(args) or State(*args, **options)
    )
    found = cause_of_death(
        crowded()["board"], "you-0", [2, 3], ruleset="standard", hazard_damage=14
    )
    assert found == "snake-self-collision"
    assert len(built) == 1


def test_stacked_hazards_count_for_the_cause_and_are_not_written_out_for_it(store, monkeypatch):
    written_out = []
    last = crowded(1)
    last["board"]["snakes"] = last["board"]["snakes"][1:]
    monkeypatch.setattr(rows, "_unstack", written_out.append)
    for event in (("move", crowded(), RIGHT), ("end", last, None)):
        tell(store, "s", event)
    assert store.flush()
    assert store.game("game-0", "s")["cause"] == "hazard"
    assert written_out == []


def test_an_ended_game_is_summarised_again_only_if_something_new_was_told(store, monkeypatch):
    summaries = []
    monkeypatch.setattr(database, "summary", lambda *args: summaries.append(args) or summary(*args))

    def told(*events):
        summaries.clear()
        for event in events:
            tell(store, "s", event)
            assert store.flush()
        return len(summaries)

    first = crowded(4)
    second = crowded(5)
    assert told(("move", second, LEFT)) == 0
    assert told(("end", dead(second), None)) == 1
    assert (
        told(*[("end", dead(second), None)] * 3, ("move", second, LEFT), ("start", second, None))
        == 0
    )
    assert told(("move", first, LEFT)) == 1
    # Of who was there at the start, the result may depend.
    renamed = {
        **first,
        "turn": 0,
        "board": {**first["board"], "snakes": first["board"]["snakes"][:1]},
    }
    assert told(("start", renamed, None)) == 1


def test_an_answer_that_the_engine_did_not_play_is_a_time_out(store):
    game = play(seed=1)
    for number, (kind, body, move) in enumerate(game.events(0)):
        tell(
            store,
            "s",
            (kind, body, (move + 1) % 4 if kind == "move" and number in (3, 5) else move),
        )
    assert store.flush()
    assert store.game(game.game_id, "s")["timeouts"] == 2


def test_what_the_watchdog_answered_is_an_error(store):
    game = play(seed=1)
    request = game.requests[0][0]
    decision = Decision(0, note={"fallback": "RuntimeError"})
    store.moved("s", read_move_request(request), request, decision, latency_ms=1.0)
    assert store.flush()
    assert store.turns(game.game_id, "s")[0]["fallback"] == "RuntimeError"
    assert store.games()[0]["errors"] == 1


@pytest.mark.parametrize(
    "names", [("s", "s"), ("s", "t")], ids=["two bodies of one snake", "two snakes"]
)
def test_after_its_death_the_boards_of_our_other_snake_go_on_with_the_game(store, names):
    game = uneven_game()
    for slot, name in enumerate(names):
        tell_all(store, name, game, slot)
    assert store.flush()
    turns = store.turns(game.game_id, "s", you="you-0")
    died = len(game.requests[0])
    boards = [request["board"] for request in [*game.requests[1], game.ends[1]]]
    assert [turn["turn"] for turn in turns] == list(range(len(boards)))
    assert [turn["board"] for turn in turns] == boards
    assert [turn["move"] is not None for turn in turns] == [turn["turn"] < died for turn in turns]
    assert {turn["you"] for turn in turns} == {"you-0"}
    fate = {
        "id": "you-0",
        "eliminatedOnTurn": died,
        "eliminatedCause": game.causes[0],
        "eliminatedBy": "",
    }
    assert [fate in turn["eliminated"] for turn in turns] == [
        turn["turn"] >= died for turn in turns
    ]
    assert store.turns(game.game_id, "s", you="you-0", since=died + 2) == turns[died + 2 :]
    assert store.game(game.game_id, "s")["bodies"] == [
        {"snake": names[slot], "you": f"you-{slot}"} for slot in (1, 0)
    ]


def pages(store, game, limit):
    """All turns of the first body, page by page."""
    since = 0
    while page := store.turns(game.game_id, "s", you="you-0", since=since, limit=limit):
        yield page
        since = page[-1]["turn"] + 1


@pytest.mark.parametrize("limit", [1, 3, 1000])
def test_pages_of_turns_are_all_turns_and_no_page_unpacks_the_whole_game(store, monkeypatch, limit):
    """One body's turns, then the boards that the other saw, then the end."""
    game = uneven_game()
    unpacked = []
    for slot in range(2):
        tell_all(store, "s", game, slot)
    assert store.flush()
    whole = store.turns(game.game_id, "s", you="you-0")
    monkeypatch.setattr(story, "_CHUNK", 2)

    def noted(data, *, stacked=False):
        unpacked.extend([] if stacked else [data])
        return rows.unpack(data, stacked=stacked)

    for module in (reader, story):
        monkeypatch.setattr(module, "unpack", noted)
    together = []
    for page in pages(store, game, limit):
        assert len(page) <= limit
        assert len(unpacked) <= limit + 3
        unpacked.clear()
        together += page
    assert together == whole == store.turns(game.game_id, "s", you="you-0")


@pytest.mark.parametrize("kind", ["hazards", "food", "body"])
def test_a_page_ends_early_where_turns_are_heavy(store, monkeypatch, kind):
    monkeypatch.setattr(reader, "_PAGE_POINTS", 130)
    game = play(seed=1)
    many = [{"x": x, "y": y} for x in range(7) for y in range(7)][:40]
    for request in game.requests[0]:
        if kind == "body":
            request["you"]["body"] = [*request["you"]["body"], *many]
        else:
            request["board"][kind] = many
    tell_all(store, "s", game, 0)
    assert store.flush()
    sizes = [len(page) for page in pages(store, game, 1000)]
    assert sizes[0] == 3
    assert sum(sizes) == len(game.requests[0]) + 1
    monkeypatch.setattr(reader, "_PAGE_POINTS", 1)
    assert len(store.turns(game.game_id, "s", limit=1000)) == 1
    assert len(store.turns(game.game_id, "s")) == len(game.requests[0]) + 1


def test_while_the_other_one_plays_the_game_of_a_dead_snake_goes_on(store):
    game = uneven_game()
    died = len(game.requests[0])
    for slot in range(2):
        for event in list(game.events(slot))[: died + 3]:
            if event[0] != "end":
                tell(store, "s", event)
    assert store.flush()
    store._database.close_abandoned(
        store.game(game.game_id, "s", "you-1")["started"] + ABANDONED_AFTER_S + 60
    )
    tell(store, "s", ("move", game.requests[1][died + 2], 0))
    assert store.flush()
    first = store.game(game.game_id, "s", "you-0")
    assert (first["ended"], first["is_end_known"]) == (None, False)
    assert store.turns(game.game_id, "s", you="you-0")[-1]["turn"] == died + 2
    assert [body["you"] for body in store.bodies(game.game_id)] == ["you-1", "you-0"]


def test_a_turn_that_is_about_to_be_written_is_not_told_by_another_first(store):
    game = play(seed=1)
    tell(store, "s", ("move", game.requests[0][0], 0))
    for number in range(2):
        tell(store, "t", ("move", game.requests[1][number], 0))
    assert store.flush()
    assert [turn["turn"] for turn in store.turns(game.game_id, "s")] == [0]


def test_a_snake_of_ours_alone_died_after_its_last_turn(store, tmp_path):
    """The board of the end comes many turns later; what it lacks didn't all die on that turn."""
    game = uneven_game()
    tell_all(store, "s", game, 0)
    assert store.flush()
    died = len(game.requests[0])
    last = store.turns(game.game_id, "s")[-1]
    assert last["turn"] == game.ends[0]["turn"] > died + 1
    (fate,) = last["eliminated"]
    assert (fate["id"], fate["eliminatedOnTurn"], fate["eliminatedCause"]) == (
        "you-0",
        died,
        game.causes[0],
    )
    (path,) = store.export(tmp_path)
    (own,) = (
        snake for snake in Recording.read(path).boards()[-1]["snakes"] if snake["id"] == "you-0"
    )
    assert (own["eliminatedOnTurn"], own["eliminatedCause"]) == (died, game.causes[0])


def test_checks_are_kept_and_shown_but_never_counted(store, tmp_path):
    real = play(seed=1)
    check = play(seed=2)
    for body in [*check.requests[0], *check.ends]:
        body["game"]["id"] = f"{CHECK_PREFIX}1"
    tell_all(store, "s", real, 0)
    assert store.flush()
    before = store.statistics()
    tell_all(store, "s", check, 0)
    assert store.flush()
    assert store.statistics() == before | {"checks": 1}
    assert [game["is_check"] for game in store.games()] == [True, False]
    assert len(list(store.export(tmp_path))) == 1


def test_live_games_past_games_and_pages(store):
    games = [play(seed=seed) for seed in range(4)]
    for game in games[:3]:
        tell_all(store, "s", game, 0)
        assert store.flush()
    tell(store, "s", ("move", games[3].requests[0][0], 0))
    assert store.flush()
    assert [game["id"] for game in store.games(live=True)] == ["game-3"]
    assert [game["id"] for game in store.games(live=False)] == ["game-2", "game-1", "game-0"]
    assert [game["id"] for game in store.games(limit=2, offset=1)] == ["game-2", "game-1"]
    assert store.game("game-9", "s") is None
    assert store.turns("game-9", "s") == []
    statistics = store.statistics()
    assert (statistics["games"], statistics["live"], statistics["snakes"]) == (4, 1, {"s": 4})
    assert statistics["won"] + statistics["lost"] + statistics["draw"] == 3
    assert statistics["p99"] == 2.0


def test_a_game_that_fell_silent_is_over_until_it_goes_on(store):
    game = play(seed=1)
    tell(store, "s", ("move", game.requests[0][0], 0))
    assert store.flush()
    seen = store.games()[0]["started"]
    store._database.close_abandoned(seen + ABANDONED_AFTER_S + 1)
    assert store.games(live=False)[0]["result"] is None
    assert store.game(game.game_id, "s")["ended"] is not None
    tell(store, "s", ("move", game.requests[0][1], 0))
    assert store.flush()
    assert store.games(live=True)


def test_old_games_go_and_so_do_the_oldest_when_there_are_too_many(store):
    for seed in range(5):
        tell_all(store, "s", play(seed=seed), 0)
        assert store.flush()
    store._database.forget(before=0, max_bytes=20_000)
    left = [game["id"] for game in store.games()]
    assert left == [f"game-{seed}" for seed in (4, 3, 2, 1, 0)][: len(left)]
    assert 0 < len(left) < 5
    store._database.forget(before=1e12, max_bytes=1 << 40)
    assert store.games() == []
    assert store.statistics()["p50"] is None


def test_a_server_keeps_house_by_itself(tmp_path):
    url = f"sqlite:///{tmp_path}/games.db"
    store = GameStore(url)
    tell_all(store, "s", play(), 0)
    store.close()
    store = GameStore(url, max_age_s=-10)
    tell(store, "s", ("move", play(seed=1).requests[0][0], 0))
    assert store.flush()
    assert "game-0" not in {game["id"] for game in store.games()}
    store.close()


def test_what_is_exported_is_the_game(store, tmp_path):
    game = play(seed=4, num_snakes=3, side=11, ruleset="royale")
    tell_all(store, "s", game, 0)
    assert store.flush()
    (path,) = store.export(tmp_path / "out")
    recording = Recording.read(path)
    assert recording.game == game.requests[0][0]["game"]
    for request, mine, move in zip(
        game.requests[0], recording.requests, game.moves[0], strict=False
    ):
        assert {key: mine[key] for key in request} == request
        assert recording.decisions(request["turn"])["you-0"]["move"] == MOVE_NAMES[move]
        assert mine["procsnake"]["decisions"]["you-0"]["probabilities"] == [0.25] * 4
    assert recording.settings.ruleset == "royale"
    assert recording.state(3).arrays.turn[0] == 3
    assert list(store.export(tmp_path / "none", snake="nobody")) == []


def test_hostile_texts_are_kept_as_texts(url, tmp_path):
    store = GameStore(url)
    request = play(seed=1).requests[0][0]
    request["game"]["id"] = "../../\0\ud800<script>"
    request["board"]["snakes"][0] |= {
        "name": "<img onerror=…>",
        "shout": ["no", "text"],
        "latency": 7,
        "customizations": 5,
    }
    request["board"]["snakes"][0]["extra"] = "x" * 1000
    note = {"fallback": "x" * 500, "deep": {1: [np.float32("inf"), object()]}}
    store.moved("s", read_move_request(request), request, Decision(2, note=note), latency_ms=1.0)
    store.moved(
        "big",
        read_move_request(request),
        request,
        Decision(2, note={"big": ["x" * 200] * 200}),
        latency_ms=1.0,
    )
    assert store.flush()
    assert store.writer.lost == 0
    game, *_ = (game for game in store.games() if game["snake"] == "s")
    (turn,) = store.turns(game["id"], "s")
    snake = turn["board"]["snakes"][0]
    assert snake["name"] == "<img onerror=…>"
    assert snake["shout"] == "['no', 'text']"
    assert snake["customizations"] == {"color": "", "head": "", "tail": ""}
    assert "extra" not in snake
    assert turn["note"]["deep"]["1"][0] is None
    assert "dropped" in store.turns(game["id"], "big")[0]["note"]
    json.dumps(turn, allow_nan=False)
    store._database.close_abandoned(1e12)
    for path in store.export(tmp_path / "out"):
        assert path.parent == tmp_path / "out"
    store.close()


@pytest.mark.parametrize("url", ["mysql://x/y", "nonsense", "sqlite://", "sqlite:///"])
def test_other_databases_are_refused(url):
    with pytest.raises(ConfigError, match="sqlite:///games"):
        GameStore(url)


@pytest.mark.parametrize(
    "url",
    [
        "mysql://ada:s3cret@h/x",
        "sqlite://ada:s3cret@h",
        "postgresql:/ada:s3cret@h/x",
        "postgresql//ada:s3cret@h/x",
        "postgresql://ada:s3cret@[::1/x",
    ],
)
def test_a_password_is_not_told_when_a_database_is_refused(url):
    with pytest.raises(ConfigError, match="sqlite:///games") as caught:
        GameStore(url)
    assert "s3cret" not in str(caught.value)


TWO_PROCESSES = """
import sys
from serve.archive.store import GameStore
from tests.serve.archive.played import play, tell
url, mine = sys.argv[1], int(sys.argv[2])
store = GameStore(url)
for seed in range(3):
    for number, event in enumerate(play(seed=seed).events(0)):
        if number % 2 == mine:
            tell(store, "s", event)
assert store.flush(100) and not store.writer.lost, store.writer.problem
store.close()
"""


def test_two_processes_write_one_database(url, tmp_path):
    commands = [[sys.executable, "-c", TWO_PROCESSES, url, str(mine)] for mine in (0, 1)]
    both = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for command in commands]
    for process in both:
        _, complaints = process.communicate(timeout=120)
        assert process.returncode == 0, complaints
    together = GameStore(url)
    alone = GameStore(f"sqlite:///{tmp_path}/alone.db")
    for seed in range(3):
        tell_all(alone, "s", play(seed=seed), 0)
    assert alone.flush()
    for seed in range(3):
        assert together.turns(f"game-{seed}", "s") == alone.turns(f"game-{seed}", "s")
        ours, theirs = (store.game(f"game-{seed}", "s") for store in (together, alone))
        assert {k: v for k, v in ours.items() if k not in ("started", "ended")} == {
            k: v for k, v in theirs.items() if k not in ("started", "ended")
        }
    together.close()
    alone.close()
