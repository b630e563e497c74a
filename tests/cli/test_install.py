"""The set-up: which machine may, what is installed when, what survives an interruption, what
undoes it."""

import ast
import json
import os
import queue
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from traitlets.utils.importstring import import_item

import course
from utils.cli import builds, install, installers, platforms, server, standins
from utils.cli.commands import clean, kernel, setup, start
from utils.cli.commands import torch as torch_command
from utils.cli.home import Home, Record, SetupError, environment, read_record, write_record

ROOT = Path(__file__).resolve().parents[2]

# --- which machine

GOOD = platforms.Machine("Linux", "x86_64", (2, 36), "CPython", (3, 11), False, True)
REFUSED = [
    ({"system": "Darwin", "glibc": (0, 0)}, "macOS on x86_64", "SageMaker Studio"),
    ({"system": "Windows", "processor": "AMD64", "glibc": (0, 0)}, "Windows", "wsl --install"),
    ({"system": "CYGWIN_NT-10.0", "glibc": (0, 0)}, "Windows", "wsl --install"),
    ({"system": "FreeBSD"}, "FreeBSD", "container"),
    ({"system": ""}, "an unknown system", "container"),
    ({"processor": "riscv64"}, "Linux on riscv64", "x86-64 machine"),
    ({"processor": "aarch64", "glibc": (2, 17)}, "glibc 2.17", "Debian 12"),
    ({"processor": "x86_64 with a 32-bit Python"}, "32-bit", "x86-64 machine"),
    ({"glibc": (0, 0)}, "without glibc", "Debian 12"),
    ({"glibc": (2, 27)}, "glibc 2.27", "Debian 12"),
    ({"python": (3, 10)}, "CPython 3.10", "python3.12"),
    ({"python": (3, 6)}, "CPython 3.6", "python3.12"),
    ({"python": (3, 14)}, "CPython 3.14", "python3.12"),
    ({"implementation": "PyPy"}, "PyPy 3.11", "python3.12"),
    ({"python": (3, 13), "free_threaded": True}, "free-threaded", "python3.12"),
    ({"has_pip": False}, "has none", "apt-get install python3-pip"),
]


@pytest.mark.parametrize("minor", [11, 12, 13])
def test_linux_on_x86_64_with_a_fitting_python_may(minor):
    assert platforms.problem(GOOD._replace(python=(3, minor), glibc=(2, 28))) == ""


@pytest.mark.parametrize(("system", "processor"), [("Linux", "aarch64"), ("Darwin", "arm64")])
def test_machines_without_torch_xla_may_too(system, processor):
    glibc = (2, 28) if system == "Linux" else (0, 0)
    machine = GOOD._replace(system=system, processor=processor, glibc=glibc)
    assert platforms.problem(machine) == ""
    assert "CPython 3.10" in platforms.problem(machine._replace(python=(3, 10)))


@pytest.mark.parametrize(("change", "expected", "way"), REFUSED, ids=[r[1] for r in REFUSED])
def test_every_other_machine_gets_one_message_with_a_way(change, expected, way):
    message = platforms.problem(GOOD._replace(**change))
    assert expected in message.splitlines()[0]
    assert way in message and len(message.splitlines()) <= 6


def test_this_machine_may():
    machine = platforms.this_machine()
    assert platforms.problem(machine._replace(has_pip=True)) == ""
    assert machine.python == sys.version_info[:2] and machine.glibc > (2, 27)


@pytest.mark.parametrize("path", ["course.py", "utils/cli/platforms.py", "utils/__init__.py"])
def test_any_python_from_3_6_can_read_it(path):
    ast.parse((ROOT / path).read_text(), feature_version=(3, 6))


def test_another_python_is_taken_silently(tmp_path, monkeypatch):
    """The first on the PATH that fits; here one that is no Python at all comes before it."""
    for name, body in [("python3.13", "exit 1"), ("python3.12", "exit 0")]:
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert platforms.other_python() == str(tmp_path / "python3.12")
    old = GOOD._replace(python=(3, 9))
    monkeypatch.setattr(platforms, "this_machine", lambda: old)
    started = []
    monkeypatch.setattr(os, "execv", lambda *given: started.append(given) or sys.exit(0))
    with pytest.raises(SystemExit):
        course.main(["start", "--no-browser"])
    python = str(tmp_path / "python3.12")
    assert started == [(python, [python, str(ROOT / "course.py"), "start", "--no-browser"])]


