"""How a learner reaches what runs, how it ends, and what nobody can promise, for each place."""

from dataclasses import dataclass

from utils.launch.clusters import Cluster
from utils.launch.names import OWN, TAG
from utils.launch.requests import SCRIPT


@dataclass(frozen=True)
class Guide:
    """steps: before and after the start. ends: what ends it, first to last. not_promised: what
    stays possible all the same. tear_down: how to undo it by hand.
    """

    steps: tuple[str, ...]
    ends: tuple[str, ...]
    not_promised: tuple[str, ...]
    tear_down: tuple[str, ...]


HERE = (
    "this program, when the hours are over, at Ctrl-C, when it is told to end, and at any error",
    "`python3 course.py launch --stop`, which ends what you have of the course in the region",
)
BUDGET = "an alarm of AWS Budgets is worth its minute: it tells you, although it stops nothing"


def ec2_guide(region: str, minutes: int, python: str) -> Guide:
    """For one instance: a shell through Session Manager, Jupyter through a forwarded port."""
    session = f"aws ssm start-session --region {region} --target INSTANCE"
    forward = (
        f"{session} --document-name AWS-StartPortForwardingSession --parameters "
        '\'{"portNumber":["8888"],"localPortNumber":["8888"]}\''
    )
    made = f"--tags Key={TAG},Value={OWN}"
    group = f"aws ec2 create-security-group --region {region} --group-name {OWN}"
    tagged = f"'ResourceType=security-group,Tags=[{{Key={TAG},Value={OWN}}}]'"
    return Guide(
        steps=(
            "once, by whoever manages the account:",
            f"  aws iam create-role --role-name {OWN} {made} --assume-role-policy-document "
            '\'{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"sts:AssumeRole",'
            '"Principal":{"Service":"ec2.amazonaws.com"}}]}\'',
            f"  aws iam attach-role-policy --role-name {OWN} --policy-arn "
            "arn:aws:iam::aws:policy/AmazonSSMManagedInstanceCore",
            f"  aws iam create-instance-profile --instance-profile-name {OWN} {made}",
            f"  aws iam add-role-to-instance-profile --instance-profile-name {OWN} "
            f"--role-name {OWN}",
            f'  {group} --description "no inbound port" --tag-specifications {tagged}',
            "after the start, from your machine; no inbound port is open and no key is needed:",
            f"  {session}",
            f"  {forward}",
            "on the instance: copy the course there, run `python3 course.py start --no-browser"
            " --port 8888` and open the address that it prints; leave PJRT_DEVICE unset",
            f"  device cells find {python} by themselves; COURSE_NEURON_PYTHON names another",
        ),
        ends=(
            f"the instance itself, {minutes} minutes after its first start: its clock is set before"
            " anything else, survives a restart, and a shut-down of this instance is its end, disk"
            " included",
            *HERE,
        ),
        not_promised=(
            "if this program is killed outright or your machine loses its power, the instance runs"
            " on until its own clock ends it, still within the hours that the limit was for",
            "an instance whose system never comes up has no clock: look with --list, end with"
            " --stop",
            "whoever is root on the instance can stop the clock",
            BUDGET,
        ),
        tear_down=(
            f"aws ec2 terminate-instances --region {region} --instance-ids INSTANCE",
            f"aws ec2 describe-instances --region {region} --filters Name=tag:{TAG},Values={OWN}",
        ),
    )


def training_job_guide(region: str, seconds: int) -> Guide:
    """For a training job: nothing to log in to; its clock is SageMaker's."""
    code = f"s3://BUCKET/{OWN}/code/"
    return Guide(
        steps=(
            f"once: a role {OWN} that SageMaker may take, with access to one bucket",
            f"  aws s3 cp {SCRIPT} {code}{SCRIPT}",
            f"  aws s3 cp --recursive utils {code}utils/",
            "after the start: the log is in CloudWatch, group /aws/sagemaker/TrainingJobs",
        ),
        ends=(
            "the script, when it is done: SageMaker then ends the machine",
            f"SageMaker, after {seconds} seconds (MaxRuntimeInSeconds), whoever watches",
            *HERE,
        ),
        not_promised=(
            "nobody here has run this job: image, role and bucket are checked only by SageMaker",
            BUDGET,
        ),
        tear_down=(
            f"aws sagemaker stop-training-job --region {region} --training-job-name JOB",
            f"aws sagemaker list-training-jobs --region {region} --name-contains {OWN} "
            "--status-equals InProgress",
        ),
    )


def studio_guide(region: str, idle_minutes: int) -> Guide:
    """For a Studio space: the app costs, the space keeps its disk until it is deleted too."""
    named = f"--region {region} --domain-id DOMAIN --space-name SPACE"
    return Guide(
        steps=(
            "once: a Studio domain with a user profile of yours, with idle shut-down of JupyterLab"
            " switched on in one of the two: a space can set its time and not switch it on, and a"
            " start looks for it",
            "after the start: open the space in Studio; first look whether there is a device, with"
            " `ls /dev/neuron0`",
        ),
        ends=(
            f"Studio, when the app has been idle for {idle_minutes} minutes",
            *HERE,
        ),
        not_promised=(
            "Studio has no clock of its own: if this program is killed outright while a notebook"
            " computes, the app runs until it is idle or you stop it, past the hours and the limit",
            "idle shut-down needs a Studio image that knows it; an open terminal counts as work",
            "the space's disk costs on after the app is gone, until the space is deleted too",
            BUDGET,
        ),
        tear_down=(
            f"aws sagemaker delete-app {named} --app-type JupyterLab --app-name default",
            f"aws sagemaker delete-space {named}",
        ),
    )


def cluster_guide(cluster: Cluster) -> Guide:
    """For a cluster: its tool's commands."""
    return Guide(
        steps=cluster.steps,
        ends=("you, with the commands of the tear-down: nothing ends a cluster by itself",),
        not_promised=(cluster.extra, BUDGET),
        tear_down=cluster.tear_down,
    )
