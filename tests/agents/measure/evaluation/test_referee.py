"""The referee against snakes that fail in every way the official semantics speak of."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

import numpy as np
import pytest

import agents
from agents.agent import Decision
from agents.measure.evaluation.referee import Referee
from agents.measure.evaluation.remote_snake import RemoteSnake, SnakeUnreachableError
from envs.battlesnake.games import play_turn, start_games
from envs.battlesnake.recording import Recording
from envs.battlesnake.render.scene import snake_colors
from envs.battlesnake.render.svg import animated_svg
from envs.battlesnake.state import ALIVE, LEFT, UP, State
from envs.battlesnake.webhook import NO_LOOK
from envs.common.errors import ConfigError
from serve.arena import create_app
from serve.server import running
from tests.agents.measure.evaluation.snakes import AlwaysUp
from tests.http_server import QuietHandler, serving
from tests.serve.snakes import INFO, as_json, good_snake, served
from tests.waiting import until


@contextmanager
def scripted_snake(answers, *, hangs_up=False, says_so=False) -> Iterator[tuple[str, list[str]]]:
    """A server whose n-th answer to /move is `answers[n]` (the last one from then on).

    An answer is (status, body), or seconds to sleep, or a function that writes the body with the
    `send` it gets. With `hangs_up` every connection is closed after an answer that promised to keep
    it, or with `says_so` one that told of it."""
    seen: list[str] = []

    class Handler(QuietHandler):
        def do_GET(self):
            self._send(200, b'{"apiversion":"1"}')

        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            seen.append(self.path)
            if not self.path.endswith("/move"):
                return self._send(200, b"{}")
            answer = answers[min(sum(p.endswith("/move") for p in seen) - 1, len(answers) - 1)]
            if isinstance(answer, float):
                time.sleep(answer)
                answer = (200, b'{"move":"down"}')
            if callable(answer):
                self._head(200, 100 + len(GOOD[1]))
                return answer(self.wfile.write)
            return self._send(*answer)

        def _send(self, status, body):
            self._head(status, len(body))
            self.wfile.write(body)
            self.close_connection |= hangs_up

        def _head(self, status, length):
            self.send_response(status)
            self.send_header("Content-Length", str(length))
            if says_so:
                self.send_header("Connection", "close")
            self.end_headers()

    with serving(Handler) as url:
        yield url, seen


def moves_of(answers, turns, *, timeout_ms=2000, **how):
    """The moves a referee plays for a scripted snake in a solo game from (12, 1), and the failures
    it noted.
    """
    with scripted_snake(answers, **how) as (url, _):
        frames = []
        for frame in Referee(
            [url], width=25, height=25, seed=5, timeout_ms=timeout_ms, max_turns=turns
        ).play():
            frames.append((frame.moves[0], frame.failures.get(0, "")))
        return frames[1:]


GOOD = (200, b'{"move":"up"}')
LEFTWARDS = (200, b'{"move":"left"}')


@pytest.mark.parametrize(
    "bad",
    [
        (500, b'{"move":"right"}'),
        (200, b"not json"),
        (200, b'{"move":"LEFT"}'),
        (200, b"{}"),
        (200, b""),
        (200, b"[1]"),
        (200, b"[" * 50_000),
    ],
    ids=["500", "no JSON", "uppercase", "no move", "empty", "list", "deep"],
)
def test_a_failed_answer_repeats_the_last_good_one(bad):
    played = moves_of([LEFTWARDS, bad, GOOD], 3)
    assert [move for move, _ in played] == [LEFT, LEFT, UP]
    assert [bool(failure) for _, failure in played] == [False, True, False]


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        (
            (200, b'{"move":"UP"}'),
            "the move is 'UP', but moves are in lower case: up, down, left, right",
        ),
        (
            (200, b'{"move":"north"}'),
            "the move is 'north', not one of up, down, left, right",
        ),
        (
            (200, b'{"move":["up"]}'),
            "the move is ['up'], not one of up, down, left, right",
        ),
        ((200, b'{"direction":"up"}'), 'the answer has no "move"'),
        ((200, b"[1]"), "the answer b'[1]' is not a JSON object"),
        ((200, b"<html>"), "the answer b'<html>' is not a JSON object"),
        (
            (200, b'{"move":"' + b"x" * 9000 + b'"}'),
            f"the move is '{'x' * 60}', not one of up, down, left, right",
        ),
        ((503, b""), "it answers with HTTP status 503"),
    ],
)
def test_what_was_wrong_with_an_answer_is_a_sentence(bad, told):
    with scripted_snake([bad]) as (url, _):
        referee = Referee([f"{url}/", agents.make("flood")], seed=5, timeout_ms=2000, max_turns=2)
        for _ in referee.play():
            pass
    assert referee.failures == {0: [told, told]}


def test_how_snakes_want_to_look_is_told_to_all_and_recorded(tmp_path):
    loud = {"color": "#ff8800", "head": "evil", "tail": "bolt"}
    evil = {"color": "url(x)", "head": "\x1b[2J", "tail": 7}
    heard = []

    def listening(path, body):
        heard.append(body)
        return as_json(INFO | loud) if path == "/" else good_snake(path, body)

    def hostile(path, body):
        return as_json(INFO | evil) if path == "/" else good_snake(path, body)

    with served(listening) as url, served(hostile) as other:
        referee = Referee(
            [url, other, agents.make("flood")],
            max_turns=3,
            timeout_ms=2000,
            recording=tmp_path / "game.jsonl",
        )
        for _ in referee.play():
            pass
    assert referee.customizations == [loud, NO_LOOK, NO_LOOK]
    move = next(body for body in heard if body)
    assert [snake["customizations"] for snake in move["board"]["snakes"]] == [
        loud,
        NO_LOOK,
        NO_LOOK,
    ]
    drawn = Recording.read(tmp_path / "game.jsonl").boards()[-1]
    assert snake_colors(drawn)[0] == (255, 136, 0)
    assert "head evil, tail bolt" in animated_svg([drawn])


def test_names_are_given_or_the_seats_own():
    flood = agents.make("flood")
    assert Referee([flood, flood, flood], names=["me", "", ""]).names == [
        "me",
        "flood 1",
        "flood 2",
    ]
    assert Referee([flood, flood], names=["me", "me"]).names == ["me 1", "me 2"]
    assert Referee([flood, flood, flood], names=["a", "a 2", "a"]).names == ["a 1", "a 2", "a 3"]
    assert Referee([flood] * 5, names=["a", "a", "a 1", "a 1", "a 2"]).names == [
        "a 1",
        "a 3",
        "a 1 1",
        "a 1 2",
        "a 2",
    ]


def test_names_and_an_opening_are_for_all_seats():
    flood = agents.make("flood")
    with pytest.raises(ConfigError, match="1 names for 2 seats"):
        Referee([flood, flood], names=["me"])
    for moves in (np.zeros((2, 1), np.int8), np.zeros((2, 3), np.int8), [0, 1]):
        with pytest.raises(ConfigError, match=r"the opening has shape .*; it must be \(turns, 2\)"):
            Referee([flood, flood], opening=moves)


class Told(AlwaysUp):
    """An agent of a user's own, which tells its value and shares as its library gives them."""

    def __init__(self, value, share):
        self.value = value
        self.share = share

    def act(self, state, you, deadline=None):
        return Decision(UP, np.full(4, self.share, np.float32), self.value)


