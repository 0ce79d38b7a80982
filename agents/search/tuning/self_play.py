"""Plays duels of alpha-beta against itself to learn an evaluation from, and keeps their positions
in a folder.

A game is exploratory: it begins with random turns, and later a share of its moves is random as
well. A search meets positions that good players avoid, and has to evaluate them, too."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np

from agents.measure.tournament.settings import Player, derived_seed
from agents.parallel import processes, spread
from agents.registry import content_of, make
from agents.search.alphabeta.agent import AlphaBeta
from agents.search.evaluation.evaluate import Weights, judge, weights_of
from agents.search.evaluation.learned import MAX_CELLS
from agents.search.evaluation.learned_features import NUM_FEATURES, geometry_of, write_features
from agents.search.evaluation.territory import new_territory, survey
from agents.search.make_unmake import search_rules
from agents.search.tuning.parameters import search_of, with_values
from agents.search.tuning.positions import is_quiet
from envs.battlesnake.games import play_turn, start_games
from envs.battlesnake.safety import safe_moves
from envs.battlesnake.state import ALIVE, MAX_SIDE, MIN_SIDE, State
from envs.common.errors import ConfigError, check_range, reason
from envs.common.strangers.bounded import DAMAGED_ARRAYS, parse_json, read_text, refuse_unbounded
from envs.common.whole_files import make_folder_of, write_whole

SETTINGS = "self-play.json"
GAMES_PER_BLOCK = 8
_DIGEST = "player_digest"
_TABLE_BITS = 12
_MAX_BYTES = 1 << 20
_COLUMNS = ("features", "hand", "search", "result", "turns_left", "game")

PlayBlocks = Callable[["SelfPlay", Sequence[int]], Iterator[tuple[int, bytes]]]
"""A function that plays blocks, given their numbers, and yields the number and the file of each as
it ends.
"""


@dataclass(frozen=True, kw_only=True)
class SelfPlay:
    """Which games are played. A block of eight games is a function of these settings and of the
    block's number.

    Raises `ConfigError` for a player that isn't alpha-beta or that plays by rules, and for
    impossible values."""

    player: str = "alphabeta"
    """The player whose options and evaluation both snakes have, as `agents.make` takes it."""
    nodes: int = 300
    """The nodes of the search that chooses a move. Its score is a part of what is learned."""
    randomness: float = 0.2
    """The largest share of random safe moves. Each game has a share of its own between 0 and
    this.
    """
    opening_turns: int = 8
    """The most random turns at the beginning. Each game has a number of its own between 0 and
    this.
    """
    every: int = 2
    """The turns between two positions that are kept."""
    inner_positions: int = 0
    """The positions that are kept from inside each kept position's search: where it stands after
    random numbers of nodes. A search of their own, of as many nodes, scores them. Those with a game
    that is over, or that aren't quiet, are left out."""
    max_turns: int = 1000
    """The turns after which a game is drawn."""
    width: int = 11
    height: int = 11
    seed: int = 0

    def __post_init__(self) -> None:
        if search_of(self.player) != "alphabeta":
            raise ConfigError(f"{self.player!r} can't use a learned evaluation; only alphabeta can")
        if Player("", self.player).runs_code:
            raise ConfigError(
                f"{self.player!r} plays with rules, which an evaluation can't be learned for;"
                " leave out the rules"
            )
        counts_are_possible = (
            min(self.nodes, self.every) >= 1 and min(self.opening_turns, self.inner_positions) >= 0
        )
        if not counts_are_possible or not 0 <= self.randomness <= 1:
            raise ConfigError(
                f"{self} can't be played: nodes and every are at least 1, opening_turns and"
                " inner_positions at least 0, and randomness is a share"
            )
        check_range("seed", self.seed, 0, (1 << 63) - 1)
        check_range("width", self.width, MIN_SIDE, MAX_SIDE)
        check_range("height", self.height, MIN_SIDE, MAX_SIDE)
        if self.width * self.height > MAX_CELLS:
            raise ConfigError(
                f"{self.width}×{self.height} has more cells than {MAX_CELLS}, the most for a"
                " learned evaluation"
            )


@dataclass(frozen=True)
class Views:
    """N positions of duels, each seen by one of the snakes. No head can meet the other in them on
    the next turn.
    """

    features: np.ndarray
    """int16 (N, F), in the order of `learned_features.write_features`."""
    hand: np.ndarray
    """int32 (N,): the hand-written score."""
    search: np.ndarray
    """int32 (N,): the score of the search."""
    result: np.ndarray
    """float32 (N,): 1 if the snake won the game, ½ if nobody did, 0 if it lost; NaN inside a
    search, which no game reached.
    """
    turns_left: np.ndarray
    """int16 (N,): turns to the end of the game, counted from the search's root where the position
    is inside one.
    """
    game: np.ndarray
    """int64 (N,): the game to which the position belongs."""

    def select(self, index: np.ndarray) -> Views:
        """Return some of the positions; `index` is bool (N,), or their numbers."""
        return Views(*(getattr(self, name)[index] for name in _COLUMNS))

    @classmethod
    def joined(cls, parts: Sequence[Mapping[str, np.ndarray]]) -> Views:
        """Return the positions of several parts, each a mapping from field to array."""
        return cls(*(_concatenated(parts, name) for name in _COLUMNS))


