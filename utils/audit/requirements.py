"""Which requirements bind a project to CUDA: requirements files, pyproject.toml, conda, setup."""

import configparser
import re
import tomllib
from collections.abc import Iterator
from typing import Any

import yaml
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from utils.audit.rules import FAMILIES, REQUIREMENTS

BUILD = re.compile(r"(\+|%2B|[/_-])cu\d{2,3}\b", re.I)
# torch-neuronx up to 2.9 is the library built on XLA; TorchNeuron begins with 2.13.
OLDER = re.compile(r"(==|<=|~=|<|===)\s*(1\.\d+|2\.\d\b|2\.1[0-2]\b)")
OPTION = re.compile(r"\s--?(hash|global-option|config-settings|index|extra|find)\S*.*$")
FILES = re.compile(r"([\w.-]*requirements[\w.-]*|[\w.-]*constraints[\w.-]*)\.(txt|in)$", re.I)
CONDA = re.compile(r"(environment|conda|env)[\w.-]*\.ya?ml$", re.I)


def is_requirements(name: str, folder: str) -> bool:
    """Requirements files by their name, or any .txt and .in in a folder called requirements."""
    return bool(FILES.match(name)) or (folder == "requirements" and name.endswith((".txt", ".in")))


def rule_of(text: str) -> str:
    """The rule that a requirement such as "flash-attn>=2.5" breaks; "" for one that ports.

    >>> rule_of("torch-neuronx==2.9.*"), rule_of("torch-neuronx==2.14.3.0.*")
    ('neuron-pin', '')
    >>> rule_of("torch==2.1.0+cu121"), rule_of("torch>=2"), rule_of("cupy-cuda12x")
    ('cuda-build', '', 'cuda-package')
    """
    text = text.strip()
    name = _name(text)
    if name == "torch-neuronx":
        return "neuron-pin" if OLDER.search(text) else ""
    if name == "optimum" and "neuron" in text:
        return "optimum-neuron"
    if name in REQUIREMENTS:
        return REQUIREMENTS[name]
    for pattern, rule in FAMILIES:
        if pattern.match(name):
            return rule
    return "cuda-build" if BUILD.search(text) else ""


def _name(text: str) -> str:
    try:
        return canonicalize_name(Requirement(text).name)
    except InvalidRequirement:
        pass
    url = re.search(r"(?:git|https?|ssh)\S*/([\w.+%-]+?)(?:\.git)?(?:@[^/\s]*)?/?(?:#\S*)?$", text)
    if url:
        wheel = re.match(r"([\w.]+?)-\d\S*\.(whl|tar\.gz|zip)$", url.group(1))
        name = wheel.group(1) if wheel else url.group(1)
        return canonicalize_name({"flash-attention": "flash-attn"}.get(name, name))
    plain = re.match(r"[A-Za-z0-9][\w.-]*", text)
    return canonicalize_name(plain.group()) if plain else ""


Found = Iterator[tuple[int, str, bool]]  # line from 1, rule, only an optional extra


def in_text(text: str) -> Found:
    """A requirements file for pip."""
    for number, line in enumerate(text.splitlines(), 1):
        yield from ((number, rule, False) for rule in in_line(line))


def in_line(line: str) -> list[str]:
    """One line of a requirements file, or one word of a pip command."""
    line = re.sub(r"(^|\s)#.*$", "", line).strip().rstrip("\\").strip()
    if not line:
        return []
    if line.startswith("-"):
        index = re.match(r"(-i|-f|--(extra-)?index-url|--find-links)\b", line)
        if index:
            return ["cuda-build"] if BUILD.search(line) else []
        editable = re.match(r"(-e|--editable)[ =]+(\S+)", line)
        return [rule for rule in [rule_of(editable.group(2)) if editable else ""] if rule]
    rule = rule_of(OPTION.sub("", " " + line))
    return [rule] if rule else []


def in_command(line: str) -> list[str]:
    """The rules broken by `pip install ...` or `conda install ...` in a shell line."""
    results: list[str] = []
    for part in re.split(r"&&|\|\||;", line):
        results += _in_one_command(part)
    return list(dict.fromkeys(results))


def _in_one_command(line: str) -> list[str]:
    results: list[str] = []
    match = re.search(
        r"(?:\b(?:pip[\d.]*|conda|mamba)|\$\{?\w*PIP\w*\}?[\"']?)\s+install\s+(.*)", line
    )
    if match:
        words = re.split(r"\s+", re.split(r"[&|]", match.group(1))[0].strip())
        for index, word in enumerate(words):
            word = word.strip("'\"")
            if words[index - 1] in ("-r", "--requirement", "-c") and index:
                continue
            if index and words[index - 1] in ("--index-url", "--extra-index-url", "-f", "-i"):
                results += ["cuda-build"] if BUILD.search(word) else []
            elif word.startswith("--") and BUILD.search(word):
                results.append("cuda-build")
            elif word and not word.startswith("-"):
                results += [rule for rule in [rule_of(word)] if rule]
    return results


def in_toml(text: str) -> Found:
    """pyproject.toml and Pipfile. Raises ValueError for what is no TOML."""
    data = tomllib.loads(text)
    project = _table(data.get("project"))
    needed = list(_strings(project.get("dependencies")))
    needed += _strings(_table(data.get("build-system")).get("requires"))
    poetry = _table(_table(data.get("tool")).get("poetry"))
    needed += _table(poetry.get("dependencies"))
    needed += _table(data.get("packages"))  # Pipfile
    extra: list[str] = []
    for table in (project.get("optional-dependencies"), data.get("dependency-groups")):
        for group in _table(table).values():
            extra += _strings(group)
    for group in _table(poetry.get("group")).values():
        extra += _table(_table(group).get("dependencies"))
    yield from _locate(text, needed, False)
    yield from _locate(text, extra, True)
    for number, line in enumerate(text.splitlines(), 1):
        if re.match(r"\s*(url|find-links|extra-index-url|\{\s*index)\b", line) and BUILD.search(
            line
        ):
            yield number, "cuda-build", False


def in_conda(text: str) -> Found:
    """A conda environment. Raises ValueError for what is no YAML."""
    try:
        data = yaml.safe_load(text)
    except yaml.YAMLError as problem:
        raise ValueError(f"no YAML: {str(problem).splitlines()[0]}") from None
    needed: list[str] = []
    entries = _table(data).get("dependencies")
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, str):
            needed.append(entry.split("::")[-1])
        elif isinstance(entry, dict):
            for group in entry.values():
                needed += _strings(group)
    yield from _locate(text, needed, False)
    for number, line in enumerate(text.splitlines(), 1):
        if re.match(r"\s*-\s+nvidia(/\S*)?\s*$", line):
            yield number, "cuda-build", False  # a channel


def in_setup_cfg(text: str) -> Found:
    """setup.cfg. Raises ValueError for what is none."""
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read_string(text)
    except configparser.Error as problem:
        raise ValueError(str(problem).splitlines()[0]) from None
    needed = parser.get("options", "install_requires", fallback="").splitlines()
    yield from _locate(text, needed, False)
    if parser.has_section("options.extras_require"):
        extra = [value for _, value in parser.items("options.extras_require")]
        yield from _locate(text, "\n".join(extra).splitlines(), True)


def _table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _strings(value: Any) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _locate(text: str, needed: list[str], extra: bool) -> Found:
    """Rules with the line in which the requirement is written."""
    lines = text.splitlines()
    for item in needed:
        rule = rule_of(item)
        if rule:
            written = item.strip()
            places = [number for number, line in enumerate(lines, 1) if written in line]
            yield (places[0] if places else 1), rule, extra
