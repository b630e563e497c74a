"""Benchmark a model of the course on a device, record it, and compare it with an earlier record.

Measured are: warm times, in several processes, and whether the answers are those of eager CPU; then
the parts arrivals, cold, rates, tokens and recovery. Seconds are of this machine and stand for no
other.
"""

import argparse
import sys
import tempfile
from pathlib import Path

NEEDS = "learner"

EXAMPLES = """\
It takes a few minutes, longer with a slow compiler, and about half of that with --only none.

  python3 course.py bench --out before.json
  python3 course.py bench --out after.json --against before.json

Both runs need the same settings, device and machine; versions may differ, and are reported.
Exit status: 0; 1 if --against says slower; 2 if something cannot be measured, read or compared.
"""


def main(argv: list[str]) -> int:
    """Run the command; returns its exit status."""
    from utils.serving import bench  # late, as in `_parse`
    from utils.serving.bench import runs

    arguments = _parse(argv)
    try:
        earlier = bench.load(arguments.against) if arguments.against else None
        _check_out(arguments.out)
        price = _given(arguments.price, "USD/h", "--price", arguments.price_source)
        power = _given(arguments.power, "W", "--power", arguments.power_source)
        fields = "model device batch dtype rounds warmup repeats threads compiled".split()
        plan = runs.Plan(**{name: getattr(arguments, name) for name in fields})
        p = 50.0 if arguments.percentile is None else arguments.percentile
        if arguments.percentile is not None and earlier is None:
            raise ValueError("--percentile is that of a comparison: give --against too")
        record = runs.run(plan, _parts(arguments.only), price, power, say, earlier, p)
        if arguments.out:
            bench.save(record, arguments.out)
        print(record)
        if arguments.out:
            print(f"\nrecorded in {arguments.out}")
        result = bench.compare(earlier, record, p) if earlier else None
    except (ValueError, RuntimeError, TimeoutError, OSError) as error:
        print(f"course.py bench: {error}", file=sys.stderr)
        return 2
    if result:
        print(f"\nagainst {arguments.against}:\n{result}")
    if record.missing:
        return 2
    return 1 if result and result.verdict == "slower" else 0


def _parse(argv: list[str]) -> argparse.Namespace:
    from utils.serving.bench import runs, workloads  # late: loading torch takes seconds
    from utils.xla import devices

    default = {name: field.default for name, field in runs.Plan.__dataclass_fields__.items()}
    parser = argparse.ArgumentParser(
        "course.py bench",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    words = "(default auto: the first that is here of cuda or neuron, xla, cpu)"
    add("--device", default="auto", choices=("auto", *devices.KINDS), help=words)
    words = "; ".join(f"{name}: {what}" for name, what in workloads.WORKLOADS.items())
    add("--model", default="gpt", choices=tuple(workloads.WORKLOADS), help=f"{words} (default gpt)")
    words = f"of the matrix products (default {default['dtype']})"
    add("--dtype", default=default["dtype"], choices=workloads.FORMATS, help=words)
    whole = {
        "batch": "items of one request",
        "rounds": "processes that each measure warm times",
        "warmup": "untimed calls of each process at its start",
        "repeats": "timed calls of each process",
        "threads": "threads of torch on the host; XLA has its own",
    }
    for name, words in whole.items():
        words = f"{words} (default {default[name]})"
        add(f"--{name}", type=int, default=default[name], metavar="N", help=words)
    words = "the model through torch.compile where the device is eager: cuda and neuron"
    add("--compile", dest="compiled", action="store_true", help=words)
    words = "; ".join(f"{name}: {what}" for name, what in runs.PARTS.items())
    add("--only", metavar="PART,...", help=f"beside warm times and answers; or none. {words}")
    add("--out", type=Path, metavar="FILE", help="where to record it, as JSON; a new file")
    add("--against", type=Path, metavar="FILE", help="an earlier record to compare with")
    words = "that --against compares (default 50; any other needs 5 rounds)"
    add("--percentile", type=float, metavar="P", help=words)
    add("--price", type=float, metavar="USD/h", help="of this machine: gives money per million")
    add("--price-source", metavar="TEXT", help="where the price was read")
    add("--power", type=float, metavar="W", help="of this machine under load: gives J per query")
    add("--power-source", metavar="TEXT", help="how it was measured")
    options = parser.parse_args(argv)
    if options.device == "auto":
        options.device = devices.get().kind
    return options


def _parts(only: str | None) -> tuple[str, ...] | None:
    """None: all that the model has."""
    if only is None:
        return None
    named = [part.strip() for part in only.split(",")]
    if named == ["none"]:
        return ()
    if "none" in named or "" in named:
        raise ValueError(f"--only {only!r}: give parts with commas between, or none")
    return tuple(named)


def _given(value: float | None, unit: str, option: str, source: str | None):
    from utils.serving.bench import Given  # late, as in `_parse`

    if value is None and source:
        raise ValueError(f"{option}-source needs {option}: give both")
    if value is None:
        return None
    if not source:
        raise ValueError(f"{option} needs {option}-source: say where {value:g} {unit} was read")
    return Given(value, unit, source)


def _check_out(out: Path | None) -> None:
    """Before minutes of measuring, not after."""
    if not out:
        return
    folder = out.absolute().parent
    if not folder.is_dir():
        raise ValueError(f"there is no folder {folder}: make it, or name another")
    if out.exists():
        raise ValueError(f"{out} is there already: name a new file, or remove it")
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise ValueError(f"nothing can be written in {folder}: {error.strerror}") from None


def say(line: str) -> None:
    """A line that is seen at once."""
    print(f"… {line}", file=sys.stderr, flush=True)
