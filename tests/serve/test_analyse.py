"""The command `procsnake analyse`: games in files, folders and archives; text and JSON; refusals in
one line.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import webbrowser
from urllib.request import urlopen

import pytest

from agents.measure.analysis.win_probability import WinProbability
from serve.archive.store import GameStore
from tests.agents.measure.analysis.throw_aways import kept
from tests.command_line import run
from tests.envs.battlesnake.traces import DATA
from tests.serve.archive.played import play, tell_all
from tests.waiting import until

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
    code, out, _ = run(
        capsys, "analyse", path, "--snake", proof.victim, "--json", "--nodes", "3000"
    )
    told = json.loads(out)
    assert (code, told["lost_turn"], told["snake"]["name"]) == (0, proof.turn, proof.victim)


def test_all_snakes_are_told_one_after_the_other(capsys, game):
    path, proof = game
    code, out, _ = run(capsys, "analyse", path, "--all-snakes", *FEW)
    assert code == 0
    heads = re.findall(r"^(.+) (won|lost) against (.+); turns", out, re.MULTILINE)
    assert len(heads) == 2
    assert (proof.victim, "lost") in [head[:2] for head in heads]
    code, out, _ = run(capsys, "analyse", path, "--all-snakes", "--json", *FEW)
    analyses = json.loads(out)["analyses"]
    assert (code, [one["snake"]["name"] for one in analyses]) == (0, [head[0] for head in heads])


def test_every_fault_in_the_json_has_a_best_line(capsys, game):
    path, proof = game
    _, out, _ = run(capsys, "analyse", path, "--snake", proof.victim, "--json", "--nodes", "3000")
    told = json.loads(out)
    lines = {turn["turn"]: turn["best_line"] for turn in told["turns"]}
    assert lines[told["lost_turn"]] == told["best_line"]
    for turn in told["turns"]:
        is_fault = turn["class"] in ("inaccuracy", "mistake", "blunder")
        assert not is_fault or turn["best_line"][0][told["snake"]["id"]] == turn["best"]
        assert (
            is_fault
            or turn["turn"] in (told["lost_turn"], told["last_chance_turn"])
            or turn["best_line"] is None
        )
    last = told["turns"][-1]
    assert last["moves"][last["played"]]["loses_within"] == 1


@pytest.mark.parametrize("with_game", [True, False])
def test_the_browser_is_shown_the_page_until_it_is_interrupted(
    capsys, monkeypatch, game, with_game
):
    path, proof = game
    asked = []

    def opened(root):
        return json.load(urlopen(f"{root}/api/analyses"))["games"]

    def looks(url):
        root = re.match(r"http://[^/]+", url)[0]
        assert "<html" in urlopen(url).read().decode()
        until(lambda: all(one["done"] == 1 for one in opened(root)), seconds=60)
        asked.extend([*opened(root), url])
        raise KeyboardInterrupt

    monkeypatch.setattr(webbrowser, "open", looks)
    code, out, _ = run(
        capsys,
        "analyse",
        *([path, "--snake", proof.victim] if with_game else []),
        "--browser",
        *FEW,
    )
    assert code == 0
    *games, url = asked
    assert f"the analysis is shown at {url} (Ctrl-C ends the show)" in out
    assert [(one["name"], one["path"] in url, one["done"]) for one in games] == [
        ("game.jsonl", True, 1)
    ] * with_game
    assert url.endswith("/analyse") != with_game


def test_a_turn_is_explained_by_the_shares_of_its_evaluation(capsys, game):
    path, proof = game
    code, out, _ = run(
        capsys, "analyse", path, "--snake", proof.victim, "--explain", str(proof.turn)
    )
    assert code == 0
    assert out.startswith(f"{proof.victim}, turn {proof.turn}: ")
    assert "room: cells that it reaches first" in out
    code, out, _ = run(
        capsys, "analyse", path, "--snake", proof.victim, "--explain", str(proof.turn), "--json"
    )
    told = json.loads(out)
    assert (told["snake"], told["turn"]) == (proof.victim, proof.turn)
    assert told["score"] == pytest.approx(sum(share["points"] for share in told["shares"]), abs=3)
    code, _, err = run(capsys, "analyse", path, "--explain", "99999")
    assert code == 2
    assert "--explain 99999: " in err
    assert "chose no move on that turn" in err


def test_the_evaluation_behind_the_scores_is_told(capsys):
    _, out, _ = run(capsys, "analyse", OFFICIAL, *FEW)
    assert out.endswith("\npositions are evaluated by: learned (duel-units)\n")


def test_a_kept_game_is_found_by_its_id(capsys, archive):
    url, (game_id, *_) = archive
    code, out, _ = run(capsys, "analyse", game_id, "--database", url, "--json", *FEW)
    told = json.loads(out)
    assert (code, told["game"], told["snake"]["name"]) == (0, game_id, "snake 0")


def test_the_last_games_of_an_archive_are_summed_up(capsys, archive):
    url, _ = archive
    code, out, _ = run(capsys, "analyse", "--last", "2", "--database", url, "--json", *FEW)
    assert (code, json.loads(out)["games"]) == (0, 2)
    code, out, _ = run(
        capsys, "analyse", "--last", "50", "--snake", "greedy", "--database", url, *FEW
    )
    assert code == 0
    assert out.startswith("3 games: ")
    code, _, err = run(
        capsys, "analyse", "--last", "5", "--snake", "nobody", "--database", url, *FEW
    )
    assert (code, err.count("\n")) == (2, 1)
    assert "has no finished ones of the snake 'nobody'" in err


def test_an_archive_without_games_is_named_without_its_password(capsys, monkeypatch):
    monkeypatch.setattr("serve.recorded_games.last_games", lambda *_: [])
    code, _, err = run(
        capsys,
        *shlex.split("analyse --last 5 --database postgresql://ada:s3cret@h/games --jobs 1"),
    )
    assert (code, err.count("\n")) == (2, 1)
    assert "postgresql://ada:***@h/games has no finished ones" in err


def test_the_last_games_of_a_folder_leave_out_what_is_no_game_and_say_so(capsys, game, tmp_path):
    path, proof = game
    shutil.copy(path, tmp_path / "again.jsonl")
    (tmp_path / "other.jsonl").write_text("nothing")
    code, out, err = run(
        capsys, "analyse", str(tmp_path), "--last", "9", "--snake", proof.victim, *FEW
    )
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
        (["."], "is a folder"),
        ([OFFICIAL, "--nodes", "3"], "3 is less than 100"),
        ([OFFICIAL, "--curves", OFFICIAL], "holds no curves of win probability"),
        (["--last", "3"], "games.db; procsnake serve keeps its games in one"),
        (["--last", "3", "nowhere"], "there is no nowhere; name files or folders"),
        ([OFFICIAL, "--browser", "--json"], "leave out --browser"),
        ([OFFICIAL, "--browser", "--last", "3"], "--last and --browser exclude each other"),
        ([OFFICIAL, "--all-snakes", "--snake", "c"], "--all-snakes and --snake exclude each other"),
        ([OFFICIAL, "--all-snakes", "--browser"], "--all-snakes and --browser exclude each other"),
        (["nowhere.jsonl", "--browser"], "there is no file nowhere.jsonl"),
        (["--fit"], "--fit needs stores of procsnake tournament"),
        (["--fit", "nowhere.db"], "there is no nowhere.db"),
        (["--fit", "nowhere.db", "--out", "."], "it is a folder"),
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
    WinProbability(dict.fromkeys(shipped.curves, shipped.curves["4"])).write(
        tmp_path / "curves.json"
    )
    path, _ = game
    chances = []
    for own in ([], ["--curves", str(tmp_path / "curves.json")]):
        _, out, _ = run(capsys, "analyse", path, "--json", *own, *FEW)
        chances.append(json.loads(out)["turns"][0]["chance"])
    assert chances[1] < 0.35 < chances[0]
