"""Rules about all sections of the experiment that Ray 0.8.6 reads: it must know each key, and be
able
to use each value.

Ray itself accepts most values and crashes when it first computes with them, on the grader's
machine. Its default configurations show the valid forms: `ray_086.json` holds them, and
`ray_086_values.yaml` what the defaults don't show."""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from serve.aicrowd.competition import FOR_KIT_VALIDATION
from serve.aicrowd.submission import Breach, Submission, strings

_HERE = Path(__file__).parent
_OURS = {"ProcsnakePPO": "PPO", "ProcsnakeDQN": "DQN", "ProcsnakeAPEX": "APEX"}
"""The trainers of Ray that those of an export are made of."""
_BY_VALIDATION = (*FOR_KIT_VALIDATION, "num_envs_per_worker")
"""Keys in `config` whose values another rule checks."""
_WANTED = {
    "flag": "true or false",
    "whole": "a whole number",
    "number": "a number",
    "text": "a text",
    "list": "a list",
    "section": "a section",
    "schedule": "a list of [steps, value]",
}


@dataclass(frozen=True)
class Ray:
    """What Ray 0.8.6 knows."""

    common: dict[str, Any]
    """Each key of all trainers' configurations, with its default."""
    trainers: dict[str, dict[str, Any]]
    """By trainer, the keys that only it has, or with another default."""
    model: dict[str, Any]
    exploration: dict[str, list[str]]
    """By the name of an exploration, its options."""
    session: list[str]
    """The options of a session of TensorFlow."""
    deprecated: frozenset[str]
    experiment: dict[str, str]
    """By the key of an experiment, the form of its value."""
    results: list[str]
    choices: dict[str, list[str]]
    without_default: dict[str, str]
    fractions: frozenset[str]
    forms: dict[str, list[str]]
    schedules: dict[str, list[str]]
    also_called: dict[str, str]

    @classmethod
    @cache
    def read(cls) -> Ray:
        """Read the files in the package."""
        defaults = json.loads((_HERE / "ray_086.json").read_text(encoding="utf-8"))
        more = yaml.safe_load((_HERE / "ray_086_values.yaml").read_text(encoding="utf-8"))
        return cls(
            common=defaults["common"],
            trainers=defaults["trainers"],
            model=defaults["model"],
            exploration=defaults["exploration"],
            session=defaults["session"],
            deprecated=frozenset(defaults["deprecated"]),
            experiment=more["experiment"],
            results=more["results"],
            choices={key: choice["values"] for key, choice in more["choices"].items()},
            without_default=more["without_default"],
            fractions=frozenset(more["fractions"]),
            forms=more["forms"],
            schedules=more["schedules"],
            also_called=more["also_called"],
        )

    def config_of(self, trainer: str | None) -> dict[str, Any]:
        """Return the default configuration of a trainer; for None, the keys of all trainers."""
        if trainer is not None:
            return {**self.common, **self.trainers[trainer]}
        others: dict[str, Any] = {}
        for differing in self.trainers.values():
            others |= differing
        return {**others, **self.common}

    def forms_of(self, key: str, default: Any) -> list[str]:
        """Return the forms that Ray accepts for a key's value; empty if it accepts any."""
        if key in self.forms:
            return self.forms[key]
        if key in self.without_default:
            return [self.without_default[key]]
        if default is None or key in self.deprecated:
            return []
        if key in self.fractions:
            return ["number"]
        return [_form(default)]


def _form(value: Any) -> str:
    """The form of a value that YAML or JSON gave."""
    if isinstance(value, bool):
        return "flag"
    if isinstance(value, int):
        return "whole"
    if isinstance(value, float):
        return "number"
    if isinstance(value, str):
        return "text"
    return "section" if isinstance(value, dict) else "list"


def experiment(submission: Submission) -> Iterator[Breach]:
    """Yield a breach for each key beside `config` that Tune doesn't know, or can't use."""
    if len(submission.experiments) != 1:
        return
    ray = Ray.read()
    path = submission.experiment_path
    for key, value in submission.body.items():
        if str(key) not in ray.experiment:
            yield _unknown(path, str(key), ray.experiment)
        # What stands there is looked at by rules of its own.
        elif key not in ("run", "env", "stop", "config"):
            yield from _value(path, str(key), value, [ray.experiment[key]], is_optional=True)
    stop = submission.body.get("stop")
    for column, limit in stop.items() if isinstance(stop, dict) else ():
        name = f"stop.{column}"
        if str(column) not in ray.results and "/" not in str(column):
            yield _unknown(path, name, ray.results)
        elif column != "timesteps_total":
            yield from _value(path, name, limit, ["number"], is_optional=False)


