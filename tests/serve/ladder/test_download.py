"""Games that are fetched from the stand-in: what is on disk afterwards, and after each thing that
can go wrong.
"""

from __future__ import annotations

import copy
import json

import pytest

import agents
from envs.battlesnake.recording import Recording, to_test
from serve.archive.store import GameStore
from serve.arena import create_app
from tests.command_line import run
from tests.envs.battlesnake.arena_shape import (
    arena_game,
    end_request,
    is_alive,
    move_requests,
    played_games,
)
from tests.envs.battlesnake.recording.official import boards_of, official_games
from tests.envs.battlesnake.traces import games
from tests.serve.ladder.frames import frames_of, long_game
from tests.serve.ladder.stand_in import MISSING, cuts_off, fails_with, hangs_up


@pytest.fixture(scope="module")
def frames():
    return frames_of(long_game())


@pytest.fixture
def game(arena, frames):
    """A finished game of one's own with three pages of frames."""
    return arena.add_game(frames, [arena.add_snake("Hisser")], board="19x19")


def pages(arena):
    return [path for _, path, _ in arena.asked if path.endswith("/frames")]


def test_a_game_becomes_a_recording_that_follows_the_rules(arena, command, game, frames, tmp_path):
    code, out, _ = command("fetch", game, "--out", "there")
    assert code == 0
    assert f"all {len(frames) - 1} turns follow the rules" in out
    assert [path.name for path in (tmp_path / "there").iterdir()] == [f"{game}.jsonl"]
    recording = Recording.read(tmp_path / "there" / f"{game}.jsonl")
    for board, expected in zip(recording.boards(), long_game(), strict=True):
        assert [snake["body"] for snake in board["snakes"]] == [
            snake["body"] for snake in expected["snakes"]
        ]
        assert [snake["eliminatedCause"] for snake in board["snakes"]] == [
            s["eliminatedCause"] for s in expected["snakes"]
        ]
    assert recording.game["id"] == game
    assert recording.game["source"] == "arena"
    assert {
        snake["latency"] for request in recording.requests for snake in request["board"]["snakes"]
    } == {"17"}
    assert "REQUEST" in to_test(recording, 5)


def test_what_is_fetched_is_shown_like_any_recording(arena, command, game, capsys):
    command("fetch", game)
    assert (
        run(capsys, "replay", "show", f"outputs/arena-games/{game}.jsonl", "--turn", "40")[0] == 0
    )


def test_a_game_is_fetched_once(arena, command, game):
    command("fetch", game)
    count = len(pages(arena))
    code, out, _ = command("fetch", game)
    assert code == 0
    assert "0 games fetched" in out
    assert "1 were already there" in out
    assert len(pages(arena)) == count == 3


def test_a_download_goes_on_where_the_site_went_down(arena, command, game, tmp_path):
    arena.disturb += [
        None,
        None,
        None,
        *[fails_with(503)] * 4,
    ]  # The game, its kind, the first page.
    code, _, err = command("fetch", game)
    assert code == 2
    assert "repeat the command later" in err
    (part,) = (tmp_path / "outputs" / "arena-games").iterdir()
    assert len(part.read_text().splitlines()) == 100
    arena.asked.clear()
    code, out, _ = command("fetch", game)
    assert code == 0
    assert "follow the rules" in out
    assert len(pages(arena)) == 2
    assert not part.exists()


def test_a_part_that_is_a_link_harms_no_file_of_yours(arena, command, game, tmp_path):
    thesis = tmp_path / "thesis.txt"
    folder = tmp_path / "outputs" / "arena-games"
    thesis.write_text("years of work")
    folder.mkdir(parents=True)
    (folder / f"{game}.frames.part").symlink_to(thesis)
    code, _, err = command("fetch", game)
    assert code == 2
    assert "it is a link" in err
    assert thesis.read_text() == "years of work"


def test_a_part_that_a_crash_cut_short_is_mended(arena, command, game, frames, tmp_path):
    folder = tmp_path / "outputs" / "arena-games"
    folder.mkdir(parents=True)
    whole = "".join(json.dumps(frame) + "\n" for frame in frames[:130])
    (folder / f"{game}.frames.part").write_text(whole + json.dumps(frames[130])[:50])
    code, out, _ = command("fetch", game)
    assert code == 0
    assert f"all {len(frames) - 1} turns" in out
    assert len(pages(arena)) == 2


@pytest.mark.parametrize(
    "trouble", [cuts_off, hangs_up, fails_with(429, Retry_After="3"), fails_with(502)]
)
def test_a_page_that_fails_once_is_asked_for_again(arena, command, game, frames, trouble):
    arena.disturb += [None, None, None, trouble]
    code, out, _ = command("fetch", game)
    assert code == 0
    assert f"all {len(frames) - 1} turns" in out


