"""Learns alpha-beta's evaluation of duels, generation after generation: games, a fit, a sequential
test, the next games.

A generation plays exploratory games of the search against itself with the best evaluation so far,
fits a correction of the hand-written score to their positions (both in `agents.search.tuning`), and
tests it sequentially against the best one, at equal time. Only an evaluation that passes plays the
next generation. So a generation that learned nothing costs time but no strength.

`train.settings.LearnedEvaluationSettings` lists the settings.
"""

from __future__ import annotations

import json
import math
import shutil
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from agents.measure.sprt.play import SprtProgress, play_sprt
from agents.measure.sprt.settings import Sprt
from agents.measure.sprt.statistics import Hypotheses
from agents.measure.tournament.settings import derived_seed
from agents.measure.tournament.store import Store
from agents.measure.tournament.workers import InProcesses, InThreads, MakeWorkers
from agents.player import EVALUATION
from agents.registry import make
from agents.search.alphabeta.agent import AlphaBeta
from agents.search.evaluation.learned import LearnedEvaluation
from agents.search.tuning.gate import figures_of, gate_of
from agents.search.tuning.learning import Fitting, learn
from agents.search.tuning.parameters import with_values
from agents.search.tuning.self_play import PlayBlocks, SelfPlay, play_games, read_games, read_turns
from envs.common.cores import usable_cores
from envs.common.errors import ConfigError
from envs.common.shell_command import shell_command
from envs.common.strangers.bounded import parse_json, read_text
from envs.common.whole_files import write_whole
from train.config import Experiment
from train.metrics.rows import nested_result
from train.runs.folder import GENERATIONS
from train.settings import LearnedEvaluationSettings

_MADE_IN = "made-in.txt"
_STATE = "stage.json"
_MAX_BYTES = 1 << 20
_BOARD = ("width", "height", "num_snakes", "num_games")
_OF_SELF_PLAY = ("nodes", "randomness", "opening_turns", "every", "inner_positions", "max_turns")
"""The settings that games of self-play have under the same names."""
_OF_FITTING = ("discount", "search_share", "ridge", "phases", "units", "epochs")
"""The settings that the fit has under the same names."""


@dataclass(frozen=True, kw_only=True)
class Stage:
    """How far a run has come. The games themselves are in the run's folder."""

    generation: int = 1
    """The generation that is being made."""
    games: int = 0
    """The games of self-play that it has played."""
    is_fitted: bool = False
    test_games: int = 0
    """The games of its test that count."""
    test_turns: int = 0
    """The turns of these games."""
    best: int = 0
    """The generation whose evaluation was accepted last; 0 before there was one."""


def _fitting(settings: LearnedEvaluationSettings) -> Fitting:
    """How a generation is fitted. Raises `ConfigError` for impossible values."""
    return Fitting(**{name: getattr(settings, name) for name in _OF_FITTING})


def _self_play(experiment: Experiment, stage: Stage, player: str) -> SelfPlay:
    """The games of a generation. Raises `ConfigError` for a player that isn't alpha-beta."""
    s = experiment.settings_as(LearnedEvaluationSettings)
    options = experiment.env.options
    return SelfPlay(
        player=player,
        **{name: getattr(s, name) for name in _OF_SELF_PLAY},
        width=options.get("width", 11),
        height=options.get("height", 11),
        seed=derived_seed(experiment.seed, stage.generation),
    )


