from __future__ import annotations

import io

from train.progress import Progress


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
    line = shown(*(row(400, episode_return_mean=value, episode_len_mean=value) for value in (1.0, 2.0, 4.0, 5.0)))
    assert "return 5.000 (+3.000 lately)" in line
