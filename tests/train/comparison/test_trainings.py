from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.train.experiments import toy
from tests.waiting import until
from train.comparison import trainings
from train.comparison.trainings import Training, is_finished, train_all
from train.config import Experiment
from train.runs.folder import RunError

pytestmark = pytest.mark.long


def training(name, **changes):
    return Training(
        name,
        Experiment.from_dict({**toy("identity", steps=2000).to_dict(), "name": name, **changes}),
        num_threads=1,
    )


def test_two_at_a_time_end_in_order_and_are_not_run_again(tmp_path):
    said = []
    wanted = [training(name) for name in ("one", "other", "third")]
    runs = train_all(wanted, tmp_path, jobs=2, say=said.append)
    assert [run.name.split("-")[0] for run in runs] == ["one", "other", "third"]
    assert all(is_finished(tmp_path, one.experiment) for one in wanted)
    # The third begins only when one of the two before it has ended.
    begun = [line.split(":")[0] for line in said if line.endswith("training …")]
    assert begun == ["one", "other", "third"]
    assert next(k for k, line in enumerate(said) if "done" in line) < said.index(
        "third: training …"
    )
    assert train_all(wanted, tmp_path, jobs=2, say=said.append) == runs


def test_one_that_fails_is_named_with_its_log_and_ends_the_others(tmp_path):
    endless = training("endless", budget={"total_agent_steps": 10**9})
    broken = training(
        "broken",
        env={
            "name": "identity",
            "imports": ["tests.train.small_worlds"],
            "options": {"no_such": 1},
        },
    )
    with pytest.raises(RunError, match=r"broken ended with exit code 2; read .*broken-0\.log"):
        train_all([endless, broken], tmp_path, jobs=2, say=lambda _: None)
    assert "no_such" in (tmp_path / "broken-0.log").read_text()
    assert not running_in(tmp_path)


def test_an_interrupted_training_saves_and_the_next_call_goes_on_with_it(tmp_path, monkeypatch):
    code = (
        "import sys; from pathlib import Path; from tests.train.comparison.test_trainings import"
        " long_one; from train.comparison.trainings import train_all; train_all([long_one()],"
        " Path(sys.argv[1]))"
    )
    process = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)])
    until(
        lambda: any(
            path.read_text().count("\n") > 1 for path in tmp_path.glob("runs/*/progress.csv")
        ),
        seconds=300,
    )
    process.send_signal(signal.SIGINT)
    process.wait(300)
    (run,) = tmp_path.glob("runs/*")
    assert any((run / "checkpoints").glob("[0-9]*"))
    assert not running_in(tmp_path)
    said = []
    monkeypatch.setattr(trainings, "_SECONDS_BETWEEN_LINES", 0.0)
    assert train_all([long_one()], tmp_path, say=said.append) == [run]
    assert said[0] == f"long: continuing {run} …"
    assert re.match(r"long: [\d.]+ min, about \d+ left, [\d,]+ decisions, return ", said[1])


# Under nohup, SIGHUP is ignored from the start.
INTERRUPTED = """
import os, signal, sys
from pathlib import Path
from tests.train.comparison.test_trainings import training
from train.comparison.trainings import train_all

class Running:
    def poll(self):
        os.kill(os.getpid(), int(sys.argv[2]))

    def terminate(self):
        print("told to end", flush=True)

    def wait(self):
        print("waited for", flush=True)

signal.signal(int(sys.argv[2]), signal.SIG_DFL)
train_all([training("one")], Path(sys.argv[1]), say=lambda _: None, begin=lambda *_: Running())
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_ends_this_process_ends_its_trainings_first(tmp_path, number):
    command = [sys.executable, "-c", INTERRUPTED, str(tmp_path), str(int(number))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout.splitlines() == ["told to end", "waited for"]
    assert "KeyboardInterrupt" in done.stderr


def long_one(**changes):
    return training("long", budget={"total_agent_steps": 400_000}, **changes)


def running_in(folder: Path):
    """The processes whose command names the folder, but for this one."""
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = place.read_bytes()
        except OSError:
            continue
        if str(folder).encode() in words and place.parent.name != str(os.getpid()):
            found.append(words)
    return found
