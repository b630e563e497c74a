"""What `--fix` rewrites, what it leaves alone, and that it does both in notebooks too."""

import ast
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import nbformat
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from utils.audit import __main__ as command
from utils.audit import audit_source
from utils.audit.fix import fix_source
from utils.audit.rules import LESSONS, RULES
from utils.course import catalog
from utils.facts.records import content

CASES = content("porting_cases.yaml")
HEAD = "import torch\nimport torch.distributed as dist\n"
# Before, after for torchneuron, after for xla; None: stays as it is.
REWRITES = [
    ("x = torch.ones(2).cuda()", 'x = torch.ones(2).to("neuron")', 'x = torch.ones(2).to("xla")'),
    (
        "x = torch.ones(2).cuda(non_blocking=True)  # why",
        'x = torch.ones(2).to("neuron", non_blocking=True)  # why',
        'x = torch.ones(2).to("xla", non_blocking=True)  # why',
    ),
    ("x = torch.ones(2).cuda(1)", None, None),
    ("x = torch.ones(2, device='cuda')", "x = torch.ones(2, device='neuron')", None),
    ('x = torch.ones(2, device="cuda:3")', 'x = torch.ones(2, device="neuron:3")', None),
    ('d = torch.device(f"cuda:{r}")', 'd = torch.device(f"neuron:{r}")', None),
    (
        'd = torch.device("cuda" if torch.cuda.is_available() else "cpu")',
        'd = torch.device("neuron" if torch.accelerator.is_available() else "cpu")',
        'd = torch.device("xla")',
    ),
    (
        "d = 'cpu'\nk = 'cuda' if 'cuda' in d else 'cpu'\nc = torch.autocast(k)",
        "d = 'cpu'\nk = 'neuron' if 'neuron' in d else 'cpu'\nc = torch.autocast(k)",
        None,
    ),
    ('dist.init_process_group("nccl")', 'dist.init_process_group("neuron")', None),
    ("torch.cuda.synchronize()", "torch.accelerator.synchronize()", None),
    ("torch.cuda.synchronize(device=1)", None, None),
    ("n = torch.cuda.device_count()", "n = torch.accelerator.device_count()", None),
    (
        "with torch.cuda.amp.autocast():\n    y = 1",
        'with torch.autocast("neuron", dtype=torch.bfloat16):\n    y = 1',
        'with torch.autocast("xla", dtype=torch.bfloat16):\n    y = 1',
    ),
    ("with torch.cuda.amp.autocast(False):\n    y = 1", None, None),
    ("torch.manual_seed(3)\ntorch.cuda.manual_seed(3)", "torch.manual_seed(3)", None),
    ("torch.manual_seed(3)\ntorch.cuda.manual_seed(4)", None, None),
    (
        'm = torch.compile(f, backend="inductor")',
        'm = torch.compile(f, backend="neuron")',
        'm = torch.compile(f, backend="openxla")',
    ),
    (
        "o = torch.optim.AdamW(p, lr=1e-3, fused=True)",
        "o = torch.optim.AdamW(p, lr=1e-3)",
        "o = torch.optim.AdamW(p, lr=1e-3)",
    ),
]
# A device and what is asked about it: together, or not at all.
TOGETHER = [
    (
        "if torch.cuda.is_available():\n    d = torch.device('cuda')\n"
        "else:\n    d = torch.device('cpu')",
        "if torch.accelerator.is_available():\n    d = torch.device('neuron')\n"
        "else:\n    d = torch.device('cpu')",
    ),
    (
        "def get_device():\n    if not torch.cuda.is_available():\n        return 'cpu'\n"
        "    return 'cuda'",
        "def get_device():\n    if not torch.accelerator.is_available():\n        return 'cpu'\n"
        "    return 'neuron'",
    ),
    # Nothing says that this is a device.
    ("def f():\n    if not torch.cuda.is_available():\n        return 1\n    return 'cuda'", None),
    (
        "use = torch.cuda.is_available()\nd = torch.device('cuda' if use else 'cpu')",
        "use = torch.accelerator.is_available()\nd = torch.device('neuron' if use else 'cpu')",
    ),
    (
        'backend = "gloo" if not torch.cuda.is_available() else "nccl"\n'
        "dist.init_process_group(backend)",
        'backend = "gloo" if not torch.accelerator.is_available() else "neuron"\n'
        "dist.init_process_group(backend)",
    ),
    # What is left behind the question could not run on Neuron.
    ("if torch.cuda.is_available():\n    s = torch.cuda.Stream()\n    x = x.cuda()", None),
    ("if torch.cuda.is_available() and torch.cuda.is_bf16_supported():\n    x = x.cuda()", None),
    ("if torch.cuda.is_available():\n    torch.cuda.manual_seed(1)", None),
    ("if x.device.type == 'cuda':\n    x = x.cuda()", None),
    (
        "def run(backend='nccl', device='cuda'):\n    assert backend in ('nccl', 'gloo')\n"
        "    if device == 'cuda' or device.startswith('cuda'):\n        print('fast')\n"
        "    return torch.ones(1, device=device)",
        "def run(backend='neuron', device='neuron'):\n    assert backend in ('neuron', 'gloo')\n"
        "    if device == 'neuron' or device.startswith('neuron'):\n        print('fast')\n"
        "    return torch.ones(1, device=device)",
    ),
    (
        "p.add_argument('--device', default='cuda', choices=['cuda', 'cpu'])\n"
        "if args.device == 'cuda' and torch.cuda.is_available():\n    torch.cuda.synchronize()",
        "p.add_argument('--device', default='neuron', choices=['neuron', 'cpu'])\n"
        "if args.device == 'neuron' and torch.accelerator.is_available():\n"
        "    torch.accelerator.synchronize()",
    ),
    (
        "device: Literal['cuda', 'cpu'] = 'cuda'\nmatch device:\n    case 'cuda':\n        pass",
        "device: Literal['neuron', 'cpu'] = 'neuron'\nmatch device:\n    case 'neuron':\n"
        "        pass",
    ),
    (
        "gpu = torch.cuda.is_available()\nif gpu:\n    x.cuda()\n"
        "T = torch.cuda.FloatTensor if gpu else torch.FloatTensor",
        None,
    ),
    ("s = torch.cuda.Stream()\ntorch.cuda.current_stream().wait_stream(s)", None),
    (
        "TYPES = {'cuda': torch.half, 'cpu': torch.float}\nKNOWN = ['cuda', 'cpu']\n"
        "def f(device='cuda'):\n    assert device in KNOWN\n"
        "    return torch.ones(1, dtype=TYPES[device], device=device)",
        "TYPES = {'neuron': torch.half, 'cpu': torch.float}\nKNOWN = ['neuron', 'cpu']\n"
        "def f(device='neuron'):\n    assert device in KNOWN\n"
        "    return torch.ones(1, dtype=TYPES[device], device=device)",
    ),
    ("capturable = ['cuda', 'xpu']\nif x.device.type in capturable:\n    x = x + 1", None),
    # What else is chosen by a device may be for CUDA only.
    (
        "device = 'cuda'\nkind = 'nf4' if device == 'cuda' else None",
        "device = 'neuron'\nkind = 'nf4' if device == 'cuda' else None",
    ),
    ("torch.cuda.reset_peak_memory_stats('cuda')", None),
    # Nothing says that this kind is the device's.
    ("kind = x.kind\nif kind == 'cuda':\n    print(kind)", None),
]
LEGACY = "import torch\nimport torch_xla.core.xla_model as xm\n"


