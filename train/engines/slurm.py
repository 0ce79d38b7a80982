"""Writes a batch script for Slurm, which makes the job's nodes one Ray cluster and trains on it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from envs.common.columns import counted
from envs.common.errors import ConfigError
from train.engines import names
from train.engines.plan import EXPERIMENT_FILE, Plan
from train.settings.instances import memory_gib, vcpus
from train.settings.scale import Instances

_WARNING_SECONDS = 300
"""Seconds before the time limit at which the training is asked to save and end."""
_NODES = "SLURM_JOB_NODELIST"
_SCRIPT = """\
#!/bin/bash
{options}
#
# {sentence}
# To save and end early: scancel --batch --signal=USR1 JOB
# To go on with the run then: scontrol requeue JOB

set -euo pipefail
python={python}
folder={runs}/{name}.job-$SLURM_JOB_ID
mkdir -p "$folder"
# Left by an earlier start of this job.
rm -f "$folder/stop"

cat > "$folder/{file}" <<'END OF EXPERIMENT'
{experiment}END OF EXPERIMENT

# The secret by which the machines know each other. It is removed at the end.
trap 'rm -f "$folder/token"' EXIT
(umask 077 && "$python" -c 'import secrets; print(secrets.token_hex(32))' > "$folder/token")

{lists}
# Only this shell is told that the time is nearly up, because Slurm would send a signal to Ray's
# processes, too.
trap 'touch "$folder/stop"' USR1
{step} &
step=$!
until wait "$step"; do
    code=$?
    kill -0 "$step" 2> /dev/null || exit "$code"
done
"""


@dataclass(frozen=True, kw_only=True)
class Place:
    """The place on a Slurm cluster where a plan runs.

    Raises `ConfigError` for names that can't stand in a batch script."""

    python: str = "python3"
    """The Python with procsnake, as all nodes find it."""
    runs: str = "runs"
    """The folder of runs, which all nodes share. A relative one is in the folder in which sbatch is
    called. Each job has a folder of its own in it for its run.
    """
    partition: str = ""
    """The partition. With an empty one, it is the cluster's default."""
    account: str = ""
    """The account. With an empty one, it is the user's default."""

    def __post_init__(self) -> None:
        names.plain_path("--python", self.python)
        names.plain_path("--runs", self.runs)
        if self.partition:
            names.slurm_name("--partition", self.partition)
        if self.account:
            names.slurm_name("--account", self.account)


def script(plan: Plan, place: Place) -> str:
    """Return the batch script. Raises `ConfigError` for a name that Slurm would refuse."""
    names.slurm_name("--name", plan.name)
    if 3600 * plan.max_hours < 2 * _WARNING_SECONDS:
        raise ConfigError(
            f"--max-hours {plan.max_hours:g} is too short: the last {_WARNING_SECONDS} s are for"
            " saving; e.g. --max-hours 1"
        )
    # Each group of machines is a component of the job; the first one also has the job's options.
    components = [_component(instances) for _, instances in plan.groups]
    components[0] = [*_of_the_job(plan, place), *components[0]]
    several = len(plan.groups) > 1
    lists = ""
    for number, (group, _) in enumerate(plan.groups):
        nodes = f"{_NODES}_HET_GROUP_{number}" if several else _NODES
        lists += f'{group}=$(scontrol show hostnames "${nodes}" | paste -sd,)\n'
    return _SCRIPT.format(
        options="\n#SBATCH hetjob\n".join(map(_directives, components)),
        sentence=f"Trains {plan.name} on {counted(plan.num_machines, 'machine')}.",
        runs=shlex.quote(place.runs),
        python=shlex.quote(place.python),
        name=plan.name,
        file=EXPERIMENT_FILE,
        experiment=plan.experiment_text,
        lists=lists,
        step=_step(plan, several=several),
    )


def _directives(options: list[str]) -> str:
    return "\n".join(f"#SBATCH {option}" for option in options)


def _of_the_job(plan: Plan, place: Place) -> list[str]:
    options = [
        f"--job-name={plan.name}",
        f"--output={plan.name}-%j.log",
        f"--time={_time(plan.max_hours)}",
        f"--signal=B:USR1@{_WARNING_SECONDS}",
        "--requeue",
        "--open-mode=append",
    ]
    if place.partition:
        options.append(f"--partition={place.partition}")
    if place.account:
        options.append(f"--account={place.account}")
    return options


def _component(instances: Instances) -> list[str]:
    options = [
        f"--nodes={instances.count}",
        "--ntasks-per-node=1",
        f"--cpus-per-task={vcpus(instances.instance)}",
    ]
    if gpus := instances.gpus // instances.count:
        options.append(f"--gpus-per-node={gpus}")
    if memory := memory_gib(instances.instance):
        options.append(f"--mem={memory}G")
    else:
        # All memory of the node.
        options.append("--mem=0")
    # Ray takes ports of the machine, and leftovers of Ray are removed from the whole machine.
    options.append("--exclusive")
    return options


def _time(hours: float) -> str:
    minutes = max(1, round(60 * hours))
    return f"{minutes // 1440}-{minutes // 60 % 24:02}:{minutes % 60:02}:00"


def _step(plan: Plan, *, several: bool) -> str:
    # A step gets all processors of its nodes as long as it asks for none; each task may then use
    # them all.
    words = ["srun", "--cpu-bind=none"]
    if several:
        words.append(f"--het-group={','.join(str(k) for k in range(len(plan.groups)))}")
    lists = " ".join(f'--group "{group}=${group}"' for group, _ in plan.groups)
    return f'{shlex.join(words)} "$python" -m train.engines.slurm_node "$folder" {lists}'
