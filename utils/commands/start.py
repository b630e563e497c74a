"""Open the course in JupyterLab; arguments go to JupyterLab, such as --no-browser --port 8890."""

import json
import os
import sys
from pathlib import Path

NEEDS = "learner"
ROOT = Path(__file__).resolve().parents[2]
FIRST_PAGE = "/lab/tree/notebooks/00_start_here.ipynb"

# Asked of JupyterLab because nothing in the course may fetch anything while it runs.
SETTINGS = {
    "@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False}
}


def main(arguments: list[str]) -> int:
    write_settings(Path(sys.prefix))
    print("JupyterLab opens the course in your browser; Ctrl-C here, twice, stops it.", flush=True)
    command = [sys.executable, "-P", "-m", "jupyterlab", *options(ROOT, os.geteuid() == 0)]
    os.execv(sys.executable, [*command, *arguments])


def options(root: Path, is_root: bool) -> list[str]:
    """What JupyterLab is started with; the whole course is in its file browser."""
    given = [
        f"--ServerApp.root_dir={root}",
        f"--LabApp.default_url={FIRST_PAGE}",
        "--LabApp.check_for_updates_class=jupyterlab.handlers.announcements.NeverCheckForUpdate",
        "--LabApp.extension_manager=readonly",
        "--Application.log_level=WARN",
    ]
    return [*given, "--allow-root"] if is_root else given


def write_settings(prefix: Path) -> None:
    """Put JupyterLab's question about news away, in this environment; a file that is there is
    kept."""
    path = prefix / "share" / "jupyter" / "lab" / "settings" / "overrides.json"
    if not path.exists() and os.access(prefix, os.W_OK):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(SETTINGS, indent=1) + "\n")
