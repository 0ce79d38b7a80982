"""What plays: heuristics, searches and trained policies, and how they are measured. Only building a
network imports torch.
"""

from procsnake_packages import require_own

require_own("envs")

from agents.agent import Agent, Decision  # noqa: E402
from agents.registry import make, names, register  # noqa: E402

__all__ = ["Agent", "Decision", "make", "names", "register"]
