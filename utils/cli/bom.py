"""The bill of materials of the course, in CycloneDX 1.6: every package that the locks name, with
the hashes of its files and with what needs it. Standard library only.

uv writes one too, but only from its own lock, which the repository does not keep.
"""

import re
import tomllib
import uuid
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any

from utils.cli import builds

COURSE = "trainium-course"
LICENCE = "Apache-2.0"


def bill(pyproject: Path, learner: str, everything: str, seconds: int) -> dict[str, Any]:
    """The bill, which says the same for the same files.

    pyproject: pyproject.toml, with the version and with what the course itself asks for.
    learner, everything: the texts of both locks; packages of the second alone, for tests and
        grading, are of scope "optional".
    seconds: the time that it is dated with, since 1970.
    """
    project = tomllib.loads(pyproject.read_text())
    version = project["project"]["version"]
    asked = [*project["project"]["dependencies"], *chain(*project["dependency-groups"].values())]
    direct = {re.split(r"[^\w.-]", line)[0].lower() for line in asked}
    root = f"pkg:generic/{COURSE}@{version}"
    required = builds.packages(learner)
    listed = builds.packages(everything)
    refs = {name: [_ref(entry) for entry in entries] for name, entries in listed.items()}
    needs: dict[str, set[str]] = {ref: set() for ref in (root, *chain(*refs.values()))}
    components = []
    for name, entries in listed.items():
        for entry, ref in zip(entries, refs[name], strict=True):
            marker = re.search(r" ; (.*) \\\n", entry)
            components.append(
                {
                    "type": "library",
                    "bom-ref": ref,
                    "name": name,
                    "version": ref.partition("@")[2],
                    "scope": "required" if name in required else "optional",
                    "hashes": [
                        {"alg": "SHA-256", "content": content}
                        for content in re.findall(r"--hash=sha256:(\w+)", entry)
                    ],
                    "purl": ref,
                    **({"properties": [{"name": "marker", "value": marker[1]}]} if marker else {}),
                }
            )
            needs[root] |= {ref} if name in direct else set()
            for parent in re.findall(r"# (?:via |  )([a-z][\w.-]*)$", entry, re.MULTILINE):
                for user in refs.get(parent, ()):
                    needs[user].add(ref)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, root + everything)}",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {
                "type": "application",
                "bom-ref": root,
                "name": COURSE,
                "version": version,
                "licenses": [{"license": {"id": LICENCE}}],
            },
        },
        "components": components,
        "dependencies": [{"ref": ref, "dependsOn": sorted(on)} for ref, on in needs.items()],
    }


def _ref(entry: str) -> str:
    """
    >>> _ref("numpy==2.4.6 ; python_full_version < '3.12' \\\\")
    'pkg:pypi/numpy@2.4.6'
    """
    return "pkg:pypi/" + entry.split()[0].replace("==", "@")
