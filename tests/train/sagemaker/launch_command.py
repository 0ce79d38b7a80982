"""The entry point with another command in place of the training: `python -m
tests.train.sagemaker.launch_command COMMAND …`.
"""

from __future__ import annotations

import dataclasses
import sys

from train.sagemaker.container import entry


def main() -> int:
    """As `train.sagemaker.container.entry train`."""
    command = sys.argv[1:]
    plan = entry.plan
    entry.plan = lambda container: dataclasses.replace(plan(container), command=command)
    return entry.main(["train"])


if __name__ == "__main__":
    sys.exit(main())
