"""Runs inside an entry on today's Python: makes its environment as Ray's workers do, and tells what
it does, as JSON.

    python kit_probe.py EXPERIMENT.yaml

gym 0.17 and Ray 0.8.6 aren't here, so their few names that environments and loaders use are stood
in for. The games are Procgen's, in gym3's own adapter to gym, which takes no seed and ignores a
reset within an episode."""

import importlib
import json
import sys
import types

import gymnasium.spaces
import numpy as np
import yaml

MADE = {}
REGISTERED = {}


def register(id, entry_point, kwargs):
    """As gym 0.17's: Procgen calls it when it is imported."""
    REGISTERED[id] = kwargs


def make(path, **options):
    """As gym 0.17's, with Procgen's own factory."""
    module, _, name = path.partition(":")
    factory = importlib.import_module(module + ".gym_registration").make_env
    return factory(**REGISTERED[name], **options)


def stand_in():
    """Modules `gym` and `ray` with what an entry's envs/ and loader use of them."""
    gym = types.ModuleType("gym")
    gym.Env = object
    gym.Wrapper = object
    gym.spaces = gymnasium.spaces
    gym.make = make
    registry = types.SimpleNamespace(register_env=MADE.__setitem__, register_trainable=dict)
    catalog = types.SimpleNamespace(register_custom_preprocessor=dict)
    sys.modules["gym"] = gym
    for name, names in {
        "gym.envs": {},
        "gym.envs.registration": {"register": register},
        "ray": {},
        "ray.tune": {"registry": registry},
        "ray.rllib": {},
        "ray.rllib.models": {"ModelCatalog": catalog},
    }.items():
        sys.modules[name] = types.ModuleType(name)
        sys.modules[name].__dict__.update(names)


def main():
    sys.path.insert(0, ".")
    stand_in()
    from aicrowd_helpers.config import EASY_GAME_RANGES
    from utils.loader import load_envs, load_preprocessors

    load_envs(".")
    load_preprocessors({})
    with open(sys.argv[1]) as file:
        (body,) = yaml.safe_load(file).values()
    options = body["config"]["env_config"]
    names = ("return_min", "return_blind", "return_max")
    options.update(zip(names, EASY_GAME_RANGES[options["env_name"]]), rand_seed=3)
    env = MADE[body["env"]](options)
    # RolloutWorker.__init__ does so if the experiment has a seed.
    env.seed(body["config"]["seed"])
    first = env.reset()
    actions = np.random.RandomState(0).randint(15, size=9)
    for action in actions[:8]:
        observation, _, done, info = env.step(int(action))
        assert not done, "the episode was to be longer"
    early = env.reset()
    _, _, _, after = env.step(int(actions[8]))
    told = {
        "shape": list(first.shape),
        "early_reset_is_ignored": (
            options.get("augment") is not None or bool((early == observation).all())
        ),
        "length_before": info["episode_length"],
        "length_after": after["episode_length"],
    }
    try:
        MADE["procgen_env_wrapper"](dict.fromkeys(names, 0)).seed(1)
    except TypeError as error:
        told["seed_of_the_kit"] = str(error)
    print(json.dumps(told))


if __name__ == "__main__":
    main()
