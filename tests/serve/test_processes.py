"""`procsnake serve` as it runs on the internet: worker processes, one of which is killed in the
middle of a game.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import sqlite3
import subprocess
import sys
import tempfile
import urllib.request
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

from agents.measure.evaluation.referee import Referee
from envs.battlesnake.recording import Recording
from envs.common.errors import ConfigError
from serve import processes
from serve.archive.reader import GameArchive
from serve.archive.store import GameStore
from serve.background import Background
from serve.doctor import CHECK_PREFIX
from serve.monitoring.metrics import SHARED_FOLDER
from serve.processes import can_fork
from serve.server import begin_to_listen, bind
from tests.command_line import run
from tests.serve.archive.played import play, tell, tell_all
from tests.waiting import until

pytestmark = pytest.mark.skipif(not can_fork(), reason="needs gunicorn and fork")

# The command line of an installation that has neither torch nor ray.
SLIM_COMMAND = """
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch", "ray", "tensorflow", "onnx", "safetensors"):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Refuse())
import procsnake
sys.exit(procsnake.main(sys.argv[1:]))
"""


@contextmanager
def serving(*arguments):
    """(URL, process) of `procsnake serve` in a process of its own, which is stopped at the end."""
    command = [sys.executable, "-c", SLIM_COMMAND, "serve", "--port", "0", *arguments]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        said = iter(server.stdout.readline, "")
        url = next((found[0] for line in said if (found := re.search(r"http://\S+", line))), None)
        assert url, server.stderr.read()
        assert answers(url)
        yield url, server
    finally:
        server.terminate()
        server.communicate(timeout=60)


def answers(url):
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=20) as answer:
            return json.load(answer) == {"status": "ok"}
    except OSError:
        return False


def turns_kept(database):
    """How many moves the games in a database have."""
    with closing(GameArchive(database)) as archive:
        games = list(archive.every_game())
        return sum(
            bool(turn["move"])
            for game in games
            for turn in archive.turns(game["id"], game["snake"])
        )


def workers_of(server):
    return [
        int(pid)
        for pid in Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()
    ]


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux's /proc")
def test_a_killed_worker_costs_no_move_and_no_game(tmp_path):
    database = f"sqlite:///{tmp_path}/games.db"
    with serving("flood", "other=greedy", "--workers", "2", "--database", database) as (
        url,
        server,
    ):
        until(lambda: len(workers_of(server)) == 2)
        referee = Referee([url, f"{url}/snakes/other"], width=7, height=7, seed=3, timeout_ms=5000)
        frames = 0
        answered = 0
        killed = []
        for frame in referee.play():
            assert frame.failures == {}
            frames += 1
            answered += sum(move is not None for move in frame.moves)
            if frames in (4, 8):
                until(lambda answered=answered: turns_kept(database) == answered)
                victim = workers_of(server)[0]
                os.kill(victim, signal.SIGKILL)
                killed.append(victim)
                until(lambda victim=victim: victim not in workers_of(server))
        assert len(killed) == 2
        until(lambda: answers(url))
        with urllib.request.urlopen(f"{url}/metrics", timeout=20) as answer:
            counted = answer.read().decode()
    archive = GameArchive(database)
    first, second = sorted(archive.every_game(live=False), key=lambda game: game["snake"])
    assert (first["snake"], second["snake"]) == ("flood", "other")
    assert {first["result"], second["result"]} == {"won", "lost"} or first["result"] == second[
        "result"
    ] == "draw"
    # Counters outlive those who counted.
    asked = sum(
        float(line.split()[-1])
        for line in counted.splitlines()
        if line.startswith("procsnake_moves_total{")
    )
    kept = [
        [turn for turn in archive.turns(game["id"], game["snake"]) if turn["move"]]
        for game in (first, second)
    ]
    assert asked == sum(map(len, kept)) > frames
    path, *_ = archive.export(tmp_path / "out", snake="flood")
    archive.close()
    assert Recording.read(path).result["isDraw"] == (first["result"] == "draw")


def metrics_folders(server):
    """The folders in which a server's workers count together."""
    places = {tempfile.gettempdir(), "/dev/shm"}
    return [
        folder
        for place in places
        for folder in Path(place).glob(f"procsnake-metrics-{server.pid}-*")
    ]


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux's /proc")
def test_the_metrics_folder_of_several_workers_is_there_until_the_server_stops():
    with serving("random", "--no-games", "--workers", "2") as (_, server):
        (folder,) = metrics_folders(server)
        until(lambda: len(workers_of(server)) == 2)
        worker = workers_of(server)[0]
        os.kill(worker, signal.SIGTERM)
        until(lambda: worker not in workers_of(server) and len(workers_of(server)) == 2)
        assert folder.is_dir()
    assert not folder.exists()


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux's /proc")
def test_one_worker_counts_in_its_own_memory_and_so_does_the_next():
    """On a full disk, a page of a shared file can't be touched: the worker would die of it."""
    with serving("random", "--no-games") as (url, server):
        assert metrics_folders(server) == []
        until(lambda: len(workers_of(server)) == 1)
        (worker,) = workers_of(server)
        os.kill(worker, signal.SIGTERM)
        until(lambda: workers_of(server) not in ([], [worker]))
        until(lambda: answers(url))
        with urllib.request.urlopen(f"{url}/metrics", timeout=20) as answer:
            counted = answer.read().decode()
        assert 'procsnake_requests_total{endpoint="health",status="200"}' in counted
        assert "process_resident_memory_bytes" in counted