def test_what_agents_tell_of_their_decisions_is_recorded_as_json(tmp_path):
    path = tmp_path / "game.jsonl"
    seats = [Told(np.float32(0.5), 0.25), Told(float("nan"), np.nan)]
    referee = Referee(
        seats, recording=path, seed=1, width=np.int64(7), height=7, timeout_ms=np.int64(500)
    )
    for _ in referee.play():
        pass
    assert list(Recording.read(path).decisions(0).values()) == [
        {"move": "up", "probabilities": [0.25] * 4, "value": 0.5},
        {"move": "up"},
    ]


def test_the_recording_names_the_winner_that_survived(tmp_path):
    path = tmp_path / "game.jsonl"
    referee = Referee(
        [AlwaysUp(), AlwaysUp(), agents.make("flood")],
        names=["a", "a 2", "a"],
        recording=path,
        seed=1,
    )
    for _ in referee.play():
        pass
    assert [cause == ALIVE for cause in referee.result.causes] == [False, False, True]
    assert Recording.read(path).result["winnerId"] == referee.ids[2]
    assert referee.result.winner_slot == 2
    assert Recording.read(path).result["winnerName"] == referee.result.winner == "a 3"


def test_before_any_good_answer_a_failure_is_up():
    assert moves_of([(404, b"")], 1)[0][0] == UP


def test_a_late_answer_is_a_failure():
    (first, _), (second, failure) = moves_of([LEFTWARDS, 2.0], 2, timeout_ms=400)
    assert (first, second) == (LEFT, LEFT)
    assert failure == "no answer within 400 ms"


@pytest.mark.parametrize("says_so", [False, True])
def test_an_answer_that_trickles_in_is_late(says_so):
    """Each byte comes in time; the whole, a good answer after many blanks, doesn't."""

    def trickle(send):
        for _ in range(100):
            send(b" ")
            time.sleep(0.03)
        send(GOOD[1])

    played = moves_of([LEFTWARDS, trickle], 2, timeout_ms=400, hangs_up=says_so, says_so=says_so)
    assert played[1] == (LEFT, "no answer within 400 ms")


