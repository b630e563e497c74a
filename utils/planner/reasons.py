"""Why a layout loses against the best, or why it does not fit, in a sentence."""

from utils.planner.layouts import Layout
from utils.planner.plans import Plan, Plans
from utils.planner.steps import SAID

GIB = 2**30
REMEDIES = {
    "weights": "more tensor ranks or stages, or ZeRO 3",
    "gradients": "more tensor ranks or stages, or ZeRO 2",
    "optimizer": "ZeRO 1, or more tensor ranks or stages",
    "activations": "recompute, smaller micro-batches, or more tensor ranks",
    "logits": "smaller micro-batches, or more tensor ranks",
    "buffers": "smaller micro-batches, or no ZeRO 2 and 3",
}


def why(plan: Plan, best: Plan) -> str:
    """One sentence on `plan`, measured against `best`."""
    if not plan.fits:
        part = max(plan.memory, key=lambda each: plan.memory[each])
        return (
            f"does not fit: {plan.memory_bytes / GIB:.1f} GiB of {plan.usable_bytes / GIB:.1f},"
            f" {plan.memory[part] / GIB:.1f} of it {part}; what would help: {REMEDIES[part]}"
        )
    if plan.layout == best.layout:
        part = max(plan.seconds, key=lambda each: plan.seconds[each])
        second = max((p for p in plan.seconds if p != part), key=lambda p: plan.seconds[p])
        return (
            f"best: {plan.seconds[part] / plan.step_seconds:.0%} of the step is"
            f" {SAID[part]}, next come {SAID[second]}"
        )
    more = {part: plan.seconds[part] - best.seconds[part] for part in plan.seconds}
    part = max(more, key=lambda each: more[each])
    slower = plan.step_seconds / best.step_seconds - 1
    if more[part] <= 0 or slower <= 0:
        return "as fast as the best"
    return f"{slower:.1%} slower, most by {SAID[part]} (+{more[part]:.3g} s): {_cause(part, plan)}"


def _cause(part: str, plan: Plan) -> str:
    x: Layout = plan.layout
    match part:
        case "products":
            return (
                "it computes the forward pass again"
                if x.recompute == "full"
                else "its fullest stage has the head besides its layers, or layers left over"
                if x.pipeline > 1
                else "keys and values are computed on several ranks"
            )
        case "between":
            return "what is not divided by the tensor ranks, or is done again, goes through memory"
        case "tensor":
            return f"{x.tensor} ranks sum in every layer over {plan.reach['tensor']}"
        case "data":
            often = "in every micro-batch" if x.zero > 1 else "once a step"
            return f"{x.data} ranks, ZeRO {x.zero}, {often} over {plan.reach['data']}"
        case "pipeline":
            return f"{x.pipeline} stages over {plan.reach['pipeline']}"
        case "bubble":
            return f"{x.pipeline} stages wait for too few micro-batches"
        case _:
            return "each rank updates more weights: ZeRO 1 divides that"


def ranked(found: Plans, rows: int = 10, families: bool = True) -> list[tuple[str, ...]]:
    """The table: head, then one row per layout, best first.

    families: only the best of each combination of degrees and ZeRO stage.
    """
    listed = (
        found.families()[:rows] if families else [found[i] for i in range(min(rows, len(found)))]
    )
    best = found[0]
    head = ("data x tensor x pipeline", "ZeRO", "micro-batch", "recompute", "GiB", "step s", "MFU",
            "why")  # fmt: skip
    return [
        head,
        *(
            (
                f"{p.layout.data} x {p.layout.tensor} x {p.layout.pipeline}",
                str(p.layout.zero),
                str(p.layout.micro_batch),
                p.layout.recompute,
                f"{p.memory_bytes / GIB:.1f}",
                f"{p.step_seconds:.3g}",
                f"{p.mfu:.1%}",
                why(p, best),
            )
            for p in listed
        ),
    ]
