"""The porting audit: what it finds, what it must leave alone, and that nothing stops it."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from textwrap import dedent

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from utils.audit import RULES, Finding, Report, audit, audit_source
from utils.audit.audit_report import table, to_json
from utils.audit.audited_files import parse, read
from utils.audit.rules import KINDS, SEVERITIES
from utils.audit.sarif import to_sarif
from utils.facts.records import content

ROOT = Path(__file__).parents[2]
SOURCES = content("porting_cases.yaml")
CASES = {rule: source["found"] for rule, source in SOURCES.items()}
ALIKE = {rule: source["alike"] for rule, source in SOURCES.items()}


def findings(source: str, name: str = "source.py", target: str = "xla") -> list[tuple[int, str]]:
    """What is found for XLA, the target that most of these sources were written for."""
    report = audit_source(dedent(source), name, target)
    assert report.broken == ()
    return [(finding.line, finding.rule) for finding in report.findings]


def expected(source: str) -> list[tuple[int, str]]:
    return [
        (number, rule)
        for number, line in enumerate(dedent(source).split("\n"), 1)
        if "#!" in line
        for rule in line.split("#!")[1].split()
    ]


def test_every_rule_has_sources_that_break_it_and_sources_that_only_look_so() -> None:
    assert set(SOURCES) == set(RULES)
    allowed = {"found", "alike", "target", "name"}
    assert all({"found", "alike"} <= set(source) <= allowed for source in SOURCES.values())


def findings_of(rule: str, source: str) -> list[tuple[int, str]]:
    about = SOURCES[rule]
    return findings(source, about.get("name", "source.py"), about.get("target", "xla"))


@pytest.mark.parametrize("rule", CASES)
def test_what_is_there_is_found_and_nothing_else(rule: str) -> None:
    assert sorted(findings_of(rule, CASES[rule])) == sorted(expected(CASES[rule]))
    assert rule in {item for _, item in findings_of(rule, CASES[rule])}


@pytest.mark.parametrize("rule", ALIKE)
def test_what_only_looks_alike_is_left_alone(rule: str) -> None:
    assert findings_of(rule, ALIKE[rule]) == []


# A training script as people write it, and the same as a notebook.

SCRIPT = """
import argparse
import torch
import torch.distributed as dist
from torch.cuda.amp import autocast, GradScaler  #! cuda-autocast grad-scaler
from torch.utils.data import DataLoader

parser = argparse.ArgumentParser()
parser.add_argument("--device", default="cuda", help="cuda, cuda:1 or cpu")  #! cuda-device
args = parser.parse_args()
dist.init_process_group(backend="nccl")  #! nccl
torch.backends.cudnn.benchmark = True  #! backend-flags
model = torch.nn.Linear(8, 2).cuda()  #! cuda-move
model = torch.compile(model)  #! compile-default
loader = DataLoader([], pin_memory=True)  #! pinned-loader
scaler = GradScaler()  #! grad-scaler
optimizer = torch.optim.AdamW(model.parameters())
for step, (x, y) in enumerate(loader):
    x, y = x.cuda(non_blocking=True), y.cuda()  #! cuda-move cuda-move
    with autocast():  #! cuda-autocast
        loss = torch.nn.functional.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    if loss > 100:  #! tensor-control-flow
        break
    print(loss.item())  #! item-in-loop
    torch.cuda.synchronize()  #! cuda-api
