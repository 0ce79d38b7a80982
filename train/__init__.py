"""Training: the algorithms, most of them on RLlib, for any `envs.api.BatchEnv`, and the life of a
run on disk.
"""

from procsnake_packages import require_own

require_own("envs", "agents")
