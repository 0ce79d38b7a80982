"""`procsnake launch kuberay`, `slurm` and `ec2` as a user types it."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
import yaml

from envs.common.errors import UnknownNameError
from tests.command_line import run
from train.config import Experiment

KUBERAY = shlex.split(
    "launch kuberay battlesnake-ppo --instances 2*16cpu-60gib --image r/p:1 --claim runs"
)
SLURM = ("launch", "slurm", "battlesnake-ppo", "--instances", "2*16cpu")
EC2 = shlex.split(
    "launch ec2 battlesnake-ppo --instances 2*ml.c5.4xlarge --image r/p:1 --region us-west-2"
)


@pytest.fixture(autouse=True)
def desk(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PROCSNAKE_IMAGE", raising=False)


@pytest.mark.parametrize(
    ("words", "next_command"),
    [(KUBERAY, "kubectl apply -f"), (SLURM, "sbatch"), (EC2, "ray up --yes")],
)
def test_a_file_is_written_and_the_next_command_told(words, next_command, capsys):
    code, out, _ = run(capsys, *words, "--set", "seed=7", "--minutes", "3")
    assert code == 0
    (line,) = (line for line in out.splitlines() if next_command in line)
    file = Path(shlex.split(line)[-1])
    assert file.is_file()
    assert f"written: {file}" in out
    (seed,) = {
        int(found)
        for path in Path("outputs").glob("battlesnake-ppo-*")
        for found in re.findall(r"\bseed: (\d+)", path.read_text())
    }
    assert seed == 7


def test_all_engines_get_the_same_experiment(capsys):
    for words in (KUBERAY, SLURM, EC2):
        on = words[1]
        assert (
            run(
                capsys, *words, "--set", "scale.workers=9", "--name", "mine", "--out", f"{on}.yaml"
            )[0]
            == 0
        )
    documents = list(yaml.safe_load_all(Path("kuberay.yaml").read_text()))
    kuberay = yaml.safe_load(documents[0]["data"]["experiment.yaml"])
    text = (
        Path("slurm.yaml")
        .read_text()
        .partition("<<'END OF EXPERIMENT'\n")[2]
        .partition("END OF EXPERIMENT")[0]
    )
    found = [Experiment.from_dict(one) for one in (kuberay, yaml.safe_load(text))]
    found.append(Experiment.load("ec2.experiment.yaml"))
    assert {one.scale.workers for one in found} == {9}
    assert len({one.settings for one in found}) == 1


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ("launch", "kuberay", "battlesnake-ppo", "--instances", "16cpu", "--image", "r/p:1"),
            "launch kuberay needs --claim, e.g. --claim runs",
        ),
        (
            ("launch", "kuberay", "battlesnake-ppo", "--instances", "16cpu", "--claim", "runs"),
            "launch kuberay needs --image, such as --image ",
        ),
        (
            ("launch", "ec2", "battlesnake-ppo", "--instances", "ml.c5.xlarge", "--image", "r/p:1"),
            "launch ec2 needs --region, such as --region us-west-2",
        ),
        ((*SLURM, "--spot"), "unknown option '--spot'"),
        (
            (*SLURM, "--set", "env.options.width=-3"),
            "width is -3; it must be an integer from 3 to 25",
        ),
        ((*SLURM, "--name", "my run"), "e.g. --name my-run"),
        (
            ("launch", "slurm", "battlesnake-ppo"),
            "scale is local; name machines by their size, e.g. --instances '2*16cpu-64gib'",
        ),
        (
            ("launch", "slurm", "battlesnake-ppo", "--instances", "16"),
            "'16' are not like ml.g5.xlarge",
        ),
        (
            ("launch", "slurm", "battlesnake-ppo", "--instances", "16cpus"),
            "no size, e.g. 16cpu or 8cpu-1gpu-32gib",
        ),
        (
            ("launch", "slurm", "battlesnake-imitation", "--instances", "16cpu"),
            "is a single process",
        ),
        (("launch", "slurms", "battlesnake-ppo", "--instances", "16cpu"), "Did you mean 'slurm'?"),
        (
            ("launch", "sagemaker", "battlesnake-ppo", "--instances", "2*16cpu"),
            "such as --instances ml.c5.4xlarge, not the size '16cpu'",
        ),
    ],
    ids=lambda value: None if isinstance(value, str) else " ".join(value[1:]),
)
def test_what_cannot_be_is_refused_in_a_line_and_nothing_is_written(words, told, capsys):
    code, out, err = run(capsys, *words)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert told in err
    assert not Path("outputs").exists()


def test_explain_tells_what_follows_and_writes_nothing(capsys):
    code, out, _ = run(capsys, *SLURM[:-1], "8cpu-1gpu+2*36cpu", "--explain")
    assert code == 0
    assert "env runners  72 = 36 CPUs × 2 playing instances" in out
    code, out, _ = run(capsys, *SLURM, "--explain", "--json")
    assert (json.loads(out)["num_env_runners"], list(Path().iterdir())) == (31, [])


def test_a_warning_tells_what_is_not_sent_along_and_json_tells_the_same(capsys):
    own = ("--set", "env.imports=[this]", "--name", "mine")
    code, out, _ = run(capsys, *SLURM, *own)
    assert code == 0
    assert "warning: install your own this on the machines; it isn't sent with the job" in out
    code, out, _ = run(capsys, *SLURM, *own, "--json")
    told = json.loads(out)
    assert told["written"] == ["outputs/mine.sh"]
    assert "install your own this on the machines; it isn't sent with the job" in told["warnings"]
    assert told["next"][0] == "submit it: sbatch outputs/mine.sh"


@pytest.mark.parametrize("engine", ["kuberay", "slurm", "ec2"])
def test_each_engine_has_a_help_of_its_own(engine, capsys):
    code, out, _ = run(capsys, "launch", engine, "--help")
    assert code == 0
    assert f"launch {engine} battlesnake-ppo --instances '2*" in out
    assert "--spot" not in out


def test_sizes_are_told_from_families():
    with pytest.raises(UnknownNameError, match="instance family 'c99'"):
        Experiment.load("battlesnake-ppo", ["scale.kind=single", "scale.instance=ml.c99.xlarge"])
