"""Hours that work takes on machines that fail, and how often to save it.

Failures come at random at a constant rate (exponential times between them). A segment of work and
its checkpoint are done again from the last checkpoint until they pass without a failure: Daly, "A
higher order estimate of the optimum checkpoint interval for restart dumps", Future Generation
Computer Systems 22 (2006), the exact form with failures during restarts too.
"""

import numpy as np
from msgspec.structs import replace

from utils.cost.tco.cost import Number
from utils.cost.tco.fields import FIELDS, InputError


def expected_hours(
    work: Number, every: Number, write: Number, restart: Number, failures_per_hour: Number
) -> Number:
    """Hours until `work` hours of computing are done and saved, on average.

    Args:
        work: hours of computing without failures or checkpoints.
        every: hours of computing between two checkpoints; longer than the work means one at its
            end.
        write: hours that computing waits for one checkpoint.
        restart: hours from a failure until computing goes on.
        failures_per_hour: of all servers together.

    >>> round(expected_hours(100, 1, 0.1, 0.5, 0), 9)
    110.0
    >>> round(expected_hours(100, 1, 0.1, 0.5, 1 / 24), 1)
    114.9

    Raises: InputError if a segment practically never passes without a failure.
    """
    FIELDS["checkpoint_every"].check(work, "work")
    for name, value in (("checkpoint_every", every), ("checkpoint_write", write),
                        ("restart", restart)):  # fmt: skip
        FIELDS[name].check(value)
    replace(FIELDS["failures"], unit="1/h").check(failures_per_hour, "failures_per_hour")
    segment = np.minimum(every, work)
    rate = np.asarray(failures_per_hour, dtype=float)
    exposed = rate * (segment + write)
    if np.max(exposed + rate * restart) > 50:
        raise InputError(
            "checkpoint_every", f"{np.max(every):g}", "much shorter than the time between failures",
            f"With {np.max(rate):.3g} failures an hour the run practically never ends",
        )  # fmt: skip
    # expm1(x) / x is 1 at x = 0.
    stretched = np.where(exposed > 0, np.expm1(exposed) / np.where(exposed > 0, exposed, 1), 1.0)
    hours = work / segment * (segment + write) * np.exp(rate * restart) * stretched
    return hours if np.ndim(hours) else float(hours)


def best_interval(write: float, failures_per_hour: float) -> float:
    """Hours of computing between checkpoints at which `expected_hours` is least.

    >>> round(best_interval(0.1, 1 / 24), 2), round((2 * 0.1 * 24) ** 0.5, 2)
    (2.12, 2.19)

    The second number is Young's approximation, the square root of twice the product of the writing
    time and the time between failures.

    Raises: InputError if there are no failures (never save) or saving is free (always save).
    """
    # Loading scipy is slow, and most calls of the models need none of it.
    from scipy.special import lambertw

    for name, value in (("checkpoint_write", write), ("failures_per_hour", failures_per_hour)):
        if not value > 0 or not np.isfinite(value):
            raise InputError(
                name, f"{value:g}", "more than 0", "Otherwise there is no best interval"
            )
    lost = failures_per_hour * write
    return float((1 + lambertw(-np.exp(-lost - 1)).real) / failures_per_hour)