@pytest.mark.parametrize("may_write", [True, False])
def test_several_workers_count_in_memory_where_they_may(tmp_path, monkeypatch, may_write):
    memory = tmp_path / "memory"
    disk = tmp_path / "disk"
    memory.mkdir()
    disk.mkdir()
    monkeypatch.delenv(SHARED_FOLDER, raising=False)
    monkeypatch.setattr(processes, "_MEMORY", str(memory))
    monkeypatch.setattr(tempfile, "tempdir", str(disk))
    monkeypatch.setattr(os, "access", lambda path, mode: may_write)
    with processes._shared_metrics():
        assert Path(os.environ[SHARED_FOLDER]).parent == (memory if may_write else disk)
    assert SHARED_FOLDER not in os.environ
    assert list(tmp_path.glob("*/*")) == []


def test_a_server_that_cannot_start_leaves_no_metrics_folder(tmp_path, monkeypatch):
    made = []

    def fails(_):
        made.extend(tmp_path.iterdir())
        raise SystemExit(3)

    monkeypatch.delenv(SHARED_FOLDER, raising=False)
    monkeypatch.setattr(processes, "_MEMORY", str(tmp_path))
    monkeypatch.setattr("gunicorn.app.base.BaseApplication.run", fails)
    with pytest.raises(SystemExit):
        processes.run(lambda: None, SimpleNamespace(detach=lambda: 0), workers=2)
    assert len(made) == 1
    assert list(tmp_path.iterdir()) == []


def test_of_two_servers_that_begin_on_one_port_the_slower_one_says_so_in_a_line(tmp_path):
    (tmp_path / "slow.py").write_text(WAITS_FOR_A_LINE)
    command = [sys.executable, "-m", "procsnake", "serve", "slow.py", "--no-games", "--port"]
    with bind("127.0.0.1", 0) as faster:
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        slower = subprocess.Popen(
            [*command, str(faster.getsockname()[1])], cwd=tmp_path, text=True, **pipes
        )
        # Some systems tell it of the bound port.
        until(lambda: (tmp_path / "bound").exists() or slower.poll() is not None, seconds=120)
        begin_to_listen(faster)
        out, told = slower.communicate("\n", timeout=120)
    assert (slower.returncode, "serving" in out) == (2, False)
    assert "another program listens there. Try another port" in told
    assert "Traceback" not in told


# Rules that are read once the port is bound.
WAITS_FOR_A_LINE = """
import sys
from pathlib import Path

Path("bound").touch()
sys.stdin.readline()

def rule(me):
    return [0, 0, 0, 1]
"""


def test_ctrl_c_while_the_agents_are_made_is_told_in_a_line(tmp_path):
    (tmp_path / "slow.py").write_text(WAITS_FOR_A_LINE)
    command = [sys.executable, "-m", "procsnake", "serve", "slow.py", "--no-games", "--port", "0"]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    server = subprocess.Popen(command, cwd=tmp_path, start_new_session=True, text=True, **pipes)
    until((tmp_path / "bound").exists, seconds=120)
    # As a terminal does, to all processes of the program.
    os.killpg(server.pid, signal.SIGINT)
    out, told = server.communicate(timeout=120)
    assert (server.returncode, out) == (130, "warming up …\n")
    assert told.endswith("\nprocsnake: stopped; nothing is left half-written\n")
    assert "Traceback" not in told


def test_what_a_process_that_only_checks_finds_ends_the_server():
    command = [
        sys.executable,
        *shlex.split("-m procsnake serve flod --no-games --port 0 --workers 2"),
    ]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    _, told = server.communicate(timeout=300)
    assert (server.returncode, "unknown agent 'flod'" in told) == (2, True)