def config(submission: Submission) -> Iterator[Breach]:
    """Yield a breach for each key in `config` that the trainer doesn't know, and for each value
    that it can't use.
    """
    ray = Ray.read()
    trainer = _trainer(submission, ray)
    defaults = ray.config_of(trainer)
    names = set() if trainer else _names_in(submission, "algorithms/")
    path = submission.experiment_path
    evaluation = submission.config.get("evaluation_config")
    sections = {"config": submission.config}
    if isinstance(evaluation, dict):
        sections["config.evaluation_config"] = evaluation
    for section, settings in sections.items():
        for key, value in settings.items():
            name = f"{section}.{key}"
            if section == "config" and key in _BY_VALIDATION:
                continue
            if str(key) in defaults:
                yield from _setting(path, name, str(key), value, defaults, ray)
            elif str(key) not in names:
                yield _unknown(path, name, defaults, ray.also_called.get(str(key)))
    source = submission.config.get("input", "sampler")
    if (
        isinstance(source, str)
        and source != "sampler"
        and not (submission.folder / source).exists()
    ):
        yield Breach(
            path,
            f"config.input is {source}, where no recorded games are",
            "Leave it away, or set it to sampler",
        )
    yield from _sections(submission, defaults, ray)
    yield from _exploration(submission, defaults, ray)


def model(submission: Submission) -> Iterator[Breach]:
    """Yield a breach for each value in `model` that Ray can't use, and for each name that nothing
    registers.
    """
    ray = Ray.read()
    path = submission.experiment_path
    for key, value in submission.model.items():
        # What these hold is looked at by a rule of its own.
        if str(key) in ray.model and key not in ("custom_options", "custom_model_config"):
            name = f"config.model.{key}"
            yield from _setting(path, name, str(key), value, ray.model, ray)
    for key, folder in (("custom_preprocessor", "preprocessors/"), ("custom_action_dist", "")):
        registered = submission.model.get(key)
        if isinstance(registered, str) and registered not in _names_in(submission, folder):
            yield Breach(
                path,
                f"config.model.{key} is {registered}, which no file of the entry registers",
                "Correct the name, or leave it out",
            )


def combinations(submission: Submission) -> Iterator[Breach]:
    """Yield a breach for values that Ray can use individually but not together."""
    ray = Ray.read()
    trainer = _trainer(submission, ray)
    settings = {**ray.config_of(trainer), **submission.config}
    path = submission.experiment_path

    def number(key: str) -> float:
        value = settings.get(key)
        return float(value) if isinstance(value, int | float) else math.nan

    if trainer in ("PPO", "APPO", "DDPPO"):
        if number("sgd_minibatch_size") > number("train_batch_size"):
            yield Breach(
                path,
                f"config.sgd_minibatch_size is {settings['sgd_minibatch_size']}, more than"
                f" config.train_batch_size, {settings['train_batch_size']}",
                "Lower it, or raise the other",
            )
        if settings["batch_mode"] == "truncate_episodes" and settings.get("use_gae") is False:
            yield Breach(
                path,
                "config.use_gae is false, and only complete episodes can be learned from then",
                "Set it to true, or config.batch_mode to complete_episodes",
            )
    if number("entropy_coeff") < 0:
        yield Breach(path, f"config.entropy_coeff is {settings['entropy_coeff']}", "Set it from 0")
    if settings.get("prioritized_replay") is True:
        for key in ("prioritized_replay_alpha", "prioritized_replay_beta"):
            if number(key) <= 0:
                fix = "Set it above 0, or config.prioritized_replay to false"
                yield Breach(path, f"config.{key} is {settings[key]}", fix)
    for key in ("exploration_fraction", "beta_annealing_fraction"):
        if key in submission.config and "schedule_max_timesteps" not in submission.config:
            fix = "Set config.exploration_config.epsilon_timesteps instead"
            yield Breach(path, f"config.{key} is there without schedule_max_timesteps", fix)


def _trainer(submission: Submission, ray: Ray) -> str | None:
    """The trainer of Ray that the experiment runs; None for one of the entry's own."""
    run = str(submission.body.get("run"))
    name = _OURS.get(run, run)
    return name if name in ray.trainers else None


def _sections(submission: Submission, defaults: Mapping[str, Any], ray: Ray) -> Iterator[Breach]:
    """Yield a breach for each wrong key of the sections whose keys Ray fixes."""
    path = submission.experiment_path
    for key in ("multiagent", "tf_session_args", "local_tf_session_args"):
        section = submission.config.get(key)
        known = ray.session if key.endswith("session_args") else defaults[key]
        for name in section if isinstance(section, dict) else ():
            if str(name) not in known:
                yield _unknown(path, f"config.{key}.{name}", known)
    multiagent = submission.config.get("multiagent")
    if isinstance(multiagent, dict):
        policies = multiagent.get("policies", {})
        yield from _value(
            path, "config.multiagent.policies", policies, ["section"], is_optional=False
        )


