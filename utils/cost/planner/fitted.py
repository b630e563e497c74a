"""One kernel efficiency for each chip, fitted on half of the papers with published training runs.

The efficiency of a run is the one at which its plan takes as long as its paper says. A chip has the
geometric mean over its papers, drawn to the mean of all chips as if one more paper had said that:
few papers say more of their library than of their chip. Trainium2 and 3 have no published run with
a layout; plans for them take the efficiency of Trainium1.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping

import numpy as np

from utils.cost.planner.published import Run, later_runs, published_runs

STUDENT = 2.13 / 1.645
"""How much wider than a normal distribution's an interval of 90 % is that rests on five papers."""


def fit(runs: Iterable[Run]) -> Mapping[str, float]:
    """The efficiency of each chip from `runs`, every paper counting once."""
    logs = defaultdict(list)
    for run in runs:
        logs[run.chip, run.paper].append(np.log(run.implied_efficiency))
    means = {key: float(np.mean(values)) for key, values in logs.items()}
    overall = float(np.mean(list(means.values())))
    result = {}
    for chip in sorted({chip for chip, _ in means}):
        of_chip = [mean for (c, _), mean in means.items() if c == chip]
        result[chip] = float(np.exp((sum(of_chip) + overall) / (len(of_chip) + 1)))
    return result


def fitted_interval(runs: Iterable[Run]) -> tuple[float, float]:
    """What `interval` gives, computed from the runs of the fitted half."""
    runs, ratios = list(runs), []
    for paper in sorted({run.paper for run in runs}):
        others = fit(run for run in runs if run.paper != paper)
        logs = []
        for run in (run for run in runs if run.paper == paper):
            slower = run.efficiency / others.get(run.chip, np.mean(list(others.values()))) - 1
            planned = run.plan.step_seconds + slower * run.plan.seconds["products"]
            logs.append(np.log(run.seconds / planned))
        ratios += list(np.quantile(logs, (0.05, 0.25, 0.5, 0.75, 0.95)))
    low, high = np.quantile(ratios, (0.05, 0.95)) * STUDENT
    return float(np.exp(low)), float(np.exp(high))


def accuracy() -> list[tuple[str, ...]]:
    """Rows for a table: half, paper, runs, error in % lowest, median, highest; fitted papers first,
    `later_runs` last, and below each part the median of absolute errors and the mean error, over
    its papers.
    """
    rows: list[tuple[str, ...]] = [("half", "paper", "runs", "lowest", "median", "highest")]
    fitted, kept_back = (
        [r for r in published_runs() if r.held_out == out] for out in (False, True)
    )
    parts = {"fitted": fitted, "held out": kept_back, "added later": later_runs()}
    for half, runs in parts.items():
        middle, mean = [], []
        for paper in sorted({r.paper for r in runs}):
            errors = np.array([100 * r.error for r in runs if r.paper == paper])
            middle.append(np.median(np.abs(errors)))
            mean.append(errors.mean())
            three = (errors.min(), np.median(errors), errors.max())
            rows.append((half, paper, str(len(errors)), *(f"{error:+.0f} %" for error in three)))
        text = f"median |error| {np.median(middle):.0f} %, bias {np.mean(mean):+.0f} %"
        rows.append((half, f"by paper: {text}", "", "", "", ""))
    return rows
