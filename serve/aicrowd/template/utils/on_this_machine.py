"""Trains an experiment on a machine that has neither the grader's eight cores nor its GPU.

    python utils/on_this_machine.py experiments/NAME.yaml

The starter kit's run.sh asks Ray for what the grader has, and Ray waits for it in vain elsewhere.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

import yaml

LIMITS = {"num-cpus": 8, "memory": 1500000000, "object-store-memory": 1000000000}
"""What Ray is told that there is. It counts cores by what it is told."""


def main(path):
    """Train a copy of the experiment that asks for no GPU. Return the exit code of train.py."""
    with open(path, encoding="utf-8") as file:
        experiments = yaml.safe_load(file)
    for experiment in experiments.values():
        experiment["config"].update(num_gpus=0, num_gpus_per_worker=0)
    options = []
    for name, limit in LIMITS.items():
        options += ["--ray-" + name, str(limit)]
    with tempfile.TemporaryDirectory() as folder:
        copy = os.path.join(folder, os.path.basename(path))
        with open(copy, "w", encoding="utf-8") as file:
            yaml.safe_dump(experiments, file, sort_keys=False)
        return subprocess.call([sys.executable, "train.py", "-f", copy, *options])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
