"""Translates the hyperparameters of procsnake's predecessors into an experiment's overrides.

`predecessors.yaml` lists all names in their notebooks, scripts and YAML files, and whether each
maps to one of our keys, has no effect here, or is refused. A name is refused if dropping it would
change what is learned."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from envs.common.errors import ConfigError, UnknownNameError

_TABLE = Path(__file__).with_name("predecessors.yaml")
_ROOT = "rl.training."
"""What RLlib's names of 2020 begin with, in the Procgen kit and in the Battlesnake pack."""
_ALGORITHMS = {"PPO": "ppo", "DQN": "dqn", "APEX": "apex"}
_WIDE = 10.0
"""A limit for the value loss from which on it is hardly ever reached."""
_ITERATION = {"dqn": ("timesteps_per_iteration", 1000), "apex": ("timesteps_per_iteration", 25000)}
"""By algorithm, the name of the steps of an iteration, and Ray's default of them. PPO's are the
training batch."""
_PPO_BATCH = 4000
_MASKED = ("banned_wall_hits", "banned_forbidden_moves")
"""Heuristics of the Battlesnake pack that mask moves which are masked here in any case."""


def translate(
    values: Mapping[str, Any], algorithm_of_experiment: Callable[[], str]
) -> tuple[dict[str, Any], list[str]]:
    """Return (overrides, notes on what isn't used) for decoded hyperparameters. Names that aren't
    the predecessors' stay as they are.

    `algorithm_of_experiment` is asked if their names are used and no hyperparameter says which
    algorithm they are for. Raises `UnknownNameError` for `rl.…` names that they didn't have either,
    and `ConfigError` that names all hyperparameters which can't be kept, with the reasons."""
    table = _table()
    # A seed has the same name in all of them, and in an experiment.
    bare = (table["battlesnake"].keys() | table["mxnet"].keys()) - {"seed"}
    theirs = {
        name: value for name, value in values.items() if name.startswith("rl.") or name in bare
    }
    if values.get("algorithm") not in _ALGORITHMS:
        # Then it is ours.
        theirs.pop("algorithm", None)
    if not theirs:
        return dict(values), []
    ours = {name: value for name, value in values.items() if name not in theirs}
    run = theirs.get(f"{_ROOT}run", theirs.get("algorithm"))
    algorithm = ours.get("algorithm") or (
        _algorithm(run) if run is not None else algorithm_of_experiment()
    )
    translation = _Translation(algorithm, theirs)
    translation.take_all()
    if translation.refusals:
        raise ConfigError(
            "these hyperparameters can't be kept: " + ". ".join(translation.refusals) + "."
        )
    return {**ours, **translation.overrides}, translation.notes


@cache
def _table() -> dict[str, dict[str, dict[str, Any]]]:
    return yaml.safe_load(_TABLE.read_text(encoding="utf-8"))


def _algorithm(run: Any) -> str:
    if run not in _ALGORITHMS:
        raise UnknownNameError(f"{_ROOT}run", str(run), _ALGORITHMS)
    return _ALGORITHMS[run]


