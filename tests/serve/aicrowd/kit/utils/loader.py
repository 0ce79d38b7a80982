"""Stand-in of the starter kit's loader: files are executed one by one, in no order, and are no
modules afterwards.
"""

import glob
import importlib.machinery
import os
import types


def source(path):
    name = os.path.basename(path).replace(".py", "")
    importlib.machinery.SourceFileLoader(name, path).exec_module(types.ModuleType(name))


def load_envs(local_dir="."):
    for path in glob.glob(os.path.join(local_dir, "envs", "*.py")):
        source(path)


def load_models(local_dir="."):
    for path in glob.glob(os.path.join(local_dir, "models", "*.py")):
        source(path)


def load_algorithms(algorithms):
    from ray.tune import registry

    for name, imported in algorithms.items():
        registry.register_trainable(name, imported())


def load_preprocessors(preprocessors):
    from ray.rllib.models import ModelCatalog

    for name, preprocessor in preprocessors.items():
        ModelCatalog.register_custom_preprocessor(name, preprocessor)