def test_pages_that_miss_a_turn_are_refused(arena, command, game):
    del arena.games[game]["frames"][150]
    code, _, err = command("fetch", game)
    assert code == 1
    assert "frames are missing" in err


def test_a_game_that_is_still_played_waits(arena, command, game, tmp_path):
    arena.games[game]["status"] = "running"
    code, _, err = command("fetch", game)
    assert code == 1
    assert "is running; fetch it when it is over" in err
    assert not list(tmp_path.glob("outputs/arena-games/*"))


def test_a_failed_game_is_never_taken_for_a_finished_one(arena, command, game, tmp_path):
    """The board viewer calls it complete."""
    arena.games[game]["status"] = "failed"
    code, _, err = command("fetch", game)
    assert code == 1
    assert "runner died" in err
    assert not list(tmp_path.glob("outputs/arena-games/*"))


def test_a_draw_is_a_draw_though_arena_names_a_winner(arena, command, tmp_path):
    turns = next(
        turns for turns in played_games(300, seed=1, side=7, num_snakes=2) if not ended(turns)
    )
    boards = [turn.board for turn in turns]
    game = arena.add_game(frames_of(boards), [arena.add_snake("Hisser")], board="7x7")
    assert command("fetch", game)[0] == 0
    assert (
        Recording.read(tmp_path / "outputs" / "arena-games" / f"{game}.jsonl").result["isDraw"]
        is True
    )


def test_the_ladders_games_are_known_from_the_servers_archive(arena, command, tmp_path):
    """Arena's list leaves them out; the archive's other games, such as the doctor's and the command
    line's, aren't Arena's, nor is what only says so.
    """
    mine = arena.add_snake("s0")
    rival = arena.add_snake("s1", owner="bob")
    turns = next(
        turns for turns in played_games(20, seed=2, side=7, num_snakes=2) if ended(turns) == {"s1"}
    )
    store = GameStore(f"sqlite:///{tmp_path}/outputs/games.db")
    server = create_app({"flood": agents.make("flood")}, store=store).test_client()
    ladders = arena.add_game(
        [], [mine, rival], is_ladders=True, game_id="3b241101-e2bb-4255-8caf-4136c566a962"
    )
    for game in (
        arena_game(ladders),
        {**arena_game("local"), "ruleset": {"name": "standard", "version": "cli"}},
        arena_game("somebody's own"),
    ):
        requests = [
            request for request, _ in move_requests(turns, game) if request["you"]["id"] == "s0"
        ]
        server.post("/start", json=requests[0])
        for request in requests:
            server.post("/move", json=request)
        server.post("/end", json=end_request(turns, game, "s0").request)
    assert store.flush(20)
    store.close()
    arena.games[ladders]["frames"] = frames_of([turn.board for turn in turns])
    arena.games[ladders]["board"] = "7x7"
    (told,) = json.loads(command("games", "--lost", "--json")[1])
    assert (told["id"], told["result"], told["source"], told["mine"]) == (
        ladders,
        "lost",
        "archive",
        ["s0"],
    )
    code, out, _ = command("fetch", "--all", "--lost")
    assert code == 0
    assert f"{ladders}  all {len(turns) - 1} turns follow the rules (known from: archive)" in out


def ended(turns):
    return {snake["id"] for snake in turns[-1].board["snakes"] if is_alive(snake)}


def test_a_game_that_never_ends_is_left(arena, command, game, frames):
    arena.games[game]["frames"] = [{**frames[0], "Turn": turn} for turn in range(6000)]
    code, _, err = command("fetch", game)
    assert code == 1
    assert "more than 5000 turns" in err
    assert len(pages(arena)) == 51


@pytest.mark.parametrize(
    "damage", [{"Snakes": 7}, {"Snakes": [{"ID": "x"}]}, {"Food": [{"X": 10**9, "Y": 0}]}]
)
def test_frames_that_no_game_has_do_not_hold_up_the_others(arena, command, game, frames, damage):
    bad = [*frames[:30], {**frames[30], **damage}]
    other = arena.add_game(bad, [], board="19x19")
    code, out, err = command("fetch", other, game)
    assert code == 1
    assert f"{other}  not fetched: " in err
    assert f"{game}  all " in out


@pytest.mark.parametrize(
    ("game_id", "said"),
    [
        (MISSING, "404"),
        ("../../etc/passwd", "is not a game's id"),
        ("x" * 36, "is not a game's id"),
    ],
)
def test_ids_of_nothing(arena, command, game_id, said):
    code, _, err = command("fetch", game_id)
    assert code in (1, 2)
    assert said in err


