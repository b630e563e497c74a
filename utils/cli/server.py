"""How the Jupyter server of a learner is set up: its settings, its options, the copies it shows."""

import json
import os
from pathlib import Path

from utils.course import copies

ROOT = Path(__file__).resolve().parents[2]
FIRST_PAGE = f"/lab/tree/{copies.FOLDER}/notebooks/00_start_here.ipynb"

# Nothing in the course may fetch anything while it runs.
NO_NEWS = {
    "@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False}
}
# `test` and `grade` bring nbgrader, whose menus are of no use to a learner; `tco` brings Voila,
# which would add a button to every notebook and pages that run notebooks to the server.
NO_MENUS = {
    "disabledExtensions": {"@jupyter/nbgrader": True, "@voila-dashboards/jupyterlab-preview": True}
}
NBGRADER_PAGES = ("assignment_list", "course_list", "formgrader", "validate_assignment")
UNWANTED = (*(f"nbgrader.server_extensions.{n}" for n in NBGRADER_PAGES), "voila.server_extension")
NO_PAGES = {"ServerApp": {"jpserver_extensions": dict.fromkeys(UNWANTED, False)}}
# A kernel warns that it talks to JupyterLab without encryption; both are on this machine.
QUIET_KERNEL = "c.IPKernelApp.log_level = 40\n"
# The server ends idle notebooks. Started with -P, it would not find the course by itself.
FEW_KERNELS = f"""\
import sys

sys.path.append({str(ROOT)!r})
c.ServerApp.kernel_manager_class = "utils.course.kernels.FewKernels"
"""

STYLE = Path(__file__).resolve().parent / "jupyter"
"""The folder of `custom.css`, under which name JupyterLab looks for a style of its own."""

OWN_CONFIG = Path("share", "trainium-course")
SETTINGS = {
    Path("share", "jupyter", "lab", "settings", "overrides.json"): json.dumps(NO_NEWS, indent=1),
    Path("etc", "ipython", "ipython_kernel_config.py"): QUIET_KERNEL,
    OWN_CONFIG / "labconfig" / "page_config.json": json.dumps(NO_MENUS, indent=1),
    OWN_CONFIG / "jupyter_server_config.json": json.dumps(NO_PAGES, indent=1),
    OWN_CONFIG / "jupyter_server_config.py": FEW_KERNELS,
}


def bring_up_copies(root: Path) -> None:
    """Make the learner's own copies, or bring them to what the course's folder holds."""
    first = not copies.folder(root).exists()
    try:
        with copies.alone(root):
            message = copies.summary(copies.sync(root))
    except copies.CopiesError as error:
        message = f"The copies of lessons and labs are not brought up to date: {error}."
    if first:
        print(f"Your own copies of lessons and labs are in {copies.FOLDER}/, which git ignores.")
    if message:
        print(message)


def environment(prefix: Path) -> dict[str, str]:
    """The variables for JupyterLab: the present ones, and our own settings before the user's."""
    paths = [str(prefix / OWN_CONFIG), os.environ.get("JUPYTER_CONFIG_PATH", "")]
    return {**os.environ, "JUPYTER_CONFIG_PATH": os.pathsep.join(filter(None, paths))}


def options(root: Path, is_root: bool) -> list[str]:
    """What JupyterLab is started with; the whole course is in its file browser."""
    given = [
        f"--ServerApp.root_dir={root}",
        f"--LabApp.default_url={FIRST_PAGE}",
        "--LabApp.check_for_updates_class=jupyterlab.handlers.announcements.NeverCheckForUpdate",
        "--LabApp.extension_manager=readonly",
        "--LabApp.custom_css=True",
        f"--ServerApp.tornado_settings=static_custom_path={STYLE}",
        "--Application.log_level=WARN",
    ]
    return [*given, "--allow-root"] if is_root else given


def write_settings(prefix: Path) -> None:
    """Write the settings into this environment. A file that is there is kept, unless it is ours
    alone: an older course knew of fewer extensions.
    """
    for relative, content in SETTINGS.items():
        path = prefix / relative
        kept = path.exists() and OWN_CONFIG not in relative.parents
        if not kept and os.access(prefix, os.W_OK):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content.rstrip() + "\n")
