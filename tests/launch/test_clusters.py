"""Files for clusters: what their published schemas refuse, and what they refuse of wrong ones."""

import copy
import hashlib
from typing import Any

import kubernetes_validate
import pytest

from utils.facts import figure
from utils.launch import clusters

KUBERNETES = "1.34"
"""The first version with resource.k8s.io/v1."""


@pytest.mark.parametrize("name", clusters.CALLS)
def test_the_arguments_of_a_call_fit_the_definition_of_its_api(name: str) -> None:
    (arguments,) = clusters.documents(name)
    assert clusters.faults(name, arguments) == []
    assert list(clusters.faults(name, {})) != []


def change(name: str, *path: Any, to: Any) -> dict[str, Any]:
    arguments = copy.deepcopy(clusters.documents(name)[0])
    inner = arguments
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = to
    return arguments


@pytest.mark.parametrize(
    ("name", "path", "value", "message"),
    [
        ("training_job", ("ResourceConfig", "InstanceType"), "trn2.48xlarge", "are ml.trn2.48xl"),
        ("training_job", ("StoppingCondition", "MaxRuntimeInSeconds"), "86400", "Invalid type"),
        ("training_job", ("CheckpointConfig", "Path"), "/opt", "Unknown parameter"),
        ("training_job", ("TrainingJobName",), "pretrain 1", "does not have the form"),
        ("task_policy", ("SchedulerConfig", "FairShare"), "On", "are Enabled"),
        ("task_quota", ("ComputeQuotaConfig", "PreemptTeamTasks"), "Always", "cannot be 'Always'"),
        ("model_import", ("modelDataSource",), {"s3DataSource": {}}, "Missing required parameter"),
    ],
)
def test_a_wrong_argument_is_refused_by_name(
    name: str, path: tuple[Any, ...], value: Any, message: str
) -> None:
    (fault,) = clusters.faults(name, change(name, *path, to=value))
    assert message in fault


@pytest.mark.parametrize("name", clusters.MANIFESTS)
def test_manifests_fit_the_schema_of_kubernetes(name: str) -> None:
    for document in clusters.documents(name):
        kubernetes_validate.validate(document, KUBERNETES, strict=True)
    wrong = copy.deepcopy(document)
    wrong["spec"]["template"]["spec"]["resourceClaim"] = []
    with pytest.raises(kubernetes_validate.ValidationError, match="resourceClaim"):
        kubernetes_validate.validate(wrong, KUBERNETES, strict=True)


def test_the_configuration_of_parallelcluster_is_the_one_that_was_checked() -> None:
    """Its schema comes with 150 MB of CDK, so that it is loaded by hand after a change:

    uvx --from aws-parallelcluster==3.16.1 python -c "import yaml; from
    pcluster.schemas.cluster_schema import ClusterSchema as S; S(cluster_name='x').load(
    yaml.safe_load(open('utils/launch/clusters/parallelcluster.yaml')))"
    """
    digest = hashlib.sha256(clusters.text("parallelcluster").encode()).hexdigest()
    assert digest[:16] == "ce8c57f73e326815"
    assert clusters.documents("parallelcluster")[0]["Scheduling"]["Scheduler"] == "slurm"


def test_jobs_ask_for_the_devices_and_cores_that_an_instance_has() -> None:
    chips = figure("trn2.48xlarge.accelerators").number
    cores = figure("trn2.48xlarge.logical_cores").number / chips
    for name, devices in {"task_job": chips, "eks_plugin": chips, "eks_dra": 4}.items():
        job = clusters.documents(name)[-1]
        (container,) = job["spec"]["template"]["spec"]["containers"]
        assert f"--nproc_per_node={devices * cores:.0f}" in container["command"]
        limits = container["resources"].get("limits", {"aws.amazon.com/neuron": 4})
        assert limits["aws.amazon.com/neuron"] == devices
        assert container["resources"].get("requests", limits) == limits


def test_a_file_that_does_not_exist_is_refused() -> None:
    with pytest.raises(LookupError, match="no file 'x'; there are eks_dra, eks_plugin"):
        clusters.text("x")