@pytest.mark.parametrize(("before", "native", "xla"), REWRITES)
def test_a_form_is_rewritten_for_its_target(before: str, native: str, xla: str) -> None:
    for target, after in (("torchneuron", native), ("xla", xla)):
        fixed = fix_source(f"{HEAD}r = 0\n{before}\n", target=target)
        if after is None and target == "torchneuron":
            assert fixed.after == fixed.before and not fixed.rewrites
        elif after is not None:
            assert fixed.after.replace("import torch_xla\n", "").endswith(f"r = 0\n{after}\n")
            assert ("import torch_xla\n" in fixed.after) == ('"xla"' in after)


@pytest.mark.parametrize(("before", "after"), TOGETHER)
def test_a_device_and_its_questions_change_together(before: str, after: str | None) -> None:
    head = f"{HEAD}x, p, args = torch.ones(1), None, None\n"
    assert fix_source(f"{head}{before}\n").after == f"{head}{after or before}\n"
    named = fix_source(
        f"{head}{before}\n".replace("import torch\n", "import torch as th\n")
        .replace("torch.", "th.")
        .replace("import th.", "import torch.")
    )
    assert ("accelerator" in named.after) == ("accelerator" in (after or ""))
    cells = [nbformat.v4.new_code_cell(text) for text in (head, before)]
    notebook = json.dumps(nbformat.v4.new_notebook(cells=cells), indent=1)
    assert nbformat.reads(fix_source(notebook, "a.ipynb").after, 4).cells[1].source == (
        after or before
    )


