"""The table of symptoms: complete, sourced, and about tools that exist."""

import json
import re

from utils.course.catalog import ROOT
from utils.training import symptoms


def test_every_row_is_filled_and_has_sources() -> None:
    rows = symptoms.symptoms()
    assert len(rows) >= 8
    for row in rows:
        assert all(getattr(row, name) for name in row.__dataclass_fields__), row.key
        assert all("|" not in str(getattr(row, name)) for name in row.__dataclass_fields__)


def test_five_faults_can_be_run() -> None:
    faults = [row.where for row in symptoms.symptoms() if "fault" in row.where]
    assert faults == [f"section 8, fault {number}" for number in range(1, 6)]


def test_the_tables_name_the_tools_of_today() -> None:
    here, neuron = symptoms.Table(), symptoms.Table(neuron=True)
    for table in (here, neuron):
        lines = repr(table).splitlines()
        assert len(lines) == 2 + len(symptoms.symptoms())
        assert len({line.count("|") for line in lines}) == 1
        assert "neuron-profile" not in repr(table)
    assert "`neuron-explorer`" in repr(neuron)


def test_the_places_that_are_named_exist() -> None:
    for row in symptoms.symptoms():
        lesson, section = re.fullmatch(
            r"(?:lesson (\d\d), )?section (\d+)(?:, fault \d)?", row.where
        ).groups()
        (path,) = (ROOT / "notebooks").glob(f"{lesson or '06'}_*.ipynb")
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        text = "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
        assert re.search(rf"^## {section} ", text, re.M), row.where
