"""The arena's server, its viewer, and the export to AIcrowd. None of it needs torch or ray."""

from procsnake_packages import require_own

require_own("envs", "agents")
