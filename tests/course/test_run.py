"""Notebooks are executed apart, measured and reported; a source changes only when asked."""

import json
import os
from pathlib import Path

import pytest

from tests.labs.lab99 import course as lab99
from utils.cli.commands import run
from utils.course import runner
from utils.course.notebooks import canonical, to_text


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three small notebooks: one that ends, one that fails, one that kills its kernel."""
    cells = [
        lab99.markdown("title", "# 98 · Ending"),
        lab99.code("where", "import os, sys\nprint(sys.executable)\nprint(os.getcwd())"),
        lab99.code("grow", "block = bytearray(300_000_000)\nlen(block)"),
    ]
    lab99.save(tmp_path / "good.ipynb", lab99.notebook("lesson", cells))
    cells = [*cells[:2], lab99.code("divide", "1 / 0"), lab99.code("never", "print('never')")]
    lab99.save(tmp_path / "bad.ipynb", lab99.notebook("lesson", cells))
    cells = [*cells[:1], lab99.code("die", "import os; os._exit(7)")]
    lab99.save(tmp_path / "dead.ipynb", lab99.notebook("lesson", cells))
    return tmp_path


def test_each_run_is_measured_and_failures_name_the_cell(folder: Path, capsys) -> None:
    before = {path.name: path.read_bytes() for path in folder.glob("*.ipynb")}
    out = folder / "out"
    code = run.main(
        [*(str(folder / f"{n}.ipynb") for n in ("good", "bad", "dead")), f"--out={out}"]
    )
    assert code == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["notebook", "seconds", "memory", "MB", "result"]
    assert lines[1].endswith("ok") and float(lines[1].split()[2]) > 300
    assert "failed in cell divide: ZeroDivisionError: division by zero" in lines[2]
    assert "failed" in lines[3] and "DeadKernelError" in lines[3]
    assert {path.name: path.read_bytes() for path in folder.glob("*.ipynb")} == before
    assert (out / "good.ipynb").is_file()


def test_the_kernel_is_this_python_and_works_in_the_notebooks_folder(
    folder: Path, monkeypatch
) -> None:
    other = folder / "elsewhere" / "kernels" / "python3"
    other.mkdir(parents=True)
    spec = {"argv": ["/bin/false", "{connection_file}"], "display_name": "x", "language": "python"}
    (other / "kernel.json").write_text(json.dumps(spec))
    monkeypatch.setenv("JUPYTER_PATH", str(folder / "elsewhere"))
    (done,) = runner.execute_all([(folder / "good.ipynb", folder / "out.ipynb")], 1)
    assert done.ok, done.error
    printed = json.loads((folder / "out.ipynb").read_text())["cells"][1]["outputs"][0]["text"]
    executable, where = "".join(printed).split()
    assert os.path.samefile(executable, os.sys.executable)
    assert where == str(folder)


def test_a_run_never_touches_the_learners_progress() -> None:
    with runner.kernel_environment({}) as environment:
        assert Path(environment["COURSE_PROGRESS"]).parent.is_dir()
    assert not Path(environment["COURSE_PROGRESS"]).parent.exists()


def test_saving_stores_outputs_in_canonical_form_and_then_changes_nothing(
    folder: Path, capsys
) -> None:
    source = folder / "source.ipynb"
    cells = [lab99.markdown("title", "# x"), lab99.code("a", "print(1)\nprint(2)\n3")]
    cells += [lab99.code("b", "4")]
    lab99.save(source, lab99.notebook("lesson", cells))
    assert run.main([str(source), "--save"]) == 0
    saved = source.read_text()
    assert "saved: source.ipynb" in capsys.readouterr().out
    assert "papermill" not in saved and "iopub" not in saved and str(folder) not in saved
    cells = json.loads(saved)["cells"]
    assert [cell["execution_count"] for cell in cells[1:]] == [1, 2]
    assert "".join(cells[1]["outputs"][0]["text"]) == "1\n2\n"
    assert saved.endswith("}\n")
    assert run.main([str(source), "--save"]) == 0
    assert source.read_text() == saved
    assert "unchanged: source.ipynb" in capsys.readouterr().out


def test_nothing_is_saved_when_a_notebook_fails(folder: Path, capsys) -> None:
    before = (folder / "good.ipynb").read_bytes()
    assert run.main([str(folder / "good.ipynb"), str(folder / "bad.ipynb"), "--save"]) == 1
    assert (folder / "good.ipynb").read_bytes() == before
    assert "nothing was saved" in capsys.readouterr().err


def test_a_path_without_notebooks_is_refused(tmp_path: Path, capsys) -> None:
    assert run.main([str(tmp_path)]) == 2
    assert run.main([str(tmp_path / "no.ipynb")]) == 2
    assert "no notebook there" in capsys.readouterr().err


def test_the_canonical_form_drops_what_a_run_leaves_behind() -> None:
    cell = lab99.code(
        "a", ["print(1)\n", "x"], collapsed=True, tags=[], papermill={"status": "done"}
    )
    cell["execution_count"] = 12
    cell["outputs"] = [
        {"output_type": "stream", "name": "stdout", "text": ["1\n"]},
        {"output_type": "stream", "name": "stdout", "text": "2\n"},
        {
            "output_type": "display_data",
            "metadata": {},
            "data": {"application/vnd.jupyter.widget-view+json": {"model_id": "1"}},
        },
        {
            "output_type": "execute_result",
            "execution_count": 12,
            "metadata": {},
            "data": {"text/plain": ["3"]},
        },
    ]
    content = lab99.notebook("lesson", [cell, lab99.code("b", "y")])
    content["metadata"]["widgets"] = {"state": {}}
    content["metadata"]["language_info"] = {"name": "python", "version": "3.11.7"}
    result = canonical(content)
    assert set(result["metadata"]) == {"course", "kernelspec", "language_info"}
    assert result["metadata"]["language_info"] == {"name": "python"}
    first, second = result["cells"]
    assert first["metadata"] == {} and first["source"] == "print(1)\nx"
    assert [output["output_type"] for output in first["outputs"]] == ["stream", "execute_result"]
    assert first["outputs"][0]["text"] == "1\n2\n"
    assert first["execution_count"] == first["outputs"][1]["execution_count"] == 1
    assert second["execution_count"] is None
    assert cell["execution_count"] == 12
    assert to_text(result) == to_text(canonical(json.loads(to_text(result))))
