"""The chips of five vendors side by side, dense rates, from one list: `landscape()`."""

from dataclasses import dataclass

from utils.facts import Figure, figures
from utils.facts.tables import columns, markdown

CHIPS = (
    *("trainium1", "trainium2", "trainium3"),
    *("a100", "h100", "h200", "b200", "b300"),
    *("mi300x", "mi325x", "mi350x", "mi355x"),
    *("gaudi3", "tpu-v5p", "tpu-v6e", "tpu7x"),
)
"""AWS, NVIDIA, AMD, Intel, Google; a chip that the facts know is added here."""

_COLUMNS = (
    ("BF16 [TFLOPS]", "TFLOPS", ("rate.bf16",)),
    ("FP8 [TFLOPS]", "TFLOPS", ("rate.fp8", "rate.mxfp8", "rate.cfp8")),
    ("memory", "", ("hbm.capacity",)),
    ("[TB/s]", "TB/s", ("hbm.bandwidth",)),
    ("links [GB/s]", "GB/s", ("link.bandwidth",)),
    ("power [W]", "W", ("power",)),
)


@dataclass(frozen=True)
class Landscape:
    """Chips as a table: dense peaks, memory in its vendor's unit, links in both directions."""

    chips: tuple[str, ...]

    def rows(self) -> list[tuple[str, ...]]:
        """One row per chip; "-" is what no source of the facts says, "~" marks an estimate."""
        return [(chip, *(_cell(chip, *column[1:]) for column in _COLUMNS)) for chip in self.chips]

    def __repr__(self) -> str:
        return "\n".join(columns([self._head, *self.rows()], indent=""))

    def _repr_markdown_(self) -> str:
        rows = ((*row, _sources(row[0])) for row in self.rows())
        return markdown((*self._head, "sources"), rows, right=tuple(range(1, len(self._head))))

    @property
    def _head(self) -> tuple[str, ...]:
        return ("chip", *(head for head, _, _ in _COLUMNS))


def landscape(*chips: str) -> Landscape:
    """Those chips side by side, by default all of `CHIPS`.

    >>> [(row[0], row[-1]) for row in landscape("h100", "tpu7x").rows()]
    [('h100', '700'), ('tpu7x', '-')]
    """
    return Landscape(chips or CHIPS)


def _figures(chip: str, keys: tuple[str, ...]) -> list[Figure]:
    known = figures(f"{chip}.")
    return [known[f"{chip}.{key}"] for key in keys if f"{chip}.{key}" in known]


def _cell(chip: str, unit: str, keys: tuple[str, ...]) -> str:
    results = [figure for figure in _figures(chip, keys) if figure.value is not None]
    if not results:
        return "-"
    text = f"{results[0].to(unit):,.5g}" if unit else results[0].text
    return ("~" if results[0].status == "third-party-estimate" else "") + text


def _sources(chip: str) -> str:
    quoted = [figure for _, _, keys in _COLUMNS for figure in _figures(chip, keys)]
    return ", ".join(f"[{page}]({url})" for page, url in {f.page: f.source for f in quoted}.items())
