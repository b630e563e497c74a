"""Voila on the one notebook of the dashboard, and on nothing else.

What is served: the page, its scripts and styles, and a connection to the page's own kernel, over
which only widgets speak; Voila refuses to execute anything that a browser sends. No source is
shown, no file of the folder can be fetched, and no other template can be asked for. The server
listens on this machine only and answers only to its names, so that a page elsewhere cannot reach
it under a name of its own.

There is no token. The page holds public figures and what its visitor types, and a link has to open
for whoever gets it: a token in it would be worth more than what it protects. Other users of the
same machine can open the page too, and get a kernel of their own.

Nothing is fetched from elsewhere: our template names no other host, and the browser is told to
refuse any.
"""

import contextlib
import os
import socket
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from utils.course.notebooks import without_grammars

HERE = Path(__file__).parent
NOTEBOOK = HERE / "dashboard.ipynb"
TEMPLATES = HERE / "jupyter"
PORT = 8866
WIDGETS = ["@jupyter-widgets/jupyterlab-manager", "@voila-dashboards/widgets-manager8"]
# No script that stands in the page is run, whatever a visitor's text were to hold; Voila's scripts
# do set styles.
POLICY = "; ".join(
    (
        "default-src 'self'",
        "script-src 'self'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data:",
        "font-src 'self' data:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'self'",
    )
)
IDLE_S = 900


def settings(port: int, elsewhere: bool = False) -> dict[str, Any]:
    """Voila's settings. elsewhere: it may be asked under names that are not this machine's."""
    return {
        "Voila": {
            # What a user has set for other notebooks is not read.
            "config_file_paths": [],
            "notebook_path": str(NOTEBOOK),
            "root_dir": str(HERE),
            "ip": "localhost",
            "port": port,
            "port_retries": 0,
            # A warning that says of our own notebook that it is not trusted is of no use here.
            "log_level": "ERROR",
            "tornado_settings": {
                "allow_remote_access": elsewhere,
                # Voila's page says goodbye without the token against forged requests, and its
                # kernel would stay. All that can be posted is such a goodbye, to a kernel whose
                # name nobody can guess.
                "disable_check_xsrf": True,
                "headers": {"Content-Security-Policy": POLICY, "Referrer-Policy": "no-referrer"},
                "ws_ping_timeout": 30_000,
            },
        },
        "VoilaConfiguration": {
            "template": "tco",
            "allow_template_override": "NO",
            "allow_theme_override": "NO",
            "strip_sources": True,
            # Our template shows the last line of an error, never the calls.
            "show_tracebacks": True,
            "file_allowlist": [],
            "extension_allowlist": WIDGETS,
            "http_keep_alive_timeout": 120,
        },
        # A page that is closed stops its kernel; one whose computer went to sleep does not.
        "MappingKernelManager": {"cull_idle_timeout": IDLE_S, "cull_interval": 60},
    }


def in_use(port: int) -> bool:
    """Does somebody listen on that port of this machine?"""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def free_port(first: int = PORT) -> int:
    """The first port, from `first` on, that nobody listens on; `first` if there is none."""
    return next((port for port in range(first, first + 100) if not in_use(port)), first)


def serve(arguments: Sequence[str]) -> int:
    """Serve until it is stopped; arguments go to Voila. Returns the exit code."""
    with _writable_home():
        return _serve(arguments)


@contextlib.contextmanager
def _writable_home() -> Iterator[None]:
    """Jupyter and matplotlib keep small files at home: in a folder that is deleted at the end, if
    nothing can be written there.
    """
    if os.access(Path.home(), os.W_OK):
        yield
        return
    with tempfile.TemporaryDirectory() as folder:
        os.environ["HOME"] = folder
        yield


def _serve(arguments: Sequence[str]) -> int:
    without_grammars()
    from voila.app import Voila  # late: slow to load

    paths = [str(TEMPLATES), os.environ.get("JUPYTER_PATH", "")]
    os.environ["JUPYTER_PATH"] = os.pathsep.join(filter(None, paths))
    elsewhere = any(argument.startswith("--Voila.ip") for argument in arguments)
    app = Voila(config=_config(settings(free_port(), elsewhere)))
    app.initialize(list(arguments))
    if not 0 < app.port < 65536:
        print(f"course.py: no port {app.port}: give one from 1 to 65535", file=sys.stderr)
        return 1
    if in_use(app.port):
        message = f"course.py: port {app.port} is in use: give another one, such as --port"
        print(message, free_port(app.port + 1), file=sys.stderr)
        return 1
    print(
        f"What would it cost? The page is at {app.connection_url}\nCtrl-C here stops it.",
        flush=True,
    )
    app.start()
    return 0


def _config(values: dict[str, Any]) -> Any:
    from traitlets.config import Config  # late: comes with Voila

    return Config(values)
