"""All commands, by what people want to do.

The module of a command is imported when it is called.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable


@dataclass(frozen=True)
class Command:
    """A command: its name, the module below `procsnake` that has it, and what it does.

    The module has `HELP` (the text after the options), `add_options(parser)`, and `run(options)`,
    which returns the exit code. A module of commands within a command has no `run`."""

    name: str
    module: str
    summary: str

    def add_to(
        self, command: Callable[[str, Any, str, str], argparse.ArgumentParser]
    ) -> argparse.ArgumentParser:
        """Import the module and add the command by calling `command`. Returns its parser."""
        module = import_module(f"procsnake.{self.module}")
        parser = command(self.name, getattr(module, "run", None), self.summary, module.HELP)
        module.add_options(parser)
        return parser


GROUPS: Mapping[str, tuple[Command, ...]] = {
    "start": (
        Command("quickstart", "quickstart", "From nothing to a snake that plays over HTTP."),
        Command("play", "cli.start.play", "Play Battlesnake yourself, in the browser or here."),
        Command("keyboard", "cli.start.keyboard", "Play a game of Procgen yourself, by keyboard."),
        Command("match", "cli.start.match", "Play one game between snakes, and print or watch it."),
        Command("watch", "cli.start.watch", "Watch an episode of Procgen or another environment."),
        Command("champions", "cli.start.champions", "List the policies that come with procsnake."),
        Command(
            "warm-up",
            "cli.start.warm_up",
            "Compile ahead, so that the first game starts at once.",
        ),
        Command("completion", "cli.start.completion", "Set up Tab completion in your shell."),
    ),
    "train": (
        Command("train", "cli.train.train", "Train an experiment, or continue a run."),
        Command("tune", "cli.train.tune", "Search for better settings of an experiment."),
        Command(
            "tune-search",
            "cli.train.tune_search",
            "Tune a search agent's options by playing games.",
        ),
        Command("report", "cli.train.report", "Rewrite a run's report.html."),
        Command("plot", "cli.measure.plot", "Plot the curves of several runs in one chart."),
    ),
    "measure": (
        Command("evaluate", "cli.measure.evaluate", "Play many games, and print win rates."),
        Command("solo", "cli.measure.solo", "Measure how many turns snakes survive alone."),
        Command(
            "levels", "cli.measure.levels", "Measure Procgen policies on seen or unseen levels."
        ),
        Command("episodes", "cli.measure.episodes", "Measure a policy in your own world."),
        Command(
            "tournament",
            "cli.measure.tournament",
            "Play a tournament between snakes, and rate them.",
        ),
        Command("sprt", "cli.measure.sprt", "Find out which of two players is stronger."),
        Command("compare", "cli.measure.compare", "Compare runs at equal training time."),
        Command("benchmark", "cli.measure.benchmark", "Run a whole benchmark: train and measure."),
        Command(
            "analyse", "cli.measure.analyse", "Rate the moves of a game, and find the mistakes."
        ),
        Command("replay", "cli.measure.replay", "Show a recorded game, or animate it."),
    ),
    "compete": (
        Command("serve", "cli.compete.serve", "Serve snakes to any Battlesnake engine."),
        Command("doctor", "cli.compete.doctor", "Check a snake's URL as a platform would."),
        Command("games", "cli.compete.games", "List or export the games that a server recorded."),
        Command("arena", "cli.compete.arena", "Enter a snake on Arena, and follow it."),
        Command("export", "cli.compete.export", "Export policies to other formats."),
        Command("push", "cli.compete.push", "Put a policy on the Hugging Face Hub."),
    ),
    "scale": (
        Command("cluster", "cli.scale.cluster", "Start a Ray cluster on your own machines."),
        Command("launch", "cli.scale.launch", "Train on SageMaker, Kubernetes, Slurm or EC2."),
        Command(
            "tune-sagemaker",
            "cli.scale.tune_sagemaker",
            "Search for better settings on SageMaker.",
        ),
        Command("job", "cli.scale.job", "List, follow, stop and resume jobs on SageMaker."),
        Command("image", "cli.scale.image", "Build Docker images for training and serving."),
    ),
}

COMMANDS: Mapping[str, Command] = {
    command.name: command for group in GROUPS.values() for command in group
}
