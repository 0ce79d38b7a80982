"""The learner connector of APPO: it turns trajectories into a batch that PPO's loss takes."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from ray.rllib.connectors.connector_v2 import ConnectorV2
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.core.columns import Columns
from ray.rllib.utils.metrics.metrics_logger import MetricsLogger

from train.rllib.connector import device_of, joined
from train.rllib.env_runner import ADVANTAGES, VALUE_TARGETS
from train.rllib.modules import ACTION_MASK, NetworkModule, mask_logits
from train.rollouts.trajectory import Trajectory
from train.rollouts.v_trace import v_trace
from train.settings import APPOSettings

RATIO_MEAN = "ratio_mean"
RATIO_CLIPPED = "ratio_clipped"
"""Metrics of a batch: the mean of π / μ over its decisions, and the share of decisions whose ratio
is above `rho_clip`.
"""


class TrajectoriesToBatch(ConnectorV2):
    """Judges trajectories by the newest policy and values, with V-trace.

    The probabilities in the batch are the newest policy's, so PPO's ratios begin at 1 and its
    clipping holds the policy near the one with which the update began. How far that one was from
    the policy that played is in the advantages."""

    def __init__(self, *args: Any, settings: APPOSettings, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._settings = settings

    def __call__(  # type: ignore[override]  # trajectories where RLlib has episodes
        self, *, rl_module: Any, episodes: list[Trajectory], metrics: MetricsLogger, **_: Any
    ) -> dict[str, dict[str, torch.Tensor]]:
        module = rl_module[DEFAULT_MODULE_ID].unwrapped()
        assert isinstance(module, NetworkModule)
        with torch.no_grad():
            batch, noted = self._judge(module, episodes)
        metrics.log_dict(noted, key=DEFAULT_MODULE_ID, window=1)
        return {DEFAULT_MODULE_ID: batch}

    def _judge(
        self, module: NetworkModule, own: list[Trajectory]
    ) -> tuple[dict[str, torch.Tensor], dict[str, float]]:
        device = device_of(module)
        names = [name for name in own[0].columns if name not in ("rows", "rewards", "ended")]
        columns = {name: joined([part.columns[name] for part in own]).to(device) for name in names}
        log_probabilities, values = self._answers(
            module, columns[Columns.OBS], columns.get(ACTION_MASK)
        )
        taken = log_probabilities.gather(1, columns[Columns.ACTIONS].long()[:, None]).squeeze(1)
        ratios = (taken - columns[Columns.ACTION_LOGP]).exp().cpu().numpy()
        targets, advantages = self._v_trace(module, own, values.cpu().numpy(), ratios)
        if self._settings.norm_adv:
            advantages = standardised(advantages, np.minimum(ratios, self._settings.rho_clip))
        columns |= {
            Columns.ACTION_LOGP: taken,
            Columns.VF_PREDS: values,
            VALUE_TARGETS: torch.from_numpy(targets).to(device),
            ADVANTAGES: torch.from_numpy(advantages).to(device),
        }
        if self._settings.kl_coef:
            columns[Columns.ACTION_DIST_INPUTS] = log_probabilities
        clipped = float((ratios > self._settings.rho_clip).mean())
        return columns, {RATIO_MEAN: float(ratios.mean()), RATIO_CLIPPED: clipped}

    def _answers(
        self, module: NetworkModule, observations: torch.Tensor, mask: torch.Tensor | None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """(Log-probabilities [n, A], values [n]) of the policy that learns, as many at a time as a
        minibatch has.
        """
        size = max(1, -(-len(observations) // self._settings.num_minibatches))
        answers = [module.rollout(part) for part in observations.split(size)]
        logits, values = (torch.cat(parts) for parts in zip(*answers, strict=True))
        return torch.log_softmax(mask_logits(logits, mask), -1), values

    def _v_trace(
        self, module: NetworkModule, own: list[Trajectory], values: np.ndarray, ratios: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        # Rows of different trajectories have nothing to do with each other.
        first_rows = np.cumsum([0] + [part.num_rows for part in own])
        first_entries = np.cumsum([0] + [len(part) for part in own])
        final_values = np.zeros(len(values), np.float32)
        last_values = np.zeros(first_rows[-1], np.float32)
        for part, row, entry in zip(own, first_rows, first_entries, strict=False):
            final_values[entry + part.final_entries] = self._values(module, part.final_observations)
            last_values[row + part.last_rows] = self._values(module, part.last_observations)
        settings = self._settings
        return v_trace(
            np.concatenate(
                [row + part.columns["rows"] for part, row in zip(own, first_rows, strict=False)]
            ),
            np.concatenate([part.columns["rewards"] for part in own]),
            values,
            np.concatenate([part.columns["ended"] for part in own]),
            final_values,
            last_values,
            ratios,
            settings.gamma,
            settings.gae_lambda,
            settings.rho_clip,
            settings.c_clip,
        )

    def _values(self, module: NetworkModule, observations: np.ndarray) -> np.ndarray:
        if not len(observations):
            return np.empty(0, np.float32)
        return module.rollout(joined([observations]).to(device_of(module)))[1].cpu().numpy()


def standardised(advantages: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return V-trace's advantages (n,), which contain the clipped ratios `weights` (n,), with mean
    0 and deviation 1.

    Both are those of the advantages before they were weighted, and the weight stays. Otherwise what
    the policy would hardly do any more, and so counts for nothing, would get the negative mean as
    its advantage, and a ratio that can grow without limit."""
    own = advantages / np.maximum(weights, 1e-8)
    mean = np.average(own, weights=weights)
    deviation = np.sqrt(np.average((own - mean) ** 2, weights=weights))
    standard: np.ndarray = (weights * (own - mean) / (deviation + 1e-8)).astype(np.float32)
    return standard
