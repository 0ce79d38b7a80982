"""`python -m procsnake`, or `python path/to/procsnake` from anywhere."""

import sys
from pathlib import Path

if not __package__:
    # Called by its path: Python then looks into this folder, and not into the one with `envs`.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from procsnake import main

if __name__ == "__main__":
    sys.exit(main())
