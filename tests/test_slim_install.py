"""What an installation without extras says: the extra that a command needs, in a line, or what the command is for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
_WITHOUT = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {modules!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Missing())
import procsnake
sys.exit(procsnake.main(sys.argv[1:]))
"""
TRAIN = ("torch", "ray", "onnx", "safetensors", "tensorboardX", "pyarrow")
SERVE = ("flask", "uvicorn", "httptools", "wsproto", "gunicorn", "sqlalchemy", "orjson", "prometheus_client", "onnxruntime")


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess:
    command = [sys.executable, "-c", _WITHOUT.format(modules=TRAIN + SERVE), *arguments]
    return subprocess.run(command, cwd=cwd, env=None, capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize(
    ("arguments", "extra"),
    [
        (("train", "battlesnake-ppo"), "train"),
        (("train", "battlesnake-imitation"), "train"),
        (("train", "battlesnake-mxnet"), "train"),
        (("quickstart", "--minutes", "1"), "train"),
        (("tune", "battlesnake-ppo", "--search", "ppo.gamma=0.9,0.99"), "train"),
        (("compare", "battlesnake", "--minutes", "0.1", "--contenders", "ppo"), "train"),
        (("serve", "flood", "--port", "0"), "serve"),
        (("games", "list"), "serve"),
        (("match", "flood", "greedy", "--browser"), "serve"),
        (("sprt", "flood", "greedy", "--cluster", "auto"), "train"),
    ],
    ids=lambda value: " ".join(value[:2]) if isinstance(value, tuple) else value,
)
def test_the_extra_is_named(arguments, extra, tmp_path):
    done = run(*arguments, cwd=tmp_path)
    assert "Traceback" not in done.stderr
    assert (done.returncode, f"procsnake[{extra}]" in done.stderr.splitlines()[-1]) == (2, True), done.stderr


@pytest.mark.parametrize("arguments", [("champions",), ("train", "--list"), ("train", "battlesnake-ppo", "--help-keys")])
def test_what_needs_no_extra_runs(arguments, tmp_path):
    assert run(*arguments, cwd=tmp_path).returncode == 0
