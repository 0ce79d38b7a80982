from __future__ import annotations

import numpy as np
import pytest

from envs.common.errors import ConfigError
from train.rollouts.n_step import GOES_ON, TERMINATED, TRUNCATED
from train.rollouts.replay_buffer import ReplayBuffer, Rollout

GAMMA = 0.9


class History:
    """Rows that live, end and wait at random. Remembers every decision, to say afterwards what a
    sample must be.

    An observation is (time, row, 0) in int32, a final one (time, row, 1): each is found out by its
    content."""

    def __init__(self, seed: int, *, rows: int = 3, masked: bool = True, worker: int = 0) -> None:
        self.rng = np.random.default_rng(seed)
        self.rows = rows
        self.masked = masked
        self.worker = worker
        self.stream = f"{worker}"
        self.valid = np.ones(rows, bool)
        self.time = 0
        self.sequence = 0
        self.decisions: dict[tuple[int, int], dict] = {}

    def rollout(self, steps: int, priorities: np.ndarray | None = None) -> Rollout:
        columns = {
            name: []
            for name in ("steps", "rows", "obs", "actions", "rewards", "endings", "action_mask")
        }
        finals = []
        final_entries = []
        for step in range(steps):
            rows = np.flatnonzero(self.valid)
            for row in rows:
                ending = int(self.rng.choice([GOES_ON, TERMINATED, TRUNCATED], p=[0.7, 0.15, 0.15]))
                entry = {
                    "steps": step,
                    "rows": row,
                    "obs": [self.time, row, 0],
                    "actions": int(self.rng.integers(4)),
                    "rewards": float(np.float32(self.rng.normal())),
                    "endings": ending,
                    "action_mask": self.rng.random(4) < 0.5,
                }
                if ending == TRUNCATED:
                    final_entries.append(len(columns["rows"]))
                    finals.append([self.time, row, 1])
                for name, value in entry.items():
                    columns[name].append(value)
                self.decisions[self.time, row] = entry
                self.valid[row] = ending == GOES_ON
            waiting = ~self.valid
            self.valid |= waiting & (self.rng.random(self.rows) < 0.5)
            if not self.valid.any():
                self.valid[:] = True
            self.time += 1
        kinds = {
            "obs": np.int32,
            "rewards": np.float32,
            "endings": np.uint8,
            "action_mask": np.bool_,
        }
        columns = {
            name: np.array(values, kinds.get(name, np.int64)) for name, values in columns.items()
        }
        if not self.masked:
            del columns["action_mask"]
        self.sequence += 1
        return Rollout(
            columns,
            np.array(final_entries, np.int64),
            np.array(finals, np.int32).reshape(-1, 3),
            steps,
            self.rows,
            self.worker,
            self.stream,
            self.sequence - 1,
            priorities=priorities,
        )

    def restart(self, lost: int = 0) -> None:
        """The worker dies after `lost` steps that nobody saw, and another takes its place."""
        self.time += 1000 + lost
        self.valid[:] = True
        self.stream = self.stream + "'"
        self.sequence = 0

    def expected(self, time: int, row: int, n: int) -> dict | None:
        """The transition from (time, row), in plain Python; None if it can't be known."""
        total = 0.0
        k = 0
        first = self.decisions.get((time, row))
        if first is None:
            return None
        while True:
            decision = self.decisions.get((time + k, row))
            if decision is None:
                return None
            total += GAMMA**k * decision["rewards"]
            k += 1
            if decision["endings"] == TERMINATED:
                return {**first, "return": total, "discount": 0.0, "next": None, "mask": None}
            if decision["endings"] == TRUNCATED:
                return {
                    **first,
                    "return": total,
                    "discount": GAMMA**k,
                    "next": [time + k - 1, row, 1],
                    "mask": np.ones(4, bool),
                }
            if k == n:
                after = self.decisions.get((time + n, row))
                if after is None:
                    return None
                after = {"next": after["obs"], "mask": after["action_mask"]}
                return {**first, "return": total, "discount": GAMMA**n, **after}


