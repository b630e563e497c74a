"""The permissions that a run needs, as an IAM policy: no more actions, types, regions or names than
these, and nothing that does not carry the course's tag.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from utils.launch.names import OWN, TAG

Document = dict[str, Any]
READS = ("Describe", "List", "Get")
"""How the names of actions begin that change nothing."""
PARAMETERS = "parameter/aws/service/neuron/dlami/*"


def _allow(
    sid: str,
    actions: Sequence[str],
    resources: Sequence[str] | str,
    **conditions: Mapping[str, Any],
) -> Document:
    statement: Document = {"Sid": sid, "Effect": "Allow", "Action": list(actions)}
    statement["Resource"] = resources if isinstance(resources, str) else list(resources)
    return statement | ({"Condition": conditions} if conditions else {})


def _document(*statements: Document) -> Document:
    return {"Version": "2012-10-17", "Statement": list(statements)}


def _pass_role(service: str) -> Document:
    return _allow(
        "GiveTheRole",
        ["iam:PassRole"],
        f"arn:aws:iam::*:role/{OWN}",
        StringEquals={"iam:PassedToService": f"{service}.amazonaws.com"},
    )


def _look(region: str, *actions: str) -> Document:
    """Reading, which AWS does not let narrow down to single things."""
    return _allow("Look", actions, "*", StringEquals={"aws:RequestedRegion": region})


def _only(instance: str, absent: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Only this type in a request to SageMaker. ForAllValues is true of a request that names no
    type, and the type could then come from a default: so one must be named.
    """
    return {
        "ForAllValues:StringEquals": {"sagemaker:InstanceTypes": [instance]},
        "Null": {"sagemaker:InstanceTypes": "false", **(absent or {})},
    }


def ec2(instance: str, region: str, disk_gb: int) -> Document:
    """To start one tagged instance of one type, open a session on it, and end it."""
    here = f"arn:aws:ec2:{region}:*"
    made = [f"{here}:instance/*", f"{here}:volume/*", f"{here}:network-interface/*"]
    tagged = {f"aws:RequestTag/{TAG}": OWN}
    ours = {f"aws:ResourceTag/{TAG}": OWN}
    return _document(
        _look(
            region,
            "ec2:DescribeInstances",
            "ec2:DescribeImages",
            "ec2:DescribeSecurityGroups",
            "servicequotas:GetServiceQuota",
        ),
        _allow("FindTheImage", ["ssm:GetParameter"], f"arn:aws:ssm:{region}::{PARAMETERS}"),
        _allow(
            "SeeTheProfile", ["iam:GetInstanceProfile"], f"arn:aws:iam::*:instance-profile/{OWN}"
        ),
        _allow(
            "StartOnlyThisType",
            ["ec2:RunInstances"],
            made[0],
            StringEquals=tagged
            | {"ec2:InstanceType": instance, "ec2:MetadataHttpTokens": "required"},
        ),
        _allow(
            "WithOnlyThisDisk",
            ["ec2:RunInstances"],
            made[1],
            StringEquals=tagged,
            NumericLessThanEquals={"ec2:VolumeSize": disk_gb},
        ),
        _allow("WithItsInterface", ["ec2:RunInstances"], made[2], StringEquals=tagged),
        _allow(
            "FromAnImageOfAws",
            ["ec2:RunInstances"],
            f"arn:aws:ec2:{region}::image/*",
            StringEquals={"ec2:Owner": "amazon"},
        ),
        _allow("InAnySubnet", ["ec2:RunInstances"], f"{here}:subnet/*"),
        _allow(
            "BehindOnlyThisGroup",
            ["ec2:RunInstances"],
            f"{here}:security-group/*",
            StringEquals=ours,
        ),
        _allow(
            "TagOnlyWhatIsStarted",
            ["ec2:CreateTags"],
            made,
            StringEquals={"ec2:CreateAction": "RunInstances"},
        ),
        _allow("EndOnlyOurs", ["ec2:TerminateInstances"], made[0], StringEquals=ours),
        _pass_role("ec2"),
        _allow(
            "OpenASession",
            ["ssm:StartSession"],
            made[0],
            StringEquals={f"ssm:resourceTag/{TAG}": OWN},
        ),
        _allow(
            "OpenASessionWith",
            ["ssm:StartSession"],
            [
                f"arn:aws:ssm:{region}:*:document/SSM-SessionManagerRunShell",
                f"arn:aws:ssm:{region}::document/AWS-StartPortForwardingSession",
            ],
        ),
        _allow(
            "CloseIt",
            ["ssm:TerminateSession"],
            [f"arn:aws:ssm:{region}:*:session/${{aws:{who}}}-*" for who in ("username", "userid")],
        ),
    )


