"""Runs Prometheus beside the head's Ray, where it is installed, to collect all machines' metrics.

Ray's dashboard and the metrics themselves are Ray's own; train/cluster/ray_node.py turns them on.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

PROMETHEUS_PORT = 9090
_STOP_SECONDS = 10.0
_CONFIG = """\
global: {{scrape_interval: 10s}}
scrape_configs:
  - job_name: ray
    file_sd_configs:
      # A link to a file that Ray replaces: a change isn't noticed, so it is read again.
      - {{files: ["{machines}"], refresh_interval: 10s}}
"""


def found_prometheus() -> str | None:
    """Return the path of this machine's program; None if it has none."""
    return shutil.which("prometheus")


@contextmanager
def prometheus(config: Path | None, say: Callable[[str], None]) -> Iterator[None]:
    """Let Prometheus run, if it is installed. It listens at 127.0.0.1 alone.

    `config` is the user's file, for instance with `remote_write`; without it, all machines that Ray
    knows are scraped. Prometheus' complaints are printed, but don't affect the training.
    """
    program = found_prometheus()
    if program is None:
        yield
        return
    with tempfile.TemporaryDirectory() as folder:
        if config is None:
            config = Path(folder) / "prometheus.yml"
            config.write_text(_CONFIG.format(machines=machines_file()), encoding="utf-8")
        command = [
            program,
            f"--config.file={config}",
            f"--storage.tsdb.path={folder}/data",
            f"--web.listen-address=127.0.0.1:{PROMETHEUS_PORT}",
            "--log.level=warn",
        ]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
        say(f"Prometheus collects metrics, by {config}")
        try:
            yield
        finally:
            if process.poll() is not None:
                say(f"Prometheus had ended before, with {process.returncode}")
            process.terminate()
            try:
                process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def machines_file() -> Path:
    """Return the file in which Ray's dashboard lists the machines' addresses for metrics."""
    folder = Path(os.environ.get("RAY_TMPDIR", "/tmp")) / "ray"
    return folder / "prom_metrics_service_discovery.json"
