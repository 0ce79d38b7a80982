"""The command `procsnake analyse`: games in files, folders and archives; text and JSON; refusals in one line."""

from __future__ import annotations

import json
import shutil

import pytest

from agents.analysis.win_probability import WinProbability
from serve.archive.store import GameStore
from tests.agents.analysis.throw_aways import kept
from tests.command_line import run
from tests.envs.battlesnake.traces import DATA
from tests.serve.archive.played import play, tell_all

FEW = ("--nodes", "200", "--jobs", "1")
OFFICIAL = str(DATA / "cli-output-example.jsonl")


@pytest.fixture
def game(tmp_path):
    """The file of a game with a proven throw-away, and the proof."""
    recording, proof = min(kept(), key=lambda game: game[1].turn)
    return str(recording.write(tmp_path / "game.jsonl")), proof


@pytest.fixture
def archive(tmp_path):
    """An archive of three games, as a server of ours has kept them."""
    url = f"sqlite:///{tmp_path / 'games.db'}"
    store = GameStore(url)
    games = [play(seed=seed) for seed in range(3)]
    for one in games:
        tell_all(store, "greedy", one, 0)
    store.flush()
    store.close()
    return url, [one.game_id for one in games]


def test_a_file_is_told_in_words(capsys, game):
    path, proof = game
    code, out, _ = run(capsys, "analyse", path, "--snake", proof.victim, "--nodes", "3000")
    assert code == 0
    assert f"\nturn {proof.turn}: " in out
    assert "← lost here" in out
    assert f"\ncause: {proof.victim} died on turn" in out


def test_json_is_the_only_thing_on_stdout(capsys, game):
    path, proof = game
    code, out, _ = run(capsys, "analyse", path, "--snake", proof.victim, "--json", "--nodes", "3000")
    told = json.loads(out)
    assert (code, told["lost_turn"], told["snake"]["name"]) == (0, proof.turn, proof.victim)


def test_a_turn_is_explained_by_the_shares_of_its_evaluation(capsys, game):
    path, proof = game
    code, out, _ = run(capsys, "analyse", path, "--snake", proof.victim, "--explain", str(proof.turn))
    assert code == 0
    assert out.startswith(f"{proof.victim}, turn {proof.turn}: ")
    assert "room: cells that it reaches first" in out
    code, out, _ = run(capsys, "analyse", path, "--snake", proof.victim, "--explain", str(proof.turn), "--json")
    told = json.loads(out)
    assert (told["snake"], told["turn"]) == (proof.victim, proof.turn)
    assert told["score"] == pytest.approx(sum(share["points"] for share in told["shares"]), abs=3)
    code, _, err = run(capsys, "analyse", path, "--explain", "99999")
    assert code == 2
    assert "--explain 99999 is no turn on which" in err


def test_the_evaluation_behind_the_scores_is_told(capsys):
    _, out, _ = run(capsys, "analyse", OFFICIAL, *FEW)
    assert out.endswith("\npositions are evaluated by: learned (duel)\n")


def test_a_kept_game_is_found_by_its_id(capsys, archive):
    url, (game_id, *_) = archive
    code, out, _ = run(capsys, "analyse", game_id, "--database", url, "--json", *FEW)
    told = json.loads(out)
    assert (code, told["game"], told["snake"]["name"]) == (0, game_id, "snake 0")


def test_the_last_games_of_an_archive_are_summed_up(capsys, archive):
    url, _ = archive
    code, out, _ = run(capsys, "analyse", "--last", "2", "--database", url, "--json", *FEW)
    assert (code, json.loads(out)["games"]) == (0, 2)
    code, out, _ = run(capsys, "analyse", "--last", "50", "--snake", "greedy", "--database", url, *FEW)
    assert code == 0
    assert out.startswith("3 games: ")
    code, _, err = run(capsys, "analyse", "--last", "5", "--snake", "nobody", "--database", url, *FEW)
    assert (code, err.count("\n")) == (2, 1)
    assert "has no finished ones of the snake 'nobody'" in err


def test_the_last_games_of_a_folder_leave_out_what_is_no_game_and_say_so(capsys, game, tmp_path):
    path, proof = game
    shutil.copy(path, tmp_path / "again.jsonl")
    (tmp_path / "other.jsonl").write_text("nothing")
    code, out, err = run(capsys, "analyse", str(tmp_path), "--last", "9", "--snake", proof.victim, *FEW)
    assert code == 0
    assert out.startswith("2 games: 2 lost\n")
    assert err.count("left out other.jsonl: ") == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere.jsonl"], "there is no file nowhere.jsonl, and neither"),
        (["no/where.jsonl"], "cannot read recording no/where.jsonl"),
        ([OFFICIAL, "--snake", "c"], "unknown snake 'c'"),
        ([OFFICIAL, OFFICIAL], "takes one game, not 2"),
        ([], "takes one game, not 0"),
        (["."], "is a folder; "),
        ([OFFICIAL, "--nodes", "3"], "3 is less than 100"),
        ([OFFICIAL, "--curves", OFFICIAL], "holds no curves of win probability"),
        (["--last", "3"], "games.db; procsnake serve keeps its games in one"),
        (["--last", "3", "nowhere"], "there is no nowhere; name files or folders"),
        (["--fit"], "--fit needs stores of procsnake tournament"),
        (["--fit", "nowhere.db"], "there is no nowhere.db"),
    ],
    ids=lambda value: " ".join(value)[-40:] if isinstance(value, list) else "",
)
def test_bad_input_is_refused_in_one_line(capsys, monkeypatch, tmp_path, arguments, said):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DATABASE_URL", raising=False)
    code, _, err = run(capsys, "analyse", *arguments)
    assert (code, err.count("\n")) == (2, 1)
    assert said in err


def test_curves_of_ones_own_are_used(capsys, game, tmp_path):
    shipped = WinProbability.shipped()
    WinProbability(dict.fromkeys(shipped.curves, shipped.curves["4"])).write(tmp_path / "curves.json")
    path, _ = game
    chances = []
    for own in ([], ["--curves", str(tmp_path / "curves.json")]):
        _, out, _ = run(capsys, "analyse", path, "--json", *own, *FEW)
        chances.append(json.loads(out)["turns"][0]["chance"])
    assert chances[1] < 0.35 < chances[0]