def buffer(capacity=60, *, n_step=3, alpha=0.6, num_rings=1) -> ReplayBuffer:
    return ReplayBuffer(
        capacity, num_rings=num_rings, n_step=n_step, gamma=GAMMA, alpha=alpha, seed=0
    )


def drawn(replay: ReplayBuffer, batches: int = 40) -> dict[tuple[int, int], dict]:
    """By (time, row), what samples say."""
    found = {}
    for _ in range(batches):
        batch = replay.sample(64, beta=0.4)
        for k, (time, row, final) in enumerate(batch["obs"].tolist()):
            assert not final
            found[time, row] = {name: column[k] for name, column in batch.items()}
    return found


def check(sample: dict, expected: dict, *, masked: bool = True) -> None:
    assert sample["actions"] == expected["actions"]
    assert sample["rewards"] == pytest.approx(expected["return"], abs=1e-6)
    assert sample["discounts"] == pytest.approx(expected["discount"], abs=1e-6)
    if expected["next"] is not None:
        assert sample["new_obs"].tolist() == expected["next"]
        if masked:
            assert (sample["next_action_mask"] == expected["mask"]).all()


@pytest.mark.parametrize("n_step", [1, 3, 5])
@pytest.mark.parametrize("masked", [True, False])
def test_samples_are_the_n_step_transitions_that_took_place(n_step, masked):
    """Over many times around the ring: every step whose future is known is drawn, and no other."""
    history = History(1, masked=masked)
    replay = buffer(n_step=n_step)
    for steps in [4, 7, 1, 12, 2, 5, 9, 3, 20 - n_step, 6, 8]:
        replay.add(history.rollout(steps))
        if len(replay) == 0:
            continue
        found = drawn(replay)
        oldest = max(0, history.time - 20)
        newest = history.time - 1 - n_step
        known = {
            key: history.expected(*key, n_step)
            for key in history.decisions
            if oldest <= key[0] <= newest
        }
        assert set(found) == set(known)
        assert len(replay) == len(known)
        for key, sample in found.items():
            check(sample, known[key], masked=masked)


def test_after_a_worker_died_no_sample_joins_what_was_not_joined():
    history = History(2)
    replay = buffer(90)
    replay.add(history.rollout(8))
    broken = history.time
    history.restart(lost=2)
    for _ in range(3):
        replay.add(history.rollout(6))
    found = drawn(replay)
    before = {key: history.expected(*key, 3) for key in history.decisions if key[0] < broken}
    assert {key for key in found if key[0] < broken} == {
        key for key, known in before.items() if known
    }
    assert any(known is None for known in before.values())
    for key, sample in found.items():
        check(sample, history.expected(*key, 3))


def test_a_rollout_that_went_missing_breaks_the_ring_too():
    history = History(3)
    replay = buffer(90)
    replay.add(history.rollout(5))
    missing = history.time
    history.rollout(1)
    replay.add(history.rollout(5))
    for key in [key for key in history.decisions if key[0] == missing]:
        del history.decisions[key]
    for key, sample in drawn(replay).items():
        check(sample, history.expected(*key, 3))


