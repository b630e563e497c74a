"""Files for clusters and services that run Trainium, and what their published schemas say of them.

`clusters/` has the files. Those for a call of AWS are checked here, by `faults`, against the
definition of the API that comes with boto3. Manifests of Kubernetes and the configuration of AWS
ParallelCluster are checked in `tests/launch/test_clusters.py`, with their projects' own schemas.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).parent / "clusters"
CALLS = {
    "task_policy": ("sagemaker", "CreateClusterSchedulerConfig"),
    "task_quota": ("sagemaker", "CreateComputeQuota"),
    "training_job": ("sagemaker", "CreateTrainingJob"),
    "model_import": ("bedrock", "CreateModelImportJob"),
}
"""Files that are the arguments of a call: service and call."""
MANIFESTS = ("task_job", "eks_plugin", "eks_dra")
"""Files that Kubernetes reads."""


def text(name: str) -> str:
    """A file as it is written. Raises LookupError if there is none of that name."""
    path = HERE / f"{name}.yaml"
    if not path.exists():
        known = ", ".join(sorted(file.stem for file in HERE.glob("*.yaml")))
        raise LookupError(f"no file {name!r}; there are {known}")
    return path.read_text(encoding="utf-8")


def documents(name: str) -> list[dict[str, Any]]:
    """What a file holds, document by document."""
    return list(yaml.safe_load_all(text(name)))


def faults(name: str, arguments: dict[str, Any]) -> list[str]:
    """What the definition of the API refuses in the arguments of the call of `CALLS[name]`.

    Checked are names, types, what is required, ranges, listed values and patterns. AWS may refuse
    more, such as an instance that the account may not start.

    >>> faults("task_quota", documents("task_quota")[0])
    []
    """
    # Late: most of this room does without boto3.
    from botocore import session
    from botocore.validate import ParamValidator

    service, call = CALLS[name]
    shape = session.get_session().get_service_model(service).operation_model(call).input_shape
    report = ParamValidator().validate(arguments, shape)
    return [*report.generate_report().splitlines(), *_values(arguments, shape, "")]


def _values(value: Any, shape: Any, where: str) -> Iterator[str]:
    """Texts that are not among those listed for them, or do not have their form."""
    if isinstance(value, dict):
        for key, item in value.items():
            inner = shape.value if shape.type_name == "map" else shape.members.get(key)
            if inner is not None:
                yield from _values(item, inner, f"{where}.{key}".lstrip("."))
    elif isinstance(value, list) and shape.type_name == "list":
        for place, item in enumerate(value):
            yield from _values(item, shape.member, f"{where}[{place}]")
    elif isinstance(value, str) and shape.type_name == "string":
        pattern = shape.metadata.get("pattern", "")
        if shape.enum and value not in shape.enum:
            near = [name for name in shape.enum if value in name or name in value]
            listed = ", ".join(near or shape.enum[:6])
            yield f"{where} cannot be {value!r}; among its {len(shape.enum)} values are {listed}"
        elif pattern and not re.fullmatch(pattern, value):
            yield f"{where} is {value!r}, which does not have the form {pattern}"
