"""What a report fits into: SARIF, a baseline, settings, ignored lines, a page, an exit code."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import nbformat
import pytest

from tests.browser import launch, violations
from utils.audit import __main__ as command
from utils.audit import audit, audit_source, baseline, settings
from utils.audit.page import to_page
from utils.audit.rules import RULES, TARGETS
from utils.audit.sarif import to_sarif

MOVES = "import torch\nx = torch.ones(2).cuda()\ny = torch.ones(3).cuda()\n"
# What this project promises of its SARIF. The published schema of 2.1.0 is not kept here; reports
# of these tests were validated against it by hand.
PROMISED = {
    "required": ["$schema", "version", "runs"],
    "properties": {
        "version": {"const": "2.1.0"},
        "runs": {
            "minItems": 1,
            "items": {
                "required": ["tool", "results"],
                "properties": {
                    "results": {
                        "items": {
                            "additionalProperties": False,
                            "required": ["ruleId", "ruleIndex", "level", "message", "locations"],
                            "properties": {
                                "ruleId": {"type": "string"},
                                "ruleIndex": {"type": "integer", "minimum": 0},
                                "level": {"enum": ["note", "warning", "error"]},
                                "message": {"required": ["text"]},
                                "locations": {"minItems": 1},
                                "partialFingerprints": {
                                    "additionalProperties": {"pattern": "^[0-9a-f]{16}$"}
                                },
                                "suppressions": {
                                    "items": {"properties": {"kind": {"const": "inSource"}}}
                                },
                            },
                        }
                    }
                },
            },
        },
    },
}


def notebook(folder: Path, **options: Any) -> Path:
    cells = [
        nbformat.v4.new_markdown_cell("# A title"),
        nbformat.v4.new_code_cell("import torch\nprint('[{', '}')", id="setup"),
        nbformat.v4.new_code_cell('text = "source"\n\nx = torch.ones(2).cuda()', id="move"),
    ]
    cells[1]["outputs"] = [nbformat.v4.new_output("stream", text="source\n")]
    file = folder / "work.ipynb"
    content = nbformat.v4.new_notebook(cells=cells)
    file.write_text(json.dumps(content, **options))
    return file


def test_sarif_keeps_its_promises(tmp_path: Path) -> None:
    notebook(tmp_path, indent=1)
    (tmp_path / "a.py").write_text(
        MOVES + "z = x.cuda()  # audit: ignore[cuda-move] tested below\n"
    )
    (tmp_path / "b.py").write_text("def broken(:\n")
    data = json.loads(to_sarif(audit(tmp_path)))
    jsonschema.validate(data, PROMISED)
    (run,) = data["runs"]
    silenced = [row for row in run["results"] if "suppressions" in row]
    assert [row["suppressions"][0]["justification"] for row in silenced] == ["tested below"]
    assert len(run["results"]) == 4 and run["invocations"][0]["toolExecutionNotifications"]


@pytest.mark.parametrize("indent", [1, None])
def test_sarif_points_at_the_line_of_a_cell_in_the_notebooks_file(
    tmp_path: Path, indent: int | None
) -> None:
    file = notebook(tmp_path, indent=indent)
    (result,) = json.loads(to_sarif(audit(file)))["runs"][0]["results"]
    (location,) = result["locations"]
    number = location["physicalLocation"]["region"]["startLine"]
    assert "torch.ones(2).cuda()" in file.read_text().splitlines()[number - 1]
    assert location["logicalLocations"][0]["name"] == "cell 2 (id move), line 3"
    assert indent is None or number > 1


def test_a_baseline_knows_its_findings_when_code_moves(tmp_path: Path) -> None:
    source, file = tmp_path / "a.py", tmp_path / "known.json"
    source.write_text(MOVES)
    baseline.write(audit(tmp_path), file)
    source.write_text("# moved\n\n" + MOVES + "y = torch.ones(3).cuda()\n")
    report, hidden, gone = baseline.without_known(audit(tmp_path), file, [tmp_path])
    # The same line once more is a finding of its own.
    assert [item.line for item in report.findings] == [6] and hidden == 2 and not gone
    source.write_text("import torch\n")
    report, hidden, gone = baseline.without_known(audit(tmp_path), file, [tmp_path])
    assert not report.findings and hidden == 0 and len(gone) == 2
    # A part of the tree, such as a file of a commit, is known again and says nothing of others.
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "b.py").write_text(MOVES)
    source.write_text(MOVES)
    baseline.write(audit(tmp_path), file)
    for part in (inner, inner / "b.py"):
        report, hidden, gone = baseline.without_known(audit(part), file, [part])
        assert not report.findings and hidden == 2 and not gone
    file.write_text("{}")
    with pytest.raises(ValueError, match="is no baseline of version 1"):
        baseline.without_known(report, file, [tmp_path])


def test_an_ignored_line_keeps_its_reason() -> None:
    text = "import torch\nx = torch.ones(2).cuda()  # audit: ignore[cuda-move] only in the demo\n"
    report = audit_source(text + "y = torch.ones(2).cuda()  # audit: ignore[pin-memory]\n")
    assert [item.line for item in report.findings] == [3]
    assert [item.ignored for item in report.ignored] == ["only in the demo"]
    assert "1 ignored by comments, 1 with a reason" in repr(report)


def configured(folder: Path, text: str) -> settings.Settings:
    (folder / "pyproject.toml").write_text(f"[tool.trn-audit]\n{text}\n")
    (folder / "inner").mkdir(exist_ok=True)
    return settings.read_settings(folder / "inner")


def test_settings_come_from_the_nearest_pyproject(tmp_path: Path) -> None:
    known = configured(tmp_path, 'target = "xla"\nexclude = ["third_party", "*_test.py"]')
    assert known.target == "xla" and known.fail_on == "error"
    excluded = ("third_party/deep/a.py", "inner/a_test.py", "inner/a.py")
    assert [known.is_excluded(tmp_path / name) for name in excluded] == [True, True, False]
    assert settings.read_settings(tmp_path.parent) == settings.Settings()


@pytest.mark.parametrize(
    ("text", "output"),
    [
        ('colour = "red"', "'colour' is unknown; there are target"),
        ("target = 3", "target is 3; give a text"),
        ('target = "tpu"', "target 'tpu' is none of torchneuron"),
        ('exclude = "a"', "exclude is 'a'; give a list of texts"),
        ("disable = [1]", "disable is"),
        ('disable = ["no-such-rule"]', "disable 'no-such-rule' is none of"),
    ],
)
def test_wrong_settings_are_refused_in_words(tmp_path: Path, text: str, output: str) -> None:
    with pytest.raises(ValueError, match=output):
        configured(tmp_path, text)


def test_the_command_line_wins_and_exit_codes_are_stable(tmp_path: Path, capsys: Any) -> None:
    configured(tmp_path, 'disable = ["cuda-move"]\nfail-on = "never"\nbaseline = "known.json"')
    source, known = tmp_path / "a.py", str(tmp_path / "known.json")
    source.write_text(MOVES + "from torch.cuda.amp import autocast\n")
    assert command.main([str(tmp_path)]) == 2  # the baseline that is named is not there
    assert "known.json" in capsys.readouterr().err
    assert command.main([str(tmp_path), "--write-baseline", known]) == 0
    assert "known.json: 2 files read: 1 warning" in capsys.readouterr().err
    assert command.main([str(tmp_path), "--fail-on", "note"]) == 0
    assert "not shown, because" in capsys.readouterr().err
    source.write_text(source.read_text() + "torch.cuda.synchronize()\n")
    assert command.main([str(tmp_path), "--fail-on", "note"]) == 1
    assert command.main([str(tmp_path)]) == 0  # as the settings say
    other = notebook(tmp_path / "inner", indent=1)
    several = [str(source), str(other), "--format", "sarif", "--fail-on", "error"]
    capsys.readouterr()
    assert command.main(several) == 1
    places = [
        row["locations"][0]["physicalLocation"]
        for row in json.loads(capsys.readouterr().out)["runs"][0]["results"]
    ]
    assert {place["artifactLocation"]["uri"] for place in places} <= {str(source), str(other)}
    assert command.main([str(tmp_path / "none.py")]) == 2
    configured(tmp_path, 'exclude = ["a.py"]')
    assert command.main([str(source)]) == 0  # as a hook gives what the settings leave out


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_page_reads_without_a_server(tmp_path: Path, theme: str) -> None:
    notebook(tmp_path)
    (tmp_path / "a.py").write_text(
        MOVES + "print(x.nonzero())\nz = x.cuda()  # audit: ignore why\n"
    )
    (tmp_path / "b.py").write_text("def broken(:\n")
    file = tmp_path / "report.html"
    file.write_text(to_page(audit(tmp_path)))
    with launch() as browser:
        page = browser.new_page(color_scheme=theme, viewport={"width": 390, "height": 800})
        page.goto(file.as_uri())
        assert violations(page) == set()
        shown = page.locator("tr.error:visible").count()
        page.get_by_label("errors").uncheck()
        assert shown and page.locator("tr.error:visible").count() == 0
        assert page.locator("tr.note:visible, tr.warning:visible").count()
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        page.screenshot(path=tmp_path / "page.png", full_page=True)


def test_every_rule_has_a_page(tmp_path: Path, capsys: Any) -> None:
    assert command.main(["--pages", str(tmp_path)]) == 0
    index = (tmp_path / "index.md").read_text()
    for rule in RULES.values():
        text = (tmp_path / f"{rule.id}.md").read_text()
        assert f"]({rule.id}.md)" in index and rule.source in text and "#! " not in text
        assert all(
            f"| {target} | {rule.severity_on(target) or 'none'} |" in text for target in TARGETS
        )
    assert command.main(["--explain", "cuda-move"]) == 0
    output = capsys.readouterr().out
    assert "x = x.cuda(non_blocking=True)" in output and "02_device_migration" in output
    assert command.main(["--explain", "cuda-mov"]) == 2
    assert "there is no rule 'cuda-mov'; there is cuda-move" in capsys.readouterr().err
