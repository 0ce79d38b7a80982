"""From a trained policy to an entry in AIcrowd's NeurIPS 2020 Procgen competition: export, check, submit."""

from serve.aicrowd.check import Finding, check
from serve.aicrowd.export import export
from serve.aicrowd.section import NoCounterpartError
from serve.aicrowd.submit import SubmissionError, submit
from serve.aicrowd.translation import TRACKS

__all__ = ["TRACKS", "Finding", "NoCounterpartError", "SubmissionError", "check", "export", "submit"]
