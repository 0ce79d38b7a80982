"""Which machine leads, from SageMaker's file in all its shapes."""

from __future__ import annotations

import itertools

import pytest

from train.cluster.hosts import ClusterError, from_resource_config, natural


def read(config, me="algo-1"):
    return from_resource_config(
        {"current_host": me, "network_interface_name": "eth0", **config},
        head_group="learner",
        only_group="all",
    )


def test_one_host_leads_itself():
    hosts = read({"hosts": ["algo-1"]})
    assert (hosts.leads, hosts.others, hosts.group) == (True, [], "all")


def test_the_file_sorts_names_as_text_but_two_comes_before_ten():
    names = sorted(f"algo-{k}" for k in range(2, 13))
    assert names[0] == "algo-10"
    hosts = read({"hosts": names}, me="algo-10")
    assert hosts.head == "algo-2"
    assert not hosts.leads
    assert hosts.others == [f"algo-{k}" for k in range(3, 13)]


@pytest.mark.parametrize("order", list(itertools.permutations(["algo-1", "algo-2", "algo-10"])))
def test_the_head_is_the_first_of_the_learners_however_hosts_are_dealt_and_listed(order):
    for learners in (order[:1], order[:2], order):
        groups = [
            {
                "instance_group_name": "rollout",
                "instance_type": "ml.c5.xlarge",
                "hosts": [h for h in order if h not in learners],
            }
        ]
        groups.insert(
            0,
            {
                "instance_group_name": "learner",
                "instance_type": "ml.g5.xlarge",
                "hosts": list(learners),
            },
        )
        for listed in (groups, groups[::-1]):
            heads = {
                read({"hosts": list(order), "instance_groups": listed}, me=me).head for me in order
            }
            assert heads == {min(learners, key=natural)}


def test_a_job_of_one_kind_may_name_its_only_group_anything():
    group = {
        "instance_group_name": "homogeneousCluster",
        "instance_type": "ml.c5.xlarge",
        "hosts": ["algo-1", "algo-2"],
    }
    hosts = read({"hosts": ["algo-1", "algo-2"], "instance_groups": [group]}, me="algo-2")
    assert (hosts.head, hosts.group) == ("algo-1", "all")


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"hosts": ["algo-2"]}, "isn't one of them"),
        ({"hosts": []}, "isn't one of them"),
        (
            {
                "hosts": ["algo-1", "algo-2"],
                "instance_groups": [{"instance_group_name": "x", "hosts": ["algo-1"]}],
            },
            "its groups hold",
        ),
        (
            {
                "hosts": ["algo-1", "algo-2"],
                "instance_groups": [
                    {"instance_group_name": name, "hosts": [f"algo-{k}"]}
                    for k, name in enumerate("ab", 1)
                ],
            },
            "no instance group is called 'learner'; there are a, b",
        ),
    ],
)
def test_a_file_that_does_not_fit_together_is_refused(config, message):
    with pytest.raises(ClusterError, match=message):
        read(config)


def test_an_interface_that_is_not_there_means_this_machine_alone():
    hosts = read({"hosts": ["algo-1"], "network_interface_name": "nothing7"})
    assert hosts.address() == "127.0.0.1"
    assert read({"hosts": ["algo-1"], "network_interface_name": "lo"}).address() == "127.0.0.1"