def test_a_deviation_is_named_with_its_turn(arena, command, game):
    changed = copy.deepcopy(arena.games[game]["frames"])
    living = next(snake for snake in changed[57]["Snakes"] if snake["Death"] is None)
    living["Health"] -= 1
    arena.games[game]["frames"] = changed
    code, out, _ = command("fetch", game, "--json")
    (told,) = json.loads(out)["fetched"]
    assert code == 0
    assert told["check"].startswith(
        f"deviates from our rules, first on turn 57: {living['Name']} has health"
    )
    assert len(told["deviations"]) == 2


def test_snail_mode_is_checked_with_its_trails(arena, command):
    boards = boards_of(official_games("standard", "snail_mode")[0])
    game = arena.add_game(frames_of(boards), [], board="7x7", game_type="snail")
    assert f"all {len(boards) - 1} turns follow the rules" in command("fetch", game)[1]


@pytest.mark.parametrize(
    ("game_type", "official"), [("royale", 218), ("constrictor", 448), ("solo", 325)]
)
def test_each_kind_of_game_is_checked_by_its_own_rules(arena, command, game_type, official):
    """These official games fit Arena's settings and would break others' rules.

    Hazards of damage 14 and 15 are entered, a wall moves in on turn 25, and a snake plays on alone.
    """
    (boards,) = (boards_of(game) for game in games() if game["id"] == official)
    side = boards[0]["width"]
    game = arena.add_game(frames_of(boards), [], board=f"{side}x{side}", game_type=game_type)
    assert f"all {len(boards) - 1} turns follow the rules" in command("fetch", game)[1]


def test_royales_walls_are_compared_with_the_games_id(arena, command):
    boards = boards_of(official_games("royale", "royale")[0])
    game = arena.add_game(frames_of(boards), [], board="11x11", game_type="royale")
    assert "walls don't follow from its id" in command("fetch", game)[1]


def test_all_fetches_what_is_over_and_not_there(arena, command, game, frames):
    mine = next(iter(arena.snakes))
    arena.add_game(frames, [mine], board="19x19", status="running")
    code, out, _ = command("fetch", "--all", "--json")
    assert code == 0
    assert [one["game"] for one in json.loads(out)["fetched"]] == [game]


@pytest.mark.parametrize("words", [[], ["--all", MISSING]])
def test_fetch_wants_to_know_which(arena, command, words):
    code, _, err = command("fetch", *words)
    assert code == 2
    assert "name the games by their ids" in err


def test_games_lists_results_and_filters_them(arena, command):
    mine = arena.add_snake("Hisser")
    rival = arena.add_snake("Rival", owner="bob")
    for day, fields in enumerate(
        [
            {"winner": mine},
            {"winner": rival},
            {"winner": "Rival"},
            {"winner": {"name": "Rival"}},
            {"status": "failed"},
            {"status": "running"},
        ],
        1,
    ):
        arena.add_game([], [mine, rival], created_at=f"2026-11-{day:02}T12:00:00Z", **fields)

    def listed(*words):
        games = json.loads(command("games", *words, "--json")[1])
        return [(game["created_at"][8:10], game["result"]) for game in games]

    lost = [("04", "lost"), ("03", "lost"), ("02", "lost")]
    assert listed() == [("06", ""), ("05", ""), *lost, ("01", "won")]
    assert listed("--lost", "--since", "2026-11-03") == lost[:2]
    assert listed("--since", "2026-11-05T11:00:00") == [("06", ""), ("05", "")]
    assert "Hisser, Rival" in command("games")[1]


@pytest.mark.parametrize("when", ["yesterday", "3w", "-1d", "2026-13-01"])
def test_a_time_that_is_none(arena, command, when):
    code, _, err = command("games", f"--since={when}")
    assert code == 2
    assert "is not a time" in err


def test_no_games_are_no_error(arena, command):
    assert command("games")[:2] == (0, "no such games\n")
    arena.add_snake("Hisser")
    assert command("games", "--snake", "Hiser")[0] == 2


def test_times_may_have_nanoseconds_and_zones(arena, command):
    mine = arena.add_snake("Hisser")
    arena.add_game([], [mine], created_at="2026-11-20T20:00:00.123456789Z")
    arena.add_game([], [mine], created_at="2026-11-20T23:30:00+04:00")
    assert len(json.loads(command("games", "--since", "2026-11-20T19:45", "--json")[1])) == 1
    assert len(json.loads(command("games", "--since", "2026-11-20T19:15", "--json")[1])) == 2
