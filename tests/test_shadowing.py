"""Others' packages under the names of ours: said in a line in the driver, harmless in Ray's
workers.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import procsnake_packages

ROOT = Path(procsnake_packages.__file__).parent
WORKER = """
import ray
from train.rllib.ray_runtime import running_ray

with running_ray(1):
    @ray.remote
    def files():
        import agents, envs.battlesnake.settings, my_world, serve, train.config
        return [module.__file__ for module in (agents, envs, serve, train, my_world)]

    print(*ray.get(files.remote(), timeout=120), sep="\\n")
"""


def foreign(folder: Path, *names: str) -> Path:
    """A folder with packages of these names that aren't ours."""
    for name in names:
        (folder / name).mkdir(parents=True)
        (folder / name / "__init__.py").write_text("WHOSE = 'not procsnake'\n")
    return folder


def run(folder: Path, *command: str | Path, path: str = "") -> subprocess.CompletedProcess[str]:
    """Run a command in a folder where procsnake can be imported, `path` in front of it."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (path, str(ROOT))))}
    return subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.parametrize("name", procsnake_packages.OWN_PACKAGES)
def test_the_command_says_in_a_line_what_hides_what(tmp_path, name):
    done = run(foreign(tmp_path, name), sys.executable, "-m", "procsnake", "--help")
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith(
        f"procsnake: {tmp_path / name} hides procsnake's own package {name!r}, {ROOT / name}. "
    )
    assert "another name" in line


def test_a_module_hides_a_package_too(tmp_path):
    (tmp_path / "serve.py").write_text("")
    done = run(tmp_path, sys.executable, "-m", "procsnake", "--help")
    assert (done.returncode, str(tmp_path / "serve.py") in done.stderr) == (2, True)


def test_the_installed_command_is_not_troubled_by_the_working_directory(tmp_path):
    program = Path(sysconfig.get_path("scripts")) / "procsnake"
    done = run(foreign(tmp_path, *procsnake_packages.OWN_PACKAGES), program, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert "tournament" in done.stdout


@pytest.mark.parametrize(
    ("theirs", "wanted"), [("envs", "agents"), ("agents", "train"), ("agents", "serve")]
)
def test_a_script_is_told_when_ours_would_stand_on_theirs(tmp_path, theirs, wanted):
    (foreign(tmp_path, theirs) / "mine.py").write_text(f"import {wanted}\n")
    done = run(tmp_path, sys.executable, "mine.py")
    assert (
        f"ShadowedPackageError: {tmp_path / theirs} hides procsnake's own package {theirs!r}"
        in done.stderr
    )


def test_worlds_can_be_used_beside_agents_of_somebody_else(tmp_path):
    (foreign(tmp_path, "agents") / "mine.py").write_text(
        "import agents\nimport envs.battlesnake.settings\nprint(agents.WHOSE)\n"
    )
    done = run(tmp_path, sys.executable, "mine.py")
    assert (done.stdout, done.stderr) == ("not procsnake\n", "")


def test_an_installed_distribution_is_named_as_such(tmp_path, monkeypatch):
    foreign(tmp_path, "agents")
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path))
    monkeypatch.setattr(procsnake_packages.sys, "modules", {})
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(
        procsnake_packages.ShadowedPackageError, match="Another distribution has installed it"
    ):
        procsnake_packages.require_own("agents")


@pytest.mark.long
def test_on_workers_ours_come_first_and_the_users_own_modules_are_found(tmp_path):
    """The driver's script lies elsewhere: only the workers have the working directory on their
    path.
    """
    folder = foreign(tmp_path / "kit", *procsnake_packages.OWN_PACKAGES)
    (folder / "my_world.py").write_text("")
    (tmp_path / "drive.py").write_text(WORKER)
    done = run(folder, sys.executable, tmp_path / "drive.py")
    assert done.returncode == 0, done.stderr
    own = [str(ROOT / name / "__init__.py") for name in ("agents", "envs", "serve", "train")]
    assert done.stdout.splitlines() == [*own, str(folder / "my_world.py")]
