"""Names the columns of `progress.csv` in words, for titles and axes of charts."""

from __future__ import annotations

from train.metrics.rows import group_in_words

SHARE = "share"
"""The unit of fractions 0..1."""
_WORDS: dict[str, tuple[str, str]] = {
    "agent_steps_per_second": ("speed", "decisions per second"),
    "episode_return_mean": ("episode return", "sum of rewards"),
    "episode_len_mean": ("episode length", "steps per episode"),
    "win_rate": ("games won in evaluations", SHARE),
    "mean_won": ("games won in training", SHARE),
    "mean_game_over": ("deaths that ended the game", SHARE),
    "mean_snake_length": ("snake length at the end", "cells"),
    "mean_food_eaten": ("food eaten per episode", "pieces"),
    "mean_hazard_turns": ("turns in hazards per episode", "turns"),
    "policy_loss": ("policy loss", "loss"),
    "vf_loss": ("value loss", "loss"),
    "adv_loss": ("squared error of predicted advantages", "loss"),
    "total_loss": ("total loss", "loss"),
    "qf_loss": ("loss of the Q values", "loss"),
    "qf_mean": ("Q value of the actions taken", "sum of rewards"),
    "td_error_mean": ("size of the TD error", "sum of rewards"),
    "entropy": ("policy entropy", "nats"),
    "approx_kl": ("change of the policy per update, KL divergence", "nats"),
    "mean_kl_loss": ("change of the policy per update, exact KL divergence", "nats"),
    "curr_kl_coeff": ("weight of the KL divergence", "weight"),
    "clipfrac": ("decisions with a clipped probability ratio", SHARE),
    "vf_explained_var": ("variance of the value targets that values explain", SHARE),
    "learning_rate": ("learning rate", "rate"),
    "curr_entropy_coeff": ("weight of the entropy bonus", "weight"),
    "gradient_norm": ("gradient norm before its limit", "norm"),
    "lag": ("age of the weights that played", "updates"),
    "ratio_mean": ("probability ratio of learner to player", "ratio"),
    "ratio_clipped": ("decisions with a clipped probability ratio", SHARE),
    "replay_ratio": ("decisions learned from per decision taken", "ratio"),
    "epsilon": ("random actions", SHARE),
    "accuracy": ("agreement with the teacher", SHARE),
    "cross_entropy": ("cross-entropy with the teacher", "nats"),
    "held_out_accuracy": ("agreement in games held out", SHARE),
    "held_out_cross_entropy": ("cross-entropy in games held out", "nats"),
    "held_out_majority": ("most frequent action in games held out", SHARE),
    "lessons": ("demonstrations so far", "demonstrations"),
    "best_generation": ("best generation so far", "generation"),
}
_AGAINST = {
    "win_rate_vs_": ("games won against {}", SHARE),
    "draw_rate_vs_": ("games drawn against {}", SHARE),
    "mean_turns_vs_": ("length of a game against {}", "turns"),
    "mean_length_vs_": ("own length after games against {}", "cells"),
}


def title_of(column: str) -> str:
    """Return a chart's title: words with the column's name in brackets, or a name that needs
    none.
    """
    title, _ = _in_words(column)
    return column if title == column else f"{title} ({column})"


def unit_of(column: str) -> str:
    """Return the unit of a column's values; the column's name if it is unknown."""
    _, unit = _in_words(column)
    return unit


def _in_words(column: str) -> tuple[str, str]:
    """A column's title and unit; twice its name if nothing is known of it."""
    for beginning, (title, unit) in _AGAINST.items():
        if column.startswith(beginning):
            return title.format(group_in_words(column.removeprefix(beginning))), unit
    return _WORDS.get(column, (column, column))