"""


def test_a_training_script() -> None:
    assert sorted(findings(SCRIPT)) == sorted(expected(SCRIPT))


def test_a_scaler_that_another_file_made() -> None:
    source = """
    import torch
    def step(self, loss, optimizer, loss_scaler):
        self.scaler.scale(loss).backward()  #! grad-scaler
        loss_scaler.unscale_(optimizer)  #! grad-scaler
        loss_scaler(loss, optimizer)  #! grad-scaler
        self.features.scale(loss)
        self.scaler.transform(loss)
    """
    assert findings(source) == expected(source)


CLASSES = """
    import torch
    from ._ext import nms as _backend
    class Nms(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return _backend.run(x)
    def plain(x):
        return x
"""


def test_what_stands_on_a_compiled_module_of_the_tree(tmp_path: Path) -> None:
    (tmp_path / "ops.py").write_text(dedent(CLASSES))
    use = """
    import torch
    from .ops import Nms, plain
    kept = Nms.apply(plain(x))
    """
    (tmp_path / "use.py").write_text(dedent(use))
    result = [(one.line, one.rule) for one in audit(tmp_path).findings if one.path == "use.py"]
    assert result == [(3, "cpp-extension"), (4, "cpp-extension")]


def notebook(*sources: str) -> str:
    cells = [{"cell_type": "markdown", "source": "`x.cuda()` in prose"}]
    cells += [
        {"cell_type": "code", "source": source.splitlines(keepends=True)} for source in sources
    ]
    return json.dumps({"cells": cells, "nbformat": 4, "nbformat_minor": 5, "metadata": {}})


def places(report: Report) -> list[tuple[int | None, int, str]]:
    return [(finding.cell, finding.line, finding.rule) for finding in report.findings]


def test_a_notebook_is_one_program_and_findings_name_cell_and_line() -> None:
    report = audit_source(
        notebook(
            "!pip install -q torch flash-attn\n%matplotlib inline\nimport torch",
            "# nothing here",
            "%%time\nx = torch.ones(2)\nx = x.cuda()",
            "%%bash\npip install bitsandbytes\necho x.cuda()",
            "%time y = x.cuda()\nfiles = !ls\n%env CUDA_VISIBLE_DEVICES=0\nx?",
            "%%html\n<b>torch.cuda.synchronize()</b>",
            '"""\n!pip install apex\n"""\nif x is not None:\n    !pip install triton\n',
            "%%writefile train.py\nimport torch\ntorch.cuda.synchronize()",
        ),
        "a.ipynb",
    )
    assert report.broken == ()
    assert places(report) == [
        (1, 1, "flash-attn"),
        (3, 3, "cuda-move"),
        (4, 2, "bitsandbytes"),
        (5, 1, "cuda-move"),
        (5, 3, "cuda-env"),
        (7, 5, "triton"),
        (8, 3, "cuda-api"),
    ]
    assert report.findings[1].text == "x = x.cuda()"


def test_cells_that_write_files_or_run_commands_are_read_as_what_they_write() -> None:
    report = audit_source(
        notebook(
            "%%writefile code/requirements.txt\noptimum-neuron==0.0.28\ntorch-neuronx==2.1.*\n",
            "%%writefile -a Dockerfile\nFROM nvidia/cuda:12\nENV XLA_USE_BF16=1",
            "%%writefile run.sh\n# neuron-profile\nneuron-profile view",
            "%%writefile notes.md\nneuron-profile view",
            "!neuron-profile capture -n f.neff\n!NEURON_FRAMEWORK_DEBUG=1 python train.py",
            "%env NEURON_FRAMEWORK_DEBUG 1",
            "image = f'763104351884.dkr/huggingface-pytorch-inference-neuronx:{tag}'\n"
            "llm = get_huggingface_llm_image_uri('huggingface-neuronx', version='0.0.24')",
            "import torch\nimport torch.neuron\nnet = torch.jit.load('net.pt')\n"
            "print('a neuron-like text about training on neuronx images')",
        ),
        "a.ipynb",
    )
    assert report.broken == ()
    assert places(report) == [
        (1, 2, "optimum-neuron"),
        (1, 3, "neuron-pin"),
        (2, 2, "gpu-image"),
        (2, 3, "xla-env"),
        (3, 3, "neuron-command"),
        (5, 1, "neuron-command"),
        (5, 2, "xla-env"),
        (6, 1, "xla-env"),
        (7, 1, "neuron-image"),
        (7, 2, "neuron-image"),
        (8, 2, "torch-neuron"),
        (8, 3, "neuron-trace"),
    ]


def test_the_scale_of_a_gradient_scaler_is_read_at_each_step() -> None:
    source = (
        "import torch\n"
        "def train(model, loader, scaler, losses):\n"
        "    for batch in loader:\n"
        "        model(batch)\n"
        "        losses.append(scaler.get_scale())\n"
        "        scale = scaler.state_dict()['scale']\n"
        "    state = scaler.state_dict()\n"
    )
    assert [
        item.line
        for item in audit_source(source).findings
        if "read" in item.rule or "item" in item.rule
    ] == [5, 6]


def test_a_broken_cell_does_not_hide_the_others() -> None:
    report = audit_source(notebook("import torch", "x = (", "torch.cuda.synchronize()"), "a.ipynb")
    assert places(report) == [(3, 1, "cuda-api")]
    assert [item.reason.split(":")[0] for item in report.broken] == ["code cell 2"]


def test_an_old_notebook_has_its_cells_in_a_worksheet() -> None:
    cell = {"cell_type": "code", "input": ["import torch\n", "torch.cuda.synchronize()"]}
    text = json.dumps({"worksheets": [{"cells": [cell]}]})
    assert places(audit_source(text, "a.ipynb")) == [(1, 2, "cuda-api")]


# Requirements

REQUIREMENTS = """
# flash-attn is in a comment
--extra-index-url https://example.com/whl/cu121  #! cuda-build
torch==2.1.0+cu121  #! cuda-build
flash_attn >= 2.5 ; sys_platform == "linux"  #! flash-attn
xformers[all]~=0.0.23 --hash=sha256:00  #! xformers
git+https://github.com/NVIDIA/apex.git@master  #! apex
fast @ https://example.com/flash_attn-2.5-cp311-linux_x86_64.whl
nvidia-cublas-cu12==12.1.3.1  #! cuda-build
cupy-cuda12x  #! cuda-package
tensorflow-gpu>=2.0  #! cuda-package
deepspeed\\
==0.14  #! deepspeed
-r other.txt
tritonclient
torch
cudatext-plugin
"""


def test_requirements_for_pip() -> None:
    text = "\n".join(line.split("#!")[0].rstrip() for line in REQUIREMENTS.split("\n"))
    wanted = expected(REQUIREMENTS)
    wanted[wanted.index((13, "deepspeed"))] = (12, "deepspeed")  # at the line where it begins
    assert (
        findings(text, "requirements/train.txt") == wanted == findings(text, "requirements-dev.in")
    )


def test_pyproject_conda_and_setup_cfg() -> None:
    project = """
        [project]
        dependencies = ["torch>=2",
          "flash-attn>=2"]
        [project.optional-dependencies]
        fast = ["xformers"]
        [tool.poetry.dependencies]
        bitsandbytes = "^0.40"
    """
    report = audit_source(dedent(project), "pyproject.toml")
    assert [(finding.line, finding.rule, finding.severity) for finding in report.findings] == [
        (4, "flash-attn", "error"),
        (6, "xformers", "note"),
        (8, "bitsandbytes", "error"),
    ]
    conda = "dependencies:\n  - python=3.11\n  - pytorch-cuda=12.1\n  - pip:\n    - deepspeed\n"
    assert findings(conda, "environment.yml") == [(3, "cuda-build"), (5, "deepspeed")]
    config = "[options]\ninstall_requires =\n    torch\n    apex\n"
    assert findings(config, "setup.cfg") == [(4, "apex")]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pyproject.toml", "[project"),
        ("environment.yml", "a: [b"),
        ("setup.cfg", "no section"),
        ("a.ipynb", "{"),
        ("a.ipynb", "[]"),
        ("a.ipynb", '{"cells": 3}'),
        ("a.ipynb", '{"cells": [' + "[" * 100_000),
        ("a.py", "print 'cuda' 1"),
        ("a.py", "x = 'cuda'\0"),
        ("a.py", "x = " + "(" * 300 + ")" * 300 + " # cuda"),
        ("a.py", "torch.cuda" + "\n  x"),
    ],
)
def test_what_cannot_be_read_is_reported(name: str, text: str) -> None:
    report = audit_source(text, name)
    assert report.findings == ()
    assert len(report.broken) == 1 and report.broken[0].reason
    assert report.broken[0].reason in repr(report).replace("\n    ", " ")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pyproject.toml", "project = 3\ndependency-groups = {a = [{include-group = 'b'}]}"),
        ("environment.yml", "dependencies: {a: 1}"),
        ("environment.yml", "3"),
        ("a.ipynb", '{"cells": [3, {"cell_type": "code"}, {"cell_type": "code", "source": 3}]}'),
        ("requirements.txt", "===\n-e\n!!\n@\n"),
        ("a.py", ""),
        ("a.py", "\ufeffimport torch"),
        ("a.py", "x = " + " + ".join(["'cuda'"] * 900)),
    ],
)
def test_odd_but_readable(name: str, text: str) -> None:
    report = audit_source(text, name)
    assert (report.findings, report.broken) == ((), ())


# Trees


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_suffix(".py").write_text(text, encoding="utf-8")
    return folder


MOVE = "import torch\nx = torch.ones(1).cuda()\n"


def test_a_tree_is_read_in_order_without_the_folders_of_tools(tmp_path: Path) -> None:
    write(tmp_path, b=MOVE, a__z=MOVE, a__b=MOVE)
    for skipped in (".git", ".venv", "node_modules", "__pycache__", "build/lib", "x.egg-info"):
        write(tmp_path / skipped, c=MOVE)
    write(tmp_path / "lib" / "site-packages", c=MOVE)
    (tmp_path / "a" / "kernel.cu").write_text("__global__ void f() {}\n")
    (tmp_path / "notes.txt").write_text("flash-attn")
    report = audit(tmp_path)
    assert [(finding.path, finding.rule) for finding in report.findings] == [
        ("a/b.py", "cuda-move"),
        ("a/kernel.cu", "cuda-extension"),
        ("a/z.py", "cuda-move"),
        ("b.py", "cuda-move"),
    ]
    assert report.files == 4
    assert audit(tmp_path) == report == audit(str(tmp_path))


def test_nothing_that_is_read_is_run(tmp_path: Path) -> None:
    write(tmp_path, a="open('ran', 'w')\nraise SystemExit('cuda')", conftest="import a")
    before = set(sys.modules)
    assert audit(tmp_path).files == 2
    assert not (tmp_path / "ran").exists() and not Path("ran").exists()
    assert not {"a", "conftest"} & (set(sys.modules) - before)


def test_links_that_lead_back_are_followed_once(tmp_path: Path) -> None:
    write(tmp_path / "real", a=MOVE)
    (tmp_path / "real" / "again").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "real" / "lost.py").symlink_to(tmp_path / "nowhere.py")
    (tmp_path / "real" / "itself.py").symlink_to("itself.py")
    report = audit(tmp_path)
    assert [finding.path for finding in report.findings] == ["real/a.py"]
    assert [item.path for item in report.broken] == ["real/itself.py", "real/lost.py"]


def test_encodings_sizes_and_rights(tmp_path: Path) -> None:
    latin = "# -*- coding: latin-1 -*-\nname = 'é'; import torch; x = torch.ones(1).cuda()\n"
    (tmp_path / "latin.py").write_bytes(latin.encode("latin-1"))
    (tmp_path / "wrong.py").write_bytes(b"name = '\xe9 cuda'\n")
    (tmp_path / "unknown.py").write_bytes(b"# coding: nothing-like-it\n")
    (tmp_path / "large.py").write_text("x = 1  # cuda\n" * 200_000)
    (tmp_path / "windows.py").write_bytes(MOVE.replace("\n", "\r\n").encode())
    (tmp_path / "folder.py").mkdir()
    report = audit(tmp_path)
    assert [(finding.path, finding.line, finding.column) for finding in report.findings] == [
        ("latin.py", 2, 45),
        ("windows.py", 2, 19),
    ]
    assert [item.path for item in report.broken] == ["large.py", "unknown.py", "wrong.py"]
    assert "not read: 2800000 bytes" in report.broken[0].reason


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_a_file_without_the_right_to_read_is_reported(tmp_path: Path) -> None:
    write(tmp_path, a=MOVE)
    (tmp_path / "a.py").chmod(0)
    assert [item.path for item in audit(tmp_path).broken] == ["a.py"]


def test_a_package_of_the_project_is_not_the_one_of_that_name(tmp_path: Path) -> None:
    write(tmp_path, train="import apex\nimport triton\nimport xformers\n", apex="x = 1")
    (tmp_path / "triton").mkdir()
    (tmp_path / "triton" / "__init__.py").touch()
    inner = tmp_path / "lmdeploy" / "pytorch" / "models"  # no __init__.py above its files
    inner.mkdir(parents=True)
    (inner / "llama.py").write_text("import torch\nfrom lmdeploy.messages import Policy\n")
    assert [finding.rule for finding in audit(tmp_path).findings] == ["xformers"]


def test_lines_and_columns_in_long_expressions() -> None:
    text = (
        "import torch\n"
        "é = 'ü'; x = torch.ones(1); y = x.cuda()\n"
        "z = (\n"
        "    torch.ones(1)\n"
        "    .cuda()\n"
        "    .sum()\n"
        "    .to(\n"
        "        'cuda',\n"
        "    )\n"
        ")\n"
    )
    report = audit_source(text)
    assert [(finding.line, finding.column, finding.rule) for finding in report.findings] == [
        (2, 35, "cuda-move"),
        (5, 6, "cuda-move"),
        (8, 9, "cuda-device"),
    ]


def test_a_comment_silences_a_line_or_one_rule_of_it() -> None:
    text = """
        import torch
        x = torch.ones(1).cuda()  # audit: ignore
        y = torch.ones(1).cuda()  # audit: ignore[cuda-move]
        z = torch.ones(1).cuda()  # audit: ignore[nccl, cuda-device] #! cuda-move
        torch.ones(
            1, device="cuda"
        )  # audit: ignore[cuda-device] #! nothing
    """
    assert findings(text) == [(5, "cuda-move"), (7, "cuda-device")]


def test_lower_severity_where_the_code_can_do_without() -> None:
    text = """
        try:
            import flash_attn
        except ImportError:
            flash_attn = None
        from importlib.util import find_spec
        if find_spec("xformers"):
            import xformers
    """
    report = audit_source(dedent(text))
    assert {finding.severity for finding in report.findings} == {"note"}
    assert report.clean() and not report.clean("note")


def test_autocast_for_cuda_raises_with_bfloat16_only() -> None:
    text = "import torch\ntorch.autocast('cuda')\ntorch.autocast('cuda', dtype=torch.bfloat16)"
    assert [item.severity for item in audit_source(text, target="xla").findings] == [
        "warning",
        "error",
    ]
    assert {item.severity for item in audit_source(text).findings} == {"warning"}


def test_boxes_of_a_model_are_tensors_where_arrays_are_about_as_well() -> None:
    source = """
        import numpy as np
        import torch
        from model import suppress
        def detect(images, model, names):
            for image in images:
                boxes = suppress(model(torch.from_numpy(image)))
                for found in boxes:
                    found[:, :4] = found[:, :4].round()
                    for *corners, score, kind in reversed(found):
                        label = f"{names[int(kind)]} {score:.2f}"  #! item-in-loop item-in-loop
        """
    assert findings(source) == expected(source)


def test_autocast_that_is_chosen_by_the_version_is_found_where_it_is_used() -> None:
    source = """
        import functools
        import torch
        if torch.__version__ > "2":
            autocast = functools.partial(torch.autocast, device_type="cuda")  #! cuda-device
        else:
            autocast = torch.cuda.amp.autocast  #! cuda-autocast
        @autocast(enabled=True)  #! cuda-autocast
        def encode(x):
            with autocast():  #! cuda-autocast
                return x
        """
    assert findings(source) == expected(source)


def test_what_is_chosen_by_asking_for_cuda_is_no_error() -> None:
    text = """
        import torch
        import torch.distributed as dist
        dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    """
    [finding] = audit_source(dedent(text)).findings
    assert (finding.rule, finding.severity) == ("nccl", "warning")
    assert finding.note == "only where CUDA is there"


# Reports


def sample() -> Report:
    return audit_source(SCRIPT, "train <1>.py", "xla")


def test_a_report_counts_and_filters() -> None:
    report = sample()
    assert sum(report.counts.values()) == len(report.findings)
    assert list(report.counts) == ["error", "warning", "note"]
    assert not report.clean() and audit_source("x = 1").clean("note")
    assert len(report.at_least("note")) > len(report.at_least("error")) > 0
    assert report.findings[0].about is RULES["cuda-autocast"]
    with pytest.raises(ValueError, match="none of note, warning, error"):
        report.clean("fatal")


def test_the_table_fits_and_says_what_to_write_instead() -> None:
    text = table(sample())
    assert max(map(len, text.splitlines())) <= 100
    for rule in {finding.rule for finding in sample().findings}:
        assert f"{rule} ({RULES[rule].severity}, {RULES[rule].kind})" in text
    assert text.splitlines()[0] == "train <1>.py"
    assert text.splitlines()[-1] == "1 file read: 7 errors, 4 warnings, 4 notes"
    assert repr(audit_source("x = 1")) == "1 file read: nothing found"


def test_of_many_notes_that_say_the_same_a_table_writes_the_first_ones() -> None:
    body = "".join(f"    tl.store(x, {number})\n" for number in range(9))
    source = f"import triton\nimport triton.language as tl\n@triton.jit\ndef f(x):\n{body}"
    report = audit_source(source)
    assert len(report.findings) == 3 + 9
    shown = table(report)
    assert shown.count("tl.store") == 4 and "5 more like it, the last at 13:5" in shown


def test_html_is_escaped() -> None:
    html = audit_source("import torch\nx = torch.ones(1 < 2).cuda()", "<b>.py")._repr_html_()
    assert "<b>.py" not in html and "&lt;b&gt;.py" in html and "1 &lt; 2" in html
    assert html.startswith("<table><caption") and 'scope="col"' in html


def test_json_says_everything() -> None:
    report = sample()
    data = json.loads(to_json(report))
    named = ["version", "root", "target", "files", "counts", "findings", "ignored", "broken"]
    assert list(data) == named
    for entry, item in zip(data["findings"], report.findings, strict=True):
        assert entry["rule"] == item.rule and entry["happens"] == item.about.happens
        fields = ("rule", "severity", "path", "line", "column", "text", "cell", "note")
        assert Finding(**{name: entry[name] for name in fields}) == item


def test_sarif_has_what_its_schema_asks_for() -> None:
    data = json.loads(to_sarif(sample()))
    assert data["version"] == "2.1.0" and data["$schema"].endswith("sarif-2.1.0.json")
    [run] = data["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == list(RULES)
    for result, item in zip(run["results"], sample().findings, strict=True):
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"] == item.rule
        assert result["level"] in ("error", "warning", "note") and result["message"]["text"]
        place = result["locations"][0]["physicalLocation"]
        assert place["artifactLocation"]["uri"] == "train%20%3C1%3E.py"
        assert place["region"] == {"startLine": item.line, "startColumn": item.column}
    cells = audit_source(notebook("import torch\ntorch.cuda.synchronize()"), "a.ipynb")
    [result] = json.loads(to_sarif(cells))["runs"][0]["results"]
    assert "code cell 1, line 2" in result["message"]["text"]


def test_rules_are_complete() -> None:
    for rule in RULES.values():
        assert rule.severity in SEVERITIES and rule.kind in KINDS
        assert rule.source.startswith(("https://", "local check: "))
        assert all((rule.title, rule.happens, rule.xla, rule.torchneuron))
        assert rule.severity != "error" or rule.kind == "loud"


def test_a_thousand_files_by_two_processes(tmp_path: Path) -> None:
    for number in range(1000):
        write(tmp_path / str(number // 100), **{f"m{number:03}": SCRIPT})
    start = time.monotonic()
    report = audit(tmp_path, processes=2, target="xla")
    print(f"1,000 files of {SCRIPT.count(chr(10))} lines: {time.monotonic() - start:.1f} s")
    assert report.files == 1000
    assert len(report.findings) == 1000 * len(expected(SCRIPT))
    assert [finding.place for finding in report.findings] == sorted(
        finding.place for finding in report.findings
    )


# The command line


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "utils.audit", *arguments], cwd=ROOT, capture_output=True, text=True
    )


def test_the_command_line(tmp_path: Path) -> None:
    write(tmp_path, a=MOVE, b="x = (")
    done = run(str(tmp_path))
    assert done.returncode == 1 and "cuda-move" in done.stdout and not done.stderr
    assert "2 files read: 1 error, 1 not readable in whole or in part" in done.stdout
    assert json.loads(run(str(tmp_path), "--format", "json").stdout)["counts"]["error"] == 1
    assert json.loads(run(str(tmp_path), "--format=sarif").stdout)["version"] == "2.1.0"
    assert run(str(tmp_path), "--fail-on", "never").returncode == 0
    write(tmp_path, a="import torch\ntorch.cuda.manual_seed(0)")
    codes = [run(str(tmp_path), "--fail-on", level).returncode for level in reversed(SEVERITIES)]
    assert codes == [0, 1, 1]


def test_a_reader_that_stops_early_is_no_error(tmp_path: Path) -> None:
    write(tmp_path, **{f"m{number}": SCRIPT for number in range(60)})
    command = f"{sys.executable} -m utils.audit {tmp_path} --fail-on never | head -n 1"
    done = subprocess.run(command, shell=True, cwd=ROOT, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("m0.py\n", "")


def test_the_command_line_says_when_there_is_nothing_to_read(tmp_path: Path) -> None:
    done = run(str(tmp_path / "absent"))
    assert done.returncode == 2 and "no such file or folder" in done.stderr
    done = run(str(tmp_path))
    assert done.returncode == 2 and "no Python file" in done.stderr
    assert run(str(tmp_path), "--format", "xml").returncode == 2


# Nothing stops it


@settings(max_examples=150, deadline=None)
@given(st.text(), st.sampled_from(["a.py", "a.ipynb", "requirements.txt", "pyproject.toml"]))
def test_any_text_gives_a_report(text: str, name: str) -> None:
    for source in (text, f"import torch\n{text}\nx.cuda()"):
        report = audit_source(source, name)
        assert table(report) and json.loads(to_json(report)) and json.loads(to_sarif(report))


ALL = dedent(SCRIPT) + "".join(map(dedent, [*CASES.values(), *ALIKE.values()]))
PIECES = ALL.split()


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_any_change_of_a_source_gives_a_report(data: st.DataObject) -> None:
    source = dedent(data.draw(st.sampled_from([SCRIPT, *CASES.values(), *ALIKE.values()])))
    lines = source.split("\n")
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(lines) - 1))
        words = lines[place].split(" ")
        word = data.draw(st.integers(0, len(words) - 1))
        words[word] = data.draw(st.sampled_from(PIECES))
        lines[place] = " ".join(words)
    report = audit_source("\n".join(lines))
    assert table(report)


def test_work_grows_in_step_with_the_source() -> None:
    def visits(times: int) -> int:
        return read(parse(dedent(SCRIPT) * times), frozenset()).visits

    assert visits(40) <= 4.1 * visits(10)


def test_long_chains_end() -> None:
    flags = "".join(f"a{n + 1} = a{n} and b or a{n} and c\n" for n in range(60))
    sums = "".join(f"t{n + 1} = t{n} * t{n} + t{n}\n" for n in range(60))
    chain = "x" + ".relu().sum()[0]" * 60
    text = f"import torch\na0 = torch.cuda.is_available()\n{flags}if a60:\n    x.cuda()\n"
    text += f"t0 = torch.relu(x)\n{sums}if {chain} > t60:\n    y = t60[t60 > 0]\n"
    places = [
        (2, "cuda-fallback"),
        (64, "cuda-move"),
        (126, "tensor-control-flow"),
        (127, "boolean-mask"),
    ]
    assert findings(text) == places


# Public repositories that nobody here wrote. Their code is not kept here: COURSE_AUDIT_REPOS names
# a folder that holds checkouts under the names in repositories.json, at the commits given there.
# What is to be found there was listed by a person who read every line that speaks of CUDA.

REPOSITORIES = json.loads((ROOT / "tests" / "audit" / "repositories.json").read_text())


@pytest.mark.parametrize("wanted", REPOSITORIES, ids=lambda item: item["repository"])
def test_a_public_repository(wanted: dict) -> None:
    folder = Path(os.environ.get("COURSE_AUDIT_REPOS", "")) / wanted["folder"]
    if not os.environ.get("COURSE_AUDIT_REPOS") or not folder.is_dir():
        pytest.skip(f"COURSE_AUDIT_REPOS holds no checkout of {wanted['repository']}")
    report = audit(folder)
    assert report.broken == ()
    results = {(item.path, item.line, item.rule) for item in report.findings}
    missed = {tuple(item) for item in wanted["cuda_only"]} - results
    false = {tuple(false_alarm) for false_alarm in wanted["false_alarms"]} & results
    print(f"{folder.name}: {len(results)} places, {len(missed)} missed, {len(false)} false alarms")
    assert missed == set()
    assert len(false) <= len(results) / 10
    counts = {rule: 0 for rule in wanted["counts"]}
    for finding in report.findings:
        counts[finding.rule] = counts.get(finding.rule, 0) + 1
    assert (counts, report.files) == (wanted["counts"], wanted["files"])


def test_a_line_that_is_no_python_hides_no_other() -> None:
    head, moved = "import torch\nx = torch.ones(2)\n", "x = x.cuda()\n"
    report = audit_source(f"{head}{moved}y = 1 2\n{moved}")
    assert [item.line for item in report.findings] == [3, 5]
    assert [(one.line, one.reason.endswith("without this line")) for one in report.broken] == [
        (4, True)
    ]
    many = audit_source(head + moved + "y = 1 2\n" * 9)
    assert not many.findings and len(many.broken) == 1