def _exploration(submission: Submission, defaults: Mapping[str, Any], ray: Ray) -> Iterator[Breach]:
    """Yield a breach for an exploration that Ray doesn't have, and for each of its options that
    Ray can't use.
    """
    path = submission.experiment_path
    exploration = submission.config.get("exploration_config")
    if not isinstance(exploration, dict):
        return
    kind = exploration.get("type", defaults["exploration_config"]["type"])
    # A name with dots is a class somewhere else.
    if not isinstance(kind, str) or "." in kind:
        return
    section_name = "config.exploration_config"
    if kind not in ray.exploration:
        fix = _did_you_mean(kind, ray.exploration) or f"Choose from {', '.join(ray.exploration)}"
        yield Breach(path, f"{section_name}.type is {kind}, which Ray 0.8.6 doesn't have", fix)
        return
    known = ["type", *ray.exploration[kind]]
    for name, value in exploration.items():
        if str(name) not in known:
            yield _unknown(path, f"{section_name}.{name}", known)
        elif name in ("epsilon_schedule", "scale_schedule"):
            yield from _schedule(path, f"{section_name}.{name}", value, ray)
        elif name not in ("type", "sub_exploration"):
            yield from _value(path, f"{section_name}.{name}", value, ["number"], is_optional=False)


def _schedule(path: str, name: str, value: Any, ray: Ray) -> Iterator[Breach]:
    """Yield a breach for a section from which Ray can't make a schedule."""
    if not isinstance(value, dict):
        yield from _value(path, name, value, ["section"], is_optional=True)
        return
    kind = str(value.get("type")).rpartition(".")[2]
    if kind not in ray.schedules:
        fix = _did_you_mean(kind, ray.schedules) or f"Choose from {', '.join(ray.schedules)}"
        yield Breach(path, f"{name}.type is {value.get('type')}, which Ray 0.8.6 doesn't have", fix)
        return
    known = ["type", *ray.schedules[kind]]
    for option in value:
        if str(option) not in known:
            yield _unknown(path, f"{name}.{option}", known)


def _setting(
    path: str, name: str, key: str, value: Any, defaults: Mapping[str, Any], ray: Ray
) -> Iterator[Breach]:
    """Yield a breach if Ray can't use the value of a key that it knows."""
    if isinstance(value, dict) and list(value) == ["grid_search"]:
        # Tune makes a trial of each.
        candidates = value["grid_search"]
        for candidate in candidates if isinstance(candidates, list) else [candidates]:
            yield from _setting(path, name, key, candidate, defaults, ray)
        return
    forms = ray.forms_of(key, defaults[key])
    # The trainers of Q values have a limit for gradients by default, and take none, too.
    is_optional = defaults[key] is None or key in ray.deprecated or key == "grad_clip"
    faults = list(_value(path, name, value, forms, is_optional=is_optional))
    yield from faults
    if not faults and key in ray.choices and value is not None and value not in ray.choices[key]:
        fix = f"Choose from {', '.join(ray.choices[key])}"
        yield Breach(path, f"{name} is {value!r}, which Ray 0.8.6 doesn't know", fix)


def _value(
    path: str, name: str, value: Any, forms: list[str], *, is_optional: bool
) -> Iterator[Breach]:
    """Yield a breach if a value has none of these forms."""
    if not forms or (value is None and is_optional):
        return
    if any(_has_form(value, form) for form in forms):
        return
    wanted = " or ".join(_WANTED[form] for form in forms)
    if isinstance(value, str) and (number := _number_in(value)) is not None:
        yield Breach(
            path,
            f"{name} is {value!r}, which YAML reads as a text, and Ray 0.8.6 wants {wanted}",
            f"Write {number}",
        )
        return
    yield Breach(path, f"{name} is {value!r}, and Ray 0.8.6 wants {wanted}", "Correct it")


def _has_form(value: Any, form: str) -> bool:
    if form == "flag":
        # Ray takes any text for true. The starter kit's own example writes `explore: True,`.
        return isinstance(value, bool) or str(value).lower() in ("true,", "true", "0", "1")
    if form in ("whole", "number"):
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        is_whole = is_number and isinstance(value, int)
        return is_whole or (form == "number" and is_number and not math.isnan(value))
    if form == "schedule":
        return isinstance(value, list) and all(_is_knot(knot) for knot in value)
    return {"text": str, "list": list, "section": dict}[form] is type(value)


def _is_knot(knot: Any) -> bool:
    return (
        isinstance(knot, list) and len(knot) == 2 and all(_has_form(one, "number") for one in knot)
    )


def _number_in(text: str) -> str | None:
    """The number that a text means, as YAML reads it; None if it means none."""
    try:
        number = float(text)
    except ValueError:
        return None
    if not math.isfinite(number):
        return None
    return str(int(number)) if number.is_integer() else f"{number:.10f}".rstrip("0")


def _names_in(submission: Submission, folder: str) -> set[str]:
    """All texts in the Python files of a folder of the entry, among which registered names are."""
    names: set[str] = set()
    for path in submission.files:
        if path.startswith(folder) and path.endswith(".py"):
            names |= strings(submission.tree(path))
    return names


def _unknown(path: str, name: str, known: Collection[str], synonym: str | None = None) -> Breach:
    what = f"{name} is not a setting that Ray 0.8.6 reads"
    if synonym in known:
        return Breach(path, what, f"Ray calls it {synonym}")
    return Breach(path, what, _did_you_mean(name.rpartition(".")[2], known) or "Remove it")


def _did_you_mean(name: str, known: Collection[str]) -> str:
    """A question that names the nearest one; "" if none is near."""
    near = difflib.get_close_matches(name, known, n=1)
    return f"Did you mean {near[0]}?" if near else ""
