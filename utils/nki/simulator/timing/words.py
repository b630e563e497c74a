"""A profile as text: for a terminal, and as Markdown for a notebook."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from utils.nki.simulator.profile import Profile

NAMES = {
    "tensor": "Tensor Engine",
    "vector": "Vector Engine",
    "scalar": "Scalar Engine",
    "gpsimd": "GpSimd Engine",
    "dma": "DMA",
}
UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))
BYTES = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "B"))
WAITING = 0.5
"""An engine that is busy for less of the time bounds nothing: the kernel waits."""
MOST_STEPS = 8


def time(seconds: float) -> str:
    """
    >>> time(0.0000425), time(0)
    ('42.5 us', '0 ns')
    """
    scale, unit = next(((s, u) for s, u in UNITS if seconds >= s), UNITS[-1])
    return f"{seconds / scale:.3g} {unit}"


def size(count: float) -> str:
    """
    >>> size(12)
    '12 B'
    """
    scale, unit = next(((s, u) for s, u in BYTES if count >= s), BYTES[-1])
    return f"{count / scale:.3g} {unit}"


def reason(profile: "Profile") -> str:
    """Why the kernel takes as long as it does, in a sentence."""
    name = profile.busiest
    share = profile.utilisation[name]
    most = max(
        (count, called) for (engine, called), count in profile.counts.items() if engine == name
    )
    work = f"{most[0]:,} {most[1]}"
    if share < WAITING:
        return (
            f"No engine is busy half of the time: they wait for each other. The busiest is the "
            f"{NAMES[name]} with {share:.0%} ({work})."
        )
    said = f"The {NAMES[name]} is busy for {share:.0%} of the time, with {work} among others."
    if name != "dma":
        return said
    moved = profile.moving
    if moved < share / 2:
        return (
            f"{said} Most of it goes into starting transfers, not into moving bytes: there are "
            "many, and they are small."
        )
    return f"{said} It moves {profile.hbm_ratio:.3g} times the bytes of the arguments and results."


def rows(profile: "Profile") -> list[tuple[str, str]]:
    """What is worth knowing, as pairs."""
    found = [
        (
            "time",
            f"{time(profile.seconds)} (estimate; {time(profile.low)} to {time(profile.high)})",
        ),
        ("on", f"{profile.target}, schedule {profile.schedule.kind}"),
        ("why", profile.why),
    ]
    found += [(NAMES[engine], f"{share:.1%} busy") for engine, share in profile.utilisation.items()]
    if profile.measures.hbm:
        found.append(
            (
                "HBM",
                f"{size(profile.hbm_read)} read, {size(profile.hbm_written)} written: "
                f"{profile.hbm_ratio:.3g} times the ideal",
            )
        )
    if profile.flop:
        found.append(("arithmetic intensity", f"{profile.intensity:.4g} FLOP/B"))
        found.append(("MFU", f"{profile.mfu:.1%}"))
        bound = profile.bound
        found.append(("roofline", f"{time(bound.seconds)} at least, bound by {bound.bound}"))
    target = profile.program.target
    found.append(
        ("SBUF", f"at most {profile.sbuf_peak:,} of {target.sbuf_bytes:,} bytes per partition")
    )
    banks = profile.psum_peak // target.psum_bank_bytes
    found.append(("PSUM", f"at most {banks} of {target.psum_banks} banks"))
    return found


def steps(profile: "Profile") -> list[tuple[str, str, str, str]]:
    """The parts of the critical path that take longest: seconds, what, where, waited for."""
    total = sum(each.seconds for each in profile.critical_path) or 1.0
    merged: dict[tuple[str, str, str, str], list[float]] = {}
    for each in profile.critical_path:
        where = f"{Path(each.file).name}:{each.line}"
        key = (f"{each.name} on {each.engine}", where, each.text, each.waited_for)
        merged.setdefault(key, [0, 0.0])
        merged[key][0] += 1
        merged[key][1] += each.seconds
    longest = sorted(merged.items(), key=lambda item: -item[1][1])[:MOST_STEPS]
    return [
        (
            f"{spent:.0%}" if (spent := seconds / total) >= 0.01 else "< 1%",
            f"{count} x {what}",
            f"{where}  {text}",
            waited,
        )
        for (what, where, text, waited), (count, seconds) in longest
    ]


def table(profile: "Profile") -> str:
    """The profile as lines of text."""
    pairs = rows(profile)
    width = max(len(name) for name, _ in pairs)
    lines = [f"{profile.kernel}: an estimate"]
    lines += [f"  {name:<{width}}  {value}" for name, value in pairs]
    lines.append("  the critical path, where the time goes:")
    for share, what, where, waited in steps(profile):
        lines.append(f"    {share:>5}  {what}; waited for {waited}")
        lines.append(f"           {where}")
    return "\n".join(lines)


def markdown(profile: "Profile") -> str:
    """The profile as two tables."""
    lines = [f"**{profile.kernel}** (estimate)", "", "| | |", "| --- | --- |"]
    lines += [f"| {name} | {value} |" for name, value in rows(profile)]
    lines += ["", "| of the critical path | what | where | waited for |"]
    lines += ["| ---: | --- | --- | --- |"]
    for share, what, where, waited in steps(profile):
        place, _, text = where.partition("  ")
        code = text.replace("|", "\\|")
        lines.append(f"| {share} | {what} | {place} `{code}` | {waited} |")
    return "\n".join(lines)
