"""RLlib's recording of what is played: `config.offline_data(output=…)`. RLlib's own writer gets the
episodes that `train.rllib.episode_callbacks` builds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner
from ray.rllib.env.single_agent_episode import SingleAgentEpisode
from ray.rllib.offline.offline_env_runner import OfflineSingleAgentEnvRunner

if TYPE_CHECKING:
    from train.rllib.env_runner import BatchEnvRunner


class _Played(SingleAgentEnvRunner):
    """Stands where RLlib's writer has the env runner that plays, and returns what was played."""

    def __init__(self, *, runner: BatchEnvRunner, **_: Any) -> None:
        self.config = runner.config.copy(copy_frozen=False)
        self._name = runner.config.world_name.lower()
        # RLlib's writer adds to it.
        self.config.output_write_method_kwargs = dict(self.config.output_write_method_kwargs)
        self.worker_index = runner.worker_index
        self.env = runner.env
        self.metrics = runner.metrics
        self.episodes: list[SingleAgentEpisode] = []

    def sample(self, **_: Any) -> list[SingleAgentEpisode]:
        return self.episodes


class Recorder(OfflineSingleAgentEnvRunner, _Played):  # type: ignore[misc]  # RLlib's aren't typed
    """Writes one row per decision, in the form that RLlib's offline algorithms read."""

    def __init__(self, runner: BatchEnvRunner) -> None:
        super().__init__(config=runner.config, runner=runner)

    def record(self, episodes: list[SingleAgentEpisode]) -> None:
        """Write episodes that have ended, or keep them for a file that isn't full yet."""
        if not self.output_max_rows_per_file:
            self._hand_over(episodes)
            # RLlib would write them into the next file, too.
            self._samples.clear()
            return
        for episode in episodes:
            for part in _parts(episode, self.output_max_rows_per_file):
                self._hand_over([part])

    def _hand_over(self, episodes: list[SingleAgentEpisode]) -> None:
        self.episodes = episodes
        if episodes:
            super().sample()

    def _get_subdir_path(self) -> str:
        return self._name


def _parts(episode: SingleAgentEpisode, most: int) -> Iterator[SingleAgentEpisode]:
    """Yield parts of at most `most` steps: of what fills several files, RLlib writes the last."""
    for start in range(0, len(episode), most):
        # A part knows that its episode has ended only if it ends where the episode does.
        yield episode[start : min(start + most, len(episode))]
