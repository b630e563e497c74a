"""What the hub is started with, for JupyterHub and for its page."""

import hashlib
import json
import os
import stat
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote

from utils.cli.hub import people
from utils.cli.hub.people import Class, ClassError
from utils.cli.server import FIRST_PAGE
from utils.labs.grading import confine
from utils.labs.grading.confine import Host, Limits

SERVICE = "class"
PAGE = f"/services/{SERVICE}/"
IDLE_MINUTES = 60
FILES_BYTES = 64 << 20


@dataclass(frozen=True)
class Settings:
    """address, port: where the proxy listens. page_port: of the page, on this machine only.
    certificate, key: files, for TLS. node: the command of the proxy.
    """

    root: Path
    folder: Path
    host: Host
    limits: Limits
    node: tuple[str, ...]
    address: str = "127.0.0.1"
    port: int = 8000
    page_port: int = 0
    certificate: str = ""
    key: str = ""
    idle_minutes: int = IDLE_MINUTES

    @property
    def people(self) -> Class:
        """The class, as its file says now: somebody may get a new password while the hub runs."""
        return people.load(self.folder)

    @cached_property
    def run(self) -> Path:
        """The folder of sockets: a short path of small letters, the same after a restart."""
        digest = hashlib.sha256(str(self.folder).encode()).hexdigest()
        path = Path("/tmp", f"course-hub-{digest[:12]}")
        path.mkdir(mode=0o700, exist_ok=True)
        status = path.lstat()
        private = stat.S_ISDIR(status.st_mode) and stat.S_IMODE(status.st_mode) == 0o700
        if not private or status.st_uid != os.geteuid():
            raise ClassError(f"{path} is there and not a private folder of yours: remove it")
        return path

    @property
    def hub_socket(self) -> Path:
        """Where the hub listens, for the proxy and for the people's servers."""
        return self.run / "hub" / "socket"

    def pid_file(self, name: str) -> Path:
        """Tells the process of somebody's sandbox; hub.pid beside it is of the parent of all."""
        return self.run / f"{name}.sandbox"

    def uid(self, name: str) -> int:
        """The user id of a person on this machine; 0: the hub's own, in a user namespace."""
        number = self.people.people[name].number
        return confine.highest_uid() - 10_000 - number if self.host.root else 0

    @property
    def url(self) -> str:
        """Where the proxy listens."""
        host = f"[{self.address}]" if ":" in self.address else self.address
        return f"http{'s' if self.certificate else ''}://{host}:{self.port}/"


def config(settings: Settings) -> dict[str, dict[str, Any]]:
    """The configuration of JupyterHub and its parts, by class."""
    folder, run = settings.folder, settings.run
    settings.hub_socket.parent.mkdir(exist_ok=True)
    settings.hub_socket.parent.chmod(0o755)  # inside a folder that is the hub's alone
    hub = f"http+unix://{quote(str(settings.hub_socket), safe='')}"
    page = {
        "name": SERVICE,
        "url": f"http://127.0.0.1:{settings.page_port}",
        "command": [sys.executable, "-P", "-m", "utils.cli.hub.pages"],
        "environment": {
            "PYTHONPATH": str(settings.root),
            "COURSE_HUB": json.dumps(
                {
                    "folder": str(folder),
                    "run": str(run),
                    "memory_bytes": settings.limits.memory_bytes,
                    "processes": settings.limits.processes,
                    "idle_minutes": settings.idle_minutes,
                }
            ),
        },
        "oauth_no_confirm": True,
        "display": False,
    }
    return {
        "JupyterHub": {
            "authenticator_class": "utils.cli.hub.spawner.ClassAuthenticator",
            "spawner_class": "utils.cli.hub.spawner.SandboxSpawner",
            "bind_url": settings.url,
            "hub_bind_url": hub,
            "hub_connect_url": hub,
            "hub_socket_mode": 0o666,  # in a folder of the hub, which sandboxes show to others
            "db_url": f"sqlite:///{folder / 'hub.sqlite'}",
            "cookie_secret_file": str(folder / "cookie_secret"),
            "pid_file": str(run / "hub.pid"),
            "ssl_cert": settings.certificate,
            "ssl_key": settings.key,
            "default_url": PAGE,
            "services": [page],
            "service_check_interval": 0,
            "log_level": 40,
            "load_roles": [
                {"name": "user", "scopes": ["self", f"access:services!service={SERVICE}"]},
                {  # not an administrator, who could open everybody's server: see the guide
                    "name": people.TEACHER,
                    "scopes": ["admin-ui", "list:users", "read:users", "servers"],
                    "users": [people.TEACHER],
                },
                {
                    "name": SERVICE,
                    "scopes": ["list:users", "read:servers", "delete:servers"],
                    "services": [SERVICE],
                },
            ],
        },
        "ConfigurableHTTPProxy": {
            "command": list(settings.node),
            "api_url": f"http+unix://{quote(str(run / 'proxy'), safe='')}",
            "pid_file": str(run / "proxy.pid"),
            "log_level": "error",
        },
        "Authenticator": {
            "allow_all": True  # of the class, as its file says at each log-in
        },
        "ClassAuthenticator": {"settings": settings},
        "SandboxSpawner": {
            "settings": settings,
            "env_keep": [],
            "default_url": FIRST_PAGE,
            "start_timeout": 300,
            "http_timeout": 120,
        },
    }
