"""The command `nki`: estimates, checks, comparisons and searches of kernels, on any CPU."""

import argparse
import importlib
import os
import sys
from typing import Any

from utils.nki import simulator
from utils.nki.simulator import surface

COMMANDS = {
    "profile": ("profiling", "estimate how long a kernel takes, and why"),
    "check": ("checking", "what may not compile, and what a run breaks"),
    "compare": ("comparing", "two kernels, or two records: values, time, traffic"),
    "tune": ("tuning", "search the best of declared choices; goes on where it was stopped"),
    "measure": ("measuring", "run the validation kernels on a NeuronCore, and read such records"),
    "puzzle": ("..puzzles.command", "twenty kernels to write, checked, with stars for their time"),
    "docs": ("reference", "write the reference: every instruction, and how good estimates are"),
}
OWN = __package__ or "utils.nki.tool"


def main(arguments: list[str] | None = None) -> int:
    """Run the command; returns its exit status: 0 fine, 1 findings or a kernel that fails, 2
    nothing to work on."""
    words = _with_api(sys.argv[1:] if arguments is None else arguments)
    if words[:1] == ["upgrade"]:  # has options of its own
        return int(_module("..upgrade").main(words[1:]))
    parser = argparse.ArgumentParser("nki", description=__doc__)
    parser.add_argument("--version", action="store_true", help="which nki this is")
    parser.add_argument("--api", metavar="VERSION", help="an older NKI: its names and its rules")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    commands.add_parser("upgrade", help="migrate a kernel to the NKI of today", add_help=False)
    chosen = next((word for word in words if word in COMMANDS), None)
    for name, (module, text) in COMMANDS.items():
        under = commands.add_parser(name, help=text, description=text)
        if name == chosen:  # the others are not imported
            _module(module).add(under)
    given = parser.parse_args(words)
    if given.version:
        print(_which(given.command))
        return 0
    if given.command is None:
        parser.print_help()
        return 2
    return _run(given)


def _module(name: str) -> Any:
    """A module of this package, or, with two dots, of the one around it."""
    return importlib.import_module(name if name.startswith(".") else f".{name}", OWN)


def _with_api(words: list[str]) -> list[str]:
    """The arguments without `--api VERSION`, which is chosen before anything imports nki."""
    before = argparse.ArgumentParser("nki", add_help=False)
    before.add_argument("--api", choices=surface.known_versions())
    given, rest = before.parse_known_args(words)
    if given.api:
        os.environ[surface.VARIABLE] = given.api
    return rest


def _which(command: str | None) -> str:
    """Which package `import nki` gives here. All commands but `measure` take the simulator."""
    result = simulator.use()
    if result.endswith(simulator.OURS) or command == "measure":
        return result
    os.environ[simulator.CHOICE] = "course"
    simulator.use()
    return (
        "AWS's package nki is installed here too, and `import nki` gives AWS's in your programs. "
        f"This command uses the simulator; {simulator.CHOICE}=course makes simulator.use() do so."
    )


def _run(given: argparse.Namespace) -> int:
    from utils.nki.tool.failures import FINE, FOUND, WRONG, KernelFailed, Refused

    text = _which(given.command)
    if not text.endswith(simulator.OURS) or "\n" in text:
        print(text, file=sys.stderr)
    try:
        return int(_module(COMMANDS[given.command][0]).main(given))
    except BrokenPipeError:  # whoever reads, such as head, has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FINE
    except KernelFailed as error:
        print(f"nki {given.command}: {error}", file=sys.stderr)
        return FOUND
    except (Refused, OSError, LookupError) as error:
        print(f"nki {given.command}: {error}", file=sys.stderr)
        return WRONG
    except KeyboardInterrupt:
        print(f"nki {given.command}: stopped", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
