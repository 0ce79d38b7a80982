"""Trains the experiment of a YAML file with Ray 0.8.6. `run.sh --train` calls it. Results lie in
~/ray_results.

It has the options of the starter kit's train.py. Without -f, the options --run and --env describe
the experiment.
"""

from __future__ import annotations

import argparse
import os

import ray
import yaml
from aicrowd_helpers.config import EASY_GAME_RANGES
from algorithms import CUSTOM_ALGORITHMS
from callbacks import CustomCallbacks
from preprocessors import CUSTOM_PREPROCESSORS
from ray.cluster_utils import Cluster
from ray.tune import run_experiments
from ray.tune.config_parser import make_parser
from ray.tune.resources import resources_to_json
from ray.tune.result import DEFAULT_RESULTS_DIR
from ray.tune.tune import _make_scheduler
from utils.loader import load_algorithms, load_envs, load_models, load_preprocessors

RESOURCES = ("memory", "object-store-memory", "redis-max-memory", "num-cpus", "num-gpus")
FROM_COMMAND_LINE = (
    "run",
    "stop",
    "checkpoint_freq",
    "checkpoint_at_end",
    "keep_checkpoints_num",
    "checkpoint_score_attr",
    "local_dir",
    "num_samples",
    "upload_dir",
    "restore",
)


def make_options():
    """Return a parser with Ray Tune's own options (--run, --stop, --config, --restore, …) and those
    of the starter kit."""
    parser = make_parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "-f",
        "--config-file",
        help="YAML file of the experiment; options of a trial count only without it",
    )
    parser.add_argument("--env", help="name of the environment, without -f")
    parser.add_argument(
        "--experiment-name", default="default", help="folder below --local-dir, without -f"
    )
    parser.add_argument(
        "--local-dir", default=DEFAULT_RESULTS_DIR, help="folder of the results, without -f"
    )
    parser.add_argument(
        "--upload-dir", default="", help="where results are copied to, e.g. s3://bucket, without -f"
    )
    parser.add_argument(
        "--resume", action="store_true", help="go on with the experiment that was interrupted"
    )
    parser.add_argument(
        "--queue-trials", action="store_true", help="wait for a cluster that is still growing"
    )
    parser.add_argument("--torch", action="store_true", help="use torch instead of TensorFlow")
    parser.add_argument("--eager", action="store_true", help="use TensorFlow's eager execution")
    parser.add_argument("--trace", action="store_true", help="trace the eager execution")
    parser.add_argument("-v", action="store_true", help="log at the level INFO")
    parser.add_argument("-vv", action="store_true", help="log at the level DEBUG")
    parser.add_argument("--ray-address", help="address of a running Ray cluster to join")
    parser.add_argument(
        "--ray-num-nodes", type=int, help="number of machines to pretend, for debugging"
    )
    for resource in RESOURCES:
        parser.add_argument("--ray-" + resource, type=int, help="limit of Ray's " + resource)
    return parser


def read_experiments(options):
    """Return the experiments of the YAML file, or the one of the command line, by name."""
    if options.config_file:
        with open(options.config_file, encoding="utf-8") as file:
            return yaml.safe_load(file)
    if not (options.run and options.env):
        raise SystemExit("name an experiment, -f experiments/NAME.yaml, or both --run and --env")
    body = {name: getattr(options, name) for name in FROM_COMMAND_LINE}
    if options.resources_per_trial:
        body["resources_per_trial"] = resources_to_json(options.resources_per_trial)
    return {options.experiment_name: dict(body, env=options.env, config=options.config)}


def prepared(experiment, options):
    """Return the experiment in the form that Tune takes."""
    config = experiment.setdefault("config", {})
    env_config = config.setdefault("env_config", {})
    if env_config.get("env_name") in EASY_GAME_RANGES:
        env_config.update(
            zip(
                ("return_min", "return_blind", "return_max"),
                EASY_GAME_RANGES[env_config["env_name"]],
            )
        )
    config["callbacks"] = CustomCallbacks
    for section in (experiment, config):
        section.pop("disable_evaluation_worker", None)
    if options.torch:
        config["use_pytorch"] = True
    if options.eager:
        config["eager"] = True
    if options.trace:
        if not config.get("eager"):
            raise SystemExit("--trace is for eager execution; add --eager")
        config["eager_tracing"] = True
    if options.v or options.vv:
        config["log_level"] = "DEBUG" if options.vv else "INFO"
    return experiment


def without_gpu(experiment):
    """Return the experiment without GPUs, for a machine that has none."""
    experiment["config"].update(num_gpus=0, num_gpus_per_worker=0)
    return experiment


def start_ray(options):
    limits = {
        "memory": options.ray_memory,
        "object_store_memory": options.ray_object_store_memory,
        "redis_max_memory": options.ray_redis_max_memory,
        "num_cpus": options.ray_num_cpus,
        "num_gpus": options.ray_num_gpus,
    }
    if not options.ray_num_nodes:
        ray.init(address=options.ray_address, **limits)
        return
    cluster = Cluster()
    for _ in range(options.ray_num_nodes):
        cluster.add_node(
            **dict(limits, num_cpus=options.ray_num_cpus or 1, num_gpus=options.ray_num_gpus or 0)
        )
    ray.init(address=cluster.address)


def main():
    options = make_options().parse_args()
    load_envs(os.getcwd())
    load_models(os.getcwd())
    load_algorithms(CUSTOM_ALGORITHMS)
    load_preprocessors(CUSTOM_PREPROCESSORS)
    experiments = {
        name: prepared(experiment, options)
        for name, experiment in read_experiments(options).items()
    }
    start_ray(options)
    if not ray.cluster_resources().get("GPU", 0):
        print("no GPU: num_gpus and num_gpus_per_worker are set to 0")
        experiments = {name: without_gpu(experiment) for name, experiment in experiments.items()}
    run_experiments(
        experiments,
        scheduler=_make_scheduler(options),
        resume=options.resume,
        queue_trials=options.queue_trials,
        verbose=_verbosity(options),
    )


def _verbosity(options):
    """Return how much Ray Tune prints: 1 to 3."""
    if options.vv:
        return 3
    return 2 if options.v else 1


if __name__ == "__main__":
    main()