def test_without_games_it_does_not_matter_whose_the_database_is(monkeypatch):
    monkeypatch.setenv("DATABASE_URL", "mysql://somebody:else@db.example.org/app")
    with serving("random", "--no-games") as (url, _):
        assert answers(url)


def test_a_metrics_folder_of_the_users_own_stays(tmp_path, monkeypatch):
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path))
    (tmp_path / "mine").write_text("1")
    with serving("random", "--no-games"):
        assert len(list(tmp_path.iterdir())) > 1
    assert (tmp_path / "mine").read_text() == "1"


def test_a_bundle_is_served_by_an_installation_without_torch(tmp_path):
    pytest.importorskip("torch")
    from tests.agents.bundles import make_bundle

    bundle = make_bundle(tmp_path / "bundle")
    options = ("--secret", "s3cret-s3cret-s3cret", "--color", "snake=#123456", "--no-games")
    with serving(f"snake={bundle}", "greedy", *options) as (url, _):
        with urllib.request.urlopen(f"{url}/s3cret-s3cret-s3cret/", timeout=20) as answer:
            assert json.load(answer)["color"] == "#123456"
        referee = Referee(
            [f"{url}/s3cret-s3cret-s3cret/snakes/snake"],
            width=11,
            height=11,
            timeout_ms=5000,
            max_turns=5,
        )
        assert all(frame.failures == {} for frame in referee.play())


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["flood", "flood"], "two snakes are called 'flood'"),
        (["flood", "--color", "nobody=#123456"], "unknown snake in --color 'nobody'"),
        (["flood", "--secret", "short"], "secret"),
        (["flood", "--viewer-token", "short"], "token"),
        (["flood", "--database", "mysql://x"], "sqlite:///games.db"),
        (["flood", "--rate-limit", "0"], "rate limit"),
        (
            ["flood", "--database", "sqlite:///{}/file/games.db"],
            "no games can be kept in {}/file/games.db: Not a directory. Choose",
        ),
        (
            ["flood", "--database", "sqlite:///{}/file"],
            "no games can be kept in {}/file: file is not a database. Choose another",
        ),
        (
            ["flood", "--database", "sqlite:///{}"],
            "no games can be kept in {}: unable to open database file",
        ),
    ],
)
def test_what_cannot_be_is_said_in_one_line(arguments, complaint, capsys, monkeypatch, tmp_path):
    import procsnake

    (tmp_path / "file").write_text("def rule(me): return [0, 0, 0, 1]\n" * 40)
    arguments = [word.format(tmp_path) for word in arguments]
    complaint = complaint.format(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("serve.processes.can_fork", lambda: False)
    monkeypatch.setattr(
        "serve.server.Server.run", None
    )  # so that a server that isn't refused fails here
    assert procsnake.main(["serve", *arguments]) == 2
    told = capsys.readouterr().err
    assert complaint in told
    assert told.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("value", ["red", "flood=red", "flood=#12"])
def test_a_colour_that_is_none_is_refused_before_anything_is_made(capsys, value):
    code, out, told = run(capsys, "serve", "flood", "--color", value, "--no-games")
    assert (code, out, told.count("\n")) == (2, "", 1)
    assert "#RRGGBB" in told


@pytest.mark.parametrize("url", ["sqlite:///{}/new/games.db", "postgresql://127.0.0.1:9/games"])
def test_a_database_that_is_merely_away_may_come_later(tmp_path, url):
    if url.startswith("postgresql"):
        pytest.importorskip("psycopg")
    with closing(GameArchive(url.format(tmp_path))) as archive:
        archive.check()


def test_a_database_that_is_locked_may_be_free_later(tmp_path, monkeypatch):
    monkeypatch.setattr("serve.archive.database._BUSY_S", 0.1)
    with (
        closing(sqlite3.connect(tmp_path / "games.db")) as other,
        closing(GameArchive(f"sqlite:///{tmp_path}/games.db")) as own,
    ):
        other.execute("BEGIN EXCLUSIVE")
        own.check()


def test_games_are_listed_and_exported(tmp_path, capsys):
    import procsnake
    from serve.archive.store import GameStore
    from tests.serve.archive.played import crowded_by_strangers, play, tell_all

    database = f"sqlite:///{tmp_path}/games.db"
    assert procsnake.main(["games", "list", "--database", database]) == 2
    assert "there is no" in capsys.readouterr().err
    store = GameStore(database)
    for seed in range(3):
        tell_all(store, "s", play(seed=seed), 0)
    store.close()
    assert procsnake.main(["games", "list", "--database", database]) == 0
    heads, *rows = capsys.readouterr().out.splitlines()
    assert heads.split() == ["began", "snake", "result", "turns", "cause", "game"]
    assert sorted(row.split()[-1] for row in rows) == ["game-0", "game-1", "game-2"]
    assert procsnake.main(["games", "list", "--snake", "nobody", "--database", database]) == 0
    assert capsys.readouterr() == ("", f"{database} has no games of the snake 'nobody'\n")
    assert procsnake.main(["games", "export", str(tmp_path / "out"), "--database", database]) == 0
    assert "3 games exported" in capsys.readouterr().out
    assert len(list((tmp_path / "out").iterdir())) == 3
    store = GameStore(database)
    tell_all(store, "s", crowded_by_strangers(seed=9), 0)
    store.close()
    assert procsnake.main(["games", "export", str(tmp_path / "again"), "--database", database]) == 1
    told = capsys.readouterr()
    assert told.out == f"3 games exported to {tmp_path / 'again'}, 1 left out\n"
    assert told.err.startswith("left out the game game-9 of s: ")


def test_what_strangers_called_their_games_steers_no_terminal(tmp_path, capsys):
    import procsnake

    url = f"sqlite:///{tmp_path}/games.db"
    game = play(seed=1)
    for request in (*game.requests[0], game.ends[0]):
        request["game"] = {**request["game"], "id": "\x1b]0;evil\x07\x9b2J\nforged"}
    store = GameStore(url)
    tell_all(store, "s", game, 0)
    assert store.flush()
    store.close()
    assert procsnake.main(["games", "list", "--database", url]) == 0
    said = capsys.readouterr().out
    assert "\\x1b]0;evil" in said
    assert all(letter.isprintable() or letter == "\n" for letter in said)
    assert said.count("\n") == 2


@pytest.mark.parametrize(
    ("game_id", "told"), [(f"{CHECK_PREFIX}1", "check"), ("game-1", "being played")]
)
def test_a_game_of_the_doctor_without_an_end_isnt_told_as_played(tmp_path, capsys, game_id, told):
    import procsnake

    url = f"sqlite:///{tmp_path}/games.db"
    game = play(seed=1)
    game.requests[0][0]["game"] = {**game.requests[0][0]["game"], "id": game_id}
    store = GameStore(url)
    tell(store, "s", next(game.events(0)))
    store.close()
    assert procsnake.main(["games", "list", "--database", url]) == 0
    assert f"  {told}  " in capsys.readouterr().out


def test_a_secret_from_a_file_shows_in_no_list_of_processes(tmp_path):
    (tmp_path / "secret").write_text("s3cret-s3cret-s3cret\n")
    (tmp_path / "token").write_text("t0ken-t0ken-t0ken-t0ken\n")
    files = (
        "--secret-file",
        str(tmp_path / "secret"),
        "--viewer-token-file",
        str(tmp_path / "token"),
    )
    with Background("random", "--no-games", *files) as server:
        listed = b""
        for pid in server.pids():
            with suppress(FileNotFoundError):  # of what a process starts and ends beside
                listed += Path(f"/proc/{pid}/cmdline").read_bytes()
        assert b"procsnake" in listed
        assert b"s3cret" not in listed
        assert b"t0ken" not in listed
        with urllib.request.urlopen(f"{server.url}/s3cret-s3cret-s3cret/") as answer:
            assert answer.status == 200
        assert "process list" not in server.log.read_text()


def test_a_secret_that_everybody_sees_is_said_to_be_seen(tmp_path, monkeypatch):
    with Background("random", "--no-games", "--secret", "s3cret-s3cret-s3cret") as server:
        said = server.log.read_text()
    assert "use PROCSNAKE_SECRET or --secret-file instead" in said
    assert "s3cret" not in said


def test_a_secret_file_that_is_not_there_is_named(tmp_path, capsys):
    import procsnake

    assert procsnake.main(["serve", "flood", "--secret-file", str(tmp_path / "none")]) == 2
    assert "--secret-file" in capsys.readouterr().err


def test_an_error_of_a_child_keeps_its_next_commands() -> None:
    def fails() -> dict[str, object]:
        raise ConfigError("nobody is here.", next_commands={"to serve one": ("serve", "flood")})

    with pytest.raises(ConfigError) as error:
        processes.in_child(fails)
    assert error.value.next_commands == {"to serve one": ("serve", "flood")}
