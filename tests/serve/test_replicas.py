"""Two servers behind Caddy with one archive in PostgreSQL, as `serve/deploy/replicas.yaml` runs
them, in real processes.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import subprocess
import threading
import time
import urllib.request
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

from serve.archive.store import GameArchive
from serve.background import Background
from tests.serve.archive.played import play
from tests.serve.test_deploy import DEPLOY, free_port, is_open
from tests.waiting import until

COMPOSED = yaml.safe_load((DEPLOY / "replicas.yaml").read_text(encoding="utf-8"))
TOKEN = "a-token-of-the-owner"
GAMES = 8
PACE_S = 0.5


def replica(port: int, database: str) -> Background:
    """A server with the options that the compose file gives it."""
    options = COMPOSED["services"]["snake-1"]["command"][1:]
    options[options.index("--trusted-proxy") + 1] = "127.0.0.1"
    return Background(
        "flood", *options, "--port", str(port), "--database", database, "--viewer-token", TOKEN
    )


class Player(threading.Thread):
    """Tells a game through the proxy, as an engine does: a move each half a second, which is late
    after as long.
    """

    def __init__(self, address: str, seed: int) -> None:
        super().__init__()
        self.game = play(seed=seed, agent="flood", side=11)
        self.connection = http.client.HTTPConnection(address, timeout=30)
        self.seconds: list[float] = []
        self.failures: list[str] = []
        self.stop = threading.Event()

    def run(self) -> None:
        for kind, body, _ in self.game.events(0):
            if kind == "end" or self.stop.is_set():
                break
            began = time.monotonic()
            try:
                self.connection.request(
                    "POST", f"/{kind}", json.dumps(body), {"Content-Type": "application/json"}
                )
                answer = self.connection.getresponse()
                answer.read()
                if answer.status != 200:
                    self.failures.append(f"{answer.status}")
            except (OSError, http.client.HTTPException) as error:
                self.failures.append(repr(error))
                self.connection.close()
            if kind == "move":
                self.seconds.append(time.monotonic() - began)
            self.stop.wait(max(0.0, began + PACE_S - time.monotonic()))
        self.connection.close()


def counted(url: str) -> int:
    """The moves of a server, by its metrics."""
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {TOKEN}"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return sum(
            int(float(n))
            for n in re.findall(
                r"^procsnake_moves_total\{.*\} (\S+)$", answer.read().decode(), re.M
            )
        )


@pytest.mark.long
def test_replicas_are_replaced_one_after_the_other_without_a_late_move(
    tmp_path: Path, postgres_url: str
) -> None:
    caddy = shutil.which("caddy")
    if caddy is None:
        pytest.skip("caddy is not installed")
    ports = [free_port(), free_port()]
    front = free_port()
    upstreams = [f"127.0.0.1:{port}" for port in ports]
    servers = [replica(port, postgres_url) for port in ports]
    variables = {
        "HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path),
        "PATH": os.environ["PATH"], "PROCSNAKE_DOMAIN": f"http://localhost:{front}",
        "PROCSNAKE_UPSTREAM": " ".join(upstreams),
        "PROCSNAKE_REPLICA_1": upstreams[0], "PROCSNAKE_REPLICA_2": upstreams[1],
    }  # fmt: skip
    command = [caddy, "run", "--adapter", "caddyfile", "--config", DEPLOY / "Caddyfile"]
    with subprocess.Popen(
        command, env=variables, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as proxy:
        try:
            until(lambda: is_open(front), seconds=60)
            players = [Player(f"localhost:{front}", seed) for seed in range(GAMES)]
            for player in players:
                player.start()
            time.sleep(3)
            moves_before = [
                counted(f"http://localhost:{front}/replicas/{number}/metrics") for number in (1, 2)
            ]
            for number, server in enumerate(servers):
                server.stop()
                servers[number] = replica(ports[number], postgres_url)
                time.sleep(3)
            for player in players:
                player.stop.set()
                player.join()
        finally:
            proxy.terminate()
            for server in servers:
                server.stop()
    assert all(moves_before), "both replicas play, and each tells its own figures"
    assert [player.failures for player in players] == [[]] * GAMES
    late = [second for player in players for second in player.seconds if second > PACE_S]
    assert late == [], f"{len(late)} late of {sum(len(player.seconds) for player in players)}"
    with closing(GameArchive(postgres_url)) as archive:
        for player in players:
            turns = archive.turns(player.game.game_id, "flood")
            assert [turn["turn"] for turn in turns] == list(range(len(player.seconds)))
    print(f"{sum(len(player.seconds) for player in players)} moves, none late")


def test_the_compose_file_gives_caddy_the_replicas_that_there_are() -> None:
    services = COMPOSED["services"]
    upstreams = dict(line.split("=", 1) for line in services["caddy"]["environment"])[
        "PROCSNAKE_UPSTREAM"
    ].split()
    assert upstreams == [f"{name}:8000" for name in services if name.startswith("snake-")]
    network = COMPOSED["networks"]["world"]["ipam"]["config"][0]["subnet"]
    for name in ("snake-1", "snake-2"):
        command = services[name]["command"]
        assert command[command.index("--trusted-proxy") + 1] == network
        drain_s = int(command[command.index("--drain") + 1])
        assert drain_s + 10 < int(services[name]["stop_grace_period"].removesuffix("s"))
        assert "ports" not in services[name], (
            "only Caddy may be reached, as its word is taken for who calls"
        )
    assert "ports" not in services["postgres"]
    assert COMPOSED["networks"]["archive"]["internal"]
    assert urlsplit("//" + upstreams[0]).port == 8000