def training_job(instance: str, region: str, seconds: int, bucket: str) -> Document:
    """To bring the script, start one tagged training job of one type and length, watch and stop
    it.
    """
    jobs = f"arn:aws:sagemaker:{region}:*:training-job/{OWN}-*"
    tagged, ours = {f"aws:RequestTag/{TAG}": OWN}, {f"aws:ResourceTag/{TAG}": OWN}
    return _document(
        _look(region, "sagemaker:ListTrainingJobs", "servicequotas:ListServiceQuotas"),
        _allow("BringTheScript", ["s3:PutObject"], f"arn:aws:s3:::{bucket}/{OWN}/code/*"),
        _allow(
            "StartOnlyThisType",
            ["sagemaker:CreateTrainingJob"],
            jobs,
            StringEquals=tagged,
            NumericLessThanEquals={"sagemaker:MaxRuntimeInSeconds": seconds},
            **_only(instance, {"sagemaker:KeepAlivePeriod": "true"}),
        ),
        _allow(
            "TagOnlyWhatIsStarted",
            ["sagemaker:AddTags"],
            jobs,
            StringEquals={"sagemaker:TaggingAction": "CreateTrainingJob"},
        ),
        _allow("Watch", ["sagemaker:DescribeTrainingJob", "sagemaker:ListTags"], jobs),
        _allow(
            "ReadTheLog",
            ["logs:DescribeLogStreams", "logs:GetLogEvents"],
            f"arn:aws:logs:{region}:*:log-group:/aws/sagemaker/TrainingJobs:*",
        ),
        _allow("StopOnlyOurs", ["sagemaker:StopTrainingJob"], jobs, StringEquals=ours),
        _pass_role("sagemaker"),
    )


def studio(instance: str, region: str) -> Document:
    """To make one tagged space with one app of one type, and delete both."""
    here = f"arn:aws:sagemaker:{region}:*"
    spaces, apps = f"{here}:space/*/{OWN}-*", f"{here}:app/*/*/*/*"
    tagged, ours = {f"aws:RequestTag/{TAG}": OWN}, {f"aws:ResourceTag/{TAG}": OWN}
    return _document(
        _look(
            region,
            "sagemaker:DescribeDomain",
            "sagemaker:DescribeUserProfile",
            "sagemaker:ListSpaces",
            "sagemaker:ListApps",
            "servicequotas:ListServiceQuotas",
        ),
        _allow(
            "StartOnlyThisType",
            ["sagemaker:CreateSpace", "sagemaker:CreateApp"],
            [spaces, apps],
            StringEquals=tagged,
            **_only(instance),
        ),
        _allow(
            "TagOnlyWhatIsStarted",
            ["sagemaker:AddTags"],
            [spaces, apps],
            StringEquals={"sagemaker:TaggingAction": ["CreateSpace", "CreateApp"]},
        ),
        _allow(
            "Watch",
            ["sagemaker:DescribeSpace", "sagemaker:DescribeApp", "sagemaker:ListTags"],
            [spaces, apps],
        ),
        _allow(
            "DeleteOnlyOurs",
            ["sagemaker:DeleteApp", "sagemaker:DeleteSpace"],
            [spaces, apps],
            StringEquals=ours,
        ),
    )


def too_wide(document: Document) -> tuple[str, ...]:
    """What a policy allows that no run of the course needs.

    >>> too_wide({"Statement": [{"Sid": "All", "Effect": "Allow", "Action": "ec2:*",
    ...                          "Resource": "*"}]})
    ('All allows ec2:*', 'All allows ec2:* on everything')
    """
    found: list[str] = []
    for statement in document.get("Statement", ()):
        if statement["Effect"] != "Allow":
            continue
        sid, actions = statement.get("Sid", "a statement"), statement["Action"]
        actions = [actions] if isinstance(actions, str) else actions
        resources = statement["Resource"]
        everything = "*" in ([resources] if isinstance(resources, str) else resources)
        found += [f"{sid} allows {action}" for action in actions if "*" in action]
        found += [
            f"{sid} allows {action} on everything"
            for action in actions
            if everything and not action.partition(":")[2].startswith(READS)
        ]
    return tuple(found)
