"""What is logged besides Ray's own numbers: `train.py` and the grader look for `CustomCallbacks` here."""

from __future__ import annotations

from ray.rllib.agents.callbacks import DefaultCallbacks


class CustomCallbacks(DefaultCallbacks):
    """Custom metrics `raw_return` and `raw_length`: the game's own, whatever is done to rewards and frames for training."""

    def on_episode_end(self, worker, base_env, policies, episode, **kwargs):
        info = episode.last_info_for() or {}
        if "episode_return" in info:
            episode.custom_metrics["raw_return"] = info["episode_return"]
            episode.custom_metrics["raw_length"] = info["episode_length"]