def test_without_another_python_the_message_is_all(monkeypatch, capsys):
    monkeypatch.setattr(platforms, "this_machine", lambda: GOOD._replace(python=(3, 9)))
    monkeypatch.setattr(platforms, "other_python", lambda: "")
    assert course.main(["start"]) == 1
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("course.py: This is CPython 3.9.")


# --- commands


def test_every_command_is_listed_with_what_it_needs():
    commands = course.read_commands()
    assert {"start", "setup", "torch", "kernel", "clean", "lock"} <= set(commands)
    for verb, (line, needs) in commands.items():
        tree = ast.parse(
            (ROOT / "utils" / "cli" / "commands" / f"{verb.replace('-', '_')}.py").read_text()
        )
        assert ast.get_docstring(tree).startswith(line) and 20 < len(line) <= 100, verb
        assert needs in ("nothing", "learner", "everything"), verb
        assert any(isinstance(n, ast.FunctionDef) and n.name == "main" for n in tree.body), verb
    assert commands["start"][1] == "learner" and commands["clean"][1] == "nothing"


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"], ["help"]])
def test_usage(arguments, capsys):
    assert course.main(arguments) == 0
    out = capsys.readouterr().out
    assert all(f"\n  {verb} " in out for verb in course.read_commands())


def test_an_unknown_command_says_what_is_allowed(capsys):
    assert course.main(["strat"]) == 2
    err = capsys.readouterr().err
    assert "no command 'strat'" in err and "\n  start " in err


# --- builds of torch


@pytest.mark.parametrize(
    "trace",
    ["dev/nvidia0", "dev/nvidiactl", "proc/driver/nvidia", "dev/neuron0"]
    + ["usr/lib/wsl/lib/libcuda.so.1", "usr/lib/wsl/drivers/nv/libcuda.so.1.1"],
)
def test_a_driver_is_noticed(tmp_path, trace):
    (tmp_path / trace).parent.mkdir(parents=True)
    (tmp_path / trace).touch()
    assert builds.driver(tmp_path) == str(tmp_path / trace)


def test_wsl_without_nvidia_is_no_driver(tmp_path, monkeypatch):
    def no_library(name):
        raise OSError(name)

    monkeypatch.setattr(builds.ctypes, "CDLL", no_library)
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev" / "dxg").touch()
    assert builds.driver(tmp_path) == ""
    monkeypatch.setattr(builds.ctypes, "CDLL", lambda name: name)
    assert builds.driver(tmp_path) == "libcuda.so.1"


# --- the record


def foreign_venvs(root):
    folder = root / ".venv"
    yield "without a mark", lambda: folder.mkdir()
    yield "a broken mark", lambda: (folder / "trainium-course.json").write_text("{")
    yield "another mark", lambda: (folder / "trainium-course.json").write_text('{"a": 1}')
    yield "a dangling link", lambda: (folder.rename(root / "x"), folder.symlink_to("nowhere"))


def test_an_environment_that_is_not_ours_is_never_touched(tmp_path, monkeypatch):
    monkeypatch.setattr(clean, "ROOT", tmp_path)
    monkeypatch.setattr(setup, "ROOT", tmp_path)
    monkeypatch.setattr(torch_command, "ROOT", tmp_path)
    monkeypatch.setattr(builds, "driver", lambda: "")
    for _, make in foreign_venvs(tmp_path):
        make()
        before = sorted(tmp_path.rglob("*"))
        for main in (
            lambda: clean.main([]),
            lambda: setup.main([]),
            lambda: torch_command.main([]),
        ):
            with pytest.raises(SetupError, match="did not make it"):
                main()
        assert sorted(tmp_path.rglob("*")) == before


def test_the_record_survives(tmp_path):
    home = Home(tmp_path)
    home.venv.mkdir()
    record = write_record(
        home, Record("full", "3.12", True), stand_ins={"a": "b"}, complete={"x": "y"}
    )
    assert read_record(home) == record == Record("full", "3.12", True, {"x": "y"}, {"a": "b"})
    assert [p.name for p in home.venv.iterdir()] == ["trainium-course.json"]