def play_block(settings: SelfPlay, block: int) -> tuple[Views, np.ndarray]:
    """Play the games of a block. Returns their positions, and the turns of each game, int64
    (8,).
    """
    player = _player(settings)
    first = block * GAMES_PER_BLOCK
    games = [_play(settings, player, game) for game in range(first, first + GAMES_PER_BLOCK)]
    views = Views.joined([vars(views) for views, _ in games])
    return views, np.array([turns for _, turns in games], np.int64)


def _concatenated(parts: Sequence[Mapping[str, np.ndarray]], name: str) -> np.ndarray:
    return np.concatenate([part[name] for part in parts])


def _player(settings: SelfPlay) -> AlphaBeta:
    options = {"nodes": settings.nodes, "table_bits": _TABLE_BITS}
    player = make(with_values(settings.player, options))
    assert isinstance(player, AlphaBeta)
    return player


def _play(settings: SelfPlay, player: AlphaBeta, game: int) -> tuple[Views, int]:
    """Play one game. Return its positions, but for those of its opening, and its number of
    turns.
    """
    seed = derived_seed(settings.seed, game)
    # With two generators, the games are the same whether positions inside the searches are kept or
    # not.
    random = np.random.default_rng(seed)
    random_inside = np.random.default_rng([seed, 1])
    slots = np.arange(2)
    state = State(1, width=settings.width, height=settings.height, num_snakes=2)
    state.seed(seed)
    running = start_games(state)
    view = Viewer(state, weights_of(player.weights))
    share = random.uniform(0, settings.randomness)
    opening = random.integers(settings.opening_turns + 1)
    turn = 0
    rows: list[tuple[np.ndarray, int, int, int, int, bool]] = []
    while running[0] and turn < settings.max_turns:
        safe = safe_moves(state, np.zeros_like(slots), slots)
        moves = np.zeros((1, 2), np.int8)
        for slot in slots:
            if turn < opening:
                moves[0, slot] = random.choice(np.flatnonzero(safe[slot]))
                continue
            decision = player.act(state, int(slot))
            if (turn - opening) % settings.every == 0 and is_quiet(state, int(slot)):
                rows.append(
                    (*view(state, int(slot)), int(decision.note["score"]), int(slot), turn, False)
                )
                for inner in _inside(settings, player, state, int(slot), random_inside):
                    score = int(player.act(inner, int(slot)).note["score"])
                    rows.append((*view(inner, int(slot)), score, int(slot), turn, True))
            is_random = random.random() < share
            if is_random:
                moves[0, slot] = random.choice(np.flatnonzero(safe[slot]))
            else:
                moves[0, slot] = decision.move
        play_turn(state, moves, running)
        turn += 1
    alive = state.arrays.cause[0] == ALIVE
    results = np.full(2, 0.5)
    if alive.sum() == 1:
        results = np.where(alive, 1.0, 0.0)
    return _views(rows, results, turn, game), turn


def _inside(
    settings: SelfPlay, player: AlphaBeta, state: State, slot: int, random: np.random.Generator
) -> Iterator[State]:
    """Yield positions inside the search of `state`: those in which the duel isn't over and no heads
    can meet on the next turn.
    """
    numbers = np.sort(random.integers(1, settings.nodes + 1, settings.inner_positions)).tolist()
    for inner in player.positions_inside(state, slot, numbers):
        if inner.arrays.num_alive[0] == 2 and is_quiet(inner, slot):
            yield inner


def _views(
    rows: list[tuple[np.ndarray, int, int, int, int, bool]],
    results: np.ndarray,
    turns: int,
    game: int,
) -> Views:
    """Return the positions of a game of `turns` turns, from the rows that `_play` has kept."""
    count = len(rows)
    features = np.array([row[0] for row in rows], np.int16).reshape(count, NUM_FEATURES)
    numbers = np.array([row[1:5] for row in rows], np.int32).reshape(count, 4)
    hand, search, slot, turn = numbers.T
    is_inner = np.array([row[5] for row in rows], np.bool_)
    return Views(
        features=features,
        hand=hand,
        search=search,
        result=np.where(is_inner, np.nan, results[slot]).astype(np.float32),
        turns_left=(turns - turn).astype(np.int16),
        game=np.full(count, game, np.int64),
    )


class Viewer:
    """Evaluates positions on boards of one shape by hand, and finds their features."""

    def __init__(self, state: State, weights: Weights) -> None:
        self.weights = weights
        self.rules = search_rules(state.rules)
        self.territory = new_territory(state, with_stages=True)
        self.geometry = geometry_of(state, self.territory)

    def __call__(self, state: State, me: int) -> tuple[np.ndarray, int]:
        s = state.arrays
        f = self.territory
        features = np.zeros(NUM_FEATURES, np.int64)
        survey(s, self.rules, f)
        hand = int(judge(s, self.rules, f, self.weights, me))
        write_features(s, self.rules, f, self.geometry, features, me)
        return features, hand