def test_rings_of_several_workers_do_not_mix():
    histories = [History(4), History(5, worker=1)]
    replay = buffer(120, num_rings=2)
    histories[1].time = 500
    for turn in [0, 0, 1, 0, 1, 1, 1, 0]:
        replay.add(histories[turn].rollout(7))
    found = drawn(replay, 80)
    assert {time >= 500 for time, _ in found} == {True, False}
    for key, sample in found.items():
        check(sample, histories[key[0] >= 500].expected(*key, 3))


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0])
def test_steps_are_drawn_in_proportion_to_their_priorities_and_weighted_by_the_papers_formula(
    alpha,
):
    history = History(6)
    replay = buffer(alpha=alpha)
    replay.add(history.rollout(17))
    batch = replay.sample(512, beta=0.4)
    cells, once = np.unique(batch["cells"], return_index=True)
    assert len(cells) == len(replay)
    errors = np.random.default_rng(0).normal(size=len(cells)) * 3
    replay.update_priorities(cells, batch["stamps"][once], errors)

    p = (np.abs(errors) + 1e-6) ** alpha
    probabilities = dict(zip(cells.tolist(), p / p.sum(), strict=True))
    assert replay.total_priority == pytest.approx(p.sum(), rel=1e-9)
    counts = dict.fromkeys(probabilities, 0)
    n = 400
    for _ in range(n):
        batch = replay.sample(64, beta=0.7)
        expected = np.array(
            [(len(cells) * probabilities[cell]) ** -0.7 for cell in batch["cells"].tolist()]
        )
        np.testing.assert_allclose(batch["weights"], expected / expected.max(), rtol=1e-6)
        for cell in batch["cells"].tolist():
            counts[cell] += 1
    total = n * 64
    for cell, probability in probabilities.items():
        # Five standard deviations; draws from equal parts of the priorities scatter less than
        # independent ones.
        assert abs(counts[cell] - total * probability) <= 5 * np.sqrt(total * probability) + 1


def test_new_steps_get_the_highest_priority_so_far():
    history = History(7)
    replay = buffer(alpha=1.0)
    replay.add(history.rollout(6))
    batch = replay.sample(256, beta=0.4)
    cells, once = np.unique(batch["cells"], return_index=True)
    replay.update_priorities(cells, batch["stamps"][once], np.full(len(cells), 5.0))
    before = len(replay)
    replay.add(history.rollout(4))
    assert replay.total_priority == pytest.approx(5.0 * len(replay), rel=1e-6)
    assert len(replay) > before


def test_a_worker_gives_first_priorities_to_the_starts_that_its_rollout_completes():
    history = History(8)
    replay = buffer(alpha=1.0)
    by_time = np.arange(1, 31, dtype=np.float32)
    clock = 0
    for steps in (5, 8, 10):
        # Of times clock - n_step and so on; those before the beginning are never asked for.
        times = clock - 3 + np.arange(steps)
        replay.add(
            history.rollout(steps, np.repeat(by_time[np.maximum(times, 0)][:, None], 3, axis=1))
        )
        clock += steps
    batch = replay.sample(4096, beta=1.0)
    share = np.bincount(batch["obs"][:, 0], minlength=20) / 4096
    living = np.array(
        [sum((time, row) in history.decisions for row in range(3)) for time in range(20)]
    )
    expected = by_time[:20] * living * (np.arange(20) >= history.time - 20)
    np.testing.assert_allclose(share, expected / expected.sum(), atol=2e-3)


def test_priorities_of_steps_that_were_overwritten_meanwhile_are_left_alone():
    history = History(9)
    replay = buffer(alpha=1.0)
    replay.add(history.rollout(17))
    batch = replay.sample(64, beta=0.4)
    for _ in range(2):
        replay.add(history.rollout(17))
    before = replay.total_priority
    replay.update_priorities(batch["cells"], batch["stamps"], np.full(64, 1e6))
    assert replay.total_priority == before


def test_observations_are_stored_once():
    history = History(10)
    replay = buffer(6000)
    replay.add(history.rollout(5))
    assert replay._obs.nbytes == 6000 * 3 * 4
    arrays = [one for one in vars(replay).values() if isinstance(one, np.ndarray)]
    assert sum(one.nbytes for one in arrays) < 6000 * 3 * 4 + 6000 * 4 * 16


def test_a_rollout_that_does_not_fit_is_refused_with_advice():
    with pytest.raises(ConfigError, match="replay_capacity of at least"):
        buffer(12).add(History(11).rollout(10))


def test_a_rollout_fits_with_the_steps_after_it_that_a_return_needs():
    """20 steps of 3 rows, of which a return of 3 steps needs the last three."""
    buffer(60, n_step=3).add(History(11).rollout(17))
    with pytest.raises(ConfigError, match="a rollout has 18 and n_step is 3"):
        buffer(60, n_step=3).add(History(11).rollout(18))