def test_what_the_course_starts_is_shielded(tmp_path, monkeypatch):
    for name in ("PYTHONDONTWRITEBYTECODE", "PYTHONPATH", "PYTHONHOME", "UV_SYSTEM_PYTHON"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("UV_INDEX_URL", "kept")
    monkeypatch.delenv("PJRT_DEVICE", raising=False)
    monkeypatch.setenv("PATH", f"/usr/bin:{tmp_path}/.venv/bin")
    env = environment(Home(tmp_path))
    assert not {"PYTHONDONTWRITEBYTECODE", "PYTHONPATH", "PYTHONHOME", "UV_SYSTEM_PYTHON"} & set(
        env
    )
    assert env["PYTHONNOUSERSITE"] == env["JUPYTER_PLATFORM_DIRS"] == "1"
    assert env["PJRT_DEVICE"] == "CPU" and env["UV_INDEX_URL"] == "kept"
    assert env["PATH"] == f"{tmp_path}/.venv/bin:/usr/bin"
    monkeypatch.setenv("PJRT_DEVICE", "NEURON")
    assert environment(Home(tmp_path))["PJRT_DEVICE"] == "NEURON"


# --- the set-up, with a uv that only keeps a list of what is installed

FAKE_UV = """#!{python}
import os, re, sys
from pathlib import Path
root, words = Path({root!r}), sys.argv[1:]
if words == ["--version"]:
    sys.exit(print("uv 0.13.8"))
with open(root / "calls", "a") as log:
    print(" ".join(words), file=log)
fails = (root / "fails").read_text() if (root / "fails").exists() else ""
if fails and fails in " ".join(words):
    sys.exit("cannot reach the network")
site = root / f".venv/lib/python3.{{sys.version_info.minor}}/site-packages"
if words[0] == "venv":
    (root / ".venv/bin").mkdir()
    (root / ".venv/bin/python").symlink_to(sys.executable)
    site.mkdir(parents=True)
elif words[:2] == ["pip", "install"]:
    if "--requirement" in words:
        text = Path(words[words.index("--requirement") + 1]).read_text()
    else:
        text = words[-1] + "+cpu"
    wanted = [site / (n.replace("-", "_") + "-" + v + ".dist-info")
              for n, v in re.findall(r"^([a-z][^=]*)==(\\S+)", text, re.M)]
    missing = [path for path in wanted if not path.exists()]
    if "--dry-run" in words:
        print("Would install" if missing else "Would make no changes", file=sys.stderr)
    else:
        for path in missing:
            path.mkdir()
elif words[:2] == ["pip", "uninstall"]:
    for name in words[4:]:
        for path in site.glob(name.replace("-", "_") + "-*.dist-info"):
            path.rmdir()
"""
LEARNER = "# top\ntorch==2.9.1 \\\n    --hash=sha256:0\nnvidia-nccl-cu12==2\ntriton==3\nnumpy==2\n"
STAND_IN = "nvidia/nccl/lib/libnccl.so.2"


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A course whose uv installs folders, on a machine without a driver where torch always
    loads."""
    (tmp_path / ".tools" / "bin").mkdir(parents=True)
    uv = tmp_path / ".tools" / "bin" / "uv"
    uv.write_text(FAKE_UV.format(python=sys.executable, root=str(tmp_path)))
    uv.chmod(0o755)
    (tmp_path / "pyproject.toml").write_text('[tool.uv]\nrequired-version = "==0.13.8"\n')
    (tmp_path / "requirements.lock").write_text(LEARNER)
    (tmp_path / "requirements-dev.lock").write_text(LEARNER + "pytest==9\n")
    files = {STAND_IN: b"stand-in"}
    monkeypatch.setattr(standins, "cuda", lambda site: {} if (site / STAND_IN).exists() else files)
    monkeypatch.setattr(builds, "driver", lambda: "")
    monkeypatch.setattr(install.Steps, "python_runs", lambda self, code: True)
    return Home(tmp_path)


@pytest.fixture
def messages():
    return []


def calls(home):
    """The commands that uv was given since the last question."""
    log = home.root / "calls"
    text = log.read_text() if log.exists() else ""
    log.unlink(missing_ok=True)
    audit = [line for line in text.splitlines() if "--dry-run" in line]
    return ["audit" if x in audit else " ".join(x.split()[:2]) for x in text.splitlines()]


def installed(home):
    (site,) = home.venv.glob("lib/python3.*/site-packages")
    return {path.name.split("-")[0] for path in site.glob("*.dist-info")}


def ensure(home, messages, needs="learner", **options):
    return install.ensure(home, needs, messages.append, **options)


def site_of(home):
    return home.site(f"3.{sys.version_info.minor}")


def test_a_fresh_start_then_an_audit_then_more(home, messages):
    record = ensure(home, messages)
    assert calls(home) == ["venv --quiet", "pip install"]
    assert installed(home) == {"torch", "numpy"}
    assert (site_of(home) / STAND_IN).read_bytes() == b"stand-in"
    assert record == read_record(home) and not record.busy and list(record.complete) == ["learner"]
    assert (
        messages[0].startswith("Installing torch") and messages[-1] == "The environment is ready."
    )
    messages.clear()
    assert ensure(home, messages) == record
    assert (calls(home), messages) == (["audit"], [])
    ensure(home, messages, "everything")
    assert calls(home) == ["pip install"] and "pytest" in installed(home)
    assert messages == [messages[0], "The environment is ready."]
    assert f"({install.DOWNLOAD_MB['tests']} MB to download, once)" in messages[0]
    messages.clear()
    ensure(home, messages)
    assert (calls(home), messages) == (["audit"], []) and "pytest" in installed(home)


def test_a_package_that_was_removed_comes_back(home, messages):
    ensure(home, messages)
    next(site_of(home).glob("numpy-*")).rmdir()
    calls(home), messages.clear()
    ensure(home, messages)
    assert calls(home) == ["audit", "pip install"] and "numpy" in installed(home) and messages == []


def test_a_new_lock_is_installed(home, messages):
    ensure(home, messages)
    (home.root / "requirements.lock").write_text(LEARNER + "pandas==3\n")
    ensure(home, messages)
    assert "pandas" in installed(home) and "Bringing the environment up to date." in messages


def test_what_was_interrupted_while_it_wrote_is_made_again(home, messages, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(installers.Uv, "install", interrupt)
        ensure(home, messages)
    assert read_record(home).busy
    (site_of(home) / "half.py").touch()
    calls(home)
    record = ensure(home, messages)
    assert calls(home) == ["venv --quiet", "pip install"]
    assert not (site_of(home) / "half.py").exists() and record.complete and not record.busy


def test_an_interruption_between_folder_and_environment_leaves_a_marked_folder(home, messages):
    (home.root / "fails").write_text("venv")
    with pytest.raises(SetupError, match="could not make the environment"):
        ensure(home, messages)
    (home.root / "fails").unlink()
    assert ensure(home, messages).complete


def test_a_failed_download_says_so_and_the_next_call_goes_on(home, messages):
    (home.root / "fails").write_text("pip install")
    with pytest.raises(
        SetupError, match="could not install the packages. uv says:\n  cannot reach"
    ):
        ensure(home, messages)
    assert not read_record(home).busy
    (home.root / "fails").unlink()
    calls(home)
    ensure(home, messages)
    assert calls(home) == ["pip install"]


def test_another_python_makes_it_again_and_the_choice_stays(home, messages):
    ensure(home, messages, choice="full")
    home.python.unlink()
    home.python.symlink_to("/nowhere/python3.10")
    messages.clear()
    assert ensure(home, messages).choice == "full"
    assert messages[0].startswith("Making the environment again")
    assert "triton" in installed(home)


def test_where_torch_xla_has_no_build_all_else_is_installed(home, messages, monkeypatch):
    monkeypatch.setattr(install, "has_xla", lambda: False)
    tried = []
    monkeypatch.setattr(install.Steps, "python_runs", lambda self, code: not tried.append(code))
    record = ensure(home, messages)
    assert tried == [install.TRIAL_OF_TORCH]
    assert (
        messages[0]
        == "Installing torch and JupyterLab (300 MB to download, once, less what is here already)."
    )
    assert record.stand_ins == {} and ensure(home, messages) == record
    assert {"torch", "numpy"} <= installed(home)  # uv reads the markers of the others


def test_full_and_back(home, messages):
    ensure(home, messages)
    record = ensure(home, messages, choice="full")
    assert installed(home) == {"torch", "numpy", "triton", "nvidia_nccl_cu12"}
    assert not (site_of(home) / STAND_IN).exists() and record.stand_ins == {}
    assert ensure(home, messages).choice == "full"
    record = ensure(home, messages, choice="slim")
    assert installed(home) == {"torch", "numpy"} and (site_of(home) / STAND_IN).exists()
    assert list(record.stand_ins) == [STAND_IN]


def test_the_real_library_over_a_stand_in_stays(home, messages):
    ensure(home, messages)
    (site_of(home) / STAND_IN).write_bytes(b"real")
    assert ensure(home, messages, choice="full").stand_ins == {}
    assert (site_of(home) / STAND_IN).read_bytes() == b"real"


def test_the_official_build_and_back(home, messages):
    ensure(home, messages)
    ensure(home, messages, choice="cpu")
    assert any(site_of(home).glob("torch-2.9.1+cpu.dist-info"))
    assert not (site_of(home) / STAND_IN).exists()
    calls(home)
    ensure(home, messages)
    assert calls(home) == ["audit"]


def test_the_official_build_out_of_reach_changes_nothing(home, messages):
    before = ensure(home, messages)
    (home.root / "fails").write_text("--torch-backend cpu")
    with pytest.raises(SetupError, match="(?s)official CPU build.*the environment is as it was"):
        ensure(home, messages, choice="cpu")
    assert read_record(home) == before and installed(home) == {"torch", "numpy"}
    calls(home)
    assert ensure(home, messages) == before and calls(home) == ["audit"]


def test_with_a_driver_everything_is_installed(home, messages, monkeypatch):
    monkeypatch.setattr(builds, "driver", lambda: "/dev/neuron0")
    record = ensure(home, messages)
    assert "triton" in installed(home) and record.stand_ins == {}
    assert [line for line in messages if "/dev/neuron0" in line] == [messages[0]]


def test_a_driver_that_comes_later_takes_the_stand_ins_away(home, messages, monkeypatch):
    ensure(home, messages)
    monkeypatch.setattr(builds, "driver", lambda: "/dev/nvidiactl")
    ensure(home, messages)
    assert "triton" in installed(home) and not (site_of(home) / STAND_IN).exists()


def test_where_torch_does_not_load_slim_it_gets_its_libraries(home, messages, monkeypatch):
    def only_full(self, code):
        return code != install.TRIAL or "triton" in installed(self.home)

    monkeypatch.setattr(install.Steps, "python_runs", only_full)
    assert ensure(home, messages).choice == "full"
    assert "torch does not load without its GPU libraries here." in messages
    monkeypatch.setattr(install.Steps, "python_runs", lambda self, code: code != install.TRIAL)
    with pytest.raises(SetupError, match="installed but do not load"):
        ensure(home, messages, recheck=True)


def test_a_missing_libpython_gets_its_stand_in(home, messages, monkeypatch):
    monkeypatch.setattr(install.Steps, "python_runs", lambda self, code: "libpython" not in code)
    name = f"torch_xla/lib/libpython3.{sys.version_info.minor}.so.1.0"
    assert set(ensure(home, messages).stand_ins) == {STAND_IN, name}
    record = ensure(home, messages, choice="full")
    assert set(record.stand_ins) == {name} and (site_of(home) / name).exists()


def test_a_full_disk_is_told_before_anything_is_fetched(home, messages, monkeypatch):
    usage = type(install.shutil.disk_usage("/"))
    monkeypatch.setattr(install.shutil, "disk_usage", lambda path: usage(1, 1, 10**8))
    with pytest.raises(SetupError, match="has 100 MB free"):
        ensure(home, messages)
    assert calls(home) == ["venv --quiet"]


def test_two_at_once_wait_for_each_other(home):
    text = queue.Queue()
    with install.alone(home, print):
        other = threading.Thread(target=install.ensure, args=(home, "learner", text.put))
        other.start()
        first = text.get(timeout=60)
        assert first == "Another set-up is running in this folder; waiting until it ends."
        assert not home.venv.exists()
    other.join()
    assert read_record(home).complete


def test_an_environment_that_was_handed_out_is_used_as_it_is(home, messages):
    record = ensure(home, messages)
    home.uv.unlink()
    messages.clear()
    assert ensure(home, messages) == record and messages == []


def test_the_programs_hold_the_lock_and_their_words_are_kept(home):
    code = "import os, sys; print('to the user'); os.fstat(int(sys.argv[1])); sys.exit(3)"
    with install.alone(home, print) as held:
        command = [sys.executable, "-c", code, held]
        with pytest.raises(
            SetupError, match="(?s)could not try it. python.* says:\n  to the user\n"
        ):
            installers.run(command, os.environ, "try it", cwd=home.root, held=held)


# --- system packages


@pytest.mark.parametrize(
    ("uid", "sudo", "stale", "commands"),
    [(0, False, False, 1), (0, False, True, 3), (1000, True, False, 2), (1000, False, False, 1)],
)
def test_system_packages(monkeypatch, uid, sudo, stale, commands):
    present, ran = {"bubblewrap"}, []

    def quietly(command):
        ran.append(command)
        if command[-1] == "true":
            return sudo
        if "install" in command:
            if stale and not any("update" in c for c in ran):
                return False
            present.update(command[command.index("--no-install-recommends") + 1 :])
        return True

    monkeypatch.setattr(installers, "_quietly", quietly)
    monkeypatch.setattr(installers, "_is_installed", present.__contains__)
    monkeypatch.setattr(installers.shutil, "which", lambda name: name)
    monkeypatch.setattr(os, "geteuid", lambda: uid)
    missing = install.system_packages(["chromium", "bubblewrap"])
    assert missing == ([] if uid == 0 or sudo else ["chromium"])
    assert len(ran) == commands


def test_without_apt_all_that_is_missing_is_returned(monkeypatch):
    monkeypatch.setattr(installers, "_is_installed", lambda name: False)
    monkeypatch.setattr(installers.shutil, "which", lambda name: None)
    assert install.system_packages(["chromium"]) == ["chromium"]


# --- start, kernel, torch, clean


def test_jupyterlab_shows_the_whole_course_and_asks_nothing(tmp_path):
    options = start.options(ROOT, is_root=False)
    assert f"--ServerApp.root_dir={ROOT}" in options and "--allow-root" not in options
    assert "--allow-root" in start.options(ROOT, is_root=True)
    start.write_settings(tmp_path)
    (written,) = tmp_path.rglob("overrides.json")
    notification = json.loads(written.read_text())["@jupyterlab/apputils-extension:notification"]
    assert notification == {"fetchNews": "false", "checkForUpdates": False}
    written.write_text("the learner's own")
    start.write_settings(tmp_path)
    assert written.read_text() == "the learner's own"


def test_jupyterlab_takes_the_options_and_shows_nothing_of_nbgrader_and_voila(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("JUPYTER_CONFIG_PATH", "/the/users/own")
    old = tmp_path / server.OWN_CONFIG / "jupyter_server_config.json"
    old.parent.mkdir(parents=True)
    old.write_text('{"of": "an older course"}')
    start.write_settings(tmp_path)
    variables = start.environment(tmp_path)
    assert variables["JUPYTER_CONFIG_PATH"].endswith(":/the/users/own")
    command = [sys.executable, "-m", "jupyter", "labextension", "list"]
    answer = subprocess.run(command, env=variables, capture_output=True, text=True)
    for name in ("nbgrader", "jupyterlab-preview"):
        assert re.search(rf"{name} v\S+ .*disabled", answer.stdout + answer.stderr)
    # A misspelt option would be ignored silently, so JupyterLab is asked what it made of them.
    command = [sys.executable, "-m", "jupyterlab", "--show-config-json", *start.options(ROOT, True)]
    answer = subprocess.run(command, env=variables, capture_output=True, text=True, check=True)
    shown = json.loads(answer.stdout)
    assert shown["LabApp"]["default_url"] == server.FIRST_PAGE
    assert shown["LabApp"]["extension_manager"] == "readonly"
    from jupyterlab.labapp import LabApp

    assert {"default_url", "check_for_updates_class", "extension_manager"} <= set(
        LabApp.class_traits()
    )
    assert (
        import_item(shown["ServerApp"]["kernel_manager_class"]).cull_idle_timeout.default_value
        == 1200
    )
    pages = shown["ServerApp"]["jpserver_extensions"]
    assert [name for name in pages if "nbgrader" in name and pages[name]] == []
    assert sum("nbgrader" in name for name in pages) == len(server.NBGRADER_PAGES)
    assert pages["voila.server_extension"] is False


def test_the_kernel_comes_and_goes(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path))
    assert kernel.main([]) == kernel.main([]) == 0
    from jupyter_client.kernelspec import KernelSpecManager

    manager = KernelSpecManager(kernel_dirs=[str(tmp_path / "kernels")], ensure_native_kernel=False)
    result = manager.get_kernel_spec("trainium-course")
    assert result.argv[0] == str(ROOT / ".venv" / "bin" / "python")
    assert result.env["PYTHONNOUSERSITE"] == "1" and result.env["PYTHONPATH"] == ""
    assert not kernel.remove(tmp_path / "kernels" / "trainium-course", only_of=Home(tmp_path))
    assert kernel.main(["--remove"]) == kernel.main(["--remove"]) == 0
    assert not (tmp_path / "kernels" / "trainium-course").exists()
    assert "There is no kernel" in capsys.readouterr().out


def test_where_torch_xla_has_no_build_start_says_what_runs(monkeypatch, capsys):
    monkeypatch.setattr("platform.machine", lambda: "arm64")
    monkeypatch.setattr("platform.system", lambda: "Darwin")
    for name in ("write_settings", "bring_up_copies"):
        monkeypatch.setattr(start, name, lambda folder: None)
    started = []
    monkeypatch.setattr(os, "execve", lambda *given: started.append(given[1]))
    start.main(["--no-browser"])
    out = capsys.readouterr().out
    assert "torch-xla: no build for macOS on arm64. Here run the lessons and labs 09, 10" in out
    assert "GitHub Codespaces" in out and started[0][-1] == "--no-browser"
    with pytest.raises(SetupError, match="for macOS on arm64 there is one build of torch"):
        torch_command.main(["full"])


def test_torch_shows_and_refuses(home, monkeypatch, capsys):
    monkeypatch.setattr(torch_command, "ROOT", home.root)
    assert torch_command.main([]) == 0
    assert "* slim" in capsys.readouterr().out
    assert torch_command.main(["full"]) == 0
    torch_command.main([])
    assert "* full" in capsys.readouterr().out
    monkeypatch.setattr(builds, "driver", lambda: "/dev/nvidiactl")
    with pytest.raises(SetupError, match="found /dev/nvidiactl"):
        torch_command.main(["slim"])


def test_clean_keeps_the_work(home, monkeypatch, capsys):
    monkeypatch.setattr(clean, "ROOT", home.root)
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(home.root / "jupyter"))
    ensure(home, [])
    for name in ("notebooks/__pycache__/a.pyc", ".pytest_cache/x", "grading/.hypothesis/y"):
        (home.root / name).parent.mkdir(parents=True)
        (home.root / name).touch()
    for name in (".progress.json", "notebooks/mine.ipynb"):
        (home.root / name).touch()
    folder = kernel.kernel_folder(os.environ)
    folder.mkdir(parents=True)
    (folder / "kernel.json").write_text(json.dumps(kernel.specification(home)))
    assert clean.main([]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Removed .venv and .tools: 0.") and "Removed the kernel" in out
    names = {p.relative_to(home.root).as_posix() for p in home.root.rglob("*") if p.is_file()}
    own = {"calls", "pyproject.toml", "requirements.lock", "requirements-dev.lock"}
    assert names - own == {".progress.json", "notebooks/mine.ipynb"}
    assert clean.main([]) == 0
    assert capsys.readouterr().out == "Kept everything else, your work among it.\n"