def collect(
    settings: SelfPlay,
    folder: Path,
    games: int,
    *,
    jobs: int = 1,
    on_block: Callable[[int, int], None] | None = None,
) -> Views:
    """Play the games as `play_games` does, and return all their positions. Raises what it and
    `read_games` raise.
    """
    play_games(settings, folder, games, jobs=jobs, on_block=on_block)
    return read_games(folder, games)


def play_games(
    settings: SelfPlay,
    folder: Path,
    games: int,
    *,
    jobs: int = 1,
    play_blocks: PlayBlocks | None = None,
    on_block: Callable[[int, int], None] | None = None,
) -> None:
    """Play at least `games` games, those left out whose blocks lie in `folder` already.

    `jobs` processes of this machine play, or else whoever plays for `play_blocks`. A block is
    written as it ends, so that the same call goes on after an interruption. `on_block` is called
    with the number of blocks that lie there, and the number that is asked for. Raises `ConfigError`
    if the folder can't be written or has games of other settings, and whatever `agents.make` and
    `play_blocks` raise."""
    make_folder_of(folder / SETTINGS)
    paths = _paths(folder, games)
    missing = [block for block, path in enumerate(paths) if not path.exists()]
    digest = None
    if missing:
        # A player that can't be made claims no folder, which others would then be refused.
        _player(settings)
        digest = content_of(settings.player)
    _claim(folder, settings, digest)

    def tell(done: int, _: int) -> None:
        if on_block:
            on_block(len(paths) - len(missing) + done, len(paths))

    if play_blocks:
        tell(0, len(missing))
        for done, (block, content) in enumerate(play_blocks(settings, missing), 1):
            write_whole(paths[block], content)
            tell(done, len(missing))
    else:
        with processes(jobs) as pool:
            spread(pool, partial(_play_and_keep, settings, folder), missing, tell)


def _paths(folder: Path, games: int) -> list[Path]:
    return [_path(folder, block) for block in range(-(-games // GAMES_PER_BLOCK))]


def _path(folder: Path, block: int) -> Path:
    return folder / f"block-{block:06d}.npz"


def _claim(folder: Path, settings: SelfPlay, digest: str | None) -> None:
    """Write the settings into a new folder, and compare them with those of an old one. `digest` is
    that of the player who is about to play, if one is.
    """
    path = folder / SETTINGS
    values = asdict(settings)
    if not path.exists():
        write_whole(path, json.dumps({**values, _DIGEST: digest}, indent=1) + "\n")
        return
    try:
        old_values = dict(parse_json(read_text(path, _MAX_BYTES)))
    except (OSError, TypeError, ValueError) as error:
        raise ConfigError(
            f"{path} can't be read ({reason(error)}); choose another folder"
        ) from error
    before = old_values.pop(_DIGEST, None)
    if None not in (before, digest) and before != digest:
        raise ConfigError(
            f"{folder} has games of an earlier version of {settings.player}; its options or"
            " evaluation have changed since. Choose another folder"
        )
    if old_values != values:
        raise ConfigError(
            f"{folder} has games of other settings: {old_values}, not {values}. Choose another"
            " folder"
        )


def _play_and_keep(settings: SelfPlay, folder: Path, block: int) -> None:
    write_whole(_path(folder, block), block_file(settings, block))


def block_file(settings: SelfPlay, block: int) -> bytes:
    """Play a block, and return the file that holds it."""
    views, turns = play_block(settings, block)
    content = io.BytesIO()
    np.savez_compressed(content, turns=turns, **vars(views))
    return content.getvalue()


def read_games(folder: Path, games: int) -> Views:
    """Return the positions of the first `games` games, rounded up to whole blocks. Raises
    `ConfigError` for a damaged file.
    """
    return Views.joined([_read(path, _COLUMNS) for path in _paths(folder, games)])


def read_turns(folder: Path, games: int, *, after: int = 0) -> np.ndarray:
    """Return the turns of each of the first `games` games but the first `after`, both rounded up to
    whole blocks.

    Raises as `read_games` does.
    """
    paths = _paths(folder, games)[len(_paths(folder, after)) :]
    turns = [_read(path, ("turns",))["turns"] for path in paths]
    return np.concatenate([np.zeros(0, np.int64), *turns])


def _read(path: Path, names: Sequence[str]) -> dict[str, np.ndarray]:
    try:
        # NumPy leaves a path that it opened itself open if the archive is damaged.
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as block:
            for member in block.zip.infolist():
                refuse_unbounded(member)
            return {name: block[name] for name in names}
    except DAMAGED_ARRAYS as error:
        raise ConfigError(
            f"{path} can't be read ({error}); remove it to play its games again"
        ) from error
