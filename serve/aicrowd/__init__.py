"""Exports, checks and submits a trained policy as an entry in AIcrowd's NeurIPS 2020 Procgen
competition.
"""

from serve.aicrowd.check import Breach, check
from serve.aicrowd.export import Exported, export
from serve.aicrowd.section import NoCounterpartError
from serve.aicrowd.submit import SubmissionError, submit
from serve.aicrowd.translation import TRACKS

__all__ = [
    "TRACKS",
    "Exported",
    "Breach",
    "NoCounterpartError",
    "SubmissionError",
    "check",
    "export",
    "submit",
]