def test_what_is_not_sure_stays() -> None:
    for text in (
        # A decorator runs at the import, on any machine.
        "@torch.autocast('cuda', enabled=False)\ndef f(x):\n    return x\n",
        # The class has a method of this name.
        "class Batch:\n    def cuda(self):\n        return self\ndef f(b):\n    return b.cuda()\n",
    ):
        assert fix_source(HEAD + text).after == HEAD + text
    off = fix_source(f"{HEAD}with torch.autocast('cuda', enabled=False):\n    y = 1\n").after
    assert 'torch.autocast("neuron", enabled=False)' in off
    alone = fix_source("from torch.cuda.amp import autocast\nwith autocast():\n    y = 1\n").after
    assert alone.startswith("import torch\n") and "import autocast" not in alone
    # Imported where it is used, torch and PyTorch/XLA too.
    inside = "def f():\n    import torch_xla.core.xla_model as xm\n    return xm.xla_device()\n"
    assert fix_source("import numpy\n" + inside).after == (
        'import numpy\nimport torch\n\ndef f():\n    return torch.device("neuron")\n'
    )
    text = fix_source(f'{LEGACY}print(f"on {{xm.xla_device()}}")\n').after
    assert text == "import torch\nprint(f\"on {torch.device('neuron')}\")\n"
    # The name may be another thing here, and what prints once has to ask for its rank.
    getter = "import torch\ndef get():\n    import torch_xla.core.xla_model as xm\n    return xm\n"
    assert not fix_source(f"{getter}xm = get()\nd = xm.xla_device()\n").rewrites
    ranks = fix_source(f"{LEGACY}xm.master_print(1)\nrank = xm.get_ordinal()\n").after
    assert "xm.master_print" in ranks
    # A file of which a part works with PyTorch/XLA only stays whole.
    layers = (
        "import neuronx_distributed as nxd\nl = nxd.parallel_layers.ColumnParallelLinear(2, 2)\n"
    )
    assert not fix_source(f"{LEGACY}{layers}x = torch.ones(1).to(xm.xla_device())\n").rewrites
    loop = (
        "import torch_xla.distributed.spmd as xs\nxs.mark_sharding(x, mesh, (0,))\nxm.mark_step()\n"
    )
    assert fix_source(f"{LEGACY}x = torch.ones(1).to(xm.xla_device())\n{loop}").rewrites == ()


def test_what_is_near_a_rewrite_stays() -> None:
    text = (
        f"{LEGACY}import torch_xla.debug.metrics as met\nxm.mark_step()  # the step ends\nx = 1\n"
    )
    after = fix_source(text).after  # the comment on a line of its own; an unused import is not ours
    assert after == "import torch\nimport torch_xla.debug.metrics as met\n# the step ends\nx = 1\n"
    heads = "import os\n\n# XLA\nimport torch_xla.core.xla_model as xm\n\n# torch\nimport torch\n"
    after = fix_source(heads + "x = xm.xla_device()\n").after
    assert after == heads.replace("import torch_xla.core.xla_model as xm\n", "") + (
        'x = torch.device("neuron")\n'
    )
    call = "o = torch.optim.AdamW(\n    p,\n    fused=True,\n)\n"
    assert fix_source(HEAD + call).after == HEAD + "o = torch.optim.AdamW(\n    p,\n)\n"


