"""Names of a rollout's columns that RLlib has no name for; `ray.rllib.core.columns` has the others.

N is the number of decisions, A that of the actions."""

from __future__ import annotations

ACTION_MASK = "action_mask"
"""The actions that may be taken, bool [N, A]."""
ADVANTAGES = "advantages"
"""How much better a decision turned out than its state was worth, float32 [N]."""
VALUE_TARGETS = "value_targets"
"""What the value head learns, float32 [N]."""
