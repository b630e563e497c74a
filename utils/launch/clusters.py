"""What to give the tools that make clusters. The launcher prints these and starts none: a cluster
is many things made over minutes, by a tool with its own way to undo them.
"""

import json
from dataclasses import dataclass

from utils.launch.names import EXPIRES_TAG, OWN, OWNER_TAG, RUN_TAG, TAG

SESSIONS = "arn:aws:iam::aws:policy/AmazonSSMManagedInstanceCore"
TAGS = f"{{{TAG}: {OWN}, {OWNER_TAG}: YOU, {RUN_TAG}: RUN, {EXPIRES_TAG}: DATE}}"


@dataclass(frozen=True)
class Cluster:
    """template: the file for the tool; steps: what to run, the last of them undoing all; extra:
    what costs money beside the Trainium nodes.
    """

    template: str
    steps: tuple[str, ...]
    tear_down: tuple[str, ...]
    extra: str


def hyperpod(instance: str, region: str) -> Cluster:
    """A HyperPod cluster of one node: the request of CreateCluster."""
    request = {
        "ClusterName": OWN,
        "InstanceGroups": [
            {
                "InstanceGroupName": "trainium",
                "InstanceType": instance,
                "InstanceCount": 1,
                "ThreadsPerCore": 1,
                "ExecutionRole": f"arn:aws:iam::111122223333:role/{OWN}",
                "LifeCycleConfig": {
                    "SourceS3Uri": "s3://sagemaker-BUCKET/lifecycle/",
                    "OnCreate": "on_create.sh",
                },
            }
        ],
        "NodeRecovery": "None",
        "Tags": [{"Key": TAG, "Value": OWN}],
    }
    return Cluster(
        template=json.dumps(request, indent=2),
        steps=(
            "put the start-up scripts of the cluster into a bucket, and your role and bucket into "
            "the file",
            f"aws sagemaker create-cluster --region {region} --cli-input-json file://cluster.json",
        ),
        tear_down=(
            f"aws sagemaker delete-cluster --region {region} --cluster-name {OWN}",
            f"aws sagemaker list-clusters --region {region}",
        ),
        extra="a cluster is paid for as long as it exists, idle or not",
    )


def eks(instance: str, region: str) -> Cluster:
    """An EKS cluster whose Trainium group begins with no node."""
    template = f"""\
apiVersion: eksctl.io/v1alpha5
kind: ClusterConfig
metadata:
  name: {OWN}
  region: {region}
  tags: {TAGS}
managedNodeGroups:
  - name: trainium
    instanceType: {instance}
    minSize: 0
    desiredCapacity: 0
    maxSize: 1
    tags: {TAGS}
"""
    scale = f"eksctl scale nodegroup --region {region} --cluster {OWN} --name trainium --nodes"
    return Cluster(
        template=template,
        steps=(
            "eksctl create cluster -f cluster.yaml",
            "install the Neuron device plugin as the guide says; pods then ask for "
            "aws.amazon.com/neuron",
            f"{scale} 1",
        ),
        tear_down=(
            f"{scale} 0",
            f"eksctl delete cluster --region {region} --name {OWN} --wait",
        ),
        extra="the control plane is paid for by the hour too, and so are NAT gateway and disks",
    )


def parallelcluster(instance: str, region: str) -> Cluster:
    """A Slurm cluster whose Trainium nodes start with a job and end ten idle minutes after it."""
    template = f"""\
Region: {region}
Image: {{Os: ubuntu2404}}
Tags: [{{Key: {TAG}, Value: {OWN}}}]
HeadNode:
  InstanceType: c5.xlarge
  Networking: {{SubnetId: PUBLIC_SUBNET}}
  Iam: {{AdditionalIamPolicies: [{{Policy: '{SESSIONS}'}}]}}
Scheduling:
  Scheduler: slurm
  SlurmSettings: {{ScaledownIdletime: 10}}
  SlurmQueues:
    - Name: trainium
      ComputeResources: [{{Name: one, InstanceType: {instance}, MinCount: 0, MaxCount: 1}}]
      Networking: {{SubnetIds: [PRIVATE_SUBNET]}}
"""
    named = f"--region {region} --cluster-name {OWN}"
    return Cluster(
        template=template,
        steps=(
            f"pcluster create-cluster {named} --cluster-configuration cluster.yaml --dryrun true",
            f"pcluster create-cluster {named} --cluster-configuration cluster.yaml",
            "give every job a time limit: sbatch --time",
        ),
        tear_down=(f"pcluster delete-cluster {named}", f"pcluster list-clusters --region {region}"),
        extra="the head node is paid for as long as the cluster exists, and so is the NAT gateway",
    )


CLUSTERS = {"hyperpod": hyperpod, "eks": eks, "parallelcluster": parallelcluster}