def test_a_legacy_loop_becomes_native() -> None:
    loop = """\
device = xm.xla_device()
net = torch.nn.Linear(2, 2).to(device)
opt = torch.optim.SGD(net.parameters(), 0.1)
for _ in range(3):
    opt.zero_grad()
    net(torch.ones(1, 2).to(device)).sum().backward()
    xm.optimizer_step(opt, barrier=True)
    xm.mark_step()
"""
    fixed = fix_source(LEGACY + loop)
    assert "torch_xla" not in fixed.after and "xm." not in fixed.after
    assert 'device = torch.device("neuron")' in fixed.after and "    opt.step()\n" in fixed.after
    assert not audit_source(fixed.after).at_least("warning")
    # Where several processes are started, a step also sums gradients: a person decides.
    several = LEGACY.replace("\n", "\nimport torch_xla\n", 1) + loop + "torch_xla.launch(print)\n"
    assert "xm.optimizer_step(opt, barrier=True)" in fix_source(several).after


def test_a_block_that_loses_its_only_statement_still_parses() -> None:
    fixed = fix_source(f"{LEGACY}for i in range(2):\n    if i:\n        xm.mark_step()\n")
    ast.parse(fixed.after)
    kept = fix_source(f"{LEGACY}# first\nxm.mark_step()  # the step ends\n")
    assert "# first" in kept.after and "# the step ends" in kept.after


def holds(text: str, target: str) -> None:
    """What holds for every source."""
    fixed = fix_source(text, target=target)
    before, after = (audit_source(source, target=target) for source in (text, fixed.after))
    ast.parse(fixed.after)
    assert fix_source(fixed.after, target=target).after == fixed.after
    assert re.findall(r"#.*", fixed.after) == re.findall(r"#.*", text)
    if not fixed.rewrites:
        assert fixed.after == text
    assert len(after.at_least("warning")) <= len(before.at_least("warning"))
    if fixed.rewrites:
        assert len(after.at_least("warning")) < len(before.at_least("warning"))
    counts = [Counter(item.rule for item in one.at_least("warning")) for one in (before, after)]
    assert not counts[1] - counts[0], "a rewrite brings a finding of another kind"


PIECES = [before for before, _, _ in REWRITES]
PIECES += [
    'with torch.autocast(\n    device_type="cuda",  # of what\n    dtype=torch.half\n):\n    y = 1',
    "o = torch.optim.AdamW(\n    p,\n    fused=True,  # fast\n)",
    'd = (\n    "cuda"  # there\n    if torch.cuda.is_available()\n    else "cpu"\n)',
    "xm.optimizer_step(\n    o,  # all of it\n)",
    "torch.manual_seed(r)\ntorch.cuda.manual_seed_all(r)  # on all",
]
PIECES += ["xm.mark_step()", "device = xm.xla_device()", "print('cuda')  # a text", "y = x + 1"]
PIECES += ['kind = "nccl" if r else "gloo"', 'names = {"cuda": 1}', "# alone", "x = x.cuda"]


@given(
    st.lists(st.tuples(st.sampled_from(PIECES), st.booleans()), min_size=1, max_size=8),
    st.sampled_from(["torchneuron", "neuron-xla", "xla"]),
)
@settings(max_examples=20, deadline=None)
def test_any_mixture_is_mended_once_and_keeps_its_comments(
    pieces: list[tuple[str, bool]], target: str
) -> None:
    lines = [HEAD + "import torch_xla.core.xla_model as xm\nr, x, p = 0, torch.ones(1), []\n"]
    for number, (piece, inside) in enumerate(pieces):
        inner = "\n    ".join(piece.split("\n"))
        lines.append(
            f"def f{number}(x, p):\n    {inner}\n    return x\n" if inside else piece + "\n"
        )
    holds("".join(lines), target)


