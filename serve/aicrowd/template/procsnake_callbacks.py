"""What procsnake logs besides Ray's own numbers."""

from __future__ import annotations

from ray.rllib.agents.callbacks import DefaultCallbacks


class LogRawReturn(DefaultCallbacks):
    """Logs the game's own return and length, `raw_return` and `raw_length`, whatever training does
    to rewards and frames."""

    def on_episode_end(self, worker, base_env, policies, episode, **kwargs):
        super().on_episode_end(
            worker=worker, base_env=base_env, policies=policies, episode=episode, **kwargs
        )
        info = episode.last_info_for() or {}
        if "episode_return" in info:
            episode.custom_metrics["raw_return"] = info["episode_return"]
            episode.custom_metrics["raw_length"] = info["episode_length"]
