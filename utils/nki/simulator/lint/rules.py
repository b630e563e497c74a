"""The rules of the lint and what one finding says; the table is in
`utils/facts/data/nki_api.yaml`."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from utils.nki.simulator import surface
from utils.nki.simulator.errors import place

CERTAINTIES = ("refused", "different", "deprecated", "doubtful")


@dataclass(frozen=True)
class Rule:
    """Something that Python runs and the compiler may not compile.

    `certainty`: "refused" a page says that it does not compile; "different" compiles and means
    something else; "deprecated" compiles, but not for long; "doubtful" is Python that the language
    guide does not list, or on which the pages and published kernels disagree. `page` is an address.
    """

    id: str
    certainty: str
    says: str
    fix: str
    page: str


RULES: Mapping[str, Rule] = MappingProxyType(
    {
        key: Rule(id=key, **{**entry, "page": surface.BASE + entry["page"]})
        for key, entry in surface.section("lint").items()
    }
)


@dataclass(frozen=True, order=True)
class Finding:
    """One place of a kernel's source. `line` counts from 1, `column` from 1."""

    path: str
    line: int
    column: int
    rule: str
    text: str
    fix: str

    @property
    def about(self) -> Rule:
        return RULES[self.rule]

    def __str__(self) -> str:
        about = {
            "refused": "does not compile",
            "different": "compiles to something else",
            "deprecated": "will not compile for long",
            "doubtful": "may not compile",
        }[self.about.certainty]
        return (
            f"{place(self.path, self.line)}: {about}: {self.text}.\nFix: {self.fix}.\n"
            f"See: {self.about.page}"
        )
