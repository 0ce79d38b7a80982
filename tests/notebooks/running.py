"""How a notebook is executed, as the tool does that keeps outputs for the pages."""

from __future__ import annotations

import runpy
from pathlib import Path

_TOOL = Path(__file__).parents[2] / "docs" / "hooks" / "notebook_outputs.py"
_names = runpy.run_path(str(_TOOL), run_name="outputs")
execute = _names["execute"]
NotebookFailedError: type[Exception] = _names["NotebookFailedError"]