class EvaluationTrainer:
    """Makes generations of evaluations.

    A run (`train.runs.sessions.session`) calls `train` again and again. Each call plays some games,
    of self-play or of the test. Everything depends only on the experiment and the stage, so an
    interrupted run reaches the same evaluations as an uninterrupted one."""

    fraction_done = 0.0

    def __init__(self, experiment: Experiment) -> None:
        self.experiment = experiment
        self.settings = experiment.settings_as(LearnedEvaluationSettings)
        self.stage = Stage()
        self._processes = self.settings.num_processes or usable_cores()
        self._workers: MakeWorkers = InThreads if self._processes == 1 else InProcesses
        self._play_blocks: PlayBlocks | None = None
        self._run = Path()

    def work_in(self, run: Path) -> None:
        """Write the generations' games, tests and evaluations to the folder of this run.

        A run that was moved plays the games of its current generation again, because they
        contain old paths."""
        self._run = run.absolute()
        folder = self._run / GENERATIONS
        folder.mkdir(exist_ok=True)
        made_in = folder / _MADE_IN
        if made_in.is_file() and read_text(made_in, _MAX_BYTES) != str(folder):
            for work in [*folder.glob("games-*"), *folder.glob("test-*")]:
                shutil.rmtree(work) if work.is_dir() else work.unlink()
        write_whole(made_in, str(folder))

    def play_on_cluster(self) -> None:
        """Play all games on the Ray cluster that this process has joined. They are the same games.

        The cluster's machines must see the run's folder at its path, because players' names
        contain it."""
        from agents.measure.tournament.on_cluster import OnCluster, cluster_cpus
        from agents.search.tuning.on_cluster import blocks_on_cluster

        self._processes = self.settings.num_processes or cluster_cpus()
        self._workers = OnCluster
        self._play_blocks = blocks_on_cluster

    @classmethod
    def check(cls, experiment: Experiment) -> None:
        """Raise `ConfigError` if learned evaluations don't support the experiment's games.
        `train.run.check` calls it.
        """
        options = experiment.env.options
        if (
            experiment.env.name != "battlesnake"
            or set(options) - set(_BOARD)
            or options.get("num_snakes", 2) != 2
        ):
            pairs = [f"{name}: {value!r}" for name, value in options.items()]
            options_text = ", ".join(pairs) or "no options"
            raise ConfigError(
                f"env is {experiment.env.name} with {options_text}; an evaluation is"
                " learned from duels of Battlesnake's standard game, so env.options may have width,"
                " height and num_snakes: 2 alone"
            )
        settings = experiment.settings_as(LearnedEvaluationSettings)
        _self_play(experiment, Stage(), settings.player)
        _fitting(settings)
        Hypotheses(elo1=settings.gate_elo1)

    def train(self) -> dict[str, Any]:
        """Play the next games. Returns metrics, named and nested as RLlib's.

        After its last game of self-play a generation is fitted; after the last one of its test it
        is accepted or rejected."""
        began = time.perf_counter()
        generation = self.stage.generation
        learning = 0.0
        if self.stage.is_fitted:
            turns, metrics = self._test()
        else:
            turns = self._play()
            metrics = {}
            fitting_began = time.perf_counter()
            if self.stage.games >= self.settings.games:
                metrics = self._fit()
            learning = time.perf_counter() - fitting_began
        counts = {
            "generation": generation,
            "generations": self.stage.generation - 1,
            "best_generation": self.stage.best,
        }
        return nested_result(
            env_steps=turns,
            agent_steps=2 * turns,
            playing=time.perf_counter() - began - learning,
            learning=learning,
            episodes={"return": np.zeros(0)},
            learned={
                name: float(value)
                for name, value in {**counts, **metrics}.items()
                if math.isfinite(value)
            },
        )

    def export(self, provenance: dict[str, Any], command: str) -> tuple[Path | None, str]:
        """Write the evaluation accepted last, or else the one fitted last, into the run's folder.

        Returns its path, or None if no generation was fitted, and a sentence on whether it was
        accepted."""
        stage = self.stage
        last_fitted = stage.generation
        if not stage.is_fitted:
            last_fitted -= 1
        generation = stage.best or last_fitted
        if not generation:
            reason = (
                "the budget ended before the first generation was fitted; give it more minutes or"
                " fewer games"
            )
            return None, reason
        evaluation = LearnedEvaluation.read(self._evaluation(generation))
        path = self._run / EVALUATION
        own = {name: provenance[name] for name in ("versions", "git_commit")}
        replace(evaluation, training={**evaluation.training, **own, "command": command}).write(path)
        play = shell_command("match", self._with(path), "flood")
        if stage.best:
            return (
                path,
                f"the evaluation of generation {generation} was accepted by its test; watch it:"
                f" {play}",
            )
        return (
            path,
            (
                "NOT ACCEPTED: no generation passed its test. The evaluation is generation"
                f" {generation}'s: {play}"
            ),
        )

    def save_to_path(self, path: str) -> None:
        """Save how far the run has come."""
        Path(path, _STATE).write_text(
            json.dumps(asdict(self.stage), indent=1) + "\n", encoding="utf-8"
        )

    def restore_from_path(self, path: str) -> None:
        """Continue from `save_to_path`. Games played later are found in the run's folder."""
        self.stage = Stage(**parse_json(read_text(Path(path, _STATE), _MAX_BYTES)))

    def stop(self) -> None:
        """Do nothing, because nothing runs between two iterations."""

    def _play(self) -> int:
        """Play some games of self-play. Returns their turns."""
        folder = self._work("games")
        before = self.stage.games
        games = min(before + self.settings.games_per_iteration, self.settings.games)
        play_games(
            self._games(), folder, games, jobs=self._processes, play_blocks=self._play_blocks
        )
        self.stage = replace(self.stage, games=games)
        return int(read_turns(folder, games, after=before).sum())

    def _fit(self) -> dict[str, float]:
        stage = self.stage
        views = read_games(self._work("games"), stage.games)
        learned = learn(views, self._games(), _fitting(self.settings))
        card = {**learned.evaluation.training, "generation": stage.generation, "test": None}
        card["self_play"] = {**card["self_play"], "player": self._best_in_words()}
        replace(learned.evaluation, training=card).write(self._evaluation(stage.generation))
        self.stage = replace(stage, is_fitted=True)
        return {
            "positions": learned.positions,
            "loss_hand_written": learned.loss_before,
            "loss": learned.loss,
            "loss_of_targets": learned.least_loss,
        }

    def _test(self) -> tuple[int, dict[str, float]]:
        """Play some games of the test, and accept or refuse if they decide. Returns their turns,
        and what is known by now.
        """
        s = self.settings
        stage = self.stage
        most = min(stage.test_games + s.games_per_iteration, s.gate_games)
        with Store(self._work("test").with_suffix(".db"), Sprt) as store:
            progress = play_sprt(
                self._gate(),
                store,
                concurrency=self._processes,
                workers=self._workers,
                max_games=most,
            )
        games = progress.games
        self.stage = replace(
            stage, test_games=len(games), test_turns=sum(game.turns for game in games)
        )
        turns = self.stage.test_turns - stage.test_turns
        figures = _figures(progress)
        if progress.verdict is not None or len(games) + 2 > s.gate_games:
            figures["accepted"] = float(self._decide(progress))
        return turns, figures

    def _decide(self, progress: SprtProgress) -> bool:
        """Write the verdict into the generation's evaluation, and begin the next generation."""
        stage = self.stage
        accepted = progress.verdict == "H1"
        path = self._evaluation(stage.generation)
        against = self._best_in_words()
        evaluation = LearnedEvaluation.read(path)
        test = {"against": against, "nodes": self._gate_nodes(), **figures_of(progress)}
        training = {**evaluation.training, "accepted": accepted, "test": test}
        replace(evaluation, training=training).write(path)
        best = stage.generation if accepted else stage.best
        self.stage = Stage(generation=stage.generation + 1, best=best)
        return accepted

    def _gate(self) -> Sprt:
        """The test of the present generation against the best player so far."""
        generation = self.stage.generation
        games = self._games()
        new, old = self._gate_nodes()
        return gate_of(
            self._with(self._evaluation(generation)),
            self._best(),
            new_nodes=new,
            nodes=old,
            hypotheses=Hypotheses(elo1=self.settings.gate_elo1),
            width=games.width,
            height=games.height,
            seed=derived_seed(self.experiment.seed, generation, 1),
        )

    def _gate_nodes(self) -> tuple[int, int]:
        """The nodes per move of the new and of the best player, by which both have about equal
        time.
        """
        best = make(self._best())
        assert isinstance(best, AlphaBeta)
        new = LearnedEvaluation.read(self._evaluation(self.stage.generation))
        old = best.learned
        if old is not None and (old.width, old.height) != (new.width, new.height):
            # On other boards than its own, its search is one without.
            old = None
        speed = self._speed(new) / self._speed(old)
        return max(1, round(self.settings.gate_nodes * speed)), self.settings.gate_nodes

    def _speed(self, evaluation: LearnedEvaluation | None) -> float:
        """Return the nodes per second with an evaluation, as a share of those without."""
        speed = 1.0
        if evaluation is not None:
            speed *= self.settings.gate_speed
            if evaluation.units:
                speed *= self.settings.gate_speed_of_units
        return speed

    def _games(self) -> SelfPlay:
        return _self_play(self.experiment, self.stage, self._best())

    def _best(self) -> str:
        if self.stage.best:
            return self._with(self._evaluation(self.stage.best))
        return self.settings.player

    def _best_in_words(self) -> str:
        if self.stage.best:
            return f"generation {self.stage.best}"
        return self.settings.player

    def _with(self, evaluation: Path) -> str:
        return with_values(self.settings.player, {"evaluation": str(evaluation)})

    def _evaluation(self, generation: int) -> Path:
        return self._run / GENERATIONS / f"evaluation-{generation:03d}.json"

    def _work(self, kind: str) -> Path:
        """Where the present generation keeps its "games" or its "test"."""
        return self._run / GENERATIONS / f"{kind}-{self.stage.generation:03d}"


def _figures(progress: SprtProgress) -> dict[str, float]:
    """What a test has shown by now, as columns of progress.csv."""
    figures = {"test_games": float(len(progress.games)), "test_llr": progress.ratio}
    strength = progress.strength()
    if strength:
        figures |= {
            "test_score": strength.score.value,
            "test_elo": strength.elo.value,
            "test_elo_low": strength.elo.low,
            "test_elo_high": strength.elo.high,
        }
    return figures