@pytest.mark.parametrize("rule", sorted(CASES))
def test_the_cases_of_the_rules_hold_too(rule: str) -> None:
    case = CASES[rule]
    if str(case.get("name", "a.py")).endswith(".py"):
        for text in (case["found"], case["alike"]):
            holds(re.sub(r"\s*#!.*", "", text), "torchneuron")


def test_a_notebook_keeps_its_magics_and_everything_else(tmp_path: Path) -> None:
    cells = [
        nbformat.v4.new_markdown_cell("x.cuda()", id="words"),
        nbformat.v4.new_code_cell("%matplotlib inline\nimport torch\n!nvidia-smi", id="setup"),
        nbformat.v4.new_code_cell("%%time\nfiles = !ls\nx = torch.ones(2).cuda()", id="move"),
        nbformat.v4.new_code_cell("%%bash\necho x.cuda()", id="shell"),
    ]
    text = json.dumps(nbformat.v4.new_notebook(cells=cells), indent=1, ensure_ascii=False) + "\n"
    fixed = fix_source(text, "a.ipynb")
    assert fixed.after == text.replace("torch.ones(2).cuda()", 'torch.ones(2).to(\\"neuron\\")')
    assert [(item.cell, item.line) for item in fixed.rewrites] == [(2, 3)]
    assert fix_source(fixed.after, "a.ipynb").after == fixed.after


def test_an_import_that_another_cell_uses_stays() -> None:
    first = "import torch_xla.core.xla_model as xm\nxm.mark_step()"
    cells = [nbformat.v4.new_code_cell(text) for text in (first, "xm.rendezvous('end')")]
    text = json.dumps(nbformat.v4.new_notebook(cells=cells), indent=1) + "\n"
    fixed = fix_source(text, "a.ipynb")
    assert fixed.rewrites and "as xm" in fixed.after and "mark_step" not in fixed.after


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_lines_end_as_before(tmp_path: Path, end: str, mark: str) -> None:
    file = tmp_path / "train.py"
    text = f"{mark}import torch{end}x = torch.ones(2).cuda(){end}"
    file.write_bytes(text.encode())
    file.chmod(0o755)
    assert command.main([str(file), "--fix", "--write"]) == 0
    assert file.read_bytes().decode() == text.replace(".cuda()", '.to("neuron")')
    assert file.stat().st_mode & 0o777 == 0o755


def test_what_is_no_python_is_listed_and_what_is_disabled_is_left(
    tmp_path: Path, capsys: Any
) -> None:
    (tmp_path / "run.sh").write_text("#!/bin/bash\nneuron_parallel_compile python train.py\n")
    (tmp_path / "requirements.txt").write_text("flash-attn\n")
    (tmp_path / "train.py").write_text("import torch\nx = torch.ones(2).cuda()\n")
    (tmp_path / "pyproject.toml").write_text('[tool.trn-audit]\ndisable = ["cuda-move"]\n')
    assert command.main([str(tmp_path), "--fix", "--write"]) == 1
    output = capsys.readouterr().out
    assert "neuron-command" in output and "flash-attn" in output and "0 rewrites" in output
    assert ".cuda()" in (tmp_path / "train.py").read_text()


def test_the_command_shows_before_it_writes(tmp_path: Path, capsys: Any) -> None:
    file = tmp_path / "train.py"
    file.write_text("import torch\nx = torch.ones(2).cuda()\nprint(x.nonzero())\n")
    before = file.read_text()
    assert command.main([str(tmp_path), "--fix"]) == 1 and file.read_text() == before
    output = capsys.readouterr().out
    assert '+x = torch.ones(2).to("neuron")' in output and "not written: add --write" in output
    assert "data-dependent-shape" in output
    assert "notebooks/" not in output.split("To do by hand")[0]
    assert command.main([str(tmp_path), "--fix", "--write"]) == 0  # one warning remains
    assert command.main([str(tmp_path), "--fix", "--fail-on", "warning"]) == 1
    assert 'to("neuron")' in file.read_text()
    assert command.main([str(tmp_path), "--write"]) == 2
    assert command.main([str(tmp_path), "--fix", "--target", "jax"]) == 2
    assert "not for 'jax'" in capsys.readouterr().err


