"""The skips that are expected, in one list. Where PROCSNAKE_REFUSE_SKIPS is set, any other skip is
a failure.

`.ci/run` sets it. Without it, whoever lacks a program or a Python 3.7 still sees `make test` pass.

Procgen doesn't exist for Python 3.13. There a test that ends with our error about it is skipped,
too."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Generator
from typing import TypeVar

import pytest

from envs.common.errors import install_beside

REFUSE = "PROCSNAKE_REFUSE_SKIPS"
EXPECTED = {
    "tests/agents/export/test_savedmodel.py": [
        "the extra [tensorflow] is not installed"
    ],  # has an environment of its own
    "tests/agents/export/test_serving.py": ["the extra [tensorflow] is not installed"],
    "tests/train/test_mxnet_dqn.py": ["the extra [mxnet] is not installed"],  # has one, too
    "tests/train/comparison/test_battlesnake_benchmark.py": ["the extra [mxnet] is not installed"],
    "tests/benchmarks/test_commands.py": ["the extra [mxnet] is not installed"],
    "tests/train/sagemaker/test_sdk.py": ["the extra [sagemaker] is not installed"],  # has one, too
    "tests/clients/test_supersuit.py": [
        "the clients' environment is not installed"
    ],  # has one, too
    "tests/clients/test_stable_baselines.py": ["the clients' environment is not installed"],
    "tests/train/runs/sessions/test_trackers.py": [
        "the trackers are not installed"
    ],  # `make test-trackers` runs it
    "tests/envs/common/strangers/test_sqlite_files.py": ["Python 3.10 can't set SQLite's limits"],
    "tests/train/engines/test_kuberay.py": [
        "KubeRay's CRD is not in schemas/"
    ],  # others' data, which isn't committed
}
"""By file, the reasons for which a test may be skipped even where no skip is wanted."""

NOT_HERE = {"procgen": install_beside("procgen")} if sys.version_info >= (3, 13) else {}
"""By extra, what our errors say that this Python can't have it."""

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)


_REFUSES = pytest.StashKey[bool]()


def pytest_configure(config: pytest.Config) -> None:
    # Read before any test: some take procsnake's variables out of the environment.
    config.stash[_REFUSES] = bool(os.environ.get(REFUSE))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    return _judged((yield), item.config)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    return _judged((yield), collector.config)


def _judged(report: Report, config: pytest.Config) -> Report:
    said = str(report.longrepr) if report.failed else ""
    for extra, install in NOT_HERE.items():
        if "MissingDependencyError: " in said and install in said:
            report.outcome = "skipped"
            report.longrepr = (
                report.nodeid.partition("::")[0],
                0,
                f"Skipped: no {extra} for this Python",
            )
            return report
    return _refused(report, config)


def _refused(report: Report, config: pytest.Config) -> Report:
    """The report; a failure if it is of a skip that isn't wanted."""
    if not (config.stash[_REFUSES] and report.skipped and isinstance(report.longrepr, tuple)):
        return report
    file = report.nodeid.partition("::")[0]
    reason = re.sub("^Skipped: ", "", report.longrepr[2])
    if reason not in EXPECTED.get(file, ()):
        report.outcome = "failed"
        report.longrepr = (
            f"skipped, which {REFUSE} forbids: {reason}\nInstall what it needs; or, if it can't run"
            " anywhere, add file and reason to EXPECTED in tests/skips.py."
        )
    return report
