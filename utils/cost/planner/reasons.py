"""Why a layout loses against the best, or why it does not fit, in a sentence."""

from utils.cost.planner.layouts import Layout
from utils.cost.planner.plans import Plan, Plans
from utils.cost.planner.steps import SAID
from utils.course.shown import Shown, columns, html_table

GIB = 2**30


def why(plan: Plan, best: Plan) -> str:
    """One sentence on `plan`, measured against `best`."""
    if not plan.fits:
        part = max(plan.memory, key=lambda item: plan.memory[item])
        needed, usable = plan.memory_bytes / GIB, plan.usable_bytes / GIB
        return (
            f"does not fit: {needed:.1f} GiB of {usable:.1f}, {plan.memory[part] / GIB:.1f} of it"
            f" {part}; what would help: {_helps(part, plan.layout)}"
        )
    if plan.layout == best.layout:
        part = max(plan.seconds, key=lambda item: plan.seconds[item])
        second = max((p for p in plan.seconds if p != part), key=lambda p: plan.seconds[p])
        return (
            f"best: {plan.seconds[part] / plan.step_seconds:.0%} of the step is"
            f" {SAID[part]}, followed by {SAID[second]}"
        )
    more = {part: plan.seconds[part] - best.seconds[part] for part in plan.seconds}
    part = max(more, key=lambda item: more[item])
    slower = plan.step_seconds / best.step_seconds - 1
    if more[part] <= 0 or slower <= 0:
        return "as fast as the best"
    text = f"{slower:.1%} slower; {SAID[part]} +{more[part]:.3g} s: {_cause(part, plan, best)}"
    least = min(more, key=lambda item: more[item])
    if more[least] < -0.01 * best.step_seconds:
        text += f"; {SAID[least]} {more[least]:.3g} s"
    return text


def _helps(part: str, layout: Layout) -> str:
    """What would need less of a part than this layout does."""
    shards = ["optimizer", "gradients", "weights"]
    ways = []
    if part in shards and layout.zero <= shards.index(part) and layout.data > 1:
        ways.append(f"ZeRO {shards.index(part) + 1}")
    if part == "activations" and layout.recompute != "full":
        ways.append("recompute")
    if part in ("activations", "logits", "buffers") and layout.micro_batch > 1:
        ways.append("smaller micro-batches")
    if part == "buffers" and layout.zero > 1:
        ways.append("ZeRO 1")
    more = "more tensor ranks" + " or stages" * (part in shards)
    ways.append("more chips" if layout.ranks == layout.tensor else more)
    return " or ".join(ways)


def _cause(part: str, plan: Plan, best: Plan) -> str:
    x = plan.layout
    match part:
        case "products":
            return (
                "it computes the forward pass again"
                if x.recompute == "full" != best.layout.recompute
                else "its fullest stage has the head besides its layers, or layers left over"
                if x.pipeline > 1
                else "keys and values are computed on several ranks"
            )
        case "between":
            return "what the tensor ranks do not divide, or what is done again, passes memory"
        case "tensor":
            return f"{x.tensor} ranks, in every layer, over {plan.reach['tensor']}"
        case "data":
            often = "in every micro-batch" if x.zero > 1 else "once a step"
            return f"{x.data} ranks, {often}, over {plan.reach['data']}"
        case "pipeline":
            return f"{x.pipeline} stages over {plan.reach['pipeline']}"
        case "context":
            return f"{x.context} ranks pass keys and values round over {plan.reach['context']}"
        case "experts":
            return f"{x.expert} ranks, twice in every layer, over {plan.reach['experts']}"
        case "bubble":
            return f"{x.pipeline} stages wait for too few micro-batches"
        case _:
            return "each rank updates more weights" + ": ZeRO 1 divides that" * (x.zero == 0)


HEAD = ("data x tensor x pipeline", "ZeRO", "micro-batch", "recompute", "GiB", "step s", "MFU",
        "why")  # fmt: skip


def ranking(result: Plans, rows: int = 10) -> list[tuple[str, ...]]:
    """One row per family, the best of each combination of degrees and ZeRO stage, best first; the
    columns are those of HEAD.
    """
    best = result[0]
    return [
        (
            f"{p.layout.data} x {p.layout.tensor} x {p.layout.pipeline}{p.layout.further}",
            str(p.layout.zero),
            str(p.layout.micro_batch),
            p.layout.recompute,
            f"{p.memory_bytes / GIB:.1f}",
            f"{p.step_seconds:.3g}",
            f"{p.mfu:.1%}",
            why(p, best),
        )
        for p in result.families()[:rows]
    ]


def table(result: Plans, rows: int = 10) -> Shown:
    """`ranking` as a table."""
    listed = ranking(result, rows)
    caption = (
        f"{result.architecture.name} on {result.cluster.name}, {result.length:,} tokens a sequence,"
        f" {result.tokens_per_step:,} a step: {result.fitting:,} of {len(result):,} layouts fit."
        " Modelled."
    )
    text = "\n".join([caption, *columns([HEAD, *listed], indent="")])
    return Shown(text, html_table(HEAD, listed, caption))
