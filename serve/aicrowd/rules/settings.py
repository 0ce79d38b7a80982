"""Rules about the settings in the experiment's YAML file: workers, steps, options of the
environment and of the network.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Collection, Iterator
from typing import Any, TypeGuard

from envs.procgen.games import GAMES
from serve.aicrowd.competition import CORES, FOR_KIT_VALIDATION, MAX_STEPS, NUM_LEVELS
from serve.aicrowd.submission import Breach, Submission, strings

Check = Callable[[Any], bool]


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_positive(value: Any) -> bool:
    return _is_whole(value) and value > 0


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _or_none(check: Check) -> Check:
    return lambda value: value is None or check(value)


def _list_of(check: Check) -> Check:
    return lambda value: isinstance(value, list) and all(check(item) for item in value)


_FLAGS = (
    "center_agent",
    "paint_vel_info",
    "restrict_themes",
    "use_backgrounds",
    "use_generated_assets",
    "use_monochrome_assets",
    "use_sequential_levels",
)
_GAME_OPTIONS: dict[str, Check] = {
    **dict.fromkeys(_FLAGS, _is_flag),
    **dict.fromkeys(("num_levels", "start_level", "rand_seed", "debug_mode"), _is_whole),
    **dict.fromkeys(("env_name", "distribution_mode", "render_mode"), _is_text),
    **dict.fromkeys(("return_min", "return_blind", "return_max"), _is_number),
}
"""The options that the competition's environment takes: those of Procgen 0.10, and three for the
score.
"""
_WRAPPER_OPTIONS: dict[str, Check] = {
    "action_repeat": _is_positive,
    "frame_stack": _or_none(_is_positive),
    "gap_stack": _or_none(_is_positive),
    "augment": _or_none(_list_of(_is_text)),
    "shape_rewards": _is_flag,
    "norm_reward": _or_none(_is_number),
}
"""The options that envs/procsnake_env.py takes besides."""
_NETWORK_OPTIONS: dict[str, Check] = {
    "depths": lambda value: _list_of(_is_positive)(value) and bool(value),
    "blocks": _is_positive,
    "pooling": lambda value: value in ("flatten", "average", "max"),
    "hidden": _is_positive,
    "stem_stride": _is_positive,
    "offset": _is_number,
    "scales": lambda value: _list_of(_is_number)(value) and bool(value),
    "weights": _is_text,
}
"""The options that models/procsnake_tf.py and models/procsnake_torch.py take."""
_MODEL_KEYS = (
    "conv_filters",
    "conv_activation",
    "fcnet_activation",
    "fcnet_hiddens",
    "free_log_std",
    "no_final_linear",
    "vf_share_layers",
    "use_lstm",
    "max_seq_len",
    "lstm_cell_size",
    "lstm_use_prev_action_reward",
    "state_shape",
    "framestack",
    "dim",
    "grayscale",
    "zero_mean",
    "custom_model",
    "custom_model_config",
    "custom_action_dist",
    "custom_preprocessor",
    "custom_options",
)
"""The keys of Ray 0.8.6's model configuration, except those that begin with an underscore."""


def validation(submission: Submission) -> Iterator[Breach]:
    """Yield a breach for each rule of AIcrowd's own validation that is broken: processes, and
    shares of the GPU.
    """
    path = submission.experiment_path
    config = submission.config
    if not config:
        return
    wrong = [
        key for key in FOR_KIT_VALIDATION if not _is_number(config.get(key)) or config[key] < 0
    ]
    for key in wrong:
        what = (
            f"config.{key} is {config.get(key)!r}; AIcrowd's validation wants a number that isn't"
            " negative"
        )
        yield Breach(path, what, f"Set config.{key}")
    if wrong:
        return
    for key, least in (("num_workers", 0), ("num_envs_per_worker", 1)):
        if not _is_whole(config.get(key, 1)) or config.get(key, 1) < least:
            yield Breach(
                path,
                f"config.{key} is {config[key]!r}",
                f"Set it to a whole number from {least} on",
            )
    processes = config["num_workers"] + (
        0 if submission.body.get("disable_evaluation_worker", False) else 1
    )
    if processes >= CORES:
        fix = f"Lower num_workers to {CORES - 1}, and set disable_evaluation_worker: true"
        yield Breach(path, f"{processes} workers beside the trainer on {CORES} cores", fix)
    gpus = config["num_gpus"] + processes * config["num_gpus_per_worker"]
    if gpus > 1:
        yield Breach(
            path, f"they use {gpus:.3f} of the one GPU", "Lower num_gpus or num_gpus_per_worker"
        )


