#!/usr/bin/env python3
"""The course's launcher: makes its environment beside this file, then runs one of its commands.

It needs Python 3.11 to 3.13 with pip, on Linux or macOS, and nothing else; any Python from 3.6 on
can read it and say what is missing. A command is a file in utils/cli/commands/: its first line is
the help line, and NEEDS says what must be installed before it runs: "nothing", "learner", or (the
default) "everything".
"""

import importlib
import os
import re
import sys
from pathlib import Path

ROOT = os.path.dirname(os.path.abspath(__file__))
COMMANDS = os.path.join(ROOT, "utils", "cli", "commands")
# Handed from the launching Python to that of the environment, which then runs the command.
INSIDE = "--inside"

USAGE = """usage: python3 course.py COMMAND [ARGUMENTS]

{commands}

Begin with: python3 course.py start"""


def main(arguments):
    """Run a command line; returns the exit status."""
    if arguments[:1] == [INSIDE]:
        return run(arguments[1], arguments[2:])
    commands = read_commands()
    verb = arguments[0] if arguments else "--help"
    if verb in ("-h", "--help", "help"):
        print(usage(commands))
        return 0
    if verb not in commands:
        return complain("no command '{}'\n\n{}".format(verb, usage(commands)), 2)
    return launch(verb, arguments[1:], commands[verb][1])


def read_commands():
    """{verb: (help line, what it needs)}, read as text so that even an old Python can list them."""
    results = {}
    for name in sorted(os.listdir(COMMANDS)):
        if name.endswith(".py") and not name.startswith("_"):
            with open(os.path.join(COMMANDS, name), encoding="utf-8") as file:
                text = file.read()
            line = re.match(r'"""(.*?)\.?("""|\n)', text).group(1)
            needs = re.search(r'^NEEDS = "(\w+)"', text, re.MULTILINE)
            results[name[:-3].replace("_", "-")] = (line, needs.group(1) if needs else "everything")
    return results


def usage(commands):
    """The list of commands, as it is printed."""
    width = max(map(len, commands))
    lines = ["  {:{}}  {}".format(verb, width, help) for verb, (help, _) in commands.items()]
    return USAGE.format(commands="\n".join(lines))


def launch(verb, arguments, needs):
    """Check the machine, prepare what the command needs, and run it."""
    from utils.cli import platforms  # late: --help needs it not

    machine = platforms.this_machine()
    uv = os.path.join(ROOT, ".tools", "bin", "uv")
    if os.path.exists(uv):
        machine = machine._replace(has_pip=True)
    problem = platforms.problem(machine)
    if problem:
        other = platforms.other_python()
        if other:
            os.execv(other, [other, os.path.abspath(__file__), verb] + arguments)
        return complain(problem, 1)

    from utils.cli import install  # late: an old Python could not read it

    try:
        if needs == "nothing":
            return run(verb, arguments)
        home = install.Home(Path(ROOT))
        install.ensure(home, needs, say)
        python = str(home.python)
        command = [python, os.path.abspath(__file__), INSIDE, verb] + arguments
        sys.stdout.flush()
        os.execve(python, command, install.environment(home))
    except install.SetupError as error:
        return complain(str(error), 1)
    except KeyboardInterrupt:
        return complain("stopped. Nothing is lost: the same command goes on from here.", 130)


def run(verb, arguments):
    """Run a command in this Python; returns its exit status."""
    module = importlib.import_module("utils.cli.commands." + verb.replace("-", "_"))
    return module.main(arguments)


def say(line):
    """A line that is seen at once."""
    print(line, flush=True)


def complain(message, code):
    """Say what is wrong; returns the exit status."""
    sys.stderr.write("course.py: " + message + "\n")
    return code


if __name__ == "__main__":
    try:
        code = main(sys.argv[1:])
        sys.stdout.flush()
        sys.exit(code)
    except KeyboardInterrupt:
        sys.exit(complain("stopped.", 130))
    except BrokenPipeError:
        # Whoever reads, such as head, has enough; what is still buffered has nowhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
