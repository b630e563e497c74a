"""Run any training script for a few steps on XLA's CPU backend: what would Trainium meet?"""

import argparse
import importlib.util
import os
import shlex
import signal
import sys
from pathlib import Path

NEEDS = "learner"

EXAMPLES = """\
  {program} train.py
  {program} --steps 4 --json report.json train.py -- --batch-size 8

The script runs in a copy of its folder and without a network; nothing that it writes stays. CUDA
and Neuron devices become the XLA device on the CPU; the report says where.
Exit status: 0 the steps ran; 1 the script raised, died, was stopped, or made no step on the device;
2 it could not be started; 128 and the number of the signal that has ended this command.
"""


def main(argv: list[str] | None = None, program: str = "") -> int:
    """Run the command; returns its exit status."""
    is_installed = Path(sys.argv[0]).stem == "trn-dryrun"
    program = program or ("trn-dryrun" if is_installed else "python3 course.py dryrun")
    if importlib.util.find_spec("torch_xla") is None:
        print(
            f"{program} needs torch and torch-xla beside it: install the wheel of trn-audit with"
            " its extra [dryrun]",
            file=sys.stderr,
        )
        return 2
    from utils.xla.dryrun import Bounds, as_text, dry_run_script  # late: --help needs it not

    given, arguments = _parse(sys.argv[1:] if argv is None else argv, program)
    for number in _ENDINGS:
        if signal.getsignal(number) != signal.SIG_IGN:  # as nohup wants it
            signal.signal(number, _end)
    try:
        bounds = Bounds(
            seconds=given.seconds,
            memory_bytes=int(given.memory_gb * 1e9),
            processes=given.processes,
            network=given.network,
        )
        report = dry_run_script(
            given.script,
            arguments,
            steps=given.steps,
            folder=given.folder,
            target=given.target,
            twice=given.twice,
            other=None if given.other is None else shlex.split(given.other),
            bounds=bounds,
        )
    except (OSError, ValueError) as error:
        print(f"{program}: {error}", file=sys.stderr)
        return 2
    try:
        print(as_text(report), flush=True)
    except OSError:  # such as `| head`; Python would complain once more as it ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    if given.json:
        try:
            given.json.write_text(report.to_json() + "\n", encoding="utf-8")
        except OSError as error:
            print(f"{program}: the report is above, and not in a file: {error}", file=sys.stderr)
            return 2
    return 0 if report.steps and report.ended_well else 1


_ENDINGS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def _end(number: int, _: object) -> None:
    # Raised and not just ended, so that the script is ended and its scratch copy removed.
    for other in _ENDINGS:
        signal.signal(other, signal.SIG_IGN)
    name = signal.Signals(number).name
    print(f"dry run: ended by {name}; the script was stopped and its copy removed", file=sys.stderr)
    raise SystemExit(128 + number)


def _parse(argv: list[str], program: str) -> tuple[argparse.Namespace, list[str]]:
    own, arguments = argv, list[str]()
    if "--" in argv:
        place = argv.index("--")
        own, arguments = argv[:place], argv[place + 1 :]
    parser = argparse.ArgumentParser(
        program,
        description=__doc__,
        epilog=EXAMPLES.format(program=program),
        usage=f"{program} [OPTIONS] SCRIPT [-- ARGUMENTS OF THE SCRIPT]",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("script")
    add("--steps", type=int, default=8, metavar="N", help="steps to run, 1 to 64 (default 8)")
    add("--folder", type=Path, help="what is copied (default: the current folder)")
    add("--json", type=Path, metavar="FILE", help="write the report there, too")
    add("--target", default="neuron-xla", help="of the static findings (default neuron-xla)")
    add("--twice", action="store_true", help="run it again: does it ask for the same graphs?")
    add("--other", metavar="ARGS", help="run it again with these arguments, given as one word")
    add("--network", action="store_true", help="let the script reach the network")
    add("--seconds", type=float, default=300, help="limit for the whole run (default 300)")
    add("--memory-gb", type=float, default=8, help="for all its processes (default 8)")
    add("--processes", type=int, default=64, help="how many at a time (default 64)")
    return parser.parse_args(own), arguments
