"""Every `procsnake …` command that README and docs show is one that the command line takes; of
those that can run here, one of each kind does.

Run in miniature: few games, a small bundle in place of the reader's run, local servers in place of
those on the internet. Of commands with the same options the first is run; those of the laboratory
notes are only parsed."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil

import pytest

import procsnake
from agents.options_file import OptionsFile
from agents.search.evaluation.learned import LearnedEvaluation
from agents.search.evaluation.learned_weights import Phase
from envs.battlesnake.recording import Recording
from serve.background import Background
from tests.agents.bundles import make_bundle
from tests.docs.commands import Command, commands
from tests.docs.test_contributing import FILES

COMMANDS = commands()

NOT_RUN = {
    "job": "needs an AWS account",
    "cluster": "needs machines that ssh reaches",
    "image": "needs an AWS account",
    "benchmark": "trains for minutes at least; tests/train/comparison runs small ones",
    "compare": "needs runs; tests/train/comparison/test_run_comparison.py has some",
    "tune-sagemaker": "needs an AWS account",
    "tune": "trains several times; tests/train/tuning/test_tune.py does so",
    "report": "needs a run; notebook 2 makes some",
    "plot": "needs runs; tests/train/runs/curves/test_plot.py has some",
    "quickstart": "trains for minutes; `make play` calls it",
    "analyse --fit": (
        "needs the stores of 1200 games; tests/agents/measure/analysis/test_fitting.py has small"
        " ones"
    ),
    "analyse --last 20": (
        "needs games fetched from Arena; tests/serve/test_analyse.py sums up a folder"
    ),
    "tournament flood quick=alphabeta?nodes=100": "is long; other tournaments are played",
    "arena": "needs an account on Arena; tests/serve/ladder has a stand-in",
    "export aicrowd": "needs a Procgen run; notebook 6 makes one and exports it",
    "export check": "needs an entry; notebook 6 makes one",
    "export submit": "needs an entry; notebook 6 makes one",
    "export savedmodel": "needs TensorFlow",
}
"""By first words, why a command isn't run here."""
MINIATURE = {
    "analyse": ["--nodes", "200"],
    "evaluate": ["--games", "1"],
    "levels": ["--episodes", "1"],
    "solo": ["--games", "1"],
    "watch": ["--delay", "0"],
    "tournament": ["--games", "1", "--max-turns", "5"],
    "sprt": ["--games", "4", "--max-turns", "5"],
}
"""What is added to commands, so that they take seconds."""
SNAKE = r"runs/my-run(/bundle)?|runs/battlesnake-\w+-…(/bundle)?|\blatest\b|snake\.zip|champion-\w+"
GROUPS = {"replay", "games", "champions", "launch", "export"}
"""Commands whose second word is a command, too."""
ARENA_GAME = "3b241101-e2bb-4255-8caf-4136c566a962"
"""The game that docs/ladder.md fetches."""
SERVER = r"(http://127\.0\.0\.1:8000|https://[\w.…]+)(/SECRET)?"


@pytest.mark.parametrize("page", sorted({command.page for command in COMMANDS}))
def test_the_parser_takes_those_of_a_page(page):
    parser = procsnake.cli.main.build_parser()
    for command in COMMANDS:
        if command.page == page:
            assert callable(parser.parse_args(command.words).run), command.text


