"""What a server says: when, how grave, who, of which game; and nothing that a stranger wrote is
obeyed by a terminal.
"""

from __future__ import annotations

import json
import logging
import re
import urllib.request

import pytest
from flask import Flask, g

from envs.common.strangers.printable import printable
from serve.background import Background
from serve.monitoring import logs
from tests.serve.archive.played import play

HOSTILE = "abc\x1b[2J\n2026-01-01T00:00:00.000Z ERROR fake: \u202eevil\x9b5m"


def record(message="answering for %s", *words, **more):
    found = logging.getLogger("serve.timing.deadline").makeRecord(
        "serve.timing.deadline",
        logging.WARNING,
        __file__,
        1,
        message,
        words or ("flood",),
        more.pop("exc_info", None),
        extra=more,
    )
    found.created = 1_767_225_600.25
    found.msecs = 250.0
    return found


def failure():
    try:
        raise ValueError(HOSTILE)
    except ValueError as error:
        return type(error), error, error.__traceback__


@pytest.mark.parametrize(
    "letter",
    ["\x00", "\x07", "\x1b", "\x7f", "\x9b", "\u202e", "\u200f", "\u2028", "\r", "\n", "\ud800"],
)
def test_what_a_terminal_obeys_is_written_out(letter):
    assert printable(f"a{letter}b") == "a" + letter.encode("unicode_escape").decode() + "b"
    assert printable(f"a{letter}b", keep="\n") == (
        printable(f"a{letter}b") if letter != "\n" else "a\nb"
    )


def test_what_people_write_stays():
    assert printable("Schlange – 蛇 🐍 'x'") == "Schlange – 蛇 🐍 'x'"


def test_a_line_has_time_level_and_game():
    said = logs._Line().format(record(game="game-1"))
    assert (
        said
        == "2026-01-01T00:00:00.250Z WARNING serve.timing.deadline game=game-1 answering for flood"
    )
    assert (
        logs._Line().format(record())
        == "2026-01-01T00:00:00.250Z WARNING serve.timing.deadline answering for flood"
    )


def test_json_has_the_same():
    told = json.loads(logs._Json().format(record(game="game-1")))
    expected = {
        "time": "2026-01-01T00:00:00.250Z",
        "level": "warning",
        "logger": "serve.timing.deadline",
    }
    assert told == {**expected, "game": "game-1", "message": "answering for flood"}


def test_a_strangers_text_forges_no_line():
    said = logs._Line().format(record("%s did this", HOSTILE, game=HOSTILE, exc_info=failure()))
    first, *trace = said.split("\n")
    assert all(line.startswith("  ") for line in trace)
    assert all(letter.isprintable() for line in (first, *trace) for letter in line)
    assert (
        len(
            logs._Json()
            .format(record("%s", HOSTILE, game=HOSTILE, exc_info=failure()))
            .splitlines()
        )
        == 1
    )


def test_one_line_of_code_can_not_fill_the_log():
    now = [0.0]
    seen = []
    seldom = logs.Seldom(burst=3, clock=lambda: now[0])
    log = logging.Logger("another library's")
    log.addFilter(seldom)
    log.addFilter(lambda record: seen.append(record.getMessage()))

    def say(times):
        for number in range(times):
            log.warning("connection %d failed", number)

    say(1000)
    assert len(seen) == 3
    log.warning("of another line")
    assert seen.pop() == "of another line"
    for minute in range(1, 11):
        now[0] = 60.0 * minute
        say(1000)
    assert len(seen) == 3 + 10
    now[0] = 1000.0
    say(1000)
    assert len(seen) == 3 + 10 + 3


def test_the_request_at_hand_tells_the_game():
    with Flask("x").test_request_context():
        g.game = "game-2"
        assert "game=game-2 " in logs._Line().format(record())


@pytest.mark.parametrize("as_json", [False, True])
def test_a_server_logs_which_game_its_agent_failed_in(tmp_path, as_json):
    rule = tmp_path / "bad.py"
    rule.write_text("def bad(me):\n    raise ValueError('a bug of mine')\n")
    request = play(seed=1).requests[0][0]
    # A busy machine may need longer than the half second of most games to come to the rule, and say
    # that instead.
    request["game"] |= {"id": "game\x1b[31m-1", "timeout": 10_000}
    options = ["--no-games", "--max-think-ms", "10000", *(["--log-json"] if as_json else [])]
    with Background(str(rule), *options) as server:
        body = json.dumps(request).encode()
        assert (
            urllib.request.urlopen(urllib.request.Request(f"{server.url}/move", body)).status == 200
        )
        said = server.log.read_text()
    assert "\x1b" not in said
    if as_json:
        told = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
        (failed,) = (line for line in told if line["level"] == "error")
        assert failed["game"] == "game\x1b[31m-1"
        assert "a bug of mine" in failed["trace"]
    else:
        line = next(line for line in said.splitlines() if " ERROR " in line)
        assert re.match(
            r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"
            r" ERROR serve\.timing\.deadline game=game\\x1b\[31m-1 ",
            line,
        )
