"""What must hold before a start: who asks, quota, image, network. Reads only; starts nothing."""

from dataclasses import dataclass
from typing import Any

from utils.launch.aws.aws_session import Denied, Refused, Session, code_of
from utils.launch.aws.running import ON_EC2
from utils.launch.known import Quota, vcpus
from utils.launch.launch_plans import Plan
from utils.launch.names import OWN, TAG


def ready(aws: Session, planned: Plan, request: dict[str, Any]) -> dict[str, Any]:
    """RunInstances as it will be sent: the request of the plan with image and security group.

    Raises:
        Refused: if quota, image, profile, security group or a permission is missing; says which.
    """
    quota(aws, planned)
    image = _image(aws, planned)
    _profile(aws)
    disk, *_ = request["BlockDeviceMappings"]
    full = request | {
        "ImageId": image.id,
        "SecurityGroupIds": [_group(aws)],
        "BlockDeviceMappings": [disk | {"DeviceName": image.root}],
    }
    if disk["Ebs"]["VolumeSize"] < image.least_gb:
        raise Refused(f"the image needs a disk of {image.least_gb} GB: give it with --disk")
    _may_start(aws, full)
    return full


def quota(aws: Session, planned: Plan) -> None:
    """Refuses if the account's quota does not hold what the plan needs beside what runs."""
    needed = planned.quota
    if needed is None:
        raise Refused(
            f"the vCPUs of {planned.instance} are not known, so its quota cannot be checked"
        )
    try:
        allowed, used = _allow(aws, needed), _used(aws, planned)
    except Denied:
        raise
    except Refused as error:
        raise Refused(
            f"the quota '{needed.name}' could not be read, so nothing is started. Look for it in "
            f"Service Quotas: {error}"
        ) from error
    if allowed < used + needed.needed:
        raise Refused(
            f"the quota '{needed.name}' in {aws.region} is {allowed:g} {needed.unit}, of which "
            f"{used} are in use; this needs {needed.needed} more. Ask for "
            f"{used + needed.needed} {needed.unit} in Service Quotas; it can take days"
        )


def idle_shutdown(aws: Session, space: dict[str, Any]) -> None:
    """Refuses unless Studio shuts idle apps of this user down: a space can set the time of it, but
    only its domain or its user profile can switch it on, and the profile overrides the domain.

    space: the request CreateSpace.
    """
    domain = {"DomainId": space["DomainId"]}
    user = {"UserProfileName": space["OwnershipSettings"]["OwnerUserProfileName"]}
    profile = aws.call("sagemaker", "describe_user_profile", **domain, **user)
    whole = aws.call("sagemaker", "describe_domain", **domain)
    for settings in (profile.get("UserSettings", {}), whole.get("DefaultUserSettings", {})):
        lab = settings.get("JupyterLabAppSettings", {})
        idle = lab.get("AppLifecycleManagement", {}).get("IdleSettings", {})
        if "LifecycleManagement" in idle:
            if idle["LifecycleManagement"] == "ENABLED":
                return
            break
    raise Refused(
        "idle shut-down of JupyterLab is not switched on in this domain or user profile: nothing "
        "would end the app without this program. The domain administrator can switch it on: "
        "App configurations, JupyterLab, idle shutdown"
    )


def _allow(aws: Session, needed: Quota) -> float:
    if needed.code:
        named = {"ServiceCode": needed.service, "QuotaCode": needed.code}
        quota = aws.call("service-quotas", "get_service_quota", **named)["Quota"]
        return float(quota["Value"])
    pages = aws.pages("service-quotas", "list_service_quotas", ServiceCode=needed.service)
    for quota in (quota for page in pages for quota in page["Quotas"]):
        if quota["QuotaName"] == needed.name:
            return float(quota["Value"])
    raise Refused(f"{needed.service} lists no quota of that name in {aws.region}")


def _used(aws: Session, planned: Plan) -> int:
    """vCPUs of the instances that run on demand; SageMaker does not say what its quota holds."""
    if planned.where != "ec2":
        return 0
    states = [{"Name": "instance-state-name", "Values": list(ON_EC2[:3])}]
    pages = aws.pages("ec2", "describe_instances", Filters=states)
    instances = [i for page in pages for r in page["Reservations"] for i in r["Instances"]]
    trainium = [i for i in instances if i["InstanceType"].startswith("trn")]
    # What is bought another way, such as spot, says so and has quotas of its own.
    on_demand = [i["InstanceType"] for i in trainium if "InstanceLifecycle" not in i]
    try:
        return sum(map(vcpus, on_demand))
    except LookupError:
        raise Refused(
            f"of {', '.join(sorted(set(on_demand)))}, which run in {aws.region}, the course does "
            "not know all vCPUs"
        ) from None


@dataclass(frozen=True)
class _Ami:
    id: str
    root: str
    least_gb: int


def _image(aws: Session, planned: Plan) -> _Ami:
    image = planned.image
    if image.find == "parameter":
        try:
            parameter = aws.call("ssm", "get_parameter", Name=image.key)["Parameter"]
        except Refused as error:
            if code_of(error) != "ParameterNotFound":
                raise
            raise Refused(
                f"{aws.region} has no parameter {image.key}: the image is not published there any "
                "more. Try another region, or --image torchneuron on a machine that it runs on"
            ) from error
        listed = _images(aws, ImageIds=[parameter["Value"]])
    else:
        named = [{"Name": "name", "Values": [image.key]}]
        listed = _images(aws, Owners=["amazon"], Filters=named)
    if not listed:
        raise Refused(f"{aws.region} has no image '{image.key}' of AWS")
    newest = max(listed, key=lambda ami: ami.get("CreationDate", ""))
    root = newest["RootDeviceName"]
    sizes = [
        disk["Ebs"].get("VolumeSize", 0)
        for disk in newest.get("BlockDeviceMappings", ())
        if disk["DeviceName"] == root and "Ebs" in disk
    ]
    return _Ami(newest["ImageId"], root, max(sizes, default=0))


def _images(aws: Session, **what: Any) -> list[dict[str, Any]]:
    return list(aws.call("ec2", "describe_images", **what)["Images"])


def _profile(aws: Session) -> None:
    try:
        aws.call("iam", "get_instance_profile", InstanceProfileName=OWN)
    except Refused as error:
        if code_of(error) != "NoSuchEntity":
            raise
        raise Refused(
            f"there is no instance profile {OWN}, without which no session can be opened: the "
            "plan's first steps make it"
        ) from error


def _group(aws: Session) -> str:
    """The security group of the course, which must have no inbound rule."""
    named = [{"Name": "group-name", "Values": [OWN]}, {"Name": f"tag:{TAG}", "Values": [OWN]}]
    groups = aws.call("ec2", "describe_security_groups", Filters=named)["SecurityGroups"]
    if not groups:
        raise Refused(
            f"there is no security group {OWN} with the tag {TAG}={OWN} in {aws.region}: the "
            "plan's first steps make it"
        )
    if groups[0]["IpPermissions"]:
        raise Refused(
            f"the security group {OWN} lets something in, and nothing needs to: remove its inbound "
            "rules"
        )
    return groups[0]["GroupId"]


def _may_start(aws: Session, full: dict[str, Any]) -> None:
    """Ask EC2 whether it would start this, without starting it."""
    asked = {name: value for name, value in full.items() if name != "ClientToken"}
    try:
        aws.call("ec2", "run_instances", **asked, DryRun=True)
    except Refused as error:
        if code_of(error) != "DryRunOperation":
            raise
    else:
        raise Refused("EC2 did not answer a question about a start as it should; nothing is done")
