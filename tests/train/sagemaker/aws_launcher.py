"""Stands in for the launcher of AWS's sample of Ray on training jobs (July 2026). It runs on every
host.

What it keeps of the real one: the head is the first host that the file lists; Ray has no token and
none of our resources; the head joins Ray in its own process, with the whole environment as Ray's,
before it runs the script there as `__main__`, from the script's folder; whatever the script raises
fails the job; workers ask `ray status` until it fails, and end with 0."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

PORT = 6379


def ray_command(*arguments: str, check: bool = True) -> int:
    command = [sys.executable, "-m", "ray.scripts.scripts", *arguments]
    return subprocess.run(command, check=check, capture_output=True, text=True).returncode


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("-e", "--entrypoint", required=True)
    parser.add_argument("--head-instance-group")
    options = parser.parse_args()
    config = json.loads(Path("/opt/ml/input/config/resourceconfig.json").read_text())
    groups = {
        group["instance_group_name"]: group["hosts"] for group in config.get("instance_groups", [])
    }
    if groups and options.head_instance_group not in groups:
        raise ValueError(f"Head instance group '{options.head_instance_group}' not found")
    head = groups[options.head_instance_group][0] if groups else config["hosts"][0]
    return (
        lead(config["hosts"], Path(options.entrypoint))
        if config["current_host"] == head
        else follow(head)
    )


def lead(hosts: list[str], script: Path) -> int:
    ray_command("start", "--head", f"--num-cpus={os.cpu_count()}", "--num-gpus=0", f"--port={PORT}")
    import ray

    environment = {
        **os.environ,
        "PYTHONPATH": f"{script.parent}:{os.environ.get('PYTHONPATH', '')}",
    }
    ray.init(address="auto", include_dashboard=False, runtime_env={"env_vars": environment})
    try:
        while sum(node["Alive"] for node in ray.nodes()) < len(hosts):
            time.sleep(1)
        os.chdir(script.parent)
        sys.path.insert(0, str(script.parent))
        spec = importlib.util.spec_from_file_location("__main__", script)
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
    finally:
        ray.shutdown()
        ray_command("stop", check=False)
    return 0


def follow(head: str) -> int:
    address = socket.gethostbyname(head)
    while ray_command("start", f"--address={address}:{PORT}", check=False):
        time.sleep(2)
    while ray_command("status", check=False) == 0:
        time.sleep(2)
    ray_command("stop", check=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
