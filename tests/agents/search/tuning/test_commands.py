"""`procsnake tune-search` as it is typed."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace

import pytest

import agents
from agents.measure.sprt.openings import opening
from agents.measure.sprt.play import play_sprt
from agents.measure.sprt.settings import Sprt
from agents.measure.tournament.store import Store
from agents.options_file import OptionsFile
from agents.search.tuning.settings import Tuning
from procsnake import main
from tests.agents.search.tuning.made import START, play, small

SMALL = ["--nodes", "40", "--width", "7", "--height", "7", "--max-turns", "120", "--jobs", "1"]
TUNE = [
    "tune-search",
    "games",
    START,
    *shlex.split("--parameters weights.length:40 --pairs 6 --batch 3 --r-end 0.2"),
    *SMALL,
    "--jobs",
    "2",
]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_it_writes_options_that_are_not_accepted_and_says_how_to_test_them(folder, capsys):
    assert main(TUNE) == 0
    told = capsys.readouterr().out
    assert "pair 6 of 6 · games 12 · weights.length=" in told
    assert (
        f"'tuned=alphabeta?options=outputs/tuned-alphabeta.yaml' 'before={START}' --nodes=40"
        in told
    )
    tuned = OptionsFile.read(folder / "outputs" / "tuned-alphabeta.yaml")
    assert (tuned.agent, tuned.against, tuned.accepted, tuned.test) == (
        "alphabeta",
        START,
        False,
        None,
    )
    assert (
        agents.make("alphabeta?options=outputs/tuned-alphabeta.yaml").weights.length
        == tuned.options["weights"]["length"]
    )
    assert (folder / "outputs" / "tune-alphabeta.db").is_file()
    # The same command goes on: here, with nothing left to play.
    assert main([*TUNE, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["games"], found["pairs"], found["method"]) == (12, 6, "spsa")
    assert found["parameters"]["weights.length"]["value"] == tuned.options["weights"]["length"]


def printed(told, command):
    """The words of a command that was printed, from its name on."""
    (line,) = [line for line in told.splitlines() if f" {command} " in line]
    words = shlex.split(line)
    return words[words.index(command) :]


OTHER_GAMES = shlex.split(
    "--snakes 4 --ruleset wrapped --map empty --minimum-food 3 --opening-turns 2"
)


@pytest.mark.parametrize(
    "asked",
    [[], [*OTHER_GAMES, "--hazard-damage-per-turn", "-5", "--seed", "5"]],
    ids=["duels", "four"],
)
def test_the_commands_that_it_prints_are_tests_of_the_two_in_the_games_that_were_tuned(
    folder, capsys, asked
):
    tune = [
        "tune-search",
        "games",
        START,
        *shlex.split("--parameters weights.length:40 --pairs 2 --batch 2"),
        *SMALL,
        *asked,
    ]
    assert main(tune) == 0
    told = capsys.readouterr().out
    if asked:
        short = [
            "tune-search",
            "accept",
            START,
            "outputs/tuned-alphabeta.yaml",
            *SMALL,
            "--snakes",
            "4",
            "--games",
            "4",
        ]
        assert main(short) == 2
        assert (
            "was tuned by games with --ruleset wrapped, and this test would have standard"
            in capsys.readouterr().err
        )
    with Store("outputs/tune-alphabeta.db", Tuning) as store:
        tuned = store.load()
    seeds = set()
    for command, kept in (("sprt", "sprt.db"), ("tune-search", "tuned-alphabeta-test.db")):
        assert main([*printed(told, command), "--games", "4", "--jobs", "1", "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert ([one["name"] for one in found["players"]], found["games"]) == (
            ["tuned", "before"],
            4,
        )
        assert found["elo1"] == 10
        with Store(folder / "outputs" / kept, Sprt) as store:
            test = store.load()
        for name in (
            "seats",
            "nodes",
            "cpu_ms",
            "width",
            "height",
            "settings",
            "opening_turns",
            "max_turns",
        ):
            assert getattr(test, name) == getattr(tuned, name), name
        assert opening(test, 0) != opening(tuned, 0)
        seeds.add(test.seed)
    assert len(seeds) == 1
    assert OptionsFile.read("outputs/tuned-alphabeta.yaml").test["snakes"] == tuned.seats


def test_what_was_tuned_among_four_is_not_tested_in_duels(folder, capsys):
    path = folder / "tuned.yaml"
    OptionsFile(
        agent="alphabeta", options={"near": 6}, against="alphabeta", tuning={"snakes": 4}
    ).write(path)
    assert main(["tune-search", "accept", "alphabeta", "tuned.yaml", *SMALL, "--games", "4"]) == 2
    assert (
        "tuned.yaml was tuned by games with --snakes 4, and this test would have 2. Add --snakes 4"
        in capsys.readouterr().err
    )
    assert OptionsFile.read(path).test is None
    assert [one.name for one in folder.iterdir()] == ["tuned.yaml"]
    path.write_text(path.read_text().replace("tuning:\n  snakes: 4", "tuning: 4"))
    assert main(["tune-search", "accept", "alphabeta", "tuned.yaml", *SMALL, "--games", "4"]) == 2
    assert "its tuning is 4" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("before", "verdict", "jobs"),
    [("alphabeta?weights.cell=0&weights.length=0", "H1", "2"), ("alphabeta", "H0", "1")],
)
def test_a_sequential_test_writes_its_verdict_into_the_file(folder, capsys, before, verdict, jobs):
    # The good one against a bad one, and the same one against itself.
    path = folder / "tuned.yaml"
    OptionsFile(
        agent="alphabeta", options={"weights": {"cell": 6, "length": 180}}, against=before
    ).write(path)
    words = ["--elo0", "0", "--elo1", "90", "--jobs", jobs]
    assert main(["tune-search", "accept", before, "tuned.yaml", *SMALL, *words]) == 0
    assert f"{verdict} accepted" in capsys.readouterr().out
    judged = OptionsFile.read(path)
    assert judged.accepted == (verdict == "H1")
    assert judged.test is not None
    assert judged.test["verdict"] == verdict
    assert judged.options == {"weights": {"cell": 6, "length": 180}}
    assert path.read_text().startswith("# It has passed" if judged.accepted else "# NOT ACCEPTED")


def test_the_test_of_a_tuning_has_other_starts_than_the_tuning(folder):
    OptionsFile(agent="alphabeta", options={"near": 6}, against="alphabeta").write(
        folder / "tuned.yaml"
    )
    words = ["tune-search", "accept", "alphabeta", "tuned.yaml", *SMALL, "--seed", "5"]
    assert main([*words, "--games", "2"]) == 0
    with Store(folder / "outputs" / "tuned-test.db", Sprt) as store:
        assert store.load().seed not in (None, 5)


@pytest.mark.parametrize(
    "against", ["evil/rules.py+alphabeta", "evil/rules.py+evil/rules.py+alphabeta"]
)
def test_rules_that_a_file_of_options_names_are_executed_only_if_they_were_typed(
    folder, capsys, against
):
    trace = folder / "was executed"
    rules = folder / "evil" / "rules.py"
    rules.parent.mkdir()
    rules.write_text(
        f"open({str(trace)!r}, 'w').close()\n\n\ndef any_way(me):\n    return [True] * 4\n"
    )
    OptionsFile(agent="alphabeta", options={"near": 6}, against=against).write(
        folder / "tuned.yaml"
    )
    for typed in ("alphabeta", "rules.py+alphabeta"):
        assert main(["tune-search", "accept", typed, "tuned.yaml", *SMALL, "--games", "2"]) == 2
        assert f"tuned.yaml is to be tested against '{against}" in capsys.readouterr().err
    assert not trace.exists()
    assert (
        main(
            ["tune-search", "accept", against, "tuned.yaml", *SMALL, "--jobs", "1", "--games", "2"]
        )
        == 0
    )
    assert trace.exists()


@pytest.mark.parametrize(
    "line", ["against: 5", "agent: [alphabeta]", "accepted: maybe", "test: H1"]
)
def test_a_file_of_options_with_values_of_other_types_is_one_line(folder, capsys, line):
    name = line.partition(":")[0]
    path = folder / "tuned.yaml"
    OptionsFile(agent="alphabeta", options={"near": 6}, against="alphabeta").write(path)
    lines = path.read_text().splitlines()
    path.write_text("\n".join(line if one.startswith(f"{name}:") else one for one in lines))
    assert main(["tune-search", "accept", "alphabeta", "tuned.yaml", *SMALL, "--games", "2"]) == 2
    assert f"its {name} is" in capsys.readouterr().err


@pytest.mark.parametrize("goes_on", [True, False])
def test_what_a_tuning_writes_while_its_test_is_played_is_kept(
    folder, capsys, monkeypatch, goes_on
):
    path = folder / "tuned.yaml"
    before = OptionsFile(
        agent="alphabeta", options={"near": 6}, against="alphabeta", tuning={"pairs": 1}
    )
    after = replace(before, tuning={"pairs": 2}, options=before.options if goes_on else {"near": 7})

    def play_while_another_tunes(*args, **options):
        progress = play_sprt(*args, **options)
        after.write(path)
        return progress

    before.write(path)
    monkeypatch.setattr("procsnake.cli.train.accept.play_sprt", play_while_another_tunes)
    words = [
        "tune-search",
        "accept",
        "alphabeta",
        "tuned.yaml",
        *SMALL,
        "--jobs",
        "1",
        "--games",
        "2",
    ]
    assert main(words) == (0 if goes_on else 2)
    found = OptionsFile.read(path)
    if goes_on:
        assert (found.tuning, found.test["games"]) == ({"pairs": 2}, 2)
    else:
        assert found == after
        assert "tuned.yaml has changed while its test was played" in capsys.readouterr().err


def test_a_finished_tuning_that_is_run_again_keeps_its_verdict(folder, capsys):
    assert main(TUNE) == 0
    path = folder / "outputs" / "tuned-alphabeta.yaml"
    tuned = OptionsFile.read(path)
    judged = replace(tuned, accepted=True, test={"verdict": "H1", "games": 3000})
    judged.write(path)
    capsys.readouterr()
    assert main(TUNE) == 0
    assert OptionsFile.read(path) == judged
    assert "not accepted" not in capsys.readouterr().out
    # A verdict on other options is none on these.
    replace(judged, options={"weights": {"length": 3}}).write(path)
    assert main(TUNE) == 0
    assert OptionsFile.read(path) == tuned


@pytest.mark.parametrize("command", ["games", "results"])
def test_the_options_that_a_player_begins_with_are_not_replaced_by_those_tested_against_them(
    folder, capsys, command
):
    stores = ["nowhere.db"] if command == "results" else []
    path = folder / "outputs" / "tuned-alphabeta.yaml"
    path.parent.mkdir()
    first = OptionsFile(agent="alphabeta", options={"near": 6}, against="alphabeta")
    first.write(path)
    player = f"alphabeta?options={path}"
    assert main(["tune-search", command, player, *stores, "--parameters", "weights.length"]) == 2
    assert (
        "begins with the options in outputs/tuned-alphabeta.yaml, which must stay there"
        in capsys.readouterr().err
    )
    assert OptionsFile.read(path) == first
    assert (
        main(
            [
                "tune-search",
                "games",
                player,
                "--parameters",
                "near",
                "--pairs",
                "1",
                *SMALL,
                "--out",
                "second.yaml",
            ]
        )
        == 0
    )
    assert OptionsFile.read(folder / "second.yaml").against == player


@pytest.mark.parametrize("command", ["games", "results"])
def test_a_place_where_no_options_can_be_is_refused_before_the_games(folder, capsys, command):
    stores = ["nowhere.db"] if command == "results" else []
    (folder / "there").mkdir()
    assert (
        main(
            ["tune-search", command, "alphabeta", *stores, "--parameters", "near", "--out", "there"]
        )
        == 2
    )
    assert "there can't be written: it is a folder" in capsys.readouterr().err
    assert [path.name for path in folder.iterdir()] == ["there"]


def test_an_undecided_test_accepts_nothing(folder):
    path = folder / "tuned.yaml"
    OptionsFile(agent="alphabeta", options={"near": 6}, against="alphabeta", accepted=True).write(
        path
    )
    assert main(["tune-search", "accept", "alphabeta", "tuned.yaml", *SMALL, "--games", "2"]) == 0
    assert not OptionsFile.read(path).accepted


def test_weights_are_fitted_to_recorded_games(folder, capsys):
    play(small(pairs=4, batch=4, width=9, height=9), folder / "games.db", concurrency=2)
    words = shlex.split(
        "tune-search results alphabeta games.db --parameters weights.cell,weights.cramped "
        "--out fitted.yaml"
    )
    assert main([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["games"], found["method"]) == (8, "texel")
    assert found["loss"] <= found["loss_before"]
    tuned = OptionsFile.read(folder / "fitted.yaml")
    assert set(tuned.options["weights"]) == {"cell", "cramped"}
    assert tuned.options["weights"]["cell"] == found["parameters"]["weights.cell"]["value"]
    words[5] += ",weights.cell"
    assert main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == found, (
        "a weight that is named twice is one weight"
    )


def test_the_parameters_are_listed_with_their_ranges(capsys):
    assert main(["tune-search", "parameters", "alphabeta?near=3"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert " weights.hunger 400 from 0 to 2000, c_end 60 " in f" {told} "
    assert " near 3 from 1 to 24, c_end 1 " in f" {told} "


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["games", "alphabeta", "--parameters", "weights.hungr"], "Did you mean 'weights.hunger'"),
        (["games", "mcts", "--parameters", "explorations"], "Did you mean 'exploration'"),
        (
            ["games", "alphabeta", "--parameters", "all", "--nodes", "5", "--time", "5"],
            "one way",
        ),
        (
            ["results", "alphabeta", "nowhere.db", "--parameters", "weights"],
            "there is no nowhere.db",
        ),
        (["accept", "alphabeta", "nowhere.yaml"], "can't be read"),
    ],
)
def test_what_cannot_be_done_is_told_in_a_line(words, told, capsys):
    assert main(["tune-search", *words]) == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    ("player", "told"),
    [
        ("alphabeta?weights=3", "weights are 3; they must be given by name"),
        ("alphabeta?near=99", "near starts at 99"),
        ("alphabeta?near=far", "near is 'far'"),
        ("alphabeta?options=nowhere.yaml", "nowhere.yaml can't be read"),
    ],
)
def test_a_player_without_parameters_to_tell_of_is_told_in_a_line(player, told, capsys):
    assert main(["tune-search", "parameters", player]) == 2
    said = capsys.readouterr().err
    assert said.startswith("procsnake tune-search parameters: ")
    assert told in said
    assert said.count("\n") == 1


def test_an_option_of_the_other_tuning_is_unknown(capsys):
    with pytest.raises(SystemExit) as exit_:
        main(["tune-search", "games", "alphabeta", "--parameters", "near", "--trials", "4"])
    assert exit_.value.code == 2
    assert "--trials" in capsys.readouterr().err
