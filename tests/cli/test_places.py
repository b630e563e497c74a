"""Ready places: the image, the development container and the scripts of SageMaker."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from utils.course import catalog
from utils.course.catalog import ROOT

PLACES = ROOT / "utils" / "cli" / "places"
STUB = "import sys; open('asked', 'a').write(' '.join(sys.argv[1:]) + '\\n')\n"
CONDA = """#!/bin/sh
echo "$@" >> {log}
for word; do
  case $word in /*) mkdir -p $word/bin; ln -s {python} $word/bin/python ;; esac
done
"""
EXECUTE = """
from pathlib import Path
from utils.course.runner import execute
print(execute(Path({source!r}), Path({target!r})))
"""
FAKE_ARM = """
import platform, sys
platform.machine = lambda: "aarch64"
sys.modules["torch_xla"] = None
"""


def instructions() -> list[tuple[str, str]]:
    text = re.sub(r"\\\n\s*", "", (ROOT / "Containerfile").read_text())
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(line.split()[0], line.partition(" ")[2]) for line in lines]


def test_the_image_installs_when_it_is_built_and_runs_as_an_ordinary_user() -> None:
    steps = instructions()
    names = [name for name, _ in steps]
    assert names[:2] == ["ARG", "FROM"] and names[-1] == "CMD"
    base = steps[0][1].partition("=")[2]
    assert re.search(r"/python:3\.1[123]-slim", base)
    user, setup = names.index("USER"), steps.index(("RUN", setup_step()))
    assert steps[user][1] == "learner" and user < setup
    assert "USER" not in names[user + 1 :]
    values = dict(steps)
    assert json.loads(values["CMD"])[:3] == ["python3", "course.py", "start"]
    assert values["EXPOSE"] == "8888" and '"--port=8888"' in values["CMD"]
    probe = json.loads(values["HEALTHCHECK"].partition("CMD ")[2])
    assert "http://127.0.0.1:8888/api" in probe[2]
    compile(probe[2], "probe", "exec")
    # Answers and progress outlive the container.
    assert values["ENV"] == f"COURSE_PROGRESS={values['VOLUME']}/.progress.json"
    assert values["VOLUME"] == "${WORK}"
    assert values["ARG"] == f"WORK={values['WORKDIR']}/work"


def setup_step() -> str:
    return "python3 course.py setup && rm -rf .tools/cache"


def test_the_image_takes_nothing_along_that_git_ignores() -> None:
    kept_out = (ROOT / ".dockerignore").read_text().splitlines()
    ignored = (ROOT / ".gitignore").read_text().split()
    folders = {line.strip("/") for line in ignored if line.endswith("/") and "*" not in line}
    caches = {".pytest_cache", ".hypothesis", ".ruff_cache", "notebooks/reports"}  # of developers
    for name in folders - caches:
        assert name in kept_out or f"**/{name}" in kept_out, f"add {name} to .dockerignore"


def test_the_development_container_says_what_its_schema_knows() -> None:
    """devContainer.base.schema.json of the specification; Codespaces reads `openFiles`."""
    made = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text())
    words = {"name", "image", "updateContentCommand", "postCreateCommand"}
    known = words | {"hostRequirements", "forwardPorts", "portsAttributes", "customizations"}
    assert set(made) == known and all(isinstance(made[word], str) for word in words)
    needs = made["hostRequirements"]
    assert isinstance(needs["cpus"], int) and set(needs) == {"cpus", "memory", "storage"}
    assert all(re.fullmatch(r"\d+([tgmk]b)?", needs[key]) for key in ("memory", "storage"))
    assert set(made["portsAttributes"]) == set(map(str, made["forwardPorts"]))
    (first,) = made["customizations"]["codespaces"]["openFiles"]
    assert (ROOT / first.removeprefix("work/")).is_file()
    interpreter = made["customizations"]["vscode"]["settings"]["python.defaultInterpreterPath"]
    own = json.loads((ROOT / ".vscode" / "settings.json").read_text())
    assert interpreter.partition("/")[2] == own["python.defaultInterpreterPath"].partition("/")[2]
    for word in ("updateContentCommand", "postCreateCommand"):
        assert made[word].startswith("python3 course.py ")


