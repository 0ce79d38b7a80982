"""The commands `procsnake launch kuberay`, `slurm` and `ec2`.

Each writes the file by which another engine trains an experiment.
"""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

from envs.common.columns import in_columns
from envs.common.errors import ConfigError
from envs.common.outputs import kept_at, make_place_for
from envs.common.whole_files import write_whole
from procsnake.cli.command_line import Commands, add_json, positive, print_json

Prepared = tuple[dict[Path, str], list[str]]
"""The files to write, and what the user does next."""
_IMAGE = "registry.example.org/procsnake-training:1"
_FIRST = """\
Writes a file and prints the next command; it submits nothing. docs/engines.md says what was
tested. {machines}

examples:
  procsnake launch {engine} battlesnake-ppo --instances '{one}' --explain
"""
_KUBERAY = """\
  procsnake launch kuberay battlesnake-ppo --instances '2*16cpu-60gib' \\
     --image registry/procsnake:1 --claim runs
  procsnake launch kuberay battlesnake-apex --instances '8cpu-1gpu-32gib+2*36cpu-60gib' \\
     --image r/p:1 --claim runs
"""
_SLURM = """\
  procsnake launch slurm battlesnake-ppo --instances '2*16cpu' --partition cpu \\
     --python /shared/venv/bin/python
  procsnake launch slurm battlesnake-apex --instances '8cpu-1gpu+2*36cpu' --runs /shared/runs
"""
_EC2 = """\
  procsnake launch ec2 battlesnake-ppo --instances '2*ml.c5.4xlarge' \\
     --image registry/procsnake:1 --region us-west-2
"""
_SIZES = (
    "Name machines by size, such as 16cpu-60gib or 8cpu-1gpu-32gib, or by AWS instance type,"
    " such as ml.c5.4xlarge."
)
_TYPES = "Name machines by AWS instance type."


def add_engines(add: Commands) -> None:
    """Add a command for each engine besides SageMaker."""
    _add_kuberay(add)
    _add_slurm(add)
    _add_ec2(add)


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("experiment", help="name of an experiment, or a YAML file")
    parser.add_argument(
        "--instances",
        metavar="TEXT",
        help="SIZE, N*SIZE or LEARNER+N*PLAYER: short for --set scale.…",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="override a value; may be repeated",
    )
    parser.add_argument("--minutes", type=float, help="short for --set budget.max_minutes=…")
    parser.add_argument(
        "--max-hours",
        type=positive,
        default=24.0,
        help="hours until the job is stopped (default: %(default)s)",
    )
    parser.add_argument("--name", help="name of the job (default: the experiment's, with the time)")
    parser.add_argument(
        "--out", metavar="FILE", help="file to write (default: outputs/NAME.yaml or .sh)"
    )
    parser.add_argument(
        "--explain", action="store_true", help="show what would run on these machines, and exit"
    )
    add_json(parser)


def _add_kuberay(add: Commands) -> None:
    summary = "Write the manifest of a RayJob, which KubeRay runs on Kubernetes."
    text = _FIRST.format(engine="kuberay", one="2*16cpu-60gib", machines=_SIZES) + _KUBERAY
    parser = add("kuberay", lambda options: _run(options, ".yaml", _prepare_kuberay), summary, text)
    _add_common(parser)
    _add_image(parser)
    parser.add_argument("--claim", help="volume claim for the run folder, which outlasts the job")
    _add_runs(parser, "instead of --claim")
    parser.add_argument(
        "--service-account",
        default="",
        metavar="NAME",
        help="service account of the pods, with access to --runs",
    )
    nodes = "of GPU nodes (of all nodes if the job needs no GPU); may be repeated"
    parser.add_argument(
        "--node-selector", action="append", default=[], metavar="KEY=VALUE", help=f"label {nodes}"
    )
    parser.add_argument(
        "--toleration",
        action="append",
        default=[],
        metavar="KEY[=VALUE][:EFFECT]",
        help=f"taint {nodes}",
    )
    parser.add_argument(
        "--namespace", default="", help="namespace (default: that of kubectl's context)"
    )


def _add_slurm(add: Commands) -> None:
    text = _FIRST.format(engine="slurm", one="2*16cpu", machines=_SIZES) + _SLURM
    parser = add(
        "slurm",
        lambda options: _run(options, ".sh", _prepare_slurm),
        "Write a batch script for Slurm.",
        text,
    )
    _add_common(parser)
    parser.add_argument(
        "--python",
        default="python3",
        help="Python with procsnake on all nodes (default: %(default)s)",
    )
    parser.add_argument(
        "--runs", default="runs", help="folder of runs that all nodes share (default: %(default)s)"
    )
    parser.add_argument("--partition", default="", help="partition (default: the cluster's)")
    parser.add_argument("--account", default="", help="account (default: yours)")


def _add_ec2(add: Commands) -> None:
    summary = (
        "Write a file for ray up, which starts machines on EC2. You pay for them until ray down."
    )
    text = _FIRST.format(engine="ec2", one="2*ml.c5.4xlarge", machines=_TYPES) + _EC2
    parser = add("ec2", lambda options: _run(options, ".yaml", _prepare_ec2), summary, text)
    _add_common(parser)
    _add_image(parser)
    parser.add_argument("--region", help="region of AWS")
    _add_runs(parser, "which outlasts the head (default: the head's disk)")
    parser.add_argument(
        "--ami", default="", help="machine image with Docker (default: Ray's for the region)"
    )


