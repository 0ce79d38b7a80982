"""Plays episodes with a checkpoint. `run.sh --rollout` calls it. It prints the raw return and
length of each episode.

It has the options of the starter kit's rollout.py, and writes the same files. --out is a pickle of
a list of episodes. With
--use-shelve it is a shelf of episodes by number, with their count under "num_episodes". An episode
is a list of [observation,
action, next observation, reward, done], with info added by --save-info.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import shelve

import imageio_ffmpeg
import numpy as np
import ray
from algorithms import CUSTOM_ALGORITHMS
from preprocessors import CUSTOM_PREPROCESSORS
from ray.tune.registry import get_trainable_cls
from ray.tune.utils import merge_dicts
from utils.loader import load_algorithms, load_envs, load_models, load_preprocessors

FRAMES_PER_SECOND = 15


def make_options():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("checkpoint", help="path of a file checkpoint-N")
    parser.add_argument("--run", required=True, help="name of the algorithm")
    parser.add_argument("--env", help="name of the environment (default: the checkpoint's)")
    parser.add_argument(
        "--episodes",
        type=int,
        default=0,
        help="number of whole episodes to play (default: as many as --steps)",
    )
    parser.add_argument(
        "--steps",
        type=int,
        default=10000,
        help="number of steps to play without --episodes (default: 10000)",
    )
    parser.add_argument(
        "--config",
        type=json.loads,
        default={},
        help="JSON to change the checkpoint's configuration with",
    )
    parser.add_argument(
        "--no-render", action="store_true", help="never call the environment's render()"
    )
    parser.add_argument("--video-dir", help="folder for a film of each episode, episode-N.mp4")
    parser.add_argument(
        "--monitor", action="store_true", help="the old name of --video-dir ~/ray_results/monitor"
    )
    parser.add_argument(
        "--out", help="file for all steps of all episodes; a pickle that is written at the end"
    )
    parser.add_argument(
        "--use-shelve", action="store_true", help="write --out as a shelf, episode by episode"
    )
    parser.add_argument(
        "--save-info", action="store_true", help="write the environment's info to --out, too"
    )
    parser.add_argument(
        "--track-progress",
        action="store_true",
        help="tell the progress in __progress_NAME beside --out",
    )
    return parser


def read_options():
    parser = make_options()
    options = parser.parse_args()
    for name in ("use_shelve", "track_progress"):
        if getattr(options, name) and not options.out:
            parser.error("--{} needs --out FILE".format(name.replace("_", "-")))
    if options.monitor and not options.video_dir:
        beside = os.path.dirname(options.out or "") or os.path.expanduser("~/ray_results")
        options.video_dir = os.path.join(beside, "monitor")
    return options


def read_config(checkpoint):
    """Read the checkpoint's configuration from params.pkl, which lies beside the checkpoint or one
    folder up."""
    folder = os.path.dirname(os.path.abspath(checkpoint))
    for place in (folder, os.path.dirname(folder)):
        path = os.path.join(place, "params.pkl")
        if os.path.exists(path):
            with open(path, "rb") as file:
                return pickle.load(file)
    raise SystemExit(f"there is no params.pkl beside {checkpoint} or above it")


def play(agent, env, options, film):
    """Yield (steps, info of the last step, whether it ended) of one episode after the other."""
    total, episodes = 0, 0
    while episodes < options.episodes if options.episodes else total < options.steps:
        observation, done, info, steps = env.reset(), False, {}, []
        film.begin(episodes)
        while not done and (options.episodes or total < options.steps):
            film.add(env)
            action = agent.compute_action(observation)
            following, reward, done, info = env.step(action)
            if not options.no_render:
                env.render()
            steps.append(
                [observation, action, following, reward, done]
                + ([info] if options.save_info else [])
            )
            observation = following
            total += 1
        film.end()
        episodes += 1
        yield steps, info, done


class Film:
    """Writes each episode as episode-N.mp4. Without a folder it does nothing."""

    def __init__(self, folder):
        self.folder, self.path, self.writer = folder, None, None
        if folder:
            os.makedirs(folder, exist_ok=True)

    def begin(self, episode):
        if self.folder:
            self.path, self.writer = os.path.join(self.folder, f"episode-{episode}.mp4"), None

    def add(self, env):
        if not self.folder:
            return
        picture = np.ascontiguousarray(env.render(mode="rgb_array"))
        if self.writer is None:
            height, width, _ = picture.shape
            self.writer = imageio_ffmpeg.write_frames(
                self.path, (width, height), fps=FRAMES_PER_SECOND
            )
            self.writer.send(None)
        self.writer.send(picture)

    def end(self):
        if self.writer:
            self.writer.close()


class Recording:
    """Writes all steps of all episodes to --out. Without --out it does nothing."""

    def __init__(self, options):
        self.options, self.episodes, self.shelf = options, [], None

    def __enter__(self):
        if self.options.use_shelve:
            self.shelf = shelve.open(self.options.out)
        elif self.options.out:
            # A file that can't be written shall be known of before hours of playing.
            open(self.options.out, "ab").close()
        return self

    def add(self, number, steps):
        if self.shelf is not None:
            self.shelf[str(number)] = steps
            self.shelf["num_episodes"] = number + 1
        elif self.options.out:
            self.episodes.append(steps)
        if self.options.track_progress:
            with open(self.progress_path(), "w", encoding="utf-8") as file:
                file.write(f"{number + 1} episodes completed\n")

    def progress_path(self):
        folder, name = os.path.split(self.options.out)
        return os.path.join(folder, "__progress_" + name)

    def __exit__(self, *_):
        if self.shelf is not None:
            self.shelf.close()
        elif self.options.out:
            with open(self.options.out, "wb") as file:
                pickle.dump(self.episodes, file)
        if self.options.track_progress and os.path.exists(self.progress_path()):
            os.remove(self.progress_path())


def main():
    options = read_options()
    load_envs(os.getcwd())
    load_models(os.getcwd())
    load_algorithms(CUSTOM_ALGORITHMS)
    load_preprocessors(CUSTOM_PREPROCESSORS)
    config = read_config(options.checkpoint)
    config["num_workers"] = min(2, config.get("num_workers", 0))
    config = merge_dicts(merge_dicts(config, config.get("evaluation_config") or {}), options.config)
    config.update(num_gpus=0, num_gpus_per_worker=0)
    if options.video_dir:
        # Procgen draws its large picture only for those who say so beforehand.
        config["env_config"] = dict(config.get("env_config", {}), render_mode="rgb_array")
    ray.init()
    agent = get_trainable_cls(options.run)(env=options.env or config["env"], config=config)
    agent.restore(options.checkpoint)
    env = agent.workers.local_worker().env
    with Recording(options) as recording:
        for number, (steps, info, done) in enumerate(
            play(agent, env, options, Film(options.video_dir))
        ):
            recording.add(number, steps)
            earned = info.get("episode_return", sum(float(step[3]) for step in steps))
            length = int(info.get("episode_length", len(steps)))
            rest = "" if done else " (cut off by --steps)"
            print(
                f"Episode #{number + 1}: reward: {float(earned)} length: {length}{rest}", flush=True
            )


if __name__ == "__main__":
    main()
