"""Stand-in of the starter kit's rollout.py: it imports space_utils from where Ray 0.8.6 doesn't
have it.
"""

import argparse
import os
import pickle

import ray
from ray.tune.registry import get_trainable_cls
from ray.tune.utils import merge_dicts

try:
    from ray.rllib.evaluation.episode import _flatten_action
except Exception:
    from ray.rllib.utils.space_utils import flatten_to_single_ndarray as _flatten_action

from algorithms import CUSTOM_ALGORITHMS
from utils.loader import load_algorithms, load_envs, load_models

load_envs(os.getcwd())
load_models(os.getcwd())
load_algorithms(CUSTOM_ALGORITHMS)

parser = argparse.ArgumentParser()
parser.add_argument("checkpoint")
parser.add_argument("--run", required=True)
parser.add_argument("--env")
parser.add_argument("--episodes", default=0)

if __name__ == "__main__":
    options = parser.parse_args()
    folder = os.path.dirname(options.checkpoint)
    path = os.path.join(folder, "params.pkl")
    if not os.path.exists(path):
        path = os.path.join(folder, "../params.pkl")
    with open(path, "rb") as file:
        config = pickle.load(file)
    config["num_workers"] = min(2, config["num_workers"])
    config = merge_dicts(config, config.get("evaluation_config", {}))
    config.update(num_gpus=0, num_gpus_per_worker=0)
    ray.init()
    agent = get_trainable_cls(options.run)(env=options.env, config=config)
    agent.restore(options.checkpoint)
    env = agent.workers.local_worker().env
    for episode in range(int(options.episodes)):
        observation = env.reset()
        done = False
        total = 0.0
        steps = 0
        while not done:
            action = _flatten_action(agent.compute_action(observation))
            observation, reward, done, info = env.step(action)
            env.render()
            total += reward
            steps += 1
        print(f"Episode #{episode}: reward: {total} steps: {steps}")
