"""Shows a run's progress: in a live panel on a terminal, in plain lines elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from typing import Any, TextIO

from rich.live import Live
from rich.table import Table

from envs.common.columns import counted
from envs.common.terminal import text_console
from train.metrics import work
from train.metrics.rows import group_in_words
from train.runs.continuing.further import minutes_left

_TREND_ITERATIONS = 20
_PLAIN_SECONDS = 10.0
_SILENT_SECONDS = 10.0, 30.0
"""Seconds after which a silent phase prints its first line where lines are plain, and each further
one.
"""
_WIN_RATE = "win_rate_vs_"


class Progress:
    """A context manager that shows progress. Call `status` in phases without numbers, and `update`
    after each iteration.

    `say` prints lines that stay. Where lines are plain, one is printed at least every half minute,
    even if nothing is called. The current piece of work (`train.metrics.work`) is shown, too."""

    def __init__(self, *, title: str, stream: TextIO | None = None, quiet: bool = False) -> None:
        self.console = text_console(stream or sys.stdout, quiet=quiet)
        self.title = title
        self._returns: deque[float] = deque(maxlen=_TREND_ITERATIONS)
        self._length = 0.0
        self._figures: dict[str, str] = {}
        self._last_line = 0.0
        self._phase = "starting"
        self._phase_began = self._spoke_at = time.monotonic()
        self._signs = 0
        self._live: Live | None = None
        if self.console.is_terminal:
            self._live = Live(
                get_renderable=self._panel,
                console=self.console,
                refresh_per_second=4,
                transient=True,
            )
        self._ended = threading.Event()
        self._reminder = threading.Thread(target=self._remind, daemon=True)

    def __enter__(self) -> Progress:
        if self._live:
            self._live.start()
        else:
            self._reminder.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            self._live.stop()
        else:
            self._ended.set()
            self._reminder.join()

    def _remind(self) -> None:
        """Say now and then what has been going on since the last line."""
        while not self._ended.wait(max(0.0, self._spoke_at + self._patience() - time.monotonic())):
            if time.monotonic() - self._spoke_at >= self._patience():
                self._signs += 1
                self.say(f"{self.title}: {self._now()}")

    def _patience(self) -> float:
        return _SILENT_SECONDS[min(self._signs, 1)]

    def _now(self) -> str:
        text = self._phase
        seconds = round(time.monotonic() - self._phase_began)
        if seconds:
            text += f", for {counted(seconds, 'second')} now"
        if work.doing:
            return f"{text}: {work.doing} …"
        return f"{text} …"

    def _panel(self) -> Table | str:
        if not self._figures:
            return f"{self.title}: {self._now()}"
        table = Table(title=self.title, show_header=False, title_justify="left", box=None)
        for name, text in {**self._figures, "now": self._now()}.items():
            table.add_row(name, text)
        return table

    def status(self, text: str) -> None:
        """Show the current phase before there are numbers."""
        if not self.passing(text):
            self.say(f"{self.title}: {text} …")

    def _begin(self, phase: str) -> None:
        self._phase = phase
        self._phase_began = time.monotonic()
        self._signs = 0

    def passing(self, text: str) -> bool:
        """Show a recurring phase: at once in a live panel, but in plain lines only if it takes
        long.

        Returns True if there is a panel.
        """
        self._begin(text)
        if self._live:
            self._live.refresh()
        return self._live is not None

    def say(self, text: str) -> None:
        """Print a line that stays."""
        self._spoke_at = time.monotonic()
        self.console.print(text, markup=False, soft_wrap=True)

    def update(self, row: dict[str, Any], fraction_done: float) -> None:
        """Show an iteration's row of the curve."""
        self._begin("next iteration")
        if "episode_return_mean" in row:
            self._returns.append(row["episode_return_mean"])
            self._length = row["episode_len_mean"]
        self._figures = _figures(row, fraction_done, list(self._returns), self._length)
        if self._live:
            self._live.refresh()
        elif (
            time.monotonic() - self._last_line >= _PLAIN_SECONDS
            or fraction_done >= 1.0
            or "win_rate" in row
        ):
            self._last_line = time.monotonic()
            self.say(" | ".join(f"{name} {text}" for name, text in self._figures.items()))


def _figures(
    row: dict[str, Any], fraction_done: float, returns: list[float], length: float
) -> dict[str, str]:
    left = minutes_left(row["minutes"], fraction_done)
    figures = {
        "done": f"{min(fraction_done, 1.0):.0%}, about {left:.1f} minutes left",
        "steps": f"{row['agent_steps']:,} decisions in {row['env_steps']:,} game steps",
        "speed": f"{row['agent_steps_per_second']:,.0f} decisions/s ({_shares(row)})",
    }
    for name in row:
        if name.startswith(_WIN_RATE):
            opponents = group_in_words(name.removeprefix(_WIN_RATE))
            figures[f"won against {opponents}"] = f"{row[name]:.0%}"
    if returns:
        figures["return"] = f"{returns[-1]:.3f}"
        half = len(returns) // 2
        if half:
            trend = _mean(returns[half:]) - _mean(returns[:half])
            figures["return"] += f" ({trend:+.3f} lately)"
        figures["length"] = f"{length:.1f} steps an episode"
    return figures


def _shares(row: dict[str, Any]) -> str:
    training = [
        name for name in row if name.startswith("seconds_") and name != "seconds_evaluation"
    ]
    seconds = {name.removeprefix("seconds_"): row[name] for name in training}
    total = sum(seconds.values()) or 1.0
    return ", ".join(f"{name} {part / total:.0%}" for name, part in seconds.items())


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)
