"""Give a class the course in its browsers: names, passwords, limits, hand-in, progress live.

The first start makes a folder for the class and a sheet with names and passwords to print; later
ones go on with it. Without --network only browsers on this machine reach the hub.
"""

import argparse
import contextlib
import datetime
import fcntl
import ipaddress
import os
import shutil
import socket
import ssl
import stat
import sys
from pathlib import Path
from typing import TextIO

from utils.cli import server
from utils.cli.home import Home, SetupError
from utils.cli.hub import people
from utils.cli.hub.people import ClassError
from utils.cli.installers import system_packages
from utils.course.catalog import ROOT
from utils.labs.grading import sandbox
from utils.labs.grading.confine import Limits

MEMORY_GB, PROCESSES = 3.0, 400


def main(argv: list[str]) -> int:
    """Run the command; returns its exit status."""
    given = _parse(argv)
    try:
        known = people.load(given.folder.absolute())
        address = network_address(given)
        names = check_certificate(given.certificate, given.key)
        scheme = "https" if names else "http"
        url = f"{scheme}://{names[0] if names else address}:{given.port}/"
        passwords = _passwords(known, given)
        if len(known.people) < 2:
            raise ClassError("the class has nobody yet: add --people 12, or --names FILE")
        if passwords:
            people.save(known)
            sheet = people.write_sheet(known, passwords, url)
            print(f"{len(passwords)} new passwords are in {sheet}: print it, then delete it.")
        if not given.only_people:
            _serve(given, known, address, url)
    except (ClassError, SetupError, sandbox.SandboxError) as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"The hub has ended. All work is in {given.folder}; the same command goes on.")
    return 0


def _parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "course.py hub", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add(
        "--folder", type=Path, default=ROOT / "classroom", help="of the class (default: classroom/)"
    )
    add("--people", type=int, default=0, metavar="N", help="person-1 to person-N are in the class")
    add("--names", type=Path, metavar="FILE", help="a name on each line: these are in the class")
    add("--new-password", metavar="NAME", help="for somebody who lost it")
    add("--only-people", action="store_true", help="start nothing")
    add("--port", type=int, default=8000, help="(default 8000)")
    add("--network", metavar="ADDRESS", help="let others in at this address of the machine")
    add("--certificate", type=Path, metavar="FILE", help="PEM with the chain; --network needs it")
    add("--key", type=Path, metavar="FILE", help="of the certificate, readable by you alone")
    add(
        "--memory",
        type=float,
        default=MEMORY_GB,
        metavar="GB",
        help="of each (default %(default)g)",
    )
    add("--idle", type=int, default=60, metavar="MIN", help="end idle servers after (default 60)")
    return parser.parse_args(argv)


def _passwords(known: people.Class, given: argparse.Namespace) -> dict[str, str]:
    shown = [f"Person {number}" for number in range(1, min(given.people, people.MOST + 1) + 1)]
    if given.names:
        try:
            shown += given.names.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise ClassError(f"{given.names} cannot be read: {error}") from None
    passwords = people.add(known, shown) if shown else {}
    if given.new_password:
        passwords |= people.renew(known, given.new_password)
    return passwords


def _serve(given: argparse.Namespace, known: people.Class, address: str, url: str) -> None:
    """Start the hub; returns when it has ended."""
    if not 0.5 <= given.memory <= 1000 or given.idle < 1:
        raise ClassError("--memory is half a GB or more, --idle a minute or more")
    lock = alone(known)
    if not shutil.which("bwrap"):
        system_packages(["bubblewrap"])  # where apt can; otherwise the sandbox says what to do
    host = sandbox.prepare()
    # Late: they belong to the group hub, and --help needs them not.
    from jupyterhub.app import JupyterHub
    from traitlets.config import Config

    from utils.cli.hub import proxy, settings

    server.write_settings(Path(sys.prefix))
    asked = settings.Settings(
        root=ROOT,
        folder=known.folder,
        host=host,
        limits=Limits(
            memory_bytes=int(given.memory * 1e9),
            processes=PROCESSES,
            files_bytes=settings.FILES_BYTES,
        ),
        node=proxy.command(Home(ROOT), print),
        address=address,
        port=given.port,
        page_port=_free_port(),
        certificate=str(given.certificate.absolute()) if given.certificate else "",
        key=str(given.key.absolute()) if given.key else "",
        idle_minutes=given.idle,
    )
    if not (asked.run / "proxy.pid").exists():  # that of a hub that was killed is ended below
        _check_free(address, given.port)
    os.umask(0o077)
    print(
        f"The class of {len(known.people) - 1} is at {url} ; Ctrl-C ends it, and all"
        f" work stays in {known.folder}.\nTo grade: python3 course.py grade {known.submissions}"
        " --out graded --lab lab03",
        flush=True,
    )
    os.chdir(known.folder)
    JupyterHub.instance(config=Config(settings.config(asked)))
    with lock:
        JupyterHub.launch_instance(argv=[])


def alone(known: people.Class) -> TextIO:
    """A lock of the class, while the file is open. Raises ClassError if another hub has it."""
    lock = open(known.folder / "lock", "a")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        raise ClassError(f"a hub with {known.folder} is running: end it first") from None
    return lock


def network_address(given: argparse.Namespace) -> str:
    """Where to listen. Raises ClassError for a network without a certificate."""
    if not given.network:
        return "127.0.0.1"
    try:
        address = ipaddress.ip_address(given.network)
    except ValueError:
        raise ClassError(
            f"--network {given.network}: give an address of this machine, such as 192.0.2.7,"
            " or 0.0.0.0 for all of them"
        ) from None
    if not address.is_loopback and not (given.certificate and given.key):
        raise ClassError(
            "passwords do not go over a network in the open: --network needs --certificate and"
            " --key (the guide's page on hubs says how to get them)"
        )
    return str(address)


def check_certificate(certificate: Path | None, key: Path | None) -> list[str]:
    """The names that it is for; none without one. Raises ClassError unless both files are there,
    belong together, and are of use today."""
    from cryptography import x509  # late: not for --help

    if not certificate and not key:
        return []
    if not certificate or not key:
        raise ClassError("--certificate and --key need each other")
    try:
        chain = x509.load_pem_x509_certificates(certificate.read_bytes())
        if stat.S_IMODE(key.stat().st_mode) & 0o077:
            raise ClassError(f"others can read {key}: chmod 600 {key}")
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, password="")
    except ssl.SSLError as error:
        raise ClassError(f"{key} is no key of {certificate}, or has a password: {error}") from None
    except (OSError, ValueError) as error:
        raise ClassError(f"the certificate cannot be used: {error}") from None
    now = datetime.datetime.now(datetime.UTC)
    start, end = chain[0].not_valid_before_utc, chain[0].not_valid_after_utc
    if not start <= now <= end:
        raise ClassError(f"{certificate} is valid from {start:%Y-%m-%d} to {end:%Y-%m-%d}, not now")
    with contextlib.suppress(x509.ExtensionNotFound):
        names = chain[0].extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        return [str(name.value) for name in names]
    raise ClassError(f"{certificate} names no host (subject alternative name): browsers refuse it")


def _check_free(address: str, port: int) -> None:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError as error:
            raise ClassError(
                f"{address}:{port} cannot be used ({error.strerror}): choose another --port"
            ) from None


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