@dataclass
class _Translation:
    """The predecessors' names of one job, taken one by one."""

    algorithm: str
    theirs: dict[str, Any]
    overrides: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)

    def take_all(self) -> None:
        for name, value in self.theirs.items():
            if name.startswith("rl."):
                self._take_rllibs(name.removeprefix(_ROOT), value)
            else:
                self._take_bare(name, value)

    def _take_rllibs(self, name: str, value: Any) -> None:
        rows = _table()["rl.training"]
        key = name
        # An option of a model or wrapper goes with the section that it is in.
        while key not in rows and "." in key:
            key = key.rpartition(".")[0]
        if key not in rows:
            known = [f"{_ROOT}{one}" for one in rows]
            hint = "These are the names of the predecessors' notebooks, scripts and files."
            raise UnknownNameError("hyperparameter", f"{_ROOT}{name}", known, hint=hint)
        self._take(f"{_ROOT}{name}", name, rows[key], value)

    def _take_bare(self, name: str, value: Any) -> None:
        wanted = "mxnet" if self.algorithm == "mxnet_dqn" else "battlesnake"
        row = _table()[wanted].get(name)
        if row is None:
            other = "battlesnake-ppo" if wanted == "mxnet" else "battlesnake-mxnet-starter-pack"
            self.refuse(name, f"{self.algorithm} has no such setting; choose experiment={other}")
        else:
            self._take(name, name, row, value)

    def _take(self, full: str, name: str, row: Mapping[str, Any], value: Any) -> None:
        """Take one name by its row of the table; `full` is how the user wrote it."""
        if "only" in row and self.algorithm not in row["only"].split(", "):
            self.refuse(full, f"{self.algorithm} has no such setting")
        elif isinstance(value, dict) and "grid_search" in value:
            self.refuse(full, "a job has one value; search with procsnake tune")
        elif "special" in row:
            _SPECIAL[row["special"]](self, full, name, value)
        elif "to" in row:
            self._set(full, row["to"].format(algorithm=self.algorithm), value)
        elif "note" in row and ("only_value" not in row or _is_one_of(value, row["only_value"])):
            self.notes.append(f"{full} is not used: {row['note']}")
        else:
            self.refuse(full, row["refuse"].format(algorithm=self.algorithm))

    def _set(self, full: str, key: str, value: Any) -> None:
        if value is not None:
            self.overrides[key] = _plain(value)
        elif key.endswith("max_grad_norm"):
            # Ray's None is our 0: gradients aren't limited.
            self.overrides[key] = 0.0
        else:
            self.notes.append(f"{full} is not used: it is empty")

    def refuse(self, name: str, why: str) -> None:
        self.refusals.append(f"{name}: {why}")

    def rllibs(self, name: str, default: Any = None) -> Any:
        """The value of another of RLlib's names."""
        return self.theirs.get(f"{_ROOT}{name}", default)

    # Rules for names that mean something together, or in another form.

    def run(self, full: str, _: str, value: Any) -> None:
        self.overrides["algorithm"] = _algorithm(value)

    def minutes(self, full: str, _: str, value: Any) -> None:
        self.overrides["budget.max_minutes"] = _number(value) / 60

    def target(self, full: str, _: str, value: Any) -> None:
        self.overrides |= {"stop.metric": "episode_return_mean", "stop.at_least": value}

    def iterations(self, full: str, _: str, value: Any) -> None:
        """A budget in iterations becomes one in decisions."""
        if self.rllibs("stop.timesteps_total") is not None:
            self.notes.append(f"{full} is not used: the budget is given in steps")
            return
        name, default = _ITERATION.get(self.algorithm, ("train_batch_size", _PPO_BATCH))
        inner = self.theirs.get("additional_configs")
        size = self.rllibs(f"config.{name}")
        if size is None and isinstance(inner, dict):
            size = inner.get(name)
        steps = round(_number(value) * (_number(size) if size else default))
        # Ray counted a step of all snakes as one.
        steps *= max(1, round(_number(self.theirs.get("num_agents", 1))))
        self.overrides["budget.total_agent_steps"] = steps

    def batch(self, full: str, name: str, value: Any) -> None:
        """For PPO two sizes become the number of minibatches."""
        batch = self.rllibs("config.train_batch_size")
        minibatch = self.rllibs("config.sgd_minibatch_size")
        if self.algorithm != "ppo":
            if name == "config.train_batch_size":
                self.overrides[f"{self.algorithm}.train_batch_size"] = _plain(value)
            else:
                self.refuse(full, f"{self.algorithm} has no such setting")
        elif batch is None or minibatch is None:
            self.notes.append(
                f"{full} is not used: train_batch_size and sgd_minibatch_size mean something only"
                " together; a batch is all that env runners play in a rollout"
            )
        elif name == "config.train_batch_size":
            ratio = _number(batch) / max(_number(minibatch), 1.0)
            self.overrides["ppo.num_minibatches"] = max(1, round(ratio))

    def schedule(self, full: str, name: str, value: Any) -> None:
        key = {"config.lr_schedule": "learning_rate"}.get(name, "ent_coef")
        if isinstance(value, list):
            self.overrides[f"{self.algorithm}.{key}"] = value
        elif value is not None:
            self.refuse(full, "a schedule is a list of knots: [[agent steps, value]]")

    def value_clipping(self, full: str, _: str, value: Any) -> None:
        clip = _number(self.rllibs("config.clip_param", 0.3))
        if _number(value) == clip:
            self.overrides["ppo.clip_vloss"] = True
        elif _number(value) >= _WIDE:
            self.overrides["ppo.clip_vloss"] = False
        else:
            self.refuse(
                full, f"ppo.clip_vloss limits values as ppo.clip_coef does, {clip:g}, or not at all"
            )

    def game(self, full: str, _: str, value: Any) -> None:
        self.overrides["env.name"] = f"procgen/{value}"

    def levels(self, full: str, _: str, value: Any) -> None:
        """Two names choose Procgen's levels. A number of 0 stood for all."""
        num = self.rllibs("config.env_config.num_levels")
        start = self.rllibs("config.env_config.start_level")
        chosen = f"{int(_number(start or 0))}:{int(_number(num))}" if num else "all"
        self.overrides["env.options.levels"] = chosen

    def network(self, full: str, _: str, value: Any) -> None:
        if str(value).startswith("impala_cnn"):
            self.overrides["network.name"] = "impala"
        elif value is not None:
            self.refuse(full, "write it as a file of networks (docs/your-own-parts.md)")

    def map_size(self, full: str, _: str, value: Any) -> None:
        sides = json.loads(value) if isinstance(value, str) else value
        width, height = sides if isinstance(sides, list) else (sides, sides)
        self.overrides |= {"env.options.width": width, "env.options.height": height}

    def config(self, full: str, _: str, value: Any) -> None:
        """A section of RLlib's names, which the notebook gives as one hyperparameter."""
        if not isinstance(value, dict):
            self.refuse(full, "it is a section of RLlib's names")
            return
        inner = {f"{_ROOT}config.{key}": item for key, item in value.items()}
        self.theirs = {**inner, **self.theirs}
        for key, item in inner.items():
            self._take_rllibs(key.removeprefix(_ROOT), item)

    def heuristics(self, full: str, _: str, value: Any) -> None:
        others = [name for name in value or () if name not in _MASKED]
        if others:
            self.refuse(full, f"write {others[0]} as a heuristic of the agent (docs/heuristics.md)")
        elif value:
            self.notes.append(f"{full} is not used: certain deaths are always masked")

    def representation(self, full: str, _: str, value: Any) -> None:
        self.overrides["env.options.observation"] = {"type": value, "own_first": True}

    def seeds(self, full: str, _: str, value: Any) -> None:
        numbers = value if isinstance(value, list) else [value]
        if len(numbers) > 1:
            self.refuse(full, "a job has one seed; start a job for each")
        else:
            self.overrides["seed"] = numbers[0]


_SPECIAL: dict[str, Callable[[_Translation, str, str, Any], None]] = {
    "batch": _Translation.batch,
    "config": _Translation.config,
    "game": _Translation.game,
    "heuristics": _Translation.heuristics,
    "iterations": _Translation.iterations,
    "levels": _Translation.levels,
    "map size": _Translation.map_size,
    "minutes": _Translation.minutes,
    "network": _Translation.network,
    "representation": _Translation.representation,
    "run": _Translation.run,
    "schedule": _Translation.schedule,
    "seeds": _Translation.seeds,
    "target": _Translation.target,
    "value clipping": _Translation.value_clipping,
}


def _is_one_of(value: Any, expected: Any) -> bool:
    return value == expected or (isinstance(expected, list) and value in expected)


def _plain(value: Any) -> Any:
    """The value, or the number that a text means, as YAML reads 5e-4 as a text."""
    if not isinstance(value, str):
        return value
    try:
        return float(value)
    except ValueError:
        return value


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ConfigError(f"hyperparameter value {value!r} is not a number") from None
