"""`procsnake export …` as it is typed."""

from __future__ import annotations

import json
import shlex

import pytest

import procsnake
from agents import bundle, champions
from tests.serve.aicrowd.entries import make_bundle


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    return make_bundle(tmp_path_factory.mktemp("policy") / "bundle", "lars")


AUTHOR = ["--author", "Ada <ada@example.org>"]


def test_from_a_run_to_a_checked_entry(policy, tmp_path, capsys):
    entry = str(tmp_path / "entry")
    words = [
        "export",
        "aicrowd",
        str(policy.parent),
        "--track",
        "sample-efficiency",
        "--out",
        entry,
        *AUTHOR,
    ]
    assert procsnake.main(words) == 0
    assert "8,000,000 steps" in capsys.readouterr().out
    assert procsnake.main(["export", "check", entry]) == 0
    assert "every rule is met" in capsys.readouterr().out
    assert procsnake.main(["export", "check", entry, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"findings": [], "is_local": False}
    (tmp_path / "entry" / "run.sh").unlink()
    assert procsnake.main(["export", "check", entry, "--json"]) == 2
    finding, *_ = json.loads(capsys.readouterr().out)["findings"]
    assert (finding["where"], finding["what"]) == ("run.sh", "it isn't there")
    assert procsnake.main(words) == 0
    remote = ["--remote", "git@gitlab.aicrowd.com:team/entry.git"]
    assert (
        procsnake.main(["export", "submit", entry, "--message", "one", "--dry-run", *remote]) == 0
    )
    assert "submission-one would be pushed" in capsys.readouterr().out


@pytest.mark.parametrize(
    "name", ["procgen-ppo", "procgen-ppo-cpu", "procgen-ppo-lars", "procgen-dqn", "procgen-apex"]
)
def test_shipped_experiments_are_exported_without_a_run(tmp_path, capsys, name):
    entry = str(tmp_path / "entry")
    words = [
        "export",
        "aicrowd",
        name,
        *shlex.split("--set env.name=procgen/starpilot --track generalization --out"),
        entry,
        *AUTHOR,
    ]
    assert procsnake.main(words) == 0
    assert (
        "env_name: starpilot" in (tmp_path / "entry" / "experiments" / f"{name}.yaml").read_text()
    )
    assert procsnake.main(["export", "check", entry]) == 0
    # Said first, whatever comes then.
    first, *_ = capsys.readouterr().out.splitlines()
    assert first.startswith("The competition closed in 2020")


def test_a_yaml_file_will_do(tmp_path):
    world = "env: {name: procgen/coinrun, options: {distribution_mode: easy}}"
    (tmp_path / "mine.yaml").write_text(
        f"name: mine\n{world}\nnetwork: {{name: impala}}\nbudget: {{max_minutes: 1}}\n"
    )
    words = [
        "export",
        "aicrowd",
        str(tmp_path / "mine.yaml"),
        "--track",
        "generalization",
        "--out",
        str(tmp_path / "entry"),
    ]
    assert procsnake.main(words) == 0
    assert (tmp_path / "entry" / "experiments" / "mine.yaml").is_file()


@pytest.mark.parametrize(
    "command", [["check"], ["submit", "--message", "one", "--dry-run", "--remote", "here"]]
)
def test_the_other_commands_say_first_that_it_is_closed(tmp_path, capsys, command):
    entry = str(tmp_path / "entry")
    procsnake.main(
        ["export", "aicrowd", "procgen-ppo", "--track", "generalization", "--out", entry, *AUTHOR]
    )
    capsys.readouterr()
    assert procsnake.main(["export", command[0], entry, *command[1:]]) == 0
    assert capsys.readouterr().out.startswith("The competition closed in 2020")


def suggested(text: str) -> list[str]:
    """The words of the command after "Try:", as a shell splits them."""
    words = shlex.split(text.partition("Try: ")[2])
    assert words[0].endswith("procsnake")
    return words[1:]


@pytest.mark.parametrize("name", ["procgen-dqn", "procgen-apex"])
def test_what_is_suggested_can_be_pasted(tmp_path, capsys, name):
    entry = str(tmp_path / "an entry")
    words = [
        "export",
        "aicrowd",
        name,
        *shlex.split("--track generalization --framework torch --out"),
        entry,
        *AUTHOR,
    ]
    assert procsnake.main(words) == 2
    assert procsnake.main(suggested(capsys.readouterr().err)) == 0
    assert procsnake.main(["export", "check", entry]) == 0
    # And the command that is named in the end, for a folder with a blank in its name.
    capsys.readouterr()
    assert procsnake.main([*words, "--set", f"{name.removeprefix('procgen-')}.num_atoms=1"]) == 0
    assert procsnake.main(shlex.split(capsys.readouterr().out.partition("check it: ")[2])[1:]) == 0


def test_a_runs_settings_can_be_changed_but_not_those_of_its_weights(policy, tmp_path, capsys):
    words = [
        "export",
        "aicrowd",
        str(policy),
        *shlex.split("--set seed=7 --track generalization --out"),
        str(tmp_path / "entry"),
    ]
    assert procsnake.main(words) == 0
    assert "seed: 7" in (tmp_path / "entry" / "experiments" / "procgen-ppo-lars.yaml").read_text()
    assert procsnake.main([*words, "--with-weights"]) == 2
    assert (
        "--set changes settings that the weights were not trained with" in capsys.readouterr().err
    )


@pytest.mark.parametrize("out", ["/proc/entry", "/dev/null/entry"])
def test_a_place_that_cant_be_written_is_told_in_a_line(out, capsys):
    assert (
        procsnake.main(
            ["export", "aicrowd", "procgen-ppo", "--track", "generalization", "--out", out]
        )
        == 2
    )
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert f"{out} can't be written" in error


def test_findings_come_with_their_fix_and_an_exit_code(policy, tmp_path, capsys):
    entry = tmp_path / "entry"
    procsnake.main(
        [
            "export",
            "aicrowd",
            str(policy),
            "--track",
            "generalization",
            "--out",
            str(entry),
            *AUTHOR,
        ]
    )
    (entry / ".gitignore").write_text("")
    assert procsnake.main(["export", "check", str(entry)]) == 2
    assert "Add the line: outputs/" in capsys.readouterr().out


def test_a_wrong_track_is_answered_in_a_line(policy, tmp_path, capsys):
    arguments = [
        "export",
        "aicrowd",
        str(policy),
        "--track",
        "generalisation",
        "--out",
        str(tmp_path / "entry"),
    ]
    assert procsnake.main(arguments) == 2
    assert capsys.readouterr().err.startswith(
        "procsnake export aicrowd: unknown track 'generalisation'. Did you mean"
    )


@pytest.mark.parametrize("target", ["policy.onnx", "."])
def test_the_onnx_file_is_the_bundles(policy, tmp_path, target):
    assert procsnake.main(["export", "onnx", str(policy), "--out", str(tmp_path / target)]) == 0
    assert (tmp_path / "policy.onnx").read_bytes() == bundle.load(policy).onnx


def test_a_champion_is_named_as_everywhere(tmp_path, capsys):
    assert (
        procsnake.main(["export", "onnx", "champion-duel", "--out", str(tmp_path / "duel.onnx")])
        == 0
    )
    assert (tmp_path / "duel.onnx").read_bytes() == bundle.load(
        champions.path("champion-duel")
    ).onnx
    words = [
        *shlex.split("export aicrowd champion-duel --track generalization --out"),
        str(tmp_path / "entry"),
    ]
    assert procsnake.main(words) == 2
    assert "unknown experiment" not in capsys.readouterr().err
