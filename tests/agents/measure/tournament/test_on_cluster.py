"""Games on a Ray cluster of two nodes on this machine: the same games, also when a node is lost."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import ray

from agents.measure.tournament.game import BrokenOffError, Fixture
from agents.measure.tournament.on_cluster import OnCluster, cluster_cpus
from agents.measure.tournament.settings import Tournament
from agents.measure.tournament.store import Store
from agents.measure.tournament.workers import InThreads
from envs.common.errors import ProcsnakeError
from procsnake import main
from tests.agents.measure.sprt.made import play as play_sprt
from tests.agents.measure.sprt.made import small as small_sprt
from tests.agents.measure.tournament.made import small
from tests.ray_cluster import ray_cluster
from tests.waiting import until

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("ignore::DeprecationWarning:ray")]

_LONGEST_S = 300


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Its head has no CPU."""
    with ray_cluster({"num_cpus": 0}, {"num_cpus": 2}) as cluster:
        yield cluster


def moves_of(games):
    return [(game.round, game.number, game.seed, game.moves.tolist()) for game in games]


def test_the_verdict_and_the_store_are_those_of_one_job(cluster, tmp_path):
    test = small_sprt("alphabeta", "flood", nodes=30, seed=2)
    alone = play_sprt(test, tmp_path / "a.db")
    together = play_sprt(test, tmp_path / "b.db", concurrency=cluster_cpus(), workers=OnCluster)
    assert cluster_cpus() == 2
    assert (alone.verdict, alone.ratios) == (together.verdict, together.ratios)
    assert moves_of(alone.games) == moves_of(together.games)


def test_the_command_plays_a_tournament_on_it(cluster, tmp_path, capsys):
    words = shlex.split("tournament flood greedy --width 7 --height 7 --max-turns 60 --json")
    games = []
    for name, where in (("a.db", ["--jobs", "1"]), ("b.db", ["--cluster", cluster.address])):
        assert main([*words, "--store", str(tmp_path / name), *where]) == 0
        with Store(tmp_path / name, Tournament) as store:
            games.append(store.games())
    assert moves_of(games[0]) == moves_of(games[1])


def test_a_lost_nodes_game_is_played_anew_on_another(cluster):
    # Long enough for the node to be lost while it plays.
    match = small("alphabeta", "twin=alphabeta", width=11, height=11, nodes=40_000)
    fixture = Fixture(0, 0, 7, (0, 1))
    told = []
    with InThreads(match, 1) as workers:
        expected = workers.play(fixture)
    (node,) = [node for node in cluster.list_all_nodes() if node is not cluster.head_node]
    # While Ray starts a process, no game is lost with the node; after a short game there is one.
    with OnCluster(small("flood", "greedy"), 1) as workers:
        workers.play(fixture)
    until(lambda: ray.available_resources().get("CPU", 0) == 2, seconds=_LONGEST_S)
    with OnCluster(match, 1, told.append) as workers, ThreadPoolExecutor(1) as pool:
        game = pool.submit(workers.play, fixture)
        until(lambda: ray.available_resources().get("CPU", 0) < 2, seconds=_LONGEST_S)
        cluster.remove_node(node, allow_graceful=False)
        cluster.add_node(num_cpus=2)
        assert np.array_equal(game.result(_LONGEST_S).moves, expected.moves)
    assert len(told) == 1
    assert "game 0/0 is played anew" in told[0]


def test_what_an_agent_raises_is_raised_here_and_what_is_stopped_ends(cluster, monkeypatch):
    monkeypatch.setattr("ray.cancel", None)
    with (
        OnCluster(small("flood", "gredy=nobody"), 1) as workers,
        pytest.raises(ProcsnakeError, match="nobody"),
    ):
        workers.play(Fixture(0, 0, 7, (0, 1)))
    match = small("alphabeta", "twin=alphabeta", width=11, height=11, nodes=10**7)
    with OnCluster(match, 1) as workers, ThreadPoolExecutor(1) as pool:
        game = pool.submit(workers.play, Fixture(0, 0, 7, (0, 1)))
        until(lambda: ray.available_resources().get("CPU", 0) < cluster_cpus(), seconds=_LONGEST_S)
        workers.stop()
        with pytest.raises(BrokenOffError):
            game.result(_LONGEST_S)
