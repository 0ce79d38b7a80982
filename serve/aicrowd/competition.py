"""The competition's rules, as numbers and names."""

from __future__ import annotations

CLOSED = (
    "The competition closed in 2020, and nothing is graded any more. An entry is good for"
    " reproducing a run on the original stack: Python 3.7, Ray 0.8.6, TensorFlow 2.2 or torch 1.5."
)
"""The notice that comes first wherever entries are written or handed in."""
CHALLENGE = "evaluations-api-neurips-2020-procgen"
REMOTE_HOST = "gitlab.aicrowd.com"
MAX_STEPS = 8_000_000
"""The most steps of the environment. If actions are repeated, each repetition counts as a step."""
MAX_FILE_BYTES = 30_000_000
"""The size of the largest file that AIcrowd keeps. Larger ones are removed from the entry."""
CORES = 8
"""The number of cores. The trainer's process takes one of them."""
NUM_LEVELS = {"sample-efficiency": 0, "generalization": 200}
"""The number of training levels by track. 0 stands for all levels."""
LOCAL = "local package with trained weights"
"""The text in aicrowd.json that marks a package with weights. The competition forbids weights."""
PLACEHOLDER = "your name <your address>"
"""The author that is written into an entry if no authors were given."""
SAMPLE_AUTHORS = (PLACEHOLDER, "aicrowd-bot", "Sharada Mohanty <mohanty@aicrowd.com>")
"""Authors that aren't of the team: our placeholder, and those of the starter kit's page and
file."""
SAMPLE_DESCRIPTIONS = (
    "Procgen test submission",
    "NeurIPS 2020: Procgen Competition Agent",
)
"""Descriptions that say nothing of the entry: those of the starter kit's file and page."""
DEFAULT_IMAGE = "TensorFlow 1.14, Ray 0.8.5 and no torch"
"""What an entry finds if it has `docker_build: false`."""
FOR_KIT_VALIDATION = ("num_workers", "num_gpus", "num_gpus_per_worker")
"""Keys of the configuration that AIcrowd's validation reads."""
