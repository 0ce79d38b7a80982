"""Runs rollout.py, ours or the one that the grader puts in its place, on the Ray that the starter
kit pins.

The grader's looks for `ray.rllib.utils.space_utils`, which Ray 0.8.6 has at another place; the file
itself may not be edited.
"""

import runpy
import sys

from ray.rllib.utils.spaces import space_utils

if __name__ == "__main__":
    sys.modules["ray.rllib.utils.space_utils"] = space_utils
    sys.path.insert(0, ".")
    sys.argv[0] = "rollout.py"
    runpy.run_path("rollout.py", run_name="__main__")
