"""A container's share of the machine, told by control groups of either version."""

from __future__ import annotations

import os

import pytest

from envs.common import cores
from envs.common.cores import usable_cores


@pytest.fixture
def groups(tmp_path, monkeypatch):
    """Writes files below /sys/fs/cgroup and what /proc/self/cgroup says, on a machine of 64
    cores.
    """
    monkeypatch.setattr(cores, "_GROUPS", tmp_path / "sys")
    monkeypatch.setattr(cores, "_OURS", tmp_path / "cgroup")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(64))

    def write(ours="", **files):
        (tmp_path / "cgroup").write_text(ours)
        for name, text in files.items():
            file = tmp_path / "sys" / name.replace("__", "/")
            file = file.with_name(file.name.replace("_max", ".max").replace("cpu_cfs", "cpu.cfs"))
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)

    return write


def test_without_quotas_it_is_the_affinity(groups):
    assert usable_cores() == 64


@pytest.mark.parametrize(
    ("quota", "expected"), [("50000 100000", 1), ("350000 100000", 4), ("max 100000", 64), ("", 64)]
)
def test_a_quota_of_version_2(groups, quota, expected):
    groups("0::/\n", cpu_max=quota)
    assert usable_cores() == expected


@pytest.mark.parametrize(("quota", "expected"), [("50000", 1), ("350000", 4), ("-1", 64)])
@pytest.mark.parametrize("mount", ["cpu", "cpu,cpuacct"])
def test_a_quota_of_version_1(groups, quota, expected, mount):
    limits = {f"{mount}__cpu_cfs_quota_us": quota, f"{mount}__cpu_cfs_period_us": "100000"}
    groups(f"5:memory:/elsewhere\n4:{mount}:/\n", **limits)
    assert usable_cores() == expected


def test_the_tightest_of_the_groups_around_us_counts(groups):
    groups(
        "0::/kubepods/pod1/container\n",
        kubepods__cpu_max="1600000 100000",
        kubepods__pod1__cpu_max="300000 100000",
        kubepods__pod1__container__cpu_max="max 100000",
        kubepods__pod2__cpu_max="100000 100000",
    )
    assert usable_cores() == 3


def test_a_group_of_version_1_below_the_root(groups):
    limits = {
        "cpu__docker__abc__cpu_cfs_quota_us": "250000",
        "cpu__docker__abc__cpu_cfs_period_us": "100000",
    }
    groups("9:name=systemd:/x\n4:cpu,cpuacct:/docker/abc\n0::/\n", **limits)
    assert usable_cores() == 3


def test_at_least_one_and_never_more_than_the_affinity(groups, monkeypatch):
    groups("0::/\n", cpu_max="1000 100000")
    assert usable_cores() == 1
    groups("0::/\n", cpu_max="9900000 100000")
    assert usable_cores() == 64
