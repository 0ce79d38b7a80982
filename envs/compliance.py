"""For authors of worlds and wrappers: play it at random and check that it keeps the contract of
`BatchEnv`.

from envs.compliance import check_world
check_world("corridor", num_games=8)
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, get_args

import numpy as np
from gymnasium.spaces import Box, Discrete

from envs.api import BatchEnv, Evaluation, Views
from envs.common.errors import ComplianceError
from envs.registry import make
from envs.wrappers import BatchWrapper, layers

_DRAINED_EVERY = 5
_ALWAYS = {"row": np.int32, "return": np.float32, "length": np.int32}
_TOLERANCE = 1e-3
"""How far a return may be from the sum of float32 rewards, relative and absolute."""


def check_world(
    world: str | Callable[..., BatchEnv],
    *,
    num_steps: int = 200,
    seed: int = 0,
    network: Any = None,
    **options: Any,
) -> None:
    """Play `num_steps` random steps of a world, given by name or as a function of `options`, and
    check:

    * what the world says of itself: spaces, `observation_contract`, `views`;
    * after every step: shapes, dtypes and ranges of all arrays, masks, and that rows which are not
      valid neither earn nor end;
    * `picture`: its shape, its dtype, and that it keeps its size;
    * `final_info`, and that `drain_episodes` agrees with what was seen (returns and lengths only if
      the world is not a wrapper);
    * that the same seed gives the same games, whatever is played in rows that are not valid;
    * that a new world which carries on from `progress` has made the same progress.

    `network`, a torch module like the policy, is passed to `remember` and `carry_on`; a world that
    copies the policy needs it. Raises `ComplianceError`."""
    if isinstance(world, str):
        what = f"world {world!r}"
    else:
        what = f"world {getattr(world, '__name__', world)}"
    if isinstance(world, str):
        build = partial(make, world, **options)
    else:
        build = partial(world, **options)
    first = build()
    twin = build()
    later = build()
    try:
        _check_description(first, what)
        _play(first, twin, num_steps, seed, network, what)
        shape = _checked_shape(first.picture(), what)
        first.restart()
        _check_arrays(first, f"{what}, restarted")
        _require(
            _checked_shape(first.picture(), what) == shape, what, "picture doesn't keep its size"
        )
        _check_progress(first, later, seed, network, what)
    finally:
        for each in (first, twin, later):
            each.close()


def _check_description(world: BatchEnv, what: str) -> None:
    rows = world.num_games * world.rows_per_game
    contract = world.observation_contract
    space = world.single_observation_space
    actions = world.single_action_space
    _require(
        world.num_envs == rows > 0,
        what,
        f"num_envs is {world.num_envs}, num_games · rows_per_game {rows}",
    )
    numbered = isinstance(actions, Discrete) and actions.start == 0
    _require(isinstance(space, Box), what, f"observations are {space}; trainers know Box only")
    _require(numbered, what, f"actions are {actions}; trainers know Discrete(n) only")
    evaluations = get_args(Evaluation)
    _require(
        world.evaluation in evaluations,
        what,
        f"evaluation is {world.evaluation!r}; it must be one of {', '.join(evaluations)}",
    )
    if contract is not None:
        has_type_and_version = (
            isinstance(contract, dict)
            and isinstance(contract.get("type"), str)
            and isinstance(contract.get("version"), int)
        )
        _require(
            has_type_and_version,
            what,
            f"observation_contract is {contract}; it needs a type (str) and a version (int)",
        )
        _require(
            _survives_json(contract),
            what,
            f"observation_contract is {contract}, which JSON doesn't give back as it was",
        )


def _checked_shape(picture: np.ndarray, what: str) -> tuple[int, ...]:
    fits = (
        isinstance(picture, np.ndarray)
        and picture.dtype == np.uint8
        and picture.ndim == 3
        and picture.shape[2] == 3
    )
    _require(
        fits and not np.any(np.array(picture.shape[:2]) % 2),
        what,
        f"picture is {_kind(picture)}; uint8 (H, W, 3), even",
    )
    return picture.shape


def _survives_json(value: Any) -> bool:
    try:
        return bool(json.loads(json.dumps(value)) == value)
    except (TypeError, ValueError):
        return False


def _play(
    first: BatchEnv, twin: BatchEnv, num_steps: int, seed: int, network: Any, what: str
) -> None:
    """Play two worlds of one seed by the same random actions, and check them after each step."""
    rng = np.random.default_rng(seed)
    added_up = _AddedUpEpisodes(first)
    drained = _DrainedEpisodes(what)
    for world in (first, twin):
        world.restart(seed)
        if network is not None:
            for layer in layers(world):
                layer.remember(network)
    _check_arrays(first, f"{what}, restarted")
    _check_views(first, what)
    _require_same(first, twin, f"{what}, restarted")
    for step in range(num_steps):
        where = f"{what}, step {step}"
        acting = first.valid.copy()
        actions = _random_actions(first, rng)
        first.advance(actions)
        twin.advance(np.where(acting, actions, 0))
        _check_arrays(first, where)
        _check_outcome(first, acting, where)
        _require_same(first, twin, where)
        added_up.take_in(first, acting)
        if step % _DRAINED_EVERY == _DRAINED_EVERY - 1 or step == num_steps - 1:
            drained.take_in(first.drain_episodes())
            twin.drain_episodes()
    drained.compare(added_up, exact=not isinstance(first, BatchWrapper))


def _random_actions(world: BatchEnv, rng: np.random.Generator) -> np.ndarray:
    """Draw int64 (R,) among the actions that the mask allows; any for rows that are not valid."""
    count = int(world.single_action_space.n)
    weights = rng.random((world.num_envs, count))
    if world.action_mask is not None:
        weights[world.valid] *= world.action_mask[world.valid]
    return weights.argmax(1)


def _check_arrays(world: BatchEnv, where: str) -> None:
    rows = world.num_envs
    space = world.single_observation_space
    shapes_and_dtypes = {
        "observations": ((rows, *space.shape), space.dtype),
        "final_observations": ((rows, *space.shape), space.dtype),
        "valid": ((rows,), np.bool_),
        "rewards": ((rows,), np.float32),
        "terminated": ((rows,), np.bool_),
        "truncated": ((rows,), np.bool_),
    }
    if world.action_mask is not None:
        shapes_and_dtypes["action_mask"] = ((rows, int(world.single_action_space.n)), np.bool_)
    for name, (shape, dtype) in shapes_and_dtypes.items():
        array = getattr(world, name)
        fits = isinstance(array, np.ndarray) and array.shape == shape and array.dtype == dtype
        _require(fits, where, f"{name} is {_kind(array)}; it must be {np.dtype(dtype)} {shape}")
    _require(np.isfinite(world.rewards).all(), where, "rewards are not finite")
    _require_in_space(world, world.observations[world.valid], "observations", where)
    if world.action_mask is not None:
        _require(
            world.action_mask[world.valid].any(1).all(),
            where,
            "action_mask allows a row no action at all",
        )


def _check_outcome(world: BatchEnv, acting: np.ndarray, where: str) -> None:
    ended = world.terminated | world.truncated
    idle = ~acting
    _require(not world.rewards[idle].any(), where, "rewards pay rows that were not valid")
    _require(
        not ended[idle].any(), where, "terminated or truncated is set for rows that were not valid"
    )
    _require_in_space(world, world.final_observations[ended], "final_observations", where)
    if ended.any():
        info = world.final_info(ended)
        for name, column in info.items():
            has_all_rows = np.shape(column)[:1] == (world.num_envs,)
            has_mask = name.startswith("_") or f"_{name}" in info
            _require(
                has_all_rows and has_mask,
                where,
                f"final_info: {name} is not an array of {world.num_envs} rows with a mask _{name}"
                " beside it",
            )


def _require_in_space(world: BatchEnv, pictures: np.ndarray, name: str, where: str) -> None:
    space = world.single_observation_space
    is_inside = (pictures >= space.low) & (pictures <= space.high)
    _require(bool(is_inside.all()), where, f"{name} leave the space {space}")


def _check_views(world: BatchEnv, what: str) -> None:
    views = world.views
    if views is None:
        return
    observations = world.observations[world.valid]
    _require(
        isinstance(views, Views), what, f"views is a {type(views).__name__}, not an envs.api.Views"
    )
    every = np.arange(int(world.single_action_space.n))
    shape = (len(views.pictures), len(every))
    fits = isinstance(views.actions, np.ndarray) and views.actions.shape == shape
    _require(fits, what, f"views.actions is {_kind(views.actions)}; it must be an array {shape}")
    _require(
        (np.sort(views.actions, 1) == every).all(),
        what,
        "views.actions leave out or repeat an action in a view",
    )
    _require(
        (views.actions[0] == every).all(),
        what,
        "views: the first must be the world as it is, but changes actions",
    )
    before = observations.copy()
    for k, picture in enumerate(views.pictures):
        view = picture(observations)
        _require(
            view.shape == observations.shape and view.dtype == observations.dtype,
            what,
            f"views: picture {k} makes {_kind(view)} of {_kind(observations)}",
        )
        _require(
            k > 0 or np.array_equal(view, before),
            what,
            "views: the first must be the world as it is, but changes pictures",
        )
        _require(
            np.array_equal(observations, before),
            what,
            f"views: picture {k} changes what it is given",
        )


def _require_same(first: BatchEnv, twin: BatchEnv, where: str) -> None:
    """Require that two worlds show the same, wherever anybody may look."""
    _require(
        np.array_equal(first.valid, twin.valid),
        where,
        "valid differs between two games of one seed",
    )
    ended = first.terminated | first.truncated
    rows = {"observations": first.valid, "action_mask": first.valid, "final_observations": ended}
    for name in ("rewards", "terminated", "truncated", *rows):
        one = getattr(first, name)
        other = getattr(twin, name)
        own = rows.get(name, slice(None))
        if one is not None:
            _require(
                np.array_equal(one[own], other[own]),
                where,
                f"{name} differ between two games of one seed",
            )


class _AddedUpEpisodes:
    """Returns and lengths of the episodes that end, added up from the arrays of each step."""

    def __init__(self, world: BatchEnv) -> None:
        self.running = np.zeros((world.num_envs, 2))
        self.ended: list[tuple[int, float, float]] = []

    def take_in(self, world: BatchEnv, acting: np.ndarray) -> None:
        self.running += np.stack([world.rewards, acting], axis=1)
        for row in np.flatnonzero(world.terminated | world.truncated):
            self.ended.append((int(row), *self.running[row]))
            self.running[row] = 0


class _DrainedEpisodes:
    """Returns and lengths of the episodes that end, as `drain_episodes` reports them."""

    def __init__(self, what: str) -> None:
        self.what = f"{what}, drain_episodes"
        self.parts: list[np.ndarray] = []

    def take_in(self, columns: dict[str, np.ndarray]) -> None:
        for name, dtype in _ALWAYS.items():
            column = columns.get(name)
            fits = isinstance(column, np.ndarray) and column.dtype == dtype
            _require(fits, self.what, f"{name} is {_kind(column)}; it must be {np.dtype(dtype)}")
        lengths = {name: len(column) for name, column in columns.items()}
        _require(
            len(set(lengths.values())) == 1, self.what, f"columns have different lengths: {lengths}"
        )
        self.parts.append(np.stack([columns[name].astype(float) for name in _ALWAYS], axis=1))

    def compare(self, added_up: _AddedUpEpisodes, *, exact: bool) -> None:
        """Require that the same rows ended, in the same order for each row; with `exact` also equal
        returns and lengths.
        """
        reported = _sorted_by_row(np.concatenate(self.parts))
        counted = _sorted_by_row(np.array(added_up.ended, float).reshape(-1, 3))
        _require(
            np.array_equal(reported[:, 0], counted[:, 0]),
            self.what,
            f"{len(reported)} episodes, but {len(counted)} rows ended, or others",
        )
        if exact:
            same_returns = np.allclose(
                reported[:, 1], counted[:, 1], rtol=_TOLERANCE, atol=_TOLERANCE
            )
            _require(same_returns, self.what, "return is not the sum of the episode's rewards")
            _require(
                np.array_equal(reported[:, 2], counted[:, 2]),
                self.what,
                "length is not the number of actions in the episode",
            )


def _sorted_by_row(episodes: np.ndarray) -> np.ndarray:
    """Sort (row, return, length) by the row, and leave the episodes of one row in their order."""
    return episodes[np.argsort(episodes[:, 0], kind="stable")]


def _check_progress(first: BatchEnv, later: BatchEnv, seed: int, network: Any, what: str) -> None:
    for layer, fresh in zip(layers(first), layers(later), strict=True):
        if (progress := layer.progress()) is not None:
            fresh.carry_on(progress, network)
            name = type(layer).__name__
            _require(
                _equal(fresh.progress(), progress),
                what,
                f"{name}: who carries on has not made the progress it was given",
            )
    later.restart(seed)
    _check_arrays(later, f"{what}, carried on")


def _equal(one: Any, other: Any) -> bool:
    ours = list(_leaves(one))
    theirs = list(_leaves(other))
    return len(ours) == len(theirs) and all(
        place == same_place and np.array_equal(np.asarray(a), np.asarray(b))
        for (place, a), (same_place, b) in zip(ours, theirs, strict=True)
    )


def _leaves(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, f"{place}.{key}")
    elif isinstance(value, list | tuple):
        for number, item in enumerate(value):
            yield from _leaves(item, f"{place}.{number}")
    else:
        yield place, value


def _kind(array: Any) -> str:
    if isinstance(array, np.ndarray):
        return f"{array.dtype} {array.shape}"
    return f"a {type(array).__name__}"


def _require(holds: bool, where: str, trouble: str) -> None:
    if not holds:
        raise ComplianceError(f"{where}: {trouble}")
