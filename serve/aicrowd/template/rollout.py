"""Plays episodes with a checkpoint: what `run.sh --rollout` calls. Prints each episode's return and length in raw terms."""

from __future__ import annotations

import argparse
import json
import os
import pickle

import ray
from algorithms import CUSTOM_ALGORITHMS
from ray.tune.registry import get_trainable_cls
from ray.tune.utils import merge_dicts
from utils.loader import load_algorithms, load_envs, load_models


def read_options():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkpoint", help="path of a file checkpoint-N")
    parser.add_argument("--run", required=True, help="name of the algorithm")
    parser.add_argument("--env", help="name of the environment (default: the checkpoint's)")
    parser.add_argument("--episodes", type=int, default=5, help="how many to play")
    parser.add_argument("--config", type=json.loads, default={}, help="JSON to change the checkpoint's configuration with")
    parser.add_argument("--out", help="file for one JSON object an episode: return, length, actions")
    return parser.parse_args()


def read_config(checkpoint):
    """params.pkl lies beside the checkpoint or one folder up."""
    folder = os.path.dirname(os.path.abspath(checkpoint))
    for place in (folder, os.path.dirname(folder)):
        path = os.path.join(place, "params.pkl")
        if os.path.exists(path):
            with open(path, "rb") as file:
                return pickle.load(file)
    raise SystemExit(f"there is no params.pkl beside {checkpoint} or above it")


def play(agent, episodes):
    """Yields each episode's raw return, length and actions."""
    env = agent.workers.local_worker().env
    for _ in range(episodes):
        observation, done, actions = env.reset(), False, []
        episode_return, info = 0.0, {}
        while not done:
            action = int(agent.compute_action(observation))
            observation, reward, done, info = env.step(action)
            actions.append(action)
            episode_return += float(reward)
        length = int(info.get("episode_length", len(actions)))
        yield {"return": float(info.get("episode_return", episode_return)), "length": length, "actions": actions}


def main():
    options = read_options()
    load_envs(os.getcwd())
    load_models(os.getcwd())
    load_algorithms(CUSTOM_ALGORITHMS)
    config = read_config(options.checkpoint)
    config["num_workers"] = min(2, config.get("num_workers", 0))
    config = merge_dicts(merge_dicts(config, config.get("evaluation_config") or {}), options.config)
    config.update(num_gpus=0, num_gpus_per_worker=0)
    ray.init()
    agent = get_trainable_cls(options.run)(env=options.env or config["env"], config=config)
    agent.restore(options.checkpoint)
    played = []
    for episode in play(agent, options.episodes):
        played.append(episode)
        print("Episode #{}: reward: {} length: {}".format(len(played), episode["return"], episode["length"]), flush=True)
    if options.out:
        with open(options.out, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(episode) + "\n" for episode in played)


if __name__ == "__main__":
    main()
