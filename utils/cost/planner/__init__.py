"""Plans a training run on paper: layouts of data, tensor, pipeline, context, experts and sharded
state, ranked.

`plans(architecture("llama-3.1-70b"), cluster("trn2-ultraserver", 64), length, tokens_per_step)`
gives memory of a rank, volume and time of communication, step time and MFU of every layout, and
`why` each loses; `scaling` goes from few chips to many, with failures. All of it is modelled;
`published_runs` says how far from published runs.
"""

from utils.cost.planner.architecture import (
    Architecture,
    architecture,
    architectures,
    published_parameters,
)
from utils.cost.planner.cluster import Cluster, cluster
from utils.cost.planner.fitted import accuracy
from utils.cost.planner.goodput import Goodput, Point, goodput, scaling
from utils.cost.planner.layouts import SCHEDULES, Layout
from utils.cost.planner.plans import Plan, Plans, plans
from utils.cost.planner.published import Run, interval, later_runs, omissions, published_runs
from utils.cost.planner.reasons import ranking, table, why
from utils.cost.planner.settings import Settings, inputs, settings

__all__ = [
    "SCHEDULES",
    "Architecture",
    "Cluster",
    "Goodput",
    "Layout",
    "Plan",
    "Plans",
    "Point",
    "Run",
    "Settings",
    "accuracy",
    "architecture",
    "architectures",
    "cluster",
    "goodput",
    "inputs",
    "interval",
    "later_runs",
    "omissions",
    "plans",
    "published_parameters",
    "published_runs",
    "ranking",
    "scaling",
    "settings",
    "table",
    "why",
]
