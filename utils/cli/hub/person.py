"""What runs in a person's sandbox: `python -m utils.cli.hub.person SOCKET UID LIMITS ARGUMENTS`.

It becomes the person's user id, limits itself, brings the copies in work/ up to date and then is
the person's Jupyter server, on the socket that the hub opened.
"""

import os
import resource
import socket
import sys
from pathlib import Path

from utils.cli import server
from utils.course.catalog import ROOT


def main(arguments: list[str]) -> None:
    """Become the server; returns when it ends."""
    listener, uid, limits = int(arguments[0]), int(arguments[1]), arguments[2]
    # If the machine's memory ends all the same, the kernel ends a notebook before the hub.
    Path("/proc/self/oom_score_adj").write_text("500")
    if uid:
        os.setgroups([])
        os.setgid(uid)
        os.setuid(uid)
    for item in limits.split(","):
        name, _, value = item.partition("=")
        resource.setrlimit(getattr(resource, name), (int(value), int(value)))
    os.umask(0o077)
    Path(os.environ["HOME"]).mkdir(exist_ok=True)
    os.chdir(ROOT / "work")
    server.bring_up_copies(ROOT)
    os.environ |= server.environment(Path(sys.prefix))
    _serve(socket.socket(fileno=listener))
    from jupyterhub.singleuser import main as serve  # late: reads the environment

    # The port is looked at, in the sandbox's own empty network, and never opened.
    options = [*server.options(ROOT, False), "--ServerApp.port=8888"]
    sys.argv = ["jupyterhub-singleuser", *options, *arguments[3:]]
    serve()


def _serve(listener: socket.socket) -> None:
    """Let Jupyter's server take connections from the socket in place of opening a port: a folder
    with sockets that a learner may write to would lead the proxy to any socket of the machine."""
    from jupyter_server.serverapp import ServerApp

    def bind(app: ServerApp) -> None:
        app.http_server.add_socket(listener)

    listener.setblocking(False)
    ServerApp._bind_http_server = bind


if __name__ == "__main__":
    main(sys.argv[1:])
