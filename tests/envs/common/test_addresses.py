"""Addresses where paths are needed: refused, and nothing is made."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from envs.common.addresses import scheme_of
from envs.common.errors import ProcsnakeError
from envs.common.whole_files import make_folder_of, write_whole
from tests.command_line import run
from train.config import Experiment
from train.run import train
from train.runs.folder import RunFolder
from train.tuning.tune import tune


@pytest.mark.parametrize(
    ("text", "scheme"),
    [
        ("s3://bucket/runs", "s3"),
        ("S3://bucket", "s3"),
        ("file:///tmp/x", "file"),
        (Path("gs://bucket/x"), "gs"),
        ("runs", ""),
        ("/tmp/a:b/c", ""),
        ("C:/runs", ""),
        ("C:\\runs", ""),
        ("a+b", ""),
        ("flood?nodes=5", ""),
    ],
)
def test_an_address_is_told_from_a_path(text, scheme):
    assert scheme_of(text) == scheme


@pytest.mark.parametrize(
    "words",
    [
        ("train", "battlesnake-ppo", "--runs", "hdfs://cluster/runs"),
        ("train", "battlesnake-ppo", "--runs", "https://bucket.example.org/runs"),
        ("train", "--config", "s3://bucket/mine.yaml"),
        ("train", "s3://bucket/mine.yaml"),
        ("tune", "battlesnake-ppo", "--runs", "s3://bucket/runs"),
        ("report", "s3://bucket/runs/mine"),
        ("plot", "gs://bucket/runs/mine", "--out", "s3://bucket/plot"),
        ("compare", "s3://bucket/runs/mine"),
        shlex.split(
            "launch sagemaker battlesnake-ppo --instances ml.c5.xlarge --runs s3://bucket/runs"
        ),
        shlex.split("launch slurm battlesnake-ppo --instances 2*16cpu --runs s3://bucket/runs"),
        shlex.split(
            "launch sagemaker battlesnake-ppo --instances ml.c5.xlarge --include file:///tmp/x"
        ),
        ("job", "download", "NAME", "--runs", "s3://bucket/runs"),
        ("evaluate", "s3://bucket/bundle"),
        ("match", "flood", "s3://bucket/bundle", "--record", "s3://bucket/game.jsonl"),
        ("tournament", "flood", "greedy", "--store", "s3://bucket/t.db"),
        ("export", "onnx", "champion-duel", "--out", "s3://bucket/policy.onnx"),
        ("games", "export", "s3://bucket/games"),
        ("quickstart", "--runs", "abfs://container/runs"),
        ("serve", "s3://bucket/bundle"),
    ],
)
def test_no_command_takes_an_address_for_a_path(words, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, error = run(capsys, *words)
    assert (code, out, "where a path on this machine is needed" in error) == (2, "", True), error
    assert list(tmp_path.iterdir()) == []


def test_neither_does_python(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    experiment = Experiment.load("battlesnake-ppo")
    searched = experiment.search(["ppo.gamma=0.9,0.99"])
    address = Path("s3://bucket/runs")
    for use in (
        lambda: train(experiment, runs_dir="hdfs://bucket/runs"),
        lambda: tune(searched, runs_dir="s3://bucket/runs"),
        lambda: RunFolder.create(address, experiment, {}),
        lambda: RunFolder.open(address),
        lambda: write_whole(address, "x"),
        lambda: make_folder_of(address),
    ):
        with pytest.raises(ProcsnakeError, match="is an address of"):
            use()
    assert list(tmp_path.iterdir()) == []


def test_addresses_of_snakes_bundles_and_databases_are_taken():
    import procsnake

    parser = procsnake.cli.main.build_parser()
    for words in (
        ["match", "flood", "https://snake.example.org"],
        ["evaluate", "hf://user/name"],
        ["serve", "flood", "--database", "sqlite:///games.db"],
        ["train", "battlesnake-ppo", "--cluster", "ray://127.0.0.1:10001"],
        ["push", "champion-duel", "hf://user/name"],
        ["doctor", "http://127.0.0.1:8000"],
    ):
        assert callable(parser.parse_args(words).run)
