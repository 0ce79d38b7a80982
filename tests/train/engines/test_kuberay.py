"""Manifests of RayJobs: against KubeRay's types (a subset by hand), Kubernetes' own schemas, and
what training needs.
"""

from __future__ import annotations

import copy
import gzip
import json
import shlex
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import ray
import yaml

import procsnake
from envs.common.errors import ConfigError
from procsnake.begin_or_continue import words
from tests.train.engines.plans import SCALES, plan
from train.cluster.live import fit
from train.cluster.sizes import sized
from train.config import Experiment
from train.engines import names
from train.engines.kuberay import Place, manifest
from train.runs.folder import RunFolder
from train.settings.scale import Local

SCHEMA = yaml.safe_load(Path(__file__).with_name("rayjob.schema.yaml").read_text())
KUBERNETES = "1.33"
PLACE = Place(image="registry.example.org/procsnake:1", claim="runs", namespace="team")


def made(
    instances: str, *overrides: str, place: Place = PLACE, **more: Any
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The ConfigMap and the RayJob."""
    configuration, job = yaml.safe_load_all(manifest(plan(instances, *overrides, **more), place))
    return configuration, job


def pods(job: dict[str, Any]) -> list[tuple[dict[str, Any], dict[str, str], int]]:
    """For each group its pod, what it tells `ray start`, and how many there are."""
    cluster = job["spec"]["rayClusterSpec"]
    groups = [
        (cluster["headGroupSpec"], 1),
        *((group, group["replicas"]) for group in cluster["workerGroupSpecs"]),
    ]
    return [(group["template"]["spec"], group["rayStartParams"], count) for group, count in groups]


def check(job: dict[str, Any]) -> None:
    """What the API server and the operator would check."""
    jsonschema.Draft202012Validator(SCHEMA).validate(job["spec"])
    for pod, _, _ in pods(job):
        whole = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "any"}, "spec": pod}
        kubernetes_validate.validate(whole, KUBERNETES, strict=True)


CRD = Path("/work/shared/schemas/kuberay-rayjobs-crd.yaml.gz")


def closed(schema: Any) -> Any:
    """KubeRay's schema with fields that it doesn't know refused, which the API server would drop
    without a word.
    """
    if isinstance(schema, list):
        return [closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: closed(value) for key, value in schema.items()}
    if isinstance(schema.get("properties"), dict) and not schema.get(
        "x-kubernetes-preserve-unknown-fields"
    ):
        kept.setdefault("additionalProperties", False)
    if schema.get("x-kubernetes-int-or-string"):
        kept.pop("anyOf", None)
        kept["type"] = ["integer", "string"]
    return kept


@pytest.fixture(scope="module")
def kuberay_itself():
    """The validator of the RayJob that KubeRay publishes."""
    if not CRD.is_file():
        pytest.skip("KubeRay's CRD is not in schemas/")
    with gzip.open(CRD, "rt") as file:
        version = yaml.load(file, yaml.CSafeLoader)["spec"]["versions"][0]
    schema = closed(version["schema"]["openAPIV3Schema"])
    schema["properties"]["metadata"] = {"type": "object"}
    return jsonschema.Draft202012Validator(schema)


STORED = Place(
    image="registry.example.org/procsnake:1",
    runs="s3://bucket/runs",
    service_account="trainer",
    node_selector={"pool": "gpu"},
    tolerations=[names.toleration("dedicated=learning:NoSchedule")],
)


@pytest.mark.parametrize("place", [PLACE, STORED], ids=["claim", "s3"])
@pytest.mark.parametrize(
    "instances", ["2*16cpu", "8cpu-1gpu-32gib+2*36cpu-60gib", "2*ml.g5.12xlarge"]
)
def test_it_is_valid_for_kuberay_itself(kuberay_itself, instances, place):
    _, job = made(instances, place=place)
    kuberay_itself.validate(job)
    check(job)
    job["spec"]["rayClusterSpec"]["headGroupSpec"]["template"]["spec"]["tolerationz"] = []
    with pytest.raises(jsonschema.ValidationError):
        kuberay_itself.validate(job)


def test_pods_with_gpus_go_to_nodes_that_are_kept_for_them():
    head, worker = (
        pod for pod, _, _ in pods(made("8cpu-1gpu-32gib+2*36cpu-60gib", place=STORED)[1])
    )
    assert head["nodeSelector"] == {"pool": "gpu"}
    assert [one["key"] for one in head["tolerations"]] == ["nvidia.com/gpu", "dedicated"]
    assert not {"nodeSelector", "tolerations"} & set(worker)
    assert pods(made("2*16cpu", place=STORED)[1])[0][0]["nodeSelector"] == {"pool": "gpu"}


def test_a_second_try_goes_on_with_the_run_of_the_first(tmp_path, monkeypatch):
    """The entry point is called twice, as by a second cluster; the first one has left a run and a
    lock.
    """
    _, job = made("2*16cpu")
    assert job["spec"]["backoffLimit"] > 0
    module, config, runs = shlex.split(job["spec"]["entrypoint"])[2:]
    assert module == "procsnake.begin_or_continue"
    here = str(tmp_path / runs.lstrip("/"))
    assert words(config, here) == ["train", "--cluster", "auto", "--config", config, "--runs", here]
    run = RunFolder.create(Path(here), plan("2*16cpu").experiment, {})
    run.save_checkpoint(lambda path: (path / "weights").write_text("w"), {"iteration": 1}, keep=2)
    (run.path / ".lock").write_text('{"host": "the-lost-head", "pid": 1}')
    assert words(config, here) == [
        "train",
        "--cluster",
        "auto",
        "--resume",
        str(run.path),
        "--trust",
    ]
    assert not (run.path / ".lock").exists()
    procsnake.cli.main.build_parser().parse_args(words(config, here))


@pytest.mark.parametrize("instances", SCALES)
def test_it_is_valid_for_kuberay_and_for_kubernetes(instances):
    configuration, job = made(instances)
    kubernetes_validate.validate(configuration, KUBERNETES, strict=True)
    assert (job["apiVersion"], job["kind"]) == ("ray.io/v1", "RayJob")
    kubernetes_validate.validate(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": job["metadata"]},
        KUBERNETES,
        strict=True,
    )
    check(job)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda job: job["spec"].update(activeDeadlineSeconds=0),
        lambda job: job["spec"].update(entryPoint="procsnake"),
        lambda job: job["spec"]["rayClusterSpec"]["headGroupSpec"]["rayStartParams"].update(
            {"num-cpus": 8}
        ),
        lambda job: job["spec"]["rayClusterSpec"]["workerGroupSpecs"][0].pop("minReplicas"),
        lambda job: pods(job)[0][0]["containers"][0].update(imagge="x"),
        lambda job: pods(job)[0][0]["containers"][0].pop("name"),
        lambda job: pods(job)[0][0]["volumes"][0].pop("name"),
    ],
)
def test_the_check_itself_finds_mistakes(spoil):
    job = copy.deepcopy(made("2*16cpu")[1])
    spoil(job)
    with pytest.raises((jsonschema.ValidationError, kubernetes_validate.ValidationError)):
        check(job)


@pytest.mark.parametrize("experiment", ["battlesnake-ppo", "battlesnake-apex"])
@pytest.mark.parametrize("instances", SCALES)
def test_the_cluster_is_as_large_as_the_experiment_needs(instances, experiment, monkeypatch):
    """What KubeRay's `ray start` would offer, read by a shell, is enough for the training that the
    head then starts.
    """
    configuration, job = made(instances, experiment=experiment)
    nodes = []
    for _, parameters, count in pods(job):
        words = shlex.split(" ".join(f"--{name}={value}" for name, value in parameters.items()))
        told = dict(word.removeprefix("--").split("=", 1) for word in words)
        assert len(told) == len(parameters)
        offered = {
            "CPU": float(told["num-cpus"]),
            "GPU": float(told["num-gpus"]),
            **json.loads(told.get("resources", "{}")),
        }
        nodes += [{"Alive": True, "Resources": offered}] * count
    monkeypatch.setattr(ray, "nodes", lambda: nodes)
    trained = Experiment.from_dict(yaml.safe_load(configuration["data"]["experiment.yaml"]))
    fitted = fit(sized(trained))
    assert fitted.num_env_runners > 1
    assert not isinstance(fitted.scale, Local)


def test_a_size_is_asked_for_as_it_stands():
    head, worker = (
        pod["containers"][0]["resources"]
        for pod, _, _ in pods(made("8cpu-2gpu-32gib+3*36cpu-60gib")[1])
    )
    same = {"memory": "32Gi", "nvidia.com/gpu": "2"}
    assert head == {"requests": {"cpu": "8", **same}, "limits": same}
    assert worker == {"requests": {"cpu": "36", "memory": "60Gi"}, "limits": {"memory": "60Gi"}}


def test_a_type_of_instance_is_asked_for_by_kubernetes_label_and_leaves_a_processor_to_kubernetes():
    ((pod, parameters, _),) = pods(made("ml.c5.4xlarge")[1])
    assert pod["nodeSelector"] == {"node.kubernetes.io/instance-type": "c5.4xlarge"}
    assert (pod["containers"][0]["resources"]["requests"]["cpu"], parameters["num-cpus"]) == (
        "15",
        "16",
    )


def test_the_command_is_one_that_procsnake_takes_and_reads_what_is_mounted():
    configuration, job = made("2*16cpu", "seed=7")
    entry = shlex.split(job["spec"]["entrypoint"])
    # The submitter's shell and the head's both read it.
    assert shlex.join(entry) == " ".join(entry) == job["spec"]["entrypoint"]
    options = procsnake.cli.main.build_parser().parse_args(words(*entry[3:]))
    head = pods(job)[0][0]
    mounts = {mount["name"]: mount["mountPath"] for mount in head["containers"][0]["volumeMounts"]}
    volumes = {volume["name"]: volume for volume in head["volumes"]}
    assert options.config == f"{mounts['experiment']}/{next(iter(configuration['data']))}"
    assert volumes["experiment"]["configMap"]["name"] == configuration["metadata"]["name"]
    assert (options.runs, options.cluster) == (f"{mounts['runs']}/mine", "auto")
    assert volumes["runs"]["persistentVolumeClaim"]["claimName"] == "runs"
    assert (
        Experiment.from_dict(yaml.safe_load(configuration["data"]["experiment.yaml"]))
        == plan("2*16cpu", "seed=7").experiment
    )


def test_text_that_yaml_could_misread_comes_back():
    name = "yes: *x\n---\n- '#\"é"
    configuration, _ = made("2*16cpu", experiment="battlesnake-ppo")
    spoilt = plan("2*16cpu")
    changed = Experiment.from_dict({**spoilt.experiment.to_dict(), "name": name})
    text = manifest(plan("2*16cpu", experiment="battlesnake-ppo"), PLACE)
    assert "!!" not in text
    assert "&id" not in text
    other = type(spoilt)(name="mine", experiment=changed, max_hours=1.0)
    configuration, _ = yaml.safe_load_all(manifest(other, PLACE))
    assert yaml.safe_load(configuration["data"]["experiment.yaml"])["name"] == name


def test_names_that_kubernetes_refuses_are_refused():
    with pytest.raises(ConfigError, match=r"up to 47 small letters.*--name my-run"):
        manifest(plan("2*16cpu", name="My_Run"), PLACE)
    with pytest.raises(ConfigError, match=r"--claim 'Runs' .*--claim runs"):
        Place(image="r/p:1", claim="Runs")
    with pytest.raises(ConfigError, match="--namespace"):
        Place(image="r/p:1", claim="runs", namespace="a\nb")


def test_no_secret_is_in_it():
    text = manifest(plan("2*16cpu"), PLACE)
    assert yaml.safe_load_all(text)
    assert "authOptions" in text
    with pytest.raises(ConfigError, match="a secret"):
        plan("2*16cpu", "network.options.password=x")