def test_a_server_that_hangs_up_between_requests_is_called_again():
    with scripted_snake([LEFTWARDS], hangs_up=True) as (url, seen):
        frames = list(
            Referee([url], width=25, height=25, seed=5, timeout_ms=2000, max_turns=4).play()
        )
    assert [frame.failures for frame in frames] == [{}] * 5
    assert seen == ["/start", *["/move"] * 4, "/end"]


def answer_once(server, body):
    """Answer one request, and close the connection, as HTTP/1.0 does."""
    connection, _ = server.accept()
    with connection:
        connection.settimeout(30)
        connection.recv(65536)
        connection.sendall(b"HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))


def test_a_server_that_closes_connections_is_late_if_it_accepts_none_in_time():
    """Its queue is full, so opening a connection takes longer than the timeout."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as server, ExitStack() as waiting:
        server.settimeout(30)
        snake = RemoteSnake("http://{}:{}".format(*server.getsockname()), 400)
        with ThreadPoolExecutor(1) as pool:
            info = pool.submit(answer_once, server, b'{"apiversion":"1"}')
            snake.check()
            info.result()
            for _ in range(3):
                other = waiting.enter_context(socket.socket())
                other.setblocking(False)
                other.connect_ex(server.getsockname())
            asked = pool.submit(snake.move, {})
            # Without its own timeout, the connection would wait for minutes.
            until(asked.done)
            move, _, failure = asked.result()
    assert (move, failure) == (UP, "no answer within 400 ms")


def test_an_endless_answer_is_cut_off():
    assert "larger than" in moves_of([(200, b" " * 10_000_000)], 1)[0][1]


def test_a_refused_connection_is_said_before_the_game():
    with pytest.raises(SnakeUnreachableError, match="Is it running"):
        next(Referee(["http://127.0.0.1:9"]).play())
    with pytest.raises(ConfigError, match="not the URL"):
        Referee(["ftp://x"])


def test_start_moves_and_end_are_told_to_everyone():
    with scripted_snake([(200, b'{"move":"right"}')]) as (url, seen):
        referee = Referee([url, agents.make("flood")], seed=2)
        frames = sum(1 for _ in referee.play())
    assert seen[0] == "/start"
    assert seen[-1] == "/end"
    assert 1 <= seen.count("/move") <= frames
    assert referee.result.winner == "flood"


def test_the_winner_is_asked_once_more_as_by_the_official_program():
    """The left snake circles, and the right one goes up into the wall. (The official program asks
    survivors for a move that isn't played, and counts one turn on before the end.)
    """
    told: dict[str, list[tuple[str, int]]] = {"circles": [], "climbs": []}
    circle = ("up", "right", "down", "left")

    def respond(path, request):
        name, _, event = path.strip("/").partition("/")
        if not event:
            return as_json(INFO)
        turn = request["turn"]
        told[name].append((event, turn))
        return as_json({"move": circle[turn % 4] if name == "circles" else "up"})

    with served(respond) as url:
        referee = Referee([f"{url}/circles", f"{url}/climbs"], seed=3, timeout_ms=2000)
        for _ in referee.play():
            pass
    last = referee.result.turns
    assert referee.result.winner_slot == 0
    moves = [("move", turn) for turn in range(last)]
    assert told["circles"] == [("start", 0), *moves, ("move", last), ("end", last + 1)]
    assert told["climbs"] == [("start", 0), *moves, ("end", last + 1)]


def test_a_served_agent_plays_over_http_as_it_plays_here(tmp_path):
    """The same seeds and agents, through HTTP and directly on the engine: the same game, and the
    same recording.
    """
    flood = agents.make("flood")
    greedy = agents.make("greedy")
    state = State(1, num_snakes=4)
    state.seed(11)
    running_games = start_games(state)
    boards = [state.copy()]
    while running_games[0]:
        slots = np.flatnonzero(state.arrays.cause[0] == ALIVE)
        moves = np.zeros((1, 4), np.int8)
        for slot in slots:
            moves[0, slot] = (flood if slot == 0 else greedy).act(state, slot).move
        play_turn(state, moves, running_games)
        boards.append(state.copy())

    with running(create_app(flood)) as url:
        referee = Referee(
            [url, greedy, greedy, greedy],
            seed=11,
            timeout_ms=5000,
            recording=tmp_path / "game.jsonl",
        )
        compared = 0
        for expected, frame in zip(boards, referee.play(), strict=True):
            for name in ("health", "length", "cause", "food", "turn"):
                np.testing.assert_array_equal(
                    getattr(frame.state.arrays, name), getattr(expected.arrays, name), err_msg=name
                )
            assert not frame.failures
            compared += 1
    assert compared > 10
    assert referee.result.turns == compared - 1
    recording = Recording.read(tmp_path / "game.jsonl")
    assert len(recording.boards()) == compared
    assert recording.result["winnerName"] == (referee.result.winner or "")