@pytest.mark.parametrize("path", sorted(PLACES.glob("*.sh")), ids=lambda path: path.stem)
def test_scripts_are_sound(path: Path) -> None:
    assert len(path.read_bytes()) < 16384 * 3 / 4  # characters of a configuration, in base64
    linter = ["shellcheck"] if shutil.which("shellcheck") else ["bash", "-n"]
    done = subprocess.run([*linter, path], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A course whose verbs only note that they were asked."""
    folder = tmp_path / "origin"
    (folder / "utils" / "cli" / "places").mkdir(parents=True)
    (folder / "course.py").write_text(STUB)
    shutil.copy(PLACES / "studio_lab.sh", folder / "utils" / "cli" / "places")
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    for words in (["init"], ["add", "."], [*who, "commit", "-m", "all"]):
        subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True)
    return folder


def studio(home: Path, url: str) -> str:
    """Run the configuration in a home of its own; returns what it has logged in the end."""
    started = time.monotonic()
    env = {"HOME": str(home), "PATH": os.environ["PATH"], "COURSE_URL": url}
    done = subprocess.run(["bash", PLACES / "sagemaker_studio.sh"], env=env, capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    log = home / "trainium-course.log"
    while time.monotonic() < started + 60:
        if re.search("^(In|Set|fatal)", text := log.read_text(), re.MULTILINE):
            return text
        time.sleep(0.05)
    raise AssertionError(log.read_text())


def test_studio_clones_once_and_is_up_to_date_at_each_start(tmp_path: Path, clone: Path) -> None:
    home = tmp_path / "sagemaker-user"
    home.mkdir()
    assert studio(home, "").startswith("Set COURSE_URL in the lifecycle configuration.")
    assert "fatal: repository" in studio(home, str(tmp_path / "nowhere"))
    assert not (home / "trainium-course").exists()
    for _ in range(2):
        text = studio(home, str(clone))
        assert text.startswith(f"In {home}/trainium-course open work/notebooks/00_start_here.ipynb")
    asked = (home / "trainium-course" / "asked").read_text().splitlines()
    assert asked == ["kernel", "update"] * 2


@pytest.mark.parametrize("old", [False, True])
def test_studio_lab_takes_a_python_that_fits(tmp_path: Path, clone: Path, old: bool) -> None:
    home, tools = tmp_path / "studio-lab-user", tmp_path / "bin"
    home.mkdir()
    tools.mkdir()
    real = shutil.which("python3")
    conda = CONDA.format(python=real, log=tmp_path / "conda")
    for name, text in {
        "conda": conda,
        **({"python3": "#!/bin/sh\nexit 1\n"} if old else {}),
    }.items():
        (tools / name).write_text(text)
        (tools / name).chmod(0o755)
    env = {"HOME": str(home), "PATH": f"{tools}:{os.environ['PATH']}"}
    for _ in range(2):
        command = ["bash", clone / "utils" / "cli" / "places" / "studio_lab.sh"]
        done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0 and "choose the kernel Trainium course" in done.stdout
    assert (clone / "asked").read_text().splitlines() == ["kernel", "update"] * 2
    made = (tmp_path / "conda").read_text().splitlines() if old else []
    prefix = home / ".conda" / "envs" / "trainium-python"
    assert made == [f"create --quiet --yes --prefix {prefix} python=3.12 pip"] * old


PLAIN = [
    lesson.path for lesson in (*catalog.lessons(), *catalog.pages()) if "XLA" not in lesson.needs
]
PLAIN += [
    ROOT / "solutions" / lab.path.relative_to(ROOT / "labs")
    for lab in catalog.labs()
    if "XLA" not in lab.needs
]


@pytest.mark.exhaustive
@pytest.mark.parametrize("path", PLAIN, ids=lambda path: path.stem)
def test_what_needs_no_xla_runs_where_there_is_none(path: Path, tmp_path: Path) -> None:
    """As on Linux on ARM: torch_xla cannot be imported, and the machine says what it is."""
    (tmp_path / "sitecustomize.py").write_text(FAKE_ARM)
    target = tmp_path / path.name
    code = EXECUTE.format(source=str(path), target=str(target))
    env = os.environ | {"PYTHONPATH": f"{tmp_path}:{ROOT}", "COURSE_PROGRESS": str(tmp_path / "p")}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert "cell='', error=''" in done.stdout, done.stdout + done.stderr
    assert "no build for Linux on aarch64" in target.read_text()
