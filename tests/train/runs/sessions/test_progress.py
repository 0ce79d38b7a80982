from __future__ import annotations

import io
import re

import pytest

from tests.waiting import until
from train.metrics import work
from train.runs.sessions import progress as run_progress
from train.runs.sessions.progress import Progress


def row(agent_steps: int, **episodes: float) -> dict[str, float]:
    return {
        "agent_steps": agent_steps,
        "env_steps": agent_steps // 4,
        "minutes": 1.0,
        "agent_steps_per_second": 100.0,
        "seconds_play": 1.0,
        "seconds_learner": 3.0,
        **episodes,
    }


def shown(*rows: dict[str, float]) -> str:
    """The last line of a run at its end, after these iterations."""
    stream = io.StringIO()
    with Progress(title="run", stream=stream) as progress:
        for each in rows:
            progress.update(each, 1.0)
    return stream.getvalue().splitlines()[-1]


def test_an_iteration_in_which_no_episode_ended_shows_the_latest_that_did() -> None:
    line = shown(row(400, episode_return_mean=3.0, episode_len_mean=21.5), row(800))
    assert "800 decisions in 200 game steps" in line
    assert "return 3.000" in line
    assert "length 21.5 steps" in line


def test_before_any_episode_has_ended_there_is_no_return() -> None:
    line = shown(row(400))
    assert "play 25%, learner 75%" in line
    assert "return" not in line
    assert "length" not in line


def test_the_trend_is_the_later_half_against_the_earlier() -> None:
    line = shown(
        *(
            row(400, episode_return_mean=value, episode_len_mean=value)
            for value in (1.0, 2.0, 4.0, 5.0)
        )
    )
    assert "return 5.000 (+3.000 lately)" in line


@pytest.mark.parametrize("place", ["notebook", "pipe of a notebook"])
def test_in_a_notebook_a_line_is_plain_text_and_whole(
    monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """Rich draws HTML boxes, which are cut at their edge, in a notebook; Jupyter sets FORCE_COLOR
    for what runs in one.
    """
    monkeypatch.setattr("rich.console._is_jupyter", lambda: place == "notebook")
    monkeypatch.setenv("FORCE_COLOR", "1")
    line = shown(
        row(1_234_567_890, episode_return_mean=3.0, episode_len_mean=21.5, win_rate_vs_flood=0.5)
    )
    assert len(line) > 150
    assert line.endswith("length 21.5 steps an episode")
    assert "\x1b" not in line


def test_a_phase_that_takes_long_gives_signs_of_life(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_progress, "_SILENT_SECONDS", (0.01, 0.01))
    stream = io.StringIO()
    with Progress(title="run", stream=stream) as progress:
        progress.status("first iteration")
        until(lambda: len(stream.getvalue().splitlines()) >= 3, seconds=30)
    lines = stream.getvalue().splitlines()
    assert "run: first iteration …" in lines
    assert all(
        re.fullmatch(r"run: (starting|first iteration)(, for \d+ seconds? now)? …", line)
        for line in lines
    )


def test_a_sign_of_life_says_which_piece_of_work_it_is() -> None:
    with Progress(title="run", stream=io.StringIO()) as progress:
        progress.status("first iteration")
        seen = [progress._now() for _ in work.counted("step", 3)]
        assert seen == [f"first iteration: step {k} of 3 …" for k in (1, 2, 3)]
        assert progress._now() == "first iteration …"


def test_work_that_is_left_early_is_no_longer_shown() -> None:
    pieces = work.counted("minibatch", 8)
    next(pieces)
    assert work.doing == "minibatch 1 of 8"
    pieces.close()
    assert work.doing == ""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_on_a_terminal_a_panel_shows_the_figures_and_what_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    with Progress(title="run", stream=stream) as progress:
        progress.status("first iteration")
        assert "run: first iteration …" in stream.getvalue()
        progress.update(row(400, episode_return_mean=3.0, episode_len_mean=21.5), 0.5)
        for _ in work.counted("step", 2):
            progress.passing("evaluating")
    panel = stream.getvalue()
    assert panel.index("400 decisions") < panel.index("next iteration")
    assert "evaluating: step 2 of 2" in panel