def _add_image(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--image",
        default=os.environ.get("PROCSNAKE_IMAGE"),
        help="image with procsnake (or PROCSNAKE_IMAGE)",
    )


def _add_runs(parser: argparse.ArgumentParser, why: str) -> None:
    runs: Any = parser.add_argument(
        "--runs", default="", metavar="ADDRESS", help=f"s3://bucket/folder for the run, {why}"
    )
    runs.schemes = ("s3", "gs")


def _run(
    options: argparse.Namespace,
    ending: str,
    prepare: Callable[[argparse.Namespace, Any, Path], Prepared],
) -> int:
    from train.cluster.advice import warnings
    from train.cluster.sizes import sized
    from train.run import check

    plan = _plan(options)
    if options.explain:
        _explain(options, plan.experiment)
        return 0
    path = Path(options.out or kept_at(f"{plan.name}{ending}"))
    files, next_commands = prepare(options, plan, path)
    # Mistakes in the experiment show here, rather than when machines are waiting.
    check(sized(plan.experiment))
    for file, text in files.items():
        make_place_for(str(file))
        write_whole(file, text)
    cautions = [*warnings(plan.experiment), *_own_modules(plan.experiment)]
    if options.json:
        print_json({"written": list(files), "warnings": cautions, "next": next_commands})
        return 0
    print(
        f"written: {', '.join(map(str, files))}",
        *(f"warning: {text}" for text in cautions),
        *next_commands,
        sep="\n",
    )
    return 0


def _plan(options: argparse.Namespace) -> Any:
    from train.config import Experiment
    from train.engines.plan import Plan, default_name
    from train.settings.scale import scale_overrides
    from train.stages import require_one_stage

    instances = scale_overrides(options.instances) if options.instances else []
    if options.minutes is not None:
        minutes = [f"budget.max_minutes={options.minutes}"]
    else:
        minutes = []
    experiment = Experiment.load(options.experiment, [*instances, *options.set, *minutes])
    require_one_stage(experiment, "launch")
    return Plan(
        name=options.name or default_name(experiment.name),
        experiment=experiment,
        max_hours=options.max_hours,
    )


def _explain(options: argparse.Namespace, experiment: Any) -> None:
    from train.cluster.advice import warnings
    from train.cluster.sizes import explanation, figures

    if options.json:
        print_json({**figures(experiment), "warnings": warnings(experiment)})
        return
    rows = [*explanation(experiment), *(("warning", text) for text in warnings(experiment))]
    print(in_columns(rows))


def _own_modules(experiment: Any) -> list[str]:
    if not experiment.modules:
        return []
    return [
        (
            f"install your own {', '.join(experiment.modules)} on the machines; it isn't sent with"
            " the job"
        )
    ]


def _asked(options: argparse.Namespace, name: str, example: str) -> str:
    """The value of an option without which an engine can do nothing."""
    value = getattr(options, name)
    if not value:
        raise ConfigError(f"{options.command} needs --{name}, such as --{name} {example}")
    return str(value)


def _prepare_kuberay(options: argparse.Namespace, plan: Any, path: Path) -> Prepared:
    from train.engines import kuberay, names

    place = kuberay.Place(
        image=_asked(options, "image", _IMAGE),
        claim=options.claim or "",
        runs=options.runs,
        service_account=options.service_account,
        node_selector=dict(map(names.node_label, options.node_selector)),
        tolerations=[names.toleration(text) for text in options.toleration],
        namespace=options.namespace,
    )
    there = ["--namespace", place.namespace] if place.namespace else []
    next_commands = [
        f"submit it: {shlex.join(['kubectl', 'apply', *there, '-f', str(path)])}",
        f"watch it: {shlex.join(['kubectl', *there, 'get', 'rayjob', plan.name, '--watch'])}",
        f"stop it: {shlex.join(['kubectl', 'delete', *there, '-f', str(path)])}",
    ]
    return {path: kuberay.manifest(plan, place)}, next_commands


def _prepare_slurm(options: argparse.Namespace, plan: Any, path: Path) -> Prepared:
    from train.engines import slurm

    place = slurm.Place(
        python=options.python,
        runs=options.runs,
        partition=options.partition,
        account=options.account,
    )
    next_commands = [
        f"submit it: {shlex.join(['sbatch', str(path)])}",
        "save and stop: scancel --batch --signal=USR1 JOB",
    ]
    return {path: slurm.script(plan, place)}, next_commands


def _prepare_ec2(options: argparse.Namespace, plan: Any, path: Path) -> Prepared:
    from train.engines import ec2

    image = _asked(options, "image", _IMAGE)
    region = _asked(options, "region", "us-west-2")
    place = ec2.Place(image=image, region=region, ami=options.ami, runs=options.runs)
    experiment = path.with_suffix(".experiment.yaml")
    what = (
        "start the machines, which costs money",
        "train",
        "download the runs",
        "remove the machines",
    )
    next_commands = [
        f"{text}: {command}"
        for text, command in zip(what, ec2.commands(plan, path, options.runs), strict=True)
    ]
    return {
        path: ec2.cluster(plan, place, experiment),
        experiment: plan.experiment_text,
    }, next_commands
