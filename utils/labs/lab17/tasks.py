"""Incidents 7 and 8 of lab 17: a task of a Kubernetes cluster stays pending."""

import random
from typing import Any

from utils.labs import Facts

WEIGHTS = {"cause": 8}
FORM = "`pending` returned {strange}: return the name of a cause"
NEURON = "aws.amazon.com/neuron"
CAUSES = ("unknown resource", "too many", "limits differ", "no queue", "no claim", "busy")


def make_incident(rng: random.Random, cause: str, variant: int) -> Facts:
    """An incident: a Job and the cluster that does not start it. variant: which form of it."""
    governed = cause == "no queue" or (cause != "no claim" and rng.random() < 0.5)
    team = rng.choice(("research", "search", "vision"))
    namespace = f"hyperpod-ns-{team}" if governed else "default"
    # Eight of sixteen are enough, and more as a text: one that is busy asks so.
    half = cause == "busy" and not variant
    each = 16 if half else rng.choice((1, 16))
    nodes: list[dict[str, Any]] = [
        {"name": f"node-{n}", "allocatable": {NEURON: str(each), "cpu": "190"}, "used": {}}
        for n in range(rng.randint(2, 4))
    ]
    # Quantities are numbers or texts, as people write them.
    ask = each if each == 1 else 8 if half else rng.choice((8, 16))
    amount: dict[str, Any] = {NEURON: rng.choice((ask, str(ask)))}
    container: dict[str, Any] = {
        "name": "train",
        "resources": {"requests": dict(amount), "limits": dict(amount)},
    }
    pod: dict[str, Any] = {"containers": [container]}
    labels = {"kueue.x-k8s.io/queue-name": f"{namespace}-localqueue"} if governed else {}
    cluster = {"nodes": nodes, "claim_templates": ["four-connected", "xl-trn2"]}
    resources: dict[str, Any] = container["resources"]
    if cause == "unknown resource":
        wrong = ("aws.amazon.com/neurondevice", "aws.amazon.com/neurons")[variant]
        container["resources"] = {"requests": {wrong: ask}, "limits": {wrong: ask}}
    elif cause == "too many":
        much = each * len(nodes) if variant else each + rng.choice((1, 8, 16))
        resources["requests"][NEURON] = resources["limits"][NEURON] = str(much)
    elif cause == "limits differ":
        resources["requests"][NEURON] = ask
        resources["limits"][NEURON] = 2 * ask if variant else ask + 1
        nodes[0]["allocatable"][NEURON] = "64"
    elif cause == "no queue":
        labels = {"kueue.x-k8s.io/queue-name": "hyperpod-ns-audit-localqueue"} if variant else {}
    elif cause == "no claim":
        container["resources"] = {"claims": [{"name": "neurons"}]}
        name = "missing-template" if variant else "four-connected"
        pod["resourceClaims"] = [
            {"name": "neurons" if variant else "devices", "resourceClaimTemplateName": name}
        ]
    else:
        for node in nodes:
            node["used"] = {NEURON: str(each - ask + 1)}
        if variant:
            del resources["requests"]  # Kubernetes takes the limits for them
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train", "namespace": namespace, "labels": labels},
        "spec": {"template": {"spec": pod}},
    }
    return {"job": job, "cluster": cluster, "right": {"cause": cause}}


def task_cases(rng: random.Random) -> list[Facts]:
    """Twelve incidents: each cause in both of its forms."""
    pairs = [(cause, variant) for variant in (0, 1) for cause in CAUSES]
    rng.shuffle(pairs)
    incidents = [make_incident(rng, cause, variant) for cause, variant in pairs]
    return [{"incidents": incidents[:4]}, {"incidents": incidents[4:]}]


def task_words(case: Facts) -> str:
    """What a card says of a case."""
    spaces = ", ".join(item["job"]["metadata"]["namespace"] for item in case["incidents"])
    return f"{len(case['incidents'])} jobs, in the namespaces {spaces}"[:160]