def training(submission: Submission) -> Iterator[Breach]:
    """Yield a breach for each rule of the competition that is broken: number of steps, game,
    distribution mode and levels.
    """
    path = submission.experiment_path
    env = submission.env_config
    if not submission.config:
        return
    if not env:
        yield Breach(
            path,
            "config.env_config isn't there, and train.py writes into it",
            "Add it with env_name and num_levels",
        )
        return
    stop = submission.body.get("stop")
    steps = stop.get("timesteps_total") if isinstance(stop, dict) else None
    repeats = env.get("action_repeat", env.get("frame_skip", 1))
    if isinstance(repeats, int) and repeats > 0:
        allowed = MAX_STEPS // repeats
    else:
        allowed = MAX_STEPS
    if not _is_number(steps) or not 0 < steps <= allowed:
        why = f" with each action repeated {repeats} times" if repeats != 1 else ""
        yield Breach(
            path,
            f"stop.timesteps_total is {steps!r}; at most {allowed:,} are allowed{why}",
            f"Set it to {allowed}",
        )
    if env.get("env_name") not in list(GAMES):
        yield Breach(
            path,
            f"env_config.env_name is {env.get('env_name')!r}",
            f"Choose one of {', '.join(GAMES)}",
        )
    if env.get("distribution_mode", "easy") != "easy":
        yield Breach(
            path,
            f"distribution_mode is {env['distribution_mode']!r}; the competition plays easy",
            "Set it to easy",
        )
    if env.get("num_levels") not in NUM_LEVELS.values():
        fix = ", ".join(f"{num} for {track}" for track, num in NUM_LEVELS.items())
        yield Breach(
            path, f"env_config.num_levels is {env.get('num_levels')!r}", f"Set it to {fix}"
        )
    if env.get("start_level", 0) != 0:
        yield Breach(path, f"env_config.start_level is {env['start_level']!r}", "Set it to 0")


def environment(submission: Submission) -> Iterator[Breach]:
    """Yield a breach for each option of the environment that nothing reads or that has an
    impossible value.

    Known options are the game's, procsnake's, and all names that occur as text in a file of envs/.
    """
    evaluation = submission.config.get("evaluation_config")
    sections = {"env_config": submission.env_config}
    if isinstance(evaluation, dict) and isinstance(evaluation.get("env_config"), dict):
        sections["evaluation_config.env_config"] = evaluation["env_config"]
    is_ours = submission.body.get("env") == "procsnake_env"
    checks = {**_GAME_OPTIONS, **(_WRAPPER_OPTIONS if is_ours else {})}
    named = {
        text for path in submission.files_below("envs") for text in strings(submission.tree(path))
    }
    augmentations = strings(submission.tree("utils/augment.py"))
    for section, options in sections.items():
        # Which game, levels and mode: see `training`.
        others = {
            name: value
            for name, value in options.items()
            if name not in ("env_name", "num_levels", "start_level")
        }
        yield from _options(submission.experiment_path, section, others, checks, named)
        chosen: Any = options.get("augment")
        for name in chosen if is_ours and _list_of(_is_text)(chosen) else ():
            if augmentations and name not in augmentations:
                yield Breach(
                    submission.experiment_path,
                    f"{section}.augment has {name!r}, which utils/augment.py lacks",
                    "Correct it",
                )


def model(submission: Submission) -> Iterator[Breach]:
    """Yield a breach for each wrong option of the network, and for a network of another framework
    than the one that trains.
    """
    path = submission.experiment_path
    config = submission.model
    yield from _options(path, "model", config, dict.fromkeys(_MODEL_KEYS, lambda _: True), ())
    name = config.get("custom_model")
    files = submission.files_below("models")
    named = {text for file in files for text in strings(submission.tree(file))}
    checks = _NETWORK_OPTIONS if str(name).startswith("procsnake_") else {}
    for key in ("custom_options", "custom_model_config"):
        options = config.get(key, {})
        if not isinstance(options, dict):
            yield Breach(path, f"model.{key} is {options!r}", "Make it a section")
            continue
        yield from _options(path, f"model.{key}", options, checks, () if checks else named)
        weights = options.get("weights")
        if isinstance(weights, str) and weights and not (submission.folder / weights).is_file():
            yield Breach(
                path,
                f"model.{key}.weights is {weights}, which isn't there",
                "Correct the path, or leave it out",
            )
    for file in files:
        if isinstance(name, str) and name in strings(submission.tree(file)):
            yield from _framework(submission, file, name)


def _framework(submission: Submission, file: str, name: str) -> Iterator[Breach]:
    text = submission.text(file)
    is_torch = "TorchModelV2" in text
    is_tf = "TFModelV2" in text
    if submission.is_torch:
        trained, made = ("torch", "TensorFlow")
    else:
        trained, made = ("TensorFlow", "torch")
    if is_torch != is_tf and is_torch != submission.is_torch:
        fix = f"Set use_pytorch: {str(is_torch).lower()}, or choose a model for {trained}"
        yield Breach(
            submission.experiment_path,
            f"custom_model {name} is for {made}, and {trained} trains it",
            fix,
        )


def _options(
    path: str,
    section: str,
    options: dict[str, Any],
    checks: dict[str, Check],
    named: Collection[str],
) -> Iterator[Breach]:
    for name, value in options.items():
        if name in checks:
            if not checks[name](value):
                yield Breach(
                    path, f"{section}.{name} is {value!r}, which it can't be", "Correct it"
                )
        elif str(name) not in named:
            near = difflib.get_close_matches(str(name), [*checks, *named], n=1)
            if near:
                fix = f"Did you mean {near[0]}?"
            else:
                fix = f"Choose from {', '.join(checks)}" if checks else "Remove it"
            yield Breach(path, f"{section}.{name} is not an option that anything reads", fix)
