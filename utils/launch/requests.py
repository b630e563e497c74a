"""The calls that a run makes, as the plain requests that boto3 takes. Nothing here sends them."""

from collections.abc import Mapping
from typing import Any

from utils.launch.names import OWN, listed, name

Request = dict[str, Any]
IDLE_MINUTES = 60
"""The least that Studio takes as the time after which an idle app is shut down."""
APP = "default"
SCRIPT = "notebooks/scripts/train_anywhere.py"
CODE = "/opt/ml/input/data/code"
"""Where a job finds the part of the course that lies in the bucket."""
EARLY_MINUTES = 5
"""The clock ends this long before the paid hours: the system starts before it and stops after."""

_UNITS = "/etc/systemd/system"
_TIMER = "trainium-course-end"


def minutes(hours: float) -> int:
    """After how many minutes the clock of AWS or of the machine ends a run.

    >>> minutes(2)
    115
    """
    return int(hours * 60) - EARLY_MINUTES


def user_data(hours: float, python: str) -> str:
    """The script that an instance runs first: a clock that shuts it down, whoever still watches. It
    begins with the clock, and powers off at once if none can be set.

    EC2 runs user data once, at the first start. A shutdown that is only scheduled is forgotten by a
    restart, so the deadline is also written as a systemd timer with a date, which comes back with
    the system and fires at once if its date is past.
    """
    left = minutes(hours)
    return f"""#!/bin/bash
# 1. The end of this machine comes before everything else.
shutdown -P +{left} "trainium-course: the hours are over" || poweroff
end=$(date -u -d "+{left} minutes" "+%Y-%m-%d %H:%M:%S UTC")
cat > {_UNITS}/{_TIMER}.service <<UNIT
[Service]
Type=oneshot
ExecStart=/bin/systemctl poweroff
UNIT
cat > {_UNITS}/{_TIMER}.timer <<UNIT
[Timer]
OnCalendar=$end
Persistent=true
[Install]
WantedBy=timers.target
UNIT
systemctl daemon-reload && systemctl enable --now {_TIMER}.timer || poweroff
# 2. A note for whoever opens a session.
echo "trainium-course: this machine ends at $end; Python of the image: {python}" >> /etc/motd
"""


def run_instances(
    instance: str, hours: float, disk_gb: int, python: str, run: str, tags: Mapping[str, str]
) -> Request:
    """RunInstances without what is looked up at the start: image, root device, security group.

    The subnet is the region's default.
    """
    marked = listed({"Name": name(run), **tags})
    return {
        "InstanceType": instance,
        "MinCount": 1,
        "MaxCount": 1,
        "ClientToken": name(run),
        "InstanceInitiatedShutdownBehavior": "terminate",
        "UserData": user_data(hours, python),
        "IamInstanceProfile": {"Name": OWN},
        "MetadataOptions": {"HttpTokens": "required", "HttpEndpoint": "enabled"},
        "BlockDeviceMappings": [
            {
                "DeviceName": "/dev/sda1",
                "Ebs": {
                    "VolumeSize": disk_gb,
                    "VolumeType": "gp3",
                    "Encrypted": True,
                    "DeleteOnTermination": True,
                },
            }
        ],
        "TagSpecifications": [
            {"ResourceType": kind, "Tags": marked}
            for kind in ("instance", "volume", "network-interface")
        ],
    }


def create_training_job(
    instance: str,
    hours: float,
    disk_gb: int,
    image: str,
    run: str,
    tags: Mapping[str, str],
    role: str,
    bucket: str,
) -> Request:
    """CreateTrainingJob of the course's script, which lies in the bucket."""
    return {
        "TrainingJobName": name(run),
        "RoleArn": role,
        "AlgorithmSpecification": {
            "TrainingImage": image,
            "TrainingInputMode": "File",
            "ContainerEntrypoint": ["python3", f"{CODE}/{SCRIPT}"],
            "ContainerArguments": ["--device", "xla"],
        },
        "InputDataConfig": [
            {
                "ChannelName": "code",
                "DataSource": {
                    "S3DataSource": {
                        "S3DataType": "S3Prefix",
                        "S3Uri": f"s3://{bucket}/{OWN}/code/",
                        "S3DataDistributionType": "FullyReplicated",
                    }
                },
            }
        ],
        "OutputDataConfig": {"S3OutputPath": f"s3://{bucket}/{OWN}/output/"},
        "ResourceConfig": {
            "InstanceType": instance,
            "InstanceCount": 1,
            "VolumeSizeInGB": disk_gb,
        },
        "StoppingCondition": {"MaxRuntimeInSeconds": 60 * minutes(hours)},
        "EnableManagedSpotTraining": False,
        "Tags": listed(tags),
    }


def create_space(
    instance: str, disk_gb: int, domain: str, user: str, run: str, tags: Mapping[str, str]
) -> Request:
    """CreateSpace: private, for JupyterLab, with the shortest idle shut-down that there is."""
    return {
        "DomainId": domain,
        "SpaceName": name(run),
        "OwnershipSettings": {"OwnerUserProfileName": user},
        "SpaceSharingSettings": {"SharingType": "Private"},
        "SpaceSettings": {
            "AppType": "JupyterLab",
            "JupyterLabAppSettings": {
                "DefaultResourceSpec": {"InstanceType": instance},
                "AppLifecycleManagement": {
                    "IdleSettings": {"IdleTimeoutInMinutes": IDLE_MINUTES},
                },
            },
            "SpaceStorageSettings": {"EbsStorageSettings": {"EbsVolumeSizeInGb": disk_gb}},
        },
        "Tags": listed(tags),
    }


def create_app(instance: str, domain: str, run: str, tags: Mapping[str, str]) -> Request:
    """CreateApp: what costs money in Studio."""
    return {
        "DomainId": domain,
        "SpaceName": name(run),
        "AppType": "JupyterLab",
        "AppName": APP,
        "ResourceSpec": {"InstanceType": instance},
        "Tags": listed(tags),
    }
