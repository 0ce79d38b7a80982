"""The competition's rules, as numbers and names."""

from __future__ import annotations

CLOSED = (
    "The competition closed in 2020, and nothing is graded any more. An entry is good for reproducing a run on the original"
    " stack: Python 3.7, Ray 0.8.6, TensorFlow 2.2 or torch 1.5."
)
"""What is said first wherever entries are written or handed in."""
CHALLENGE = "evaluations-api-neurips-2020-procgen"
REMOTE_HOST = "gitlab.aicrowd.com"
MAX_STEPS = 8_000_000
"""Steps of the environment; with repeated actions a decision counts as many as it repeats."""
MAX_FILE_BYTES = 30_000_000
"""Larger files are scrubbed."""
CORES = 8
"""The trainer's process has one of them."""
NUM_LEVELS = {"sample-efficiency": 0, "generalization": 200}
"""Training levels by track; 0 stands for all."""
LOCAL = "local package with trained weights"
"""What the description in aicrowd.json says of a package that carries weights, which the competition forbids."""
PLACEHOLDER = "your name <your address>"
"""The author of an entry whose authors were not given."""
SAMPLE_AUTHORS = (PLACEHOLDER, "aicrowd-bot")
"""Authors that nobody is: ours, and the starter kit's."""
FOR_KIT_VALIDATION = ("num_workers", "num_gpus", "num_gpus_per_worker")
"""Keys of the configuration that AIcrowd's validation reads."""