def test_what_the_rewrites_have_made_untrue_comes_first(tmp_path: Path, capsys: Any) -> None:
    file = tmp_path / "train.py"
    text = "import torch\ndevice = 'cuda'\nif device == 'cuda':\n    s = torch.cuda.Stream()\n"
    file.write_text(f"{text}x = torch.ones(1, device=device)\n")
    for options in ([], ["--write"]):
        assert command.main([str(tmp_path), "--fix", *options]) == 1
        first = capsys.readouterr().out.split("To do by hand:\n")[1].splitlines()
        place = f"{file}:3: if device == 'cuda':"
        assert first[0].startswith("  cuda-query (error)")
        assert f"    {place} (never true now: the device is another one)" in first


def test_a_magic_is_left_and_a_compact_notebook_stays_compact() -> None:
    cells = [nbformat.v4.new_code_cell("import torch"), nbformat.v4.new_code_cell("%time x.cuda()")]
    notebook = nbformat.v4.new_notebook(cells=cells)
    assert not fix_source(json.dumps(notebook), "a.ipynb").rewrites
    notebook.cells[1].source = "x = x.cuda()"
    text = json.dumps(notebook, separators=(",", ":"))
    assert fix_source(text, "a.ipynb").after == text.replace("cuda()", 'to(\\"neuron\\")')


def test_lessons_have_the_sections_that_rules_lead_to() -> None:
    assert LESSONS.keys() <= RULES.keys()
    for place in set(LESSONS.values()):
        path, _, anchor = place.partition("#")
        cells = nbformat.read(catalog.ROOT / path, 4).cells
        lines = [line for cell in cells for line in cell.source.splitlines()]
        heads = [line.lstrip("# ").replace(" ", "-") for line in lines if line.startswith("#")]
        assert anchor in heads, place


def test_what_cannot_be_written_is_told_and_the_rest_is_written(
    tmp_path: Path, capsys: Any
) -> None:
    text = "import torch\nx = torch.ones(2).cuda()\n"
    for name in ("a.py", "b.py", "c.py"):
        (tmp_path / name).write_text(text)
    (tmp_path / "a.py").chmod(0o444)
    (tmp_path / "b.py").write_bytes(b"# coding: latin-1\n# \xe9\n" + text.encode())
    (tmp_path / "d.py").write_text("def (:\n")
    assert command.main([str(tmp_path), "--fix", "--write"]) == 2
    output = capsys.readouterr()
    assert "a.py: not written: the file is read-only" in output.err
    assert "b.py: not rewritten: it is no UTF-8" in output.err
    assert "d.py:1: no Python" in output.out and "1 rewrite in 1 file, written" in output.out
    assert [(tmp_path / f"{name}.py").read_text("latin-1").count(".cuda()") for name in "abc"] == [
        1,
        1,
        0,
    ]
    empty = tmp_path / "empty"
    empty.mkdir()
    assert command.main([str(empty), "--fix"]) == 2
    (empty / "round.py").symlink_to("round.py")
    assert command.main([str(empty / "round.py"), "--fix"]) == 2
    assert command.main([str(tmp_path), "--fix", "--format", "json"]) == 2


def test_the_list_has_lines_as_they_are_and_what_now_decides(tmp_path: Path, capsys: Any) -> None:
    file = tmp_path / "train.py"
    legacy = "import torch_xla.core.xla_model as xm\nxm.mark_step()\n"
    file.write_text(
        f"import torch\n{legacy}x = torch.ones(2).cuda()\nif x.is_cuda:\n    print(x.nonzero())\n"
    )
    for options, line in (([], 6), (["--write"], 4)):
        # A warning remains, which is no error; what waits to be written is 1.
        assert command.main([str(tmp_path), "--fix", *options]) == (0 if options else 1)
        to_do = capsys.readouterr().out.split("To do by hand:")[1]
        assert f"train.py:{line}: print(x.nonzero())" in to_do
        assert f"train.py:{line - 1}: if x.is_cuda: (False here, and decides)" in to_do
        assert "data-dependent-shape (warning)" in to_do and "cuda-query (note)" in to_do
