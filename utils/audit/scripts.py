"""Shell scripts, Dockerfiles, YAML files, build files and settings of DeepSpeed: their variables,
images, commands and installs, read line by line. Comments are left out.
"""

import re
from collections.abc import Iterator

from utils.audit.requirements import in_command
from utils.audit.rules import LINES, variable_rule

SHELL = (".sh", ".bash", ".slurm", ".sbatch", ".job", ".mk", ".cmake", ".properties")
YAML = (".yml", ".yaml")
# Files by their whole names, and settings of DeepSpeed.
BY_NAME = re.compile(
    r"(Makefile|CMakeLists\.txt|[\w.-]*(ds_|deepspeed|zero[_-]?\d)[\w.-]*\.json)$", re.I
)
# Comments; but Slurm, LSF, PBS and Grid Engine read some.
COMMENT = re.compile(r"(^|\s)#(?!(SBATCH|BSUB|PBS|\$) ).*$")
# NAME=value, export NAME=value, ENV NAME value, -e NAME=value
GIVEN = re.compile(
    r"""(?:^|[\s;&|"'(]|-[ex]\s*|--env[ =])(?:(?:export|ENV|ARG)\s+)?([A-Z][A-Z0-9_]{3,})="""
    r"|^\s*(?:ENV|ARG)\s+([A-Z][A-Z0-9_]{3,})\s"
)
# NAME: value, and name: NAME of a container's variables
IN_YAML = re.compile(r"""^\s*(?:-\s+)?(?:name:\s*)?["']?([A-Z][A-Z0-9_]{3,})["']?\s*(?::|$)""")
TESTED = re.compile(r"\[\[?\s.*\$\{?([A-Z][A-Z0-9_]{3,})")
INSTALL = re.compile(r"\b(pip[\d.]*|conda|mamba)\s+install\b|\$\{?\w*PIP\w*\}?[\"']?\s+install\b")
# DEMO=/opt/bin/inference_demo: a command that is run by "$DEMO" further down
NAMED = re.compile(r"^\s*(?:export\s+)?(\w+)=[\"']?[^\s\"']*$|^\s*(\w+)=[\"'][^\"']*[\"']\s*$")
COMMANDS = {"nxd-inference", "neuron-command", "xla-launch"}
# Python within a script: python -c "...", and what stands between << EOF and EOF
EMBEDDED = re.compile(
    r"""(?:python[\d.]*|\$\{?PY\w*\}?)["']?(?:[ ]+-\w+)*?[ ]+-c[ ]+\\?\n?[ ]*"""
    r"""(?P<quote>["'])(?P<text>.*?)(?<!\\)(?P=quote)"""
    r"""|python[\d.]*["']?[^\n|]*<<-?[ ]*["']?(?P<end>\w+)["']?[^\n]*\n"""
    r"""(?P<here>.*?)\n[ \t]*(?P=end)\b""",
    re.S,
)


def embedded(text: str) -> Iterator[tuple[int, str]]:
    """Python programs within a script, with the number of lines before each.

    >>> list(embedded("ls\\npython -c 'import torch_xla'"))
    [(1, 'import torch_xla')]
    """
    for match in EMBEDDED.finditer(text):
        part = "text" if match["text"] is not None else "here"
        yield text.count("\n", 0, match.start(part)), match[part].replace('\\"', '"')


def is_script(name: str) -> bool:
    """Whether a file is one of them, by its name."""
    return (
        name.endswith((*SHELL, *YAML))
        or name.startswith("Dockerfile")
        or name.lower().endswith(".dockerfile")
        or BY_NAME.match(name) is not None
    )


def in_script(text: str, name: str = "") -> Iterator[tuple[int, str, bool]]:
    """Lines from 1 with the rules they break, and whether that is only optional.

    >>> list(in_script("export XLA_USE_BF16=1\\n# neuron-profile view"))
    [(1, 'xla-env', False)]
    """
    yaml = name.endswith(YAML)
    installs = False
    commands: dict[str, str] = {}
    lines = [
        (pattern, rule) for pattern, rule, needs in LINES if not needs or needs in text.lower()
    ]
    for number, line in enumerate(text.splitlines(), 1):
        line = COMMENT.sub("", line)
        rules = [rule for pattern, rule in lines if pattern.search(line)]
        rules += [commands[one] for one in commands if re.search(rf"\$\{{?{one}\b", line)]
        named = NAMED.match(line)
        if named and COMMANDS & set(rules):
            commands[named[1] or named[2]] = (COMMANDS & set(rules)).pop()
        results = [first or second for first, second in GIVEN.findall(line)] + TESTED.findall(line)
        if yaml:
            results += IN_YAML.findall(line)
        rules += filter(None, map(variable_rule, results))
        rules += in_command(f"pip install {line}" if installs else line)
        last = re.split(r"&&|\|\||;", line.rstrip().rstrip("\\"))
        goes_on = INSTALL.search(last[-1]) is not None or (installs and len(last) == 1)
        installs = line.rstrip().endswith("\\") and goes_on
        for rule in dict.fromkeys(rules):
            yield number, rule, False
