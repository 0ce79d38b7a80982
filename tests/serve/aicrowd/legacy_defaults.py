"""Runs on the stack of 2020 and prints Ray's own default configurations as JSON.

    python legacy_defaults.py > serve/aicrowd/ray_086.json

`test_ray_defaults.py` holds the file to what this prints.
"""

import inspect
import json
import re

import ray
from ray.rllib.agents.registry import ALGORITHMS
from ray.rllib.agents.trainer import COMMON_CONFIG, Trainer
from ray.rllib.models.catalog import MODEL_DEFAULTS
from ray.rllib.utils import exploration
from ray.rllib.utils.deprecation import DEPRECATED_VALUE
from ray.rllib.utils.framework import try_import_tf
from ray.tune.experiment import Experiment

# These need what isn't installed.
WITHOUT = ("contrib/",)


def plain(value):
    """The value as JSON has it; a class or function becomes None."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value if isinstance(value, (bool, int, float, str)) else None


def options(function):
    """The names of a constructor's arguments that a user may set."""
    given = ("self", "action_space", "framework", "policy_config", "model", "num_workers")
    parameters = inspect.signature(function).parameters.values()
    kinds = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    names = [one.name for one in parameters if one.kind not in kinds]
    return sorted(set(names) - {*given, "worker_index"})


def explorations():
    classes = inspect.getmembers(exploration, inspect.isclass)
    found = {}
    for name, kind in classes:
        names = set()
        for base in kind.__mro__[:-1]:
            names |= set(options(base.__init__))
        found[name] = sorted(names)
    return found


def trainers():
    """From a trainer to the fields in which it differs from the common ones."""
    found = {}
    for name, imported in sorted(ALGORITHMS.items()):
        if name.startswith(WITHOUT):
            continue
        try:
            config = imported()._default_config
        except ImportError:
            continue
        found[name] = {
            key: plain(value)
            for key, value in sorted(config.items())
            if key not in COMMON_CONFIG or plain(value) != plain(COMMON_CONFIG[key])
        }
    return found


def deprecated():
    """The keys whose default is the mark that they are deprecated."""
    found = {**MODEL_DEFAULTS, **COMMON_CONFIG}
    for differing in trainers().values():
        found = {**differing, **found}
    return sorted(key for key, value in found.items() if value == DEPRECATED_VALUE)


def main():
    arguments = inspect.signature(Experiment.__init__).parameters
    described = {
        "source": {
            "repository": "ray-project/ray",
            "tag": "ray-" + ray.__version__,
            "files": {
                "experiment": "python/ray/tune/experiment.py",
                "common": "rllib/agents/trainer.py",
                "model": "rllib/models/catalog.py",
                "trainers": "rllib/agents/",
                "exploration": "rllib/utils/exploration/",
            },
        },
        "experiment": sorted({*arguments, "env"} - {"self", "name"}),
        "common": plain({**COMMON_CONFIG, "model": {}}),
        "model": plain(MODEL_DEFAULTS),
        "open": sorted(Trainer._allow_unknown_subkeys),
        "trainers": trainers(),
        "exploration": explorations(),
        "session": sorted(try_import_tf().ConfigProto.DESCRIPTOR.fields_by_name),
        "deprecated": deprecated(),
    }
    text = json.dumps(described, indent=1, sort_keys=True)
    # A short list stands in one line.
    print(re.sub(r"\[\s+([^][{}]*?)\s+\]", lambda m: "[" + " ".join(m[1].split()) + "]", text))


if __name__ == "__main__":
    main()