def test_there_are_commands_of_many_kinds():
    assert len(COMMANDS) > 50
    assert {"train", "evaluate", "match", "play", "serve", "replay", "games"} <= {
        command.words[0] for command in COMMANDS
    }


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """A folder with what readers have by then: a policy, rules, a running server and its games, a
    recording, a request.
    """
    folder = tmp_path_factory.mktemp("desk")
    shutil.copytree(make_bundle(folder / "made"), folder / "runs" / "mine" / "bundle")
    for name in ("my_rule.py", "hug.py", "ada.py", "bob.py", "old_rules.py"):
        (folder / name).write_text(FILES["hug.py"])
    (folder / "outputs").mkdir()
    OptionsFile(agent="alphabeta", options={"near": 6}, against="alphabeta").write(
        folder / "outputs" / "tuned-alphabeta.yaml"
    )
    phase = Phase(up_to=None, mine={"area": 64}, theirs={}, shared={})
    LearnedEvaluation(width=11, height=11, phases=(phase,)).write(
        folder / "outputs" / "learned.json"
    )
    database = f"sqlite:///{folder / 'games.db'}"
    with (
        Background("flood", "--database", database) as server,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.chdir(folder)
        play = ["match", "hug.py", server.url, "--record", "game.jsonl"]
        assert procsnake.main(play) == 0
        shutil.copy("game.jsonl", "recorded.jsonl")
        (folder / "request.json").write_text(
            json.dumps(Recording.read("game.jsonl").requests[1], indent=2)
        )
        yield folder, server.url


def words_here(command: Command, url: str) -> list[str]:
    """The command with what lies on the desk."""
    words = [re.sub(SERVER, url, word) for word in command.words]
    # What is watched is of another world than Battlesnake.
    if words[0] != "watch":
        words = [re.sub(SNAKE, "runs/mine", word) for word in words]
    return [*words, *MINIATURE.get(words[0], [])]


def reason_not_to_run(command: Command) -> str | None:
    if command.words[0] == "tune-search":
        return (
            "plays for minutes at least; tests/agents/search/tuning/test_commands.py plays a little"
        )
    if command.words[0] == "benchmark" and "--dry-run" in command.words:
        return None
    for first, reason in NOT_RUN.items():
        if command.words[: len(first.split())] == first.split():
            return reason
    if command.words[:2] == ["launch", "sagemaker"] and "--explain" not in command.words:
        return "needs an AWS account"
    if ARENA_GAME in command.text:
        return NOT_RUN["arena"]
    if any("hf://" in word for word in command.words):
        return "needs the Hugging Face Hub; tests/agents/hub has a stand-in"
    if command.words[0] in ("keyboard", "play"):
        return "is played by a person; tests/serve/browser/by_hand plays"
    if "--browser" in command.words:
        return "shows its game until Ctrl-C; tests/serve/browser/chromium/test_game.py watches one"
    if any(word.startswith("runs/corridor-") for word in command.words):
        return "tests/docs/test_contributing.py runs it"
    if command.words[0] == "levels" or "--levels" in command.words:
        return "needs a Procgen run; notebook 4 makes one and measures it"
    if command.words[0] == "train":
        return reason_not_to_train(command)
    return None


def reason_not_to_train(command: Command) -> str | None:
    if "--resume" in command.words:
        return "needs a run that was interrupted; notebook 5 makes one and resumes it"
    if "--config" in command.words or "algorithm=a2c" in command.words:
        return "tests/docs/test_contributing.py runs it"
    if {"env.options.rewards=my_rewards:hunter", "algorithm=one_step"} & set(command.words):
        return "tests/docs/test_your_own_parts.py runs it"
    if "env.options.observation=my_planes:WithWall" in command.words:
        return "tests/docs/test_recipes.py checks it"
    return None


def kind(command: Command) -> tuple[str, ...]:
    """The command's name and its options' names; of `train`, what is set as well."""
    words = command.words
    name = words[:2] if words[0] in GROUPS else words[:1]
    if words[0] == "train":
        name = ["train", *words[1:]]
    options = sorted({word.partition("=")[0] for word in words if word.startswith("--")})
    return (*name, *options)


def to_run(*names: str) -> list[Command]:
    """Of each kind of the commands of those names, the first one that users' pages show."""
    first: dict[tuple[str, ...], Command] = {}
    for command in COMMANDS:
        here = command.words[0] in names and not command.page.startswith("lab/")
        if here and reason_not_to_run(command) is None:
            first.setdefault(kind(command), command)
    return list(first.values())


OTHERS = sorted({command.words[0] for command in COMMANDS} - {"train", "serve"})


@pytest.mark.long
@pytest.mark.parametrize("command", to_run(*OTHERS), ids=str)
def test_it_runs(command, desk, monkeypatch, capsys):
    folder, url = desk
    monkeypatch.chdir(folder)
    words = words_here(command, url)
    shutil.copy("recorded.jsonl", "game.jsonl")  # some commands write another
    if words[0] == "sprt":
        (folder / "outputs" / "sprt.db").unlink(missing_ok=True)  # the same
    if words[0] == "tournament" and "flood" in words:
        # A reader plays one tournament, not all that the pages show.
        (folder / "outputs" / "tournament.db").unlink(missing_ok=True)
    code = procsnake.main(words)
    said = capsys.readouterr().out
    if words[0] == "doctor":
        # Whether a busy machine is late is no fault of the page's.
        faults = [
            line for line in said.splitlines() if line.startswith("✗ ") and "not ready" not in line
        ]
        assert all("[slow-under-load]" in fault for fault in faults), said
        assert code == bool(faults)
    else:
        assert code == 0


@pytest.mark.long
@pytest.mark.parametrize("command", to_run("serve"), ids=str)
def test_it_serves(command, desk, monkeypatch):
    """On this machine only, and on any free port."""
    folder, url = desk
    monkeypatch.chdir(folder)
    words = [word if word != "0.0.0.0" else "127.0.0.1" for word in words_here(command, url)[1:]]
    Background(*(word if word != "8000" else "0" for word in words), "--no-games").stop()


@pytest.mark.long
@pytest.mark.parametrize("command", to_run("train"), ids=str)
def test_it_would_train(command):
    """All that `procsnake train` does before it starts Ray: the experiment is read and checked, its
    world played a step.
    """
    from train.config import Experiment
    from train.run import check
    from train.stages import first_stages

    options = procsnake.cli.main.build_parser().parse_args(command.words)
    if options.list:
        assert options.run(options) == 0
        return
    experiment = Experiment.load(
        options.experiment, [*options.set, *(["budget.max_minutes=1"] if options.minutes else [])]
    )
    for stage in first_stages(experiment):
        check(stage)
        # What it begins with isn't trained yet, but has this network.
        experiment = dataclasses.replace(experiment, init_from=None, network=stage.network)
    check(experiment)
