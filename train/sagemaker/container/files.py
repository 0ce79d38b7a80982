"""The files under /opt/ml that SageMaker puts into a container, and those that it expects there."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envs.common.errors import reason
from train.cluster.hosts import ClusterError
from train.sagemaker.job import CODE, TOKEN

_LONGEST_REASON = 1024


@dataclass(frozen=True)
class Container:
    """The folders and files by which SageMaker and a container work together."""

    root: Path = Path("/opt/ml")

    @classmethod
    def here(cls) -> Container:
        """Return the container that this process runs in. `SM_BASE_DIR` moves its folder."""
        return cls(Path(os.environ.get("SM_BASE_DIR", "/opt/ml")))

    @property
    def checkpoints(self) -> Path:
        """The folder that SageMaker copies to S3 while the job runs, and restores before the job
        continues.
        """
        return self.root / "checkpoints"

    @property
    def model(self) -> Path:
        """The folder that becomes model.tar.gz."""
        return self.root / "model"

    @property
    def code(self) -> Path:
        """The folder with the source that the job carries."""
        return self.root / CODE

    @property
    def token(self) -> Path:
        """The file with the secret that the machines of a job share."""
        return self.root / "input" / "data" / TOKEN / TOKEN

    def resource_config(self) -> dict[str, Any]:
        """Read the machines of the job. Raises `ClusterError` if the file can't be read."""
        return self._config("resourceconfig.json")

    def hyperparameters(self) -> dict[str, str]:
        """Read the hyperparameters, encoded as they were sent. Raises `ClusterError` if the file
        can't be read.
        """
        return self._config("hyperparameters.json")

    def fail(self, reason: str) -> None:
        """Write the reason of a failure into the file where SageMaker looks for it.

        If the reason is too long, only its end is written. If the disk is full, which may be the
        cause of the failure, the log says so."""
        output = self.root / "output"
        encoded = reason.encode()[-_LONGEST_REASON:]
        try:
            output.mkdir(parents=True, exist_ok=True)
            (output / "failure").write_text(encoded.decode(errors="ignore"), encoding="utf-8")
        except OSError as error:
            print(
                f"procsnake: the reason can't be written to {output}: {error.strerror}",
                file=sys.stderr,
                flush=True,
            )

    def _config(self, name: str) -> dict[str, Any]:
        path = self.root / "input" / "config" / name
        try:
            return json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ClusterError(f"{path} can't be read: {reason(error)}") from error
