"""Stand-in of the starter kit's train.py: what it imports, the order in which it loads, what it
refuses and what it changes.
"""

import argparse
import os
import sys

import ray
import yaml
from aicrowd_helpers.config import EASY_GAME_RANGES
from algorithms import CUSTOM_ALGORITHMS
from callbacks import CustomCallbacks
from preprocessors import CUSTOM_PREPROCESSORS
from ray.tune import run_experiments
from utils.loader import load_algorithms, load_envs, load_models, load_preprocessors

load_envs(os.getcwd())
load_models(os.getcwd())
load_algorithms(CUSTOM_ALGORITHMS)
load_preprocessors(CUSTOM_PREPROCESSORS)

parser = argparse.ArgumentParser()
parser.add_argument("-f", "--config-file")
for name in ("memory", "num-cpus", "object-store-memory"):
    parser.add_argument("--ray-" + name, type=int)


def validate(experiment):
    config = experiment["config"]
    missing = [
        key for key in ("num_workers", "num_gpus", "num_gpus_per_worker") if key not in config
    ]
    if missing:
        sys.exit(f"refused: the config lacks {missing}")
    processes = config["num_workers"] + (0 if experiment.get("disable_evaluation_worker") else 1)
    if processes >= 8:
        sys.exit(f"refused: {processes} workers")
    gpus = config["num_gpus"] + processes * config["num_gpus_per_worker"]
    if gpus > 1:
        sys.exit(f"refused: {gpus} GPUs")


if __name__ == "__main__":
    options = parser.parse_args()
    with open(options.config_file) as file:
        experiments = yaml.safe_load(file)
    for experiment in experiments.values():
        validate(experiment)
        game = experiment["config"]["env_config"]["env_name"]
        returns = zip(("return_min", "return_blind", "return_max"), EASY_GAME_RANGES[game])
        experiment["config"]["env_config"].update(returns)
        experiment["config"]["callbacks"] = CustomCallbacks
        experiment.pop("disable_evaluation_worker", None)
        # The grader does so where there is no GPU.
        experiment["config"].update(num_gpus=0, num_gpus_per_worker=0)
    ray.init(
        memory=options.ray_memory,
        num_cpus=options.ray_num_cpus,
        object_store_memory=options.ray_object_store_memory,
    )
    run_experiments(experiments, verbose=1, concurrent=True)
