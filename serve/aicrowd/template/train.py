"""Trains the experiment of a YAML file with Ray 0.8.6: what `run.sh --train` calls. Results lie in ~/ray_results."""

from __future__ import annotations

import argparse
import os

import ray
import yaml
from algorithms import CUSTOM_ALGORITHMS
from callbacks import CustomCallbacks
from ray import tune
from utils.loader import load_algorithms, load_envs, load_models
from utils.returns import score_options


def read_options():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-f", "--config-file", required=True, help="YAML file of the experiment")
    for resource in ("memory", "object-store-memory", "num-cpus", "num-gpus"):
        parser.add_argument("--ray-" + resource, type=int, help="limit of Ray's " + resource)
    return parser.parse_args()


def prepared(experiment, num_gpus):
    """The experiment as Tune takes it."""
    config = experiment["config"]
    config["env_config"].update(score_options(config["env_config"]["env_name"]))
    config["callbacks"] = CustomCallbacks
    for section in (experiment, config):
        section.pop("disable_evaluation_worker", None)
    if not num_gpus:
        print("no GPU: num_gpus and num_gpus_per_worker are set to 0")
        config.update(num_gpus=0, num_gpus_per_worker=0)
    return experiment


def main():
    options = read_options()
    load_envs(os.getcwd())
    load_models(os.getcwd())
    load_algorithms(CUSTOM_ALGORITHMS)
    with open(options.config_file, encoding="utf-8") as file:
        experiments = yaml.safe_load(file)
    ray.init(
        memory=options.ray_memory,
        object_store_memory=options.ray_object_store_memory,
        num_cpus=options.ray_num_cpus,
        num_gpus=options.ray_num_gpus,
    )
    num_gpus = ray.cluster_resources().get("GPU", 0)
    tune.run_experiments({name: prepared(experiment, num_gpus) for name, experiment in experiments.items()}, verbose=1)


if __name__ == "__main__":
    main()
