"""The settings of alpha-beta's learned evaluation (`train.learned_evaluation`)."""

from __future__ import annotations

from dataclasses import dataclass

from train.settings.algorithm import AlgorithmSettings, registered
from train.settings.limits import require


@registered(
    "learned_evaluation",
    trainer="train.learned_evaluation:EvaluationTrainer",
    uses_ray=False,
    plays_on_cluster=True,
    has_policy=False,
)
@dataclass(frozen=True, kw_only=True)
class LearnedEvaluationSettings(AlgorithmSettings):
    """Alpha-beta's evaluation of duels learns from its own games (`train.learned_evaluation`)."""

    player: str = "alphabeta?evaluation=hand-written"
    """The search with which the first generation begins, as `agents.make` takes it."""
    games: int = 36_000
    """Games of self-play per generation; they are rounded up to whole blocks of 8."""
    nodes: int = 300
    """Nodes per move in self-play."""
    randomness: float = 0.2
    """The largest share of random safe moves. Each game has a share of its own between 0 and
    this.
    """
    opening_turns: int = 8
    """The most random turns at the beginning. Each game has a number of its own between 0 and
    this.
    """
    every: int = 2
    """Turns of a game between two positions that are learned from."""
    inner_positions: int = 0
    """Positions that are learned from inside the search of each of these, where it stands after
    random numbers of nodes. A search of their own scores them. With 1, self-play takes about twice
    the time."""
    max_turns: int = 1000
    """Turns after which a game of self-play is drawn."""
    discount: float = 0.97
    """What a result is worth less for each turn that is left until the game ends, 0..1."""
    search_share: float = 0.5
    """The share of the search's score in what a position is said to be worth; the game's result has
    the rest, 0..1.
    """
    ridge: float = 30.0
    """The penalty on the square of each weight, for features of variance 1."""
    phases: int = 3
    """Phases of a game with weights of their own, split by the sum of both lengths."""
    units: int = 0
    """Hidden units that see the same features and add to the linear sum, at most 64; 0 leaves the
    evaluation linear. They need a target with little noise: set `search_share` to 1, too."""
    epochs: int = 40
    """How often the fit of the hidden units sees each position."""
    gate_nodes: int = 2000
    """Nodes per move of the player that a new evaluation has to beat."""
    gate_speed: float = 0.87
    """Nodes per second with a learned evaluation, as a share of those without. Against a player
    without one, a new evaluation has so many fewer nodes, so that both have equal time."""
    gate_speed_of_units: float = 0.9
    """Nodes per second with hidden units, as a share of those with a linear evaluation. 0.9 was
    measured with 32 units; fewer units cost less, and more cost more."""
    gate_elo1: float = 15.0
    """The gain at which the gate's sequential test accepts, in normalised Elo; it refuses at 0."""
    gate_games: int = 2000
    """Games after which the gate ends undecided. The evaluation is then not accepted."""
    games_per_iteration: int = 512
    """The most games between two rows of progress.csv, in self-play and in the gate. A run stops
    only between two rows.
    """
    num_processes: int | None = None
    """Processes that play; None: as many as there are cores, or with --cluster as many as that
    has.
    """

    def __post_init__(self) -> None:
        for name in (
            "games",
            "nodes",
            "every",
            "max_turns",
            "phases",
            "epochs",
            "gate_nodes",
            "num_processes",
        ):
            require(self, self.algorithm, name, 1)
        for name in ("gate_games", "games_per_iteration"):
            require(self, self.algorithm, name, 2)
        for name in ("randomness", "discount", "search_share"):
            require(self, self.algorithm, name, 0.0, 1.0)
        for name in ("gate_speed", "gate_speed_of_units"):
            require(self, self.algorithm, name, 0.01, 1.0)
        for name in ("opening_turns", "inner_positions", "ridge"):
            require(self, self.algorithm, name, 0)
        require(self, self.algorithm, "units", 0, 64)
