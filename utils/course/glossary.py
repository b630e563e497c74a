"""The terms of the course, each explained in a sentence or two: `glossary.yaml`."""

from functools import cache
from pathlib import Path

from utils.facts.records import read_as, read_yaml

FILE = Path(__file__).with_name("glossary.yaml")


@cache
def glossary() -> dict[str, str]:
    """{term: what it means}, in the order of the file.

    >>> glossary()["NEFF"].split(":")[0]
    'Neuron Executable File Format'
    """
    return read_as(dict[str, str], read_yaml(FILE), FILE.name)
